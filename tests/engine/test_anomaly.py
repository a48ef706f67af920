from __future__ import annotations

import math
from math import comb, exp, lgamma, log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratings.engine.anomaly import ALPHA, Screening, SessionVotes, screen
from tests.engine.helpers import shared_json


def published() -> dict[str, Any]:
    found: dict[str, Any] = shared_json("reference/omniarena_reference.json")["anomaly"]
    return found


def as_session(row: list[Any]) -> SessionVotes:
    session, left, right, both_good, both_bad, times = row
    return SessionVotes(session, left, right, both_good + both_bad, times)


def by_session(found: tuple[Screening, ...]) -> dict[object, Screening]:
    return {one.session: one for one in found}


def crowd(votes: int, n: int) -> list[SessionVotes]:
    return [SessionVotes(f"other{number}", votes // 2, votes - votes // 2, 0) for number in range(n)]


def test_published_verdicts() -> None:
    found = by_session(screen([as_session(row) for row in published()["sessions"]], rule="all"))
    words = {
        "volume": lambda one: f"volume p={one.volume_p:.2e} (n={one.votes} vs mean {published()['mean_votes']:.1f})",
        "position": lambda one: f"position p={one.position_p:.2e} (left {one.left}/{one.left + one.right})",
        "speed": lambda one: f"speed median_gap={one.median_gap_s:.2f}s < 1.5s",
    }

    assert published()["alpha_per_test"] == pytest.approx(ALPHA / 3)
    assert {name: [words[test](one) for test in one.reasons] for name, one in found.items() if one.flagged} == (
        published()["flagged"]
    )
    assert all(one.excluded == one.flagged for one in found.values())


def test_by_default_volume_flags_and_does_not_exclude() -> None:
    found = by_session(screen([as_session(row) for row in published()["sessions"]]))

    assert found["stuffer"].flagged
    assert not found["stuffer"].excluded
    assert {name for name, one in found.items() if one.excluded} == {"lefty15", "fast8"}


@pytest.mark.parametrize("mean", [1, 2, 3, 5, 8, 9, 10, 15, 20, 30])
def test_published_number_of_votes_that_is_too_many(mean: int) -> None:
    needed = published()["votes_needed_to_flag_by_mean"][str(mean)]

    def flagged(votes: int) -> bool:
        # As many others as keep the mean over all, the suspect included, at the value asked for.
        rest = mean * 100 - votes
        sessions = [SessionVotes("suspect", votes, 0, 0), SessionVotes("rest", rest, 0, 0)]
        sessions += [SessionVotes(number, 0, 0, 0) for number in range(98)]
        return "volume" in by_session(screen(sessions))["suspect"].reasons

    assert flagged(needed)
    assert not flagged(needed - 1)


def test_the_suspect_is_in_the_first_mean_and_not_in_the_second() -> None:
    found = screen([SessionVotes("suspect", 13, 12, 0), *crowd(6, 2)])[0]

    def upper_tail(mean: float) -> float:
        return 1 - sum(exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(25))

    assert found.volume_p == pytest.approx(upper_tail(37 / 3), rel=1e-9)
    assert found.volume_p_others == pytest.approx(upper_tail(6.0), rel=1e-4)
    # Among three sessions the suspect hides itself in the mean; against the others it stands out.
    assert found.volume_p > ALPHA / 3 > found.volume_p_others
    assert not found.flagged


def test_a_single_session_has_no_others() -> None:
    (found,) = screen([SessionVotes("alone", 30, 30, 0)])

    assert found.volume_p is not None
    assert found.volume_p > 0.4
    assert found.volume_p_others is None
    assert not found.flagged


def test_others_without_a_vote_give_no_mean() -> None:
    assert screen([SessionVotes("one", 30, 30, 0), SessionVotes("none", 0, 0, 0)])[0].volume_p_others is None


@settings(max_examples=50, deadline=None)
@given(left=st.integers(0, 60), right=st.integers(0, 60))
def test_position_is_the_exact_binomial(left: int, right: int) -> None:
    (found,) = screen([SessionVotes("one", left, right, 0)])
    n = left + right
    if n < 15:
        assert found.position_p is None
        return
    extreme = [k for k in range(n + 1) if comb(n, k) <= comb(n, left)]
    assert found.position_p == pytest.approx(sum(comb(n, k) for k in extreme) / 2**n)
    (mirrored,) = screen([SessionVotes("one", right, left, 0)])
    assert mirrored.position_p == pytest.approx(found.position_p)


def test_small_sessions_are_not_tested() -> None:
    found = screen([SessionVotes("small", 14, 0, 5, [0.1 * step for step in range(7)]), *crowd(1, 50)])[0]

    assert (found.volume_p, found.position_p, found.median_gap_s, found.reasons) == (None, None, None, ())


def test_speed_takes_the_median_gap_in_any_order() -> None:
    times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0, 200.0]
    (found,) = screen([SessionVotes("quick", 4, 4, 0, times[::-1])])

    assert found.median_gap_s == 1.0
    assert found.reasons == ("speed",)
    assert found.excluded
    assert SessionVotes("one vote", 1, 0, 0, [3.0]).median_gap_s is None


def test_ties_are_votes_and_not_sides() -> None:
    (found,) = screen([SessionVotes("undecided", 0, 0, 40)])

    assert found.votes == 40
    assert found.volume_p is not None
    assert found.position_p is None


def test_no_sessions() -> None:
    assert screen([]) == ()


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown rule"):
        screen([], rule="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="alpha"):
        screen([], alpha=0.0)
    with pytest.raises(ValueError, match="twice"):
        screen([SessionVotes("a", 1, 0, 0), SessionVotes("a", 1, 0, 0)])
    with pytest.raises(ValueError, match="negative"):
        SessionVotes("a", -1, 0, 0)
    with pytest.raises(ValueError, match="not finite"):
        SessionVotes("a", 1, 0, 0, [math.nan])
