from __future__ import annotations

import datetime as dt
from dataclasses import asdict, replace
from typing import Any

import pytest

from annotation.quality import (
    CastVote,
    agreement_of,
    contested,
    majority,
    pace,
    rated,
    rater_figures,
    screened,
)

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
MEANS = {"left": "first", "right": "second", "both_good": "tie", "both_bad": "tie", "skip": ""}
TURNED = {"left": "right", "right": "left"}


def cast(rater: int, match: int | None, choice: str = "left", **values: Any) -> CastVote:
    defaults = {
        "assignment": rater * 1000 + (match or 0),
        "sample": match,
        "kind": "normal",
        "standing": "no_choice" if choice == "skip" else "counted",
        "outcome": MEANS[choice],
        "created_at": NOW,
    }
    return CastVote(rater=rater, match=match, choice=choice, **{**defaults, **values})


def swapped(vote: CastVote) -> CastVote:
    """The same opinion by somebody who saw the answers the other way round."""
    return replace(vote, choice=TURNED.get(vote.choice, vote.choice))


VOTES = [
    cast(rater, match, ("left", "right", "both_good", "both_bad")[(match * 7 + rater * (match % 3)) % 4])
    for rater in (1, 2, 3)
    for match in range(24)
]


def test_agreement_is_the_same_whatever_side_an_answer_stood_on() -> None:
    turned = [swapped(vote) if (vote.match or 0) % 2 else vote for vote in VOTES]
    found, expected = (agreement_of(votes, resamples=50) for votes in (turned, VOTES))
    assert {name: asdict(one) for name, one in found.items()} == {name: asdict(one) for name, one in expected.items()}
    kappas = {rater: figures.kappa for rater, figures in rater_figures(VOTES, resamples=50).items()}
    assert {rater: one.kappa for rater, one in rater_figures(turned, resamples=50).items()} == kappas


def test_left_share_and_ties_are_of_normal_pairs_alone() -> None:
    votes = [
        cast(1, 1, "left"),
        cast(1, 2, "right"),
        cast(1, 3, "both_bad"),
        cast(1, 4, "skip"),
        cast(1, None, "left", kind="gold", standing="gold", expected="first"),
        cast(1, None, "left", kind="gold", standing="gold", expected="tie", assignment=9),
        cast(1, 1, "left", kind="repeat", standing="repeat", repeat_of=1001, outcome="second", assignment=7),
        cast(1, 3, "both_good", kind="repeat", standing="repeat", repeat_of=1003, assignment=8),
    ]
    found = rater_figures(votes)[1]
    assert (found.left.successes, found.left.trials) == (1, 2)
    assert (found.ties.successes, found.ties.trials) == (1, 3)
    assert (found.skips.successes, found.skips.trials) == (1, 8)
    # A tie stays a tie, whether both were good or bad.
    assert (found.flips.successes, found.flips.trials) == (1, 2)
    assert (found.gold.successes, found.gold.trials) == (1, 2)
    assert found.median_active_ms is None
    assert found.counted == 3
    assert found.is_thin


def test_a_repeat_of_a_pair_that_was_skipped_since_tells_nothing() -> None:
    votes = [cast(1, 1, "skip"), cast(1, 1, "left", kind="repeat", standing="repeat", repeat_of=1001, assignment=5)]
    assert rater_figures(votes)[1].flips.share is None


def test_only_counted_votes_of_raters_who_are_kept_are_rated() -> None:
    votes = [cast(1, 1), cast(2, 1), cast(3, 1, standing="over_quota"), cast(3, 2, "skip")]
    assert [vote.rater for vote in rated(votes, {2})] == [1]


def test_the_lowest_agreement_comes_first() -> None:
    says = {
        1: ["left", "left", "right"],
        2: ["left", "right"],
        3: ["left", "left"],
        4: ["both_good", "both_bad", "left"],
    }
    votes = [cast(rater, match, choice) for match, said in says.items() for rater, choice in enumerate(said)]
    assert [(one.match, one.votes) for one in contested(votes)] == [(4, 3), (2, 2), (1, 3)]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["a", "a", "b"], "a"), (["a", "b"], None), ([], None), (["a", "b", "b", "a", "c"], None), (["c"], "c")],
)
def test_a_majority_says_more_than_anything_else(labels: list[str], expected: str | None) -> None:
    assert majority(labels) == expected


def test_pace_counts_from_the_first_day_of_the_week_with_votes() -> None:
    moments = [NOW, NOW, NOW - dt.timedelta(days=1), NOW - dt.timedelta(days=30)]
    found = pace(moments, left=6, now=NOW)
    assert (found.per_day, found.days_left) == (1.5, 4.0)
    assert [n for _day, n in found.days] == [0, 0, 0, 0, 0, 1, 2]
    assert pace([], left=6, now=NOW).days_left is None
    assert pace([], left=0, now=NOW).days_left == 0


def test_the_screen_sees_one_sided_and_hasty_sessions_and_nobody_else() -> None:
    votes = [cast(1, match, "left") for match in range(30)] + [cast(2, match, "right") for match in range(30)]
    votes += [cast(3, match, ("left", "right")[match % 2]) for match in range(10)]
    times = {1: [10.0 * n for n in range(30)], 3: [0.4 * n for n in range(10)]}
    found = {one.session: one for one in screened(votes, [1, 3, 4], times)}
    assert set(found) == {1, 3, 4}
    assert (found[1].excluded, found[1].reasons[-1]) == (True, "position")
    assert found[3].reasons == ("speed",)
    assert found[4].votes == 0
    assert not found[4].flagged
