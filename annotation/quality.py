"""How far votes can be relied on: pure figures over plain rows.

A vote is coded by the answer that it prefers in the canonical order, never by the side of the screen, so raters who
saw the sides swapped and prefer the same answer agree.
"""

from __future__ import annotations

import datetime as dt
import statistics
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ratings.engine.agreement import (
    CATEGORIES,
    Agreement,
    Coding,
    Estimate,
    Votes,
    Wilson,
    against_others,
    by_coding,
    wilson,
)
from ratings.engine.anomaly import Screening, SessionVotes, screen

CHOICES = ("left", "right", "both_good", "both_bad")
# Below so many a share says little; pages show it faintly.
FEW = 20
# Each pair of raters gets a kappa of its own up to so many of them.
MOST_RATERS_IN_PAIRS = 12
RESAMPLES = 400
PACE_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class CastVote:
    """A vote or skip that stands, on a pair of any kind.

    Attributes
    ----------
    rater, assignment : int
    match, sample : int or None
        None for gold.
    kind : str
        normal, gold or repeat.
    standing : str
        Of `annotation.models.Vote.Standing`.
    choice, outcome : str
        As said, and in the canonical order: first, second, tie, or empty for a skip.
    repeat_of : int or None
        The assignment that a repeat shows again.
    expected : str
        Of a gold item.
    could_see_names : bool
    active_ms : int or None
    created_at : datetime
    """

    rater: int
    assignment: int
    match: int | None
    sample: int | None
    kind: str
    standing: str
    choice: str
    outcome: str
    repeat_of: int | None = None
    expected: str = ""
    could_see_names: bool = False
    active_ms: int | None = None
    created_at: dt.datetime

    @property
    def label(self) -> str:
        """The category in the four-way coding."""
        return self.outcome if self.outcome in {"first", "second"} else self.choice


def rated(votes: Iterable[CastVote], excluded: Collection[int] = ()) -> list[CastVote]:
    """What enters results: counted votes on normal pairs, without those of raters who are left out."""
    return [vote for vote in votes if vote.standing == "counted" and vote.rater not in excluded]


def agreement_of(votes: Sequence[CastVote], *, resamples: int = RESAMPLES) -> Mapping[Coding, Agreement]:
    """Agreement of rated votes in the three codings, with intervals over samples."""
    rows: list[tuple[Hashable, Hashable, str]] = [(vote.match, vote.rater, vote.label) for vote in votes]
    samples: dict[Hashable, Hashable] = {vote.match: vote.sample for vote in votes}
    pairs = len({vote.rater for vote in votes}) <= MOST_RATERS_IN_PAIRS
    return by_coding(rows, samples, resamples=resamples, pairs=pairs)


@dataclass(frozen=True, kw_only=True)
class RaterFigures:
    """One rater's figures; a share without trials has no value, which is not zero."""

    rater: int
    votes: int
    counted: int
    # Against the majority of the others, ties merged; None where the rater has no rated vote.
    kappa: Estimate | None
    left: Wilson
    ties: Wilson
    skips: Wilson
    flips: Wilson
    gold: Wilson
    median_active_ms: float | None

    @property
    def is_thin(self) -> bool:
        return self.votes < FEW


def rater_figures(
    votes: Sequence[CastVote], excluded: Collection[int] = (), *, resamples: int = RESAMPLES
) -> dict[int, RaterFigures]:
    """Every rater who said anything, in the order of first appearance."""
    own: dict[int, list[CastVote]] = {}
    for vote in votes:
        own.setdefault(vote.rater, []).append(vote)
    entering = rated(votes, excluded)
    rows = [(vote.match, vote.rater, vote.label) for vote in entering]
    samples: dict[Hashable, Hashable] = {vote.match: vote.sample for vote in entering}
    kappas = against_others(Votes.from_rows(rows, "ties_merged", samples), resamples=resamples)
    outcomes = {vote.assignment: vote.outcome for vote in votes}
    return {rater: _figures(rater, of_rater, kappas.get(rater), outcomes) for rater, of_rater in own.items()}


