"""Does a jury agree with people? Pure: rounds, votes and decisions in, correlations out.

Only rounds on which both sides spoke are looked at, for the kappa and for the rankings alike: a ranking over other
matches would differ because the matches do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from annotation.quality import majority
from ratings.engine.agreement import Coding, Estimate, RankAgreement, Wilson, cohen, rank_agreement, wilson
from ratings.engine.board import rate
from ratings.engine.comparisons import PairCounts

# A candidate with fewer co-voted comparisons is left out of the correlation.
FEWEST_COMPARISONS = 3
# Both rankings by the same model, with a prior that keeps every rating finite.
RIDGE = 0.01
RESAMPLES = 400
CODES: Mapping[Coding, Mapping[str, int]] = {
    "ties_merged": {"first": 0, "second": 1, "tie": 2},
    "decisive": {"first": 0, "second": 1},
}


@dataclass(frozen=True)
class Round:
    """A match, with its sample and its two candidates by full id."""

    match: int
    sample: Hashable
    first: str
    second: str


@dataclass(frozen=True)
class Place:
    """A candidate on both sides' co-voted matches.

    Attributes
    ----------
    comparisons : int
        Co-voted matches of the candidate.
    people, jury : float
        Display points; NaN where the candidate is left out.
    left_out : str
        ``few``, or ``apart`` where its matches do not reach the largest group; else empty.
    """

    full_id: str
    comparisons: int
    people: float
    jury: float
    left_out: str = ""


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """How alike people and a jury, or one judge, decide.

    Attributes
    ----------
    rounds : int
        Co-voted matches.
    level : int
        Of these, those on which the people's votes were level: in the rankings, not in the kappa.
    same : Wilson
        Matches with the same outcome, of those that both decided.
    kappa, kappa_decisive : Estimate
        With ties as a category of their own, and without rounds that either called a tie.
    ranks : RankAgreement
        Its ``n`` is the number of candidates behind both correlations.
    places : tuple of Place
        By the people's rating.
    """

    rounds: int
    level: int
    same: Wilson
    kappa: Estimate
    kappa_decisive: Estimate
    ranks: RankAgreement
    places: tuple[Place, ...]

    @property
    def left_out(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.left_out)


def likeness(
    rounds: Iterable[Round],
    people: Mapping[int, Sequence[str]],
    jury: Mapping[int, str],
    *,
    resamples: int = RESAMPLES,
) -> Likeness:
    """Compare the people's votes with a jury's decisions.

    Parameters
    ----------
    rounds : iterable of Round
    people : mapping of match to outcomes
        Every vote: first, second or tie. One rater's alone gives that rater's likeness.
    jury : mapping of match to outcome
        Decisions, or the votes of one judge; matches without one are left out.
    resamples : int
        Of the intervals, over samples.

    Raises
    ------
    ValueError
        For an outcome that is not first, second or tie.
    """
    shared = [one for one in rounds if people.get(one.match) and one.match in jury]
    for one in shared:
        for said in (*people[one.match], jury[one.match]):
            if said not in CODES["ties_merged"]:
                raise ValueError(f"Unknown outcome {said!r} of match {one.match}.")
    said_by_people = [majority(people[one.match]) for one in shared]
    both = [(ours, jury[one.match]) for one, ours in zip(shared, said_by_people, strict=True) if ours is not None]
    places, ranks = _ranked(shared, people, jury)
    return Likeness(
        rounds=len(shared),
        level=said_by_people.count(None),
        same=wilson(sum(ours == theirs for ours, theirs in both), len(both)),
        kappa=_kappa(shared, said_by_people, jury, "ties_merged", resamples),
        kappa_decisive=_kappa(shared, said_by_people, jury, "decisive", resamples),
        ranks=ranks,
        places=places,
    )


def _kappa(
    shared: Sequence[Round], ours: Sequence[str | None], jury: Mapping[int, str], coding: Coding, resamples: int
) -> Estimate:
    codes = CODES[coding]
    one = np.array([codes.get(said or "", -1) for said in ours], dtype=np.int64)
    other = np.array([codes.get(jury[found.match], -1) for found in shared], dtype=np.int64)
    numbers: dict[Hashable, int] = {}
    cluster = np.array([numbers.setdefault(found.sample, len(numbers)) for found in shared], dtype=np.int64)
    return cohen(one, other, len(codes), cluster=cluster, resamples=resamples)


def _ranked(
    shared: Sequence[Round], people: Mapping[int, Sequence[str]], jury: Mapping[int, str]
) -> tuple[tuple[Place, ...], RankAgreement]:
    names = sorted({name for one in shared for name in (one.first, one.second)})
    if not names:
        return (), rank_agreement([], [])
    at = {name: number for number, name in enumerate(names)}
    games = Counter(name for one in shared for name in (one.first, one.second))
    sides = [(at[one.first], at[one.second], one.match) for one in shared]
    voices = (
        [(first, second, said, 1) for first, second, match in sides for said in people[match]],
        [(first, second, jury[match], 1) for first, second, match in sides],
    )
    boards = [rate(PairCounts.from_rows(len(names), rows), ties="half_win", ridge=RIDGE) for rows in voices]
    # Both were fitted on the same matches, so they fall into the same groups.
    groups = [int(group) for group in boards[0].component]
    largest = max(set(groups), key=lambda group: (groups.count(group), -group))
    left_out = {
        name: "few" if games[name] < FEWEST_COMPARISONS else "apart" if groups[at[name]] != largest else ""
        for name in names
    }
    ratings = [[math.nan if left_out[name] else float(board.rating[at[name]]) for name in names] for board in boards]
    places = [Place(name, games[name], ratings[0][at[name]], ratings[1][at[name]], left_out[name]) for name in names]
    places.sort(key=lambda place: (bool(place.left_out), -place.people if not place.left_out else 0, place.full_id))
    return tuple(places), rank_agreement(*ratings)
