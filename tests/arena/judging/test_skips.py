from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.judging.protocol import AUDITED, MAJORITY
from arena.judging.skips import (
    LASTING_SKIPS,
    TRIAL_LIMITS,
    CallFailure,
    GiveUp,
    Retry,
    RetryLimits,
    SkipCode,
    judge_limits,
    next_step,
    trial_skip_code,
    verdict_error_code,
)
from arena.judging.verdict import ErrorCode

TRANSIENT = {CallFailure.RATE_LIMITED, CallFailure.SERVER_ERROR, CallFailure.CONNECTION}
UNCHANGING = sorted(set(CallFailure) - TRANSIENT - {CallFailure.TIMEOUT, CallFailure.EMPTY, CallFailure.OTHER})
BOTH = pytest.mark.parametrize("limits", [judge_limits(AUDITED), judge_limits(MAJORITY)], ids=["audited", "majority"])


def step(code: str, limits: RetryLimits, failures: int = 0, waits: int = 0, **changes: Any) -> Retry | GiveUp:
    usual: dict[str, Any] = {
        "transient": code in TRANSIENT,
        "counts_as_wait": code == CallFailure.RATE_LIMITED,
        "draw": 0.0,
    }
    return next_step(code, failures=failures, waits=waits, limits=limits, **{**usual, **changes})


def spent_until_given_up(code: str, limits: RetryLimits, **changes: Any) -> tuple[int, int]:
    failures = waits = 0
    while isinstance(result := step(code, limits, failures, waits, **changes), Retry):
        waits += result.is_wait
        failures += not result.is_wait
    assert result.code == code
    return failures, waits


@pytest.mark.parametrize(
    ("code", "skip"),
    [
        ("UNSUPPORTED_INPUT", SkipCode.UNSUPPORTED_INPUT),
        ("CONTEXT_OVERFLOW", SkipCode.CONTEXT_OVERFLOW),
        ("RATE_LIMITED", SkipCode.API_ERROR),
        ("SERVER_ERROR", SkipCode.API_ERROR),
        ("CONNECTION", SkipCode.API_ERROR),
        ("UNSUPPORTED_PARAMETER", SkipCode.API_ERROR),
        ("AUTH", SkipCode.API_ERROR),
        ("NOT_FOUND", SkipCode.API_ERROR),
        ("BAD_REQUEST", SkipCode.API_ERROR),
        ("REFUSED", SkipCode.API_ERROR),
        ("TIMEOUT", SkipCode.TIMEOUT),
        ("EMPTY", SkipCode.EMPTY_ANSWER),
        ("REDIRECT", SkipCode.OTHER_ERROR),
        ("BLOCKED_ADDRESS", SkipCode.OTHER_ERROR),
        ("TOO_LARGE", SkipCode.OTHER_ERROR),
        ("OTHER", SkipCode.OTHER_ERROR),
        ("SOMETHING_NEW", SkipCode.OTHER_ERROR),
    ],
)
def test_skip_codes(code: str, skip: SkipCode) -> None:
    assert trial_skip_code(code) is skip


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("RATE_LIMITED", ErrorCode.RATE_LIMITED),
        ("SERVER_ERROR", ErrorCode.SERVER_ERROR),
        ("CONNECTION", ErrorCode.SERVER_ERROR),
        ("TIMEOUT", ErrorCode.TIMEOUT),
        ("UNSUPPORTED_INPUT", ErrorCode.UNSUPPORTED_INPUT),
        ("REFUSED", ErrorCode.REFUSED),
        ("EMPTY", ErrorCode.EMPTY),
        ("CONTEXT_OVERFLOW", ErrorCode.OTHER),
        ("AUTH", ErrorCode.OTHER),
        ("SOMETHING_NEW", ErrorCode.OTHER),
    ],
)
def test_verdict_error_codes(code: str, error: ErrorCode) -> None:
    assert verdict_error_code(code) is error


def test_every_failure_has_codes() -> None:
    assert {trial_skip_code(failure) for failure in CallFailure} == set(SkipCode)
    assert all(verdict_error_code(failure) in ErrorCode for failure in CallFailure)
    assert set(SkipCode) > LASTING_SKIPS