def _figures(
    rater: int, votes: Sequence[CastVote], kappa: Estimate | None, outcomes: Mapping[int, str]
) -> RaterFigures:
    chosen = [vote for vote in votes if vote.choice in CHOICES]
    normal = [vote for vote in chosen if vote.kind == "normal"]
    decisive = [vote for vote in normal if vote.outcome != "tie"]
    # An original that was skipped or taken back since gives nothing to compare with.
    repeats = [vote for vote in chosen if vote.repeat_of is not None and outcomes.get(vote.repeat_of)]
    gold = [vote for vote in chosen if vote.kind == "gold"]
    times = [vote.active_ms for vote in chosen if vote.active_ms is not None]
    return RaterFigures(
        rater=rater,
        votes=len(chosen),
        counted=sum(vote.standing == "counted" for vote in votes),
        kappa=kappa,
        left=wilson(sum(vote.choice == "left" for vote in decisive), len(decisive)),
        ties=wilson(len(normal) - len(decisive), len(normal)),
        skips=wilson(len(votes) - len(chosen), len(votes)),
        flips=wilson(sum(vote.outcome != outcomes[vote.repeat_of] for vote in repeats if vote.repeat_of), len(repeats)),
        gold=wilson(sum(vote.outcome == vote.expected for vote in gold), len(gold)),
        median_active_ms=statistics.median(times) if times else None,
    )


@dataclass(frozen=True)
class Contested:
    """A match on which the votes differ. `share` is that of its most frequent category of the four."""

    match: int
    votes: int
    share: float


def contested(votes: Iterable[CastVote]) -> list[Contested]:
    """Matches with two votes or more that are not all the same: the lowest agreement first, then more votes."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for vote in votes:
        if vote.match is not None:
            counts[vote.match][vote.label] += 1
    found = []
    for match, labels in counts.items():
        total = sum(labels.values())
        if len(labels) > 1:
            found.append(Contested(match, total, max(labels.values()) / total))
    return sorted(found, key=lambda one: (one.share, -one.votes, one.match))


def majority(labels: Iterable[str]) -> str | None:
    """What more votes say than say anything else; None where two are level."""
    counts: dict[str, int] = defaultdict(int)
    for label in labels:
        counts[label] += 1
    best = sorted(counts.items(), key=lambda pair: -pair[1])
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        return None
    return best[0][0]


@dataclass(frozen=True)
class Pace:
    """Counted votes by day, the last day last, and how long the rest takes at that pace.

    `days_left` is None where nothing was counted lately; 0 where nothing is left.
    """

    days: tuple[tuple[dt.date, int], ...]
    per_day: float
    left: int
    days_left: float | None


def pace(moments: Iterable[dt.datetime], *, left: int, now: dt.datetime) -> Pace:
    today = now.date()
    listed = [today - dt.timedelta(days=back) for back in range(PACE_DAYS - 1, -1, -1)]
    counts = dict.fromkeys(listed, 0)
    for moment in moments:
        day = moment.astimezone(now.tzinfo).date()
        if day in counts:
            counts[day] += 1
    # A campaign that began yesterday is measured by its own days.
    begun = next((number for number, day in enumerate(listed) if counts[day]), None)
    per_day = 0.0 if begun is None else sum(counts.values()) / (PACE_DAYS - begun)
    days_left = 0.0 if left <= 0 else (left / per_day if per_day else None)
    return Pace(tuple(counts.items()), per_day, max(0, left), days_left)


def screened(
    votes: Iterable[CastVote], sessions: Iterable[int], times: Mapping[int, Sequence[float]]
) -> list[Screening]:
    """The anomaly screen over anonymous sessions: all of them, since small ones set the mean.

    Parameters
    ----------
    votes : iterable of CastVote
        Of everybody; those of others are passed over.
    sessions : iterable of int
        Raters who came by the open link.
    times : mapping of rater to seconds
        When each acted, skips and repeats included.
    """
    counts: dict[int, dict[str, int]] = {session: dict.fromkeys(CHOICES, 0) for session in sessions}
    for vote in votes:
        if vote.rater in counts and vote.choice in CHOICES:
            counts[vote.rater][vote.choice] += 1
    return list(
        screen(
            SessionVotes(
                session,
                said["left"],
                said["right"],
                said["both_good"] + said["both_bad"],
                tuple(times.get(session, ())),
            )
            for session, said in counts.items()
        )
    )


__all__ = [
    "CATEGORIES",
    "FEW",
    "CastVote",
    "Contested",
    "Pace",
    "RaterFigures",
    "agreement_of",
    "contested",
    "majority",
    "pace",
    "rated",
    "rater_figures",
    "screened",
]
