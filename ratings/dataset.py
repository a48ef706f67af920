"""What boards read of the arena, by aggregate queries."""

from __future__ import annotations

import datetime as dt
import statistics
from collections import defaultdict
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from arena.models import CallStatus, Candidate, Decision, DecisionOutcome, Jury, Match, Step, Tournament
from ratings.engine import PairCounts
from ratings.models import Leaderboard

# Candidate id, candidate id, outcome, count.
Triple = tuple[int, int, str, int]
LOOK_AGAIN = dt.timedelta(hours=1)
AFTERMATH = dt.timedelta(minutes=10)


def triples_of(jury_id: int) -> list[Triple]:
    """All that a fit reads: at most three rows a pair, whatever the number of decisions."""
    rows = (
        Decision.objects.rated()
        .filter(jury=jury_id)
        .values_list("match__first", "match__second", "outcome")
        .annotate(count=Count("id"))
    )
    return sorted((first, second, outcome, count) for first, second, outcome, count in rows)


def samples_behind(jury_id: int) -> int:
    counted = Decision.objects.rated().filter(jury=jury_id).aggregate(n=Count("match__sample", distinct=True))
    return int(counted["n"])


@dataclass(frozen=True)
class Evidence:
    """What a board is fitted on. The roster holds everyone who entered, games or not."""

    roster: list[tuple[int, str]]
    triples: list[Triple]

    @property
    def candidate_ids(self) -> list[int]:
        return [candidate_id for candidate_id, _ in self.roster]

    def pair_counts(self) -> PairCounts:
        index = {candidate_id: position for position, candidate_id in enumerate(self.candidate_ids)}
        rows = [(index[first], index[second], outcome, count) for first, second, outcome, count in self.triples]
        return PairCounts.from_rows(len(index), rows)


def evidence_of(board: Leaderboard) -> Evidence:
    triples = triples_of(board.jury_id)
    # Read after the triples, so that none of them names somebody unknown.
    roster = Candidate.objects.filter(tournament=board.tournament_id).order_by("position")
    return Evidence(list(roster.values_list("pk", "full_id")), triples)


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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Marks:
        return cls(**data)

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


def marks_of(juries: Collection[Jury]) -> dict[int, Marks]:
    """Marks of each jury, by jury id, in three queries."""
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
    forced: dict[int, int] = {}
    rows = (
        Match.objects.filter(tournament__in=tournaments)
        .order_by()
        .values_list("tournament", "status")
        .annotate(count=Count("id"), forced=Count("id", filter=Q(forced_tie=True)))
    )
    for tournament, status, count, forced_ties in rows:
        matches[tournament][status] = count
        forced[tournament] = forced.get(tournament, 0) + forced_ties
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


@dataclass(frozen=True)
class AnswerFigures:
    answers: int = 0
    priced_answers: int = 0
    mean_cost_usd: Decimal | None = None
    median_latency_ms: float | None = None


def answer_figures(tournament_id: int) -> dict[int, AnswerFigures]:
    """Cost and speed of the answers that the matches used, by candidate; an answer counts once, however often met."""
    answers: dict[int, dict[int, tuple[Decimal | None, float | None]]] = defaultdict(dict)
    for side in ("first", "second"):
        rows = (
            Match.objects.filter(**{"tournament": tournament_id, f"{side}_trial__status": CallStatus.SUCCEEDED})
            .order_by()
            .values_list(side, f"{side}_trial", f"{side}_trial__cost_usd", f"{side}_trial__duration_ms")
            .distinct()
        )
        for candidate, trial, cost_usd, duration_ms in rows:
            answers[candidate][trial] = (cost_usd, duration_ms)
    return {candidate: _figures(list(found.values())) for candidate, found in answers.items()}


def _figures(answers: list[tuple[Decimal | None, float | None]]) -> AnswerFigures:
    costs = [cost for cost, _ in answers if cost is not None]
    durations = [duration for _, duration in answers if duration is not None]
    return AnswerFigures(
        answers=len(answers),
        priced_answers=len(costs),
        mean_cost_usd=round(sum(costs, Decimal(0)) / len(costs), 8) if costs else None,
        median_latency_ms=statistics.median(durations) if durations else None,
    )
