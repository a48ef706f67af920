"""Cheap signs of whether the evidence of a board may have changed."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from annotation.models import Campaign, Rater, Vote
from arena.models import Candidate, Decision, DecisionOutcome, Jury, Match, Step, Tournament
from ratings.models import Leaderboard

LOOK_AGAIN = dt.timedelta(hours=1)
AFTERMATH = dt.timedelta(minutes=10)


def last_step_of(tournament_id: int) -> int | None:
    done = Step.objects.filter(tournament=tournament_id, status=Step.Status.COMPLETE)
    number: int | None = done.aggregate(number=Max("number"))["number"]
    return number


@dataclass(frozen=True)
class Marks:
    """Cheap signs that the evidence may have changed, and the counts of what never enters a fit.

    The newest decision alone would miss one that committed late under a lower id, so they are counted too.
    """

    decisions: int = 0
    newest_decision: int = 0
    candidates: int = 0
    matches: dict[str, int] = field(default_factory=dict)
    forced_ties: int = 0
    # Of whole campaigns, which may ask about matches of other tournaments too: votes with a place, the newest row,
    # what admins said of sessions, and the campaigns by status.
    votes: int = 0
    newest_vote: int = 0
    screenings: dict[str, int] = field(default_factory=dict)
    campaigns: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Marks:
        return cls(**data)

    def __add__(self, other: Marks) -> Marks:
        return Marks(
            self.decisions + other.decisions,
            max(self.newest_decision, other.newest_decision),
            self.candidates + other.candidates,
            _sums(self.matches, other.matches),
            self.forced_ties + other.forced_ties,
            self.votes + other.votes,
            max(self.newest_vote, other.newest_vote),
            _sums(self.screenings, other.screenings),
            _sums(self.campaigns, other.campaigns),
        )

    def matches_of(self, *statuses: str) -> int:
        return sum(self.matches.get(status, 0) for status in statuses)

    @property
    def decided(self) -> int:
        return self.matches_of(Match.Status.DECIDED)

    @property
    def inconclusive(self) -> int:
        return self.matches_of(Match.Status.INCONCLUSIVE)

    @property
    def void(self) -> int:
        """Void matches that count nowhere; those recorded as forced ties are counted apart."""
        return self.matches_of(Match.Status.VOID) - self.forced_ties

    @property
    def open(self) -> int:
        return self.matches_of(Match.Status.WAITING, Match.Status.JUDGING)

    @property
    def open_campaigns(self) -> int:
        return self.campaigns.get(Campaign.Status.OPEN, 0)


def _sums(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def marks_of(juries: Collection[Jury]) -> dict[int, Marks]:
    """Marks of each jury, by jury id, in five queries at most, counted so that indexes alone tell as far as they do."""
    tournaments = [jury.tournament_id for jury in juries]
    decisions = {
        jury: (count, newest)
        for jury, count, newest in Decision.objects.filter(jury__in=[jury.pk for jury in juries])
        .values_list("jury")
        .annotate(count=Count("id"), newest=Max("id"))
    }
    candidates = dict(
        Candidate.objects.filter(tournament__in=tournaments).values_list("tournament").annotate(count=Count("id"))
    )
    matches: dict[int, dict[str, int]] = defaultdict(dict)
    of_tournaments = Match.objects.filter(tournament__in=tournaments).order_by()
    for tournament, status, count in of_tournaments.values_list("tournament", "status").annotate(count=Count("*")):
        matches[tournament][status] = count
    # Only a void match is ever recorded as a tie by force.
    void = of_tournaments.filter(status=Match.Status.VOID, forced_tie=True)
    forced = dict(void.values_list("tournament").annotate(count=Count("*")))
    own = _matches_of_rejudges(juries)
    return {
        jury.pk: Marks(
            *decisions.get(jury.pk, (0, 0)),
            candidates=candidates.get(jury.tournament_id, 0),
            matches=dict(sorted((matches[jury.tournament_id] if jury.primary else own[jury.pk]).items())),
            forced_ties=forced.get(jury.tournament_id, 0) if jury.primary else 0,
        )
        for jury in juries
    }


def _matches_of_rejudges(juries: Collection[Jury]) -> dict[int, dict[str, int]]:
    """As another jury decided them; the status of a match is what the tournament's own jury made of it."""
    rejudges = [jury.pk for jury in juries if not jury.primary]
    found: dict[int, dict[str, int]] = {pk: {} for pk in rejudges}
    if not rejudges:
        return found
    inconclusive = Q(outcome=DecisionOutcome.INCONCLUSIVE)
    rows = (
        Decision.objects.current()
        .filter(jury__in=rejudges)
        .order_by()
        .values_list("jury")
        .annotate(decided=Count("id", filter=~inconclusive), inconclusive=Count("id", filter=inconclusive))
    )
    for jury, decided, undecided in rows:
        found[jury] = {Match.Status.DECIDED.value: decided, Match.Status.INCONCLUSIVE.value: undecided}
    return found


