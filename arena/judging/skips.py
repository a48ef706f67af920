"""What becomes of a call that failed: tried again, or given up under a code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from arena.judging.protocol import RATE_LIMIT_WAITS, Protocol
from arena.judging.verdict import ErrorCode


class CallFailure(StrEnum):
    """The codes of `arena.llm.errors`, and EMPTY for a call that went well and brought nothing."""

    RATE_LIMITED = "RATE_LIMITED"
    SERVER_ERROR = "SERVER_ERROR"
    TIMEOUT = "TIMEOUT"
    CONNECTION = "CONNECTION"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    UNSUPPORTED_PARAMETER = "UNSUPPORTED_PARAMETER"
    UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
    REFUSED = "REFUSED"
    AUTH = "AUTH"
    NOT_FOUND = "NOT_FOUND"
    BAD_REQUEST = "BAD_REQUEST"
    REDIRECT = "REDIRECT"
    BLOCKED_ADDRESS = "BLOCKED_ADDRESS"
    TOO_LARGE = "TOO_LARGE"
    EMPTY = "EMPTY"
    OTHER = "OTHER"


class SkipCode(StrEnum):
    UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    API_ERROR = "API_ERROR"
    TIMEOUT = "TIMEOUT"
    EMPTY_ANSWER = "EMPTY_ANSWER"
    OTHER_ERROR = "OTHER_ERROR"


# These say something about the model and the sample that another attempt cannot change.
LASTING_SKIPS = frozenset({SkipCode.UNSUPPORTED_INPUT, SkipCode.CONTEXT_OVERFLOW})

_SKIP_CODES = {
    CallFailure.RATE_LIMITED: SkipCode.API_ERROR,
    CallFailure.SERVER_ERROR: SkipCode.API_ERROR,
    CallFailure.TIMEOUT: SkipCode.TIMEOUT,
    CallFailure.CONNECTION: SkipCode.API_ERROR,
    CallFailure.CONTEXT_OVERFLOW: SkipCode.CONTEXT_OVERFLOW,
    CallFailure.UNSUPPORTED_PARAMETER: SkipCode.API_ERROR,
    CallFailure.UNSUPPORTED_INPUT: SkipCode.UNSUPPORTED_INPUT,
    CallFailure.REFUSED: SkipCode.API_ERROR,
    CallFailure.AUTH: SkipCode.API_ERROR,
    CallFailure.NOT_FOUND: SkipCode.API_ERROR,
    CallFailure.BAD_REQUEST: SkipCode.API_ERROR,
    # The next three are our own refusals, not the provider's errors.
    CallFailure.REDIRECT: SkipCode.OTHER_ERROR,
    CallFailure.BLOCKED_ADDRESS: SkipCode.OTHER_ERROR,
    CallFailure.TOO_LARGE: SkipCode.OTHER_ERROR,
    CallFailure.EMPTY: SkipCode.EMPTY_ANSWER,
    CallFailure.OTHER: SkipCode.OTHER_ERROR,
}
_ERROR_CODES = {
    CallFailure.RATE_LIMITED: ErrorCode.RATE_LIMITED,
    CallFailure.SERVER_ERROR: ErrorCode.SERVER_ERROR,
    CallFailure.CONNECTION: ErrorCode.SERVER_ERROR,
    CallFailure.TIMEOUT: ErrorCode.TIMEOUT,
    CallFailure.UNSUPPORTED_INPUT: ErrorCode.UNSUPPORTED_INPUT,
    CallFailure.REFUSED: ErrorCode.REFUSED,
    CallFailure.EMPTY: ErrorCode.EMPTY,
}
_UNCHANGING = frozenset(CallFailure) - {
    CallFailure.RATE_LIMITED,
    CallFailure.SERVER_ERROR,
    CallFailure.TIMEOUT,
    CallFailure.CONNECTION,
    CallFailure.EMPTY,
    CallFailure.OTHER,
}


def call_failure(code: str) -> CallFailure:
    """A code that a newer client may send and this table does not know is OTHER."""
    return CallFailure(code) if code in CallFailure.__members__ else CallFailure.OTHER


def trial_skip_code(code: str) -> SkipCode:
    return _SKIP_CODES[call_failure(code)]


def verdict_error_code(code: str) -> ErrorCode:
    return _ERROR_CODES.get(call_failure(code), ErrorCode.OTHER)


@dataclass(frozen=True, slots=True)
class RetryLimits:
    retries: int
    waits: int
    # The failures that are worth one of the retries.
    retried: frozenset[CallFailure]
    # The failures that may be waited out without costing a retry.
    waited: frozenset[CallFailure]
    first_delay_s: float = 1.0
    longest_delay_s: float = 60.0
    longest_retry_after_s: float = 600.0


TRIAL_LIMITS = RetryLimits(
    retries=1,
    waits=RATE_LIMIT_WAITS,
    retried=frozenset(CallFailure) - _UNCHANGING,
    waited=frozenset(CallFailure) - _UNCHANGING - {CallFailure.EMPTY},
)


def judge_limits(protocol: Protocol) -> RetryLimits:
    retried = {CallFailure.SERVER_ERROR}
    if protocol.preset == "audited":
        # The majority preset retries the server's own errors and no other exception.
        retried.add(CallFailure.CONNECTION)
    return RetryLimits(
        retries=protocol.server_error_retries,
        waits=protocol.rate_limit_waits,
        retried=frozenset(retried),
        waited=frozenset({CallFailure.RATE_LIMITED}),
    )


@dataclass(frozen=True, slots=True)
class Retry:
    delay_s: float
    # A wait raises the row's `waits`, anything else its `failures`.
    is_wait: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    code: CallFailure


def next_step(
    code: str,
    *,
    transient: bool,
    counts_as_wait: bool,
    failures: int,
    waits: int,
    limits: RetryLimits,
    draw: float,
    retry_after_s: float | None = None,
) -> Retry | GiveUp:
    """What follows an error. `failures` and `waits` are what was counted before it; draw is in [0, 1)."""
    failure = call_failure(code)
    if failure in _UNCHANGING:
        return GiveUp(failure)
    # A silence has already cost its whole timeout; only a 408 that the server sent is waited for.
    passes = counts_as_wait or (transient and failure is not CallFailure.TIMEOUT)
    if failure in limits.waited and passes and waits < limits.waits:
        return Retry(_delay_s(waits, limits, draw, retry_after_s), is_wait=True)
    # A server error that will not pass (501, say) is not worth a judge's retry.
    is_hopeless = failure is CallFailure.SERVER_ERROR and not transient
    if failure in limits.retried and not is_hopeless and failures < limits.retries:
        return Retry(_delay_s(failures, limits, draw, retry_after_s), is_wait=False)
    return GiveUp(failure)


def _delay_s(attempt: int, limits: RetryLimits, draw: float, retry_after_s: float | None) -> float:
    # The exponent is bounded before the power is taken: 2.0 ** 1100 overflows.
    backoff_s = min(limits.longest_delay_s, limits.first_delay_s * 2.0 ** min(attempt, 32))
    jittered_s = backoff_s * (0.5 + 0.5 * draw)
    if retry_after_s is None or not math.isfinite(retry_after_s) or retry_after_s <= 0:
        return jittered_s
    # Never sooner than asked; the jitter goes on top, or all who were refused come back at once.
    asked_s = min(retry_after_s, limits.longest_retry_after_s)
    return asked_s + draw * min(asked_s, limits.first_delay_s)