@pytest.mark.parametrize("code", UNCHANGING)
@pytest.mark.parametrize("limits", [TRIAL_LIMITS, judge_limits(AUDITED), judge_limits(MAJORITY)])
def test_what_will_not_change_ends_at_once(code: str, limits: RetryLimits) -> None:
    result = step(code, limits, transient=True, counts_as_wait=True)
    assert result == GiveUp(CallFailure(code))


@pytest.mark.parametrize("code", sorted(TRANSIENT))
def test_a_trial_waits_out_transient_errors_then_retries_once(code: str) -> None:
    assert spent_until_given_up(code, TRIAL_LIMITS) == (1, 8)


@pytest.mark.parametrize("code", ["TIMEOUT", "EMPTY", "OTHER"])
def test_a_trial_is_asked_once_more_after_other_failures(code: str) -> None:
    assert spent_until_given_up(code, TRIAL_LIMITS) == (1, 0)


def test_a_silent_stream_is_not_waited_for_even_where_it_may_pass() -> None:
    assert spent_until_given_up("TIMEOUT", TRIAL_LIMITS, transient=True) == (1, 0)
    assert spent_until_given_up("TIMEOUT", TRIAL_LIMITS, transient=True, counts_as_wait=True) == (1, 8)


@BOTH
def test_a_judge_retries_server_errors_twice(limits: RetryLimits) -> None:
    assert spent_until_given_up("SERVER_ERROR", limits) == (2, 0)
    assert spent_until_given_up("SERVER_ERROR", limits, counts_as_wait=True) == (2, 0)
    assert spent_until_given_up("SERVER_ERROR", limits, transient=False) == (0, 0)


@BOTH
def test_a_judge_waits_out_rate_limits(limits: RetryLimits) -> None:
    assert spent_until_given_up("RATE_LIMITED", limits) == (0, 8)


@BOTH
@pytest.mark.parametrize("code", ["TIMEOUT", "EMPTY", "OTHER"])
def test_a_judge_is_not_called_again_after_other_failures(limits: RetryLimits, code: str) -> None:
    assert spent_until_given_up(code, limits, transient=True) == (0, 0)


def test_only_the_audited_preset_retries_lost_connections() -> None:
    assert spent_until_given_up("CONNECTION", judge_limits(AUDITED)) == (2, 0)
    assert spent_until_given_up("CONNECTION", judge_limits(MAJORITY)) == (0, 0)


def test_limits_follow_the_protocol() -> None:
    limits = judge_limits(AUDITED.with_overrides({"server_error_retries": 0, "rate_limit_waits": 3}))
    assert spent_until_given_up("SERVER_ERROR", limits) == (0, 0)
    assert spent_until_given_up("RATE_LIMITED", limits) == (0, 3)


def delay(waits: int = 0, **changes: Any) -> float:
    result = step("RATE_LIMITED", TRIAL_LIMITS, waits=waits, **changes)
    assert isinstance(result, Retry)
    return result.delay_s


def test_backoff_doubles_to_its_cap() -> None:
    assert [delay(waits) for waits in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [delay(waits, draw=0.5) for waits in range(3)] == [0.75, 1.5, 3]


def test_retry_after_is_honoured_and_capped() -> None:
    assert delay(retry_after_s=20.0) == 20
    assert delay(retry_after_s=20.0, draw=0.5) == 20.5
    assert delay(retry_after_s=1e9) == TRIAL_LIMITS.longest_retry_after_s


@pytest.mark.parametrize("nonsense", [None, 0.0, -5.0, float("nan"), float("inf")])
def test_a_retry_after_that_says_nothing_is_ignored(nonsense: float | None) -> None:
    assert delay(2, retry_after_s=nonsense) == 2


@given(
    waits=st.integers(0, 5_000),
    draw=st.floats(0, 1, exclude_max=True),
    retry_after_s=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
def test_delays_are_bounded(waits: int, draw: float, retry_after_s: float | None) -> None:
    limits = judge_limits(AUDITED.with_overrides({"rate_limit_waits": 1_000}))
    result = step("RATE_LIMITED", limits, waits=waits, draw=draw, retry_after_s=retry_after_s)
    if waits >= 1_000:
        assert result == GiveUp(CallFailure.RATE_LIMITED)
    else:
        assert isinstance(result, Retry)
        assert 0 < result.delay_s <= limits.longest_retry_after_s + limits.first_delay_s