def juries_to_look_at(now: dt.datetime) -> QuerySet[Jury]:
    """Juries whose decisions may have changed: those at work, those just done, and every other once an hour."""
    boards = Leaderboard.objects.filter(jury=OuterRef("pk"))
    return (
        Jury.objects.exclude(tournament__status=Tournament.Status.DRAFT)
        .filter(
            Q(tournament__status__in=[Tournament.Status.RUNNING, Tournament.Status.PAUSED])
            | Q(status=Jury.Status.RUNNING)
            | Q(tournament__finished_at__gte=now - AFTERMATH)
            | Q(finished_at__gte=now - AFTERMATH)
            | Exists(boards.exclude(refit_wanted_at=None))
            | ~Exists(boards.filter(checked_at__gte=now - LOOK_AGAIN))
        )
        .order_by("pk")
    )


def marks_of_boards(boards: Collection[Leaderboard]) -> dict[int, Marks]:
    """Marks of boards, by board id, in queries whose number does not grow with the boards."""
    teams = {board.team_id for board in boards}
    juries = list(
        Jury.objects.filter(
            Q(primary=True, tournament__team__in=teams) & ~Q(tournament__status=Tournament.Status.DRAFT)
            | Q(pk__in=[board.jury_id for board in boards if board.jury_id is not None])
        ).select_related("tournament__task_set")
    )
    marks = marks_of(juries)
    asked = {board.team_id for board in boards if board.has_votes}
    campaigns = _campaign_marks(asked) if asked else {}
    found = {}
    for board in boards:
        read = [jury for jury in juries if _reads(board, jury)]
        total = sum((marks[jury.pk] for jury in read), Marks())
        if not board.has_decisions:
            total = Marks(candidates=total.candidates)
        if board.has_votes:
            over = {jury.tournament_id for jury in read}
            total = sum((one for tournaments, one in campaigns.values() if tournaments & over), total)
        found[board.pk] = total
    return found


def _reads(board: Leaderboard, jury: Jury) -> bool:
    if board.jury_id is not None:
        return jury.pk == board.jury_id
    if not jury.primary or jury.tournament.team_id != board.team_id:
        return False
    return board.scope == Leaderboard.Scope.TEAM or jury.tournament.task_set.lineage == board.task_set_lineage


def _campaign_marks(teams: Collection[int]) -> dict[int, tuple[set[int], Marks]]:
    """By campaign: the tournaments it asks about, and its marks."""
    campaigns = Campaign.objects.filter(team__in=teams).exclude(status=Campaign.Status.DRAFT)
    over: dict[int, set[int]] = defaultdict(set)
    status = {}
    for key, state, tournament in campaigns.values_list("pk", "status", "tournaments"):
        status[key] = state
        if tournament is not None:
            over[key].add(tournament)
    rows = Vote.objects.filter(campaign__in=status).order_by().values_list("campaign")
    placed = Q(is_current=True, standing=Vote.Standing.COUNTED)
    votes = {key: counts for key, *counts in rows.annotate(n=Count("pk", filter=placed), newest=Max("pk"))}
    raters = Rater.objects.filter(campaign__in=status).exclude(screening="").order_by()
    screenings: dict[int, dict[str, int]] = defaultdict(dict)
    for key, screening, count in raters.values_list("campaign", "screening").annotate(n=Count("pk")):
        screenings[key][screening] = count
    found = {}
    for key, state in status.items():
        count, newest = votes.get(key, (0, 0))
        marks = Marks(votes=count, newest_vote=newest, screenings=screenings[key], campaigns={state: 1})
        found[key] = (over[key], marks)
    return found
