"""The jury against people: reads both sides of every match of a tournament or a campaign."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.anchoring import Likeness, Round, likeness
from annotation.models import Campaign, Rater
from annotation.quality import FEW, CastVote, rated
from annotation.selectors.quality import excluded_raters, votes_in
from arena.models import Ballot, Decision, Match, Outcome, Tournament


@dataclass(frozen=True)
class RaterLikeness:
    rater: Rater
    votes: int
    found: Likeness


@dataclass(frozen=True)
class JudgeLikeness:
    full_id: str
    found: Likeness

    @property
    def is_thin(self) -> bool:
        return self.found.same.trials < FEW


@dataclass(frozen=True)
class Anchor:
    """People against the primary juries of some tournaments.

    `best` is the judge with the highest kappa of those on at least `quality.FEW` rounds; None without one.
    """

    votes: int
    voters: int
    pooled: Likeness
    raters: list[RaterLikeness]
    judges: list[JudgeLikeness]

    @property
    def best(self) -> JudgeLikeness | None:
        known = [judge for judge in self.judges if not judge.is_thin and judge.found.kappa.value is not None]
        return max(known, key=lambda judge: judge.found.kappa.value or 0, default=None)


def campaigns_over(tournament: Tournament) -> QuerySet[Campaign]:
    return Campaign.objects.filter(tournaments=tournament).exclude(status=Campaign.Status.DRAFT).order_by("pk")


def anchor_of(campaigns: Collection[Campaign], tournament: Tournament | None = None) -> Anchor:
    """Rated votes of the campaigns, on the matches of one tournament or of all of theirs."""
    votes = votes_in(campaigns)
    votes = rated(votes, excluded_raters(campaigns, votes))
    matches = Match.objects.filter(campaign_items__campaign__in=campaigns)
    if tournament is not None:
        matches = matches.filter(tournament=tournament)
    rows = matches.distinct().order_by("pk").values_list("pk", "sample", "first__full_id", "second__full_id")
    rounds = [Round(*row) for row in rows]
    known = {one.match for one in rounds}
    votes = [vote for vote in votes if vote.match in known]
    decided = _decisions(matches)
    people = _by_match(votes)
    raters = Rater.objects.select_related("user").in_bulk({vote.rater for vote in votes})
    return Anchor(
        votes=len(votes),
        voters=len(raters),
        pooled=likeness(rounds, people, decided),
        raters=[
            RaterLikeness(raters[key], len(own), likeness(rounds, _by_match(own), decided))
            for key, own in _by_rater(votes)
        ],
        judges=_judges(rounds, people, matches),
    )


def _by_match(votes: Collection[CastVote]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for vote in votes:
        if vote.match is not None:
            found[vote.match].append(vote.outcome)
    return dict(found)


def _by_rater(votes: Collection[CastVote]) -> list[tuple[int, list[CastVote]]]:
    own: dict[int, list[CastVote]] = defaultdict(list)
    for vote in votes:
        own[vote.rater].append(vote)
    return sorted(own.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _decisions(matches: QuerySet[Match]) -> dict[int, str]:
    rows = Decision.objects.filter(
        match__in=matches, jury__primary=True, superseded_at=None, outcome__in=Outcome.values
    )
    return dict(rows.order_by().values_list("match", "outcome"))


def _judges(rounds: list[Round], people: dict[int, list[str]], matches: QuerySet[Match]) -> list[JudgeLikeness]:
    ballots = Ballot.objects.filter(
        match__in=matches, jury__primary=True, status=Ballot.Status.VOTE, vote__in=Outcome.values
    )
    said: dict[str, dict[int, str]] = defaultdict(dict)
    for full_id, match, vote in ballots.order_by("judge__position").values_list("judge__full_id", "match", "vote"):
        said[full_id][match] = vote
    found = [JudgeLikeness(full_id, likeness(rounds, people, own)) for full_id, own in said.items()]
    return sorted(found, key=lambda one: (one.found.kappa.value is None, -(one.found.kappa.value or 0), one.full_id))


@dataclass(frozen=True)
class PairTally:
    """Rated votes of people on one pair of models: what a board of people is fitted on."""

    first: str
    second: str
    outcome: str
    count: int


def people_tallies(campaign: Campaign) -> list[PairTally]:
    """Ordered; equal for campaigns with the same votes, whatever their keys."""
    votes = votes_in([campaign])
    votes = rated(votes, excluded_raters([campaign], votes))
    names = Match.objects.filter(campaign_items__campaign=campaign).values_list(
        "pk", "first__full_id", "second__full_id"
    )
    sides = {key: (first, second) for key, first, second in names}
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for vote in votes:
        if vote.match is None:
            continue
        first, second = sides[vote.match]
        outcome = vote.outcome
        if first > second:
            first, second = second, first
            outcome = {"first": "second", "second": "first"}.get(outcome, outcome)
        counts[first, second, outcome] += 1
    return [PairTally(*key, count) for key, count in sorted(counts.items())]
