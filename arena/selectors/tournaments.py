"""Reads for the list and the live page of tournaments: a fixed number of queries, whatever their size."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, DecimalField, IntegerField, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from arena.models import BenchProbe, Call, CallStatus, Match, Team, Tournament, Trial, Verdict
from arena.selectors.advice import meaning_of

OPEN = (Match.Status.WAITING, Match.Status.JUDGING)
JUDGED = (Match.Status.DECIDED, Match.Status.INCONCLUSIVE)
RATE_WINDOW = dt.timedelta(minutes=3)
# Fewer matches in less time say nothing of the speed to come.
LEAST_FOR_RATE = 4
LEAST_SECONDS_FOR_RATE = 3.0


def _count(rows: QuerySet[Match]) -> Coalesce:
    counted = rows.order_by().values("tournament").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def tournaments_of(team: Team) -> QuerySet[Tournament]:
    matches = Match.objects.filter(tournament=OuterRef("pk"))
    calls = Call.objects.filter(tournament=OuterRef("pk"), rejudge=None).order_by().values("tournament")
    spent = calls.annotate(sum=Sum("cost_usd"))
    unpriced = calls.annotate(n=Count("pk", filter=Q(cost_usd=None)))
    return (
        Tournament.objects.filter(team=team)
        .select_related("task_set", "created_by")
        .annotate(
            planned_count=_count(matches),
            played_count=_count(matches.exclude(status__in=OPEN)),
            decided_count=_count(matches.filter(status=Match.Status.DECIDED)),
            cost_usd=Subquery(spent.values("sum"), output_field=DecimalField(max_digits=14, decimal_places=8)),
            calls_of_unknown_cost=Coalesce(Subquery(unpriced.values("n"), output_field=IntegerField()), 0),
        )
        .order_by("-created_at", "-pk")
    )


@dataclass
class CandidateCoverage:
    label: str
    full_id: str
    completed: int = 0
    void: int = 0
    withdrawn: int = 0
    benched: bool = False
    participated: int = 0

    @property
    def share(self) -> float | None:
        return self.completed / self.participated if self.participated else None

    @property
    def percent(self) -> float | None:
        return None if self.share is None else self.share * 100


@dataclass(frozen=True)
class ErrorLine:
    code: str
    count: int
    meaning: Any
    advice: Any


@dataclass
class Live:
    """How a tournament stands at this moment."""

    tournament: Tournament
    by_status: Counter[str] = field(default_factory=Counter)
    coverage: list[CandidateCoverage] = field(default_factory=list)
    per_minute: float | None = None
    calls: int = 0
    calls_of_unknown_cost: int = 0
    spent_usd: Decimal = Decimal(0)
    in_flight: int = 0
    queued: int = 0
    waits: int = 0
    retries: int = 0
    trial_errors: list[ErrorLine] = field(default_factory=list)
    verdict_errors: list[ErrorLine] = field(default_factory=list)
    call_errors: list[ErrorLine] = field(default_factory=list)
    # Matches that are wanted and not planned yet, where the pairing follows results.
    to_come: int = 0
    benches: list[Bench] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.by_status.total() + self.to_come

    @property
    def open(self) -> int:
        return sum(self.by_status[status] for status in OPEN)

    @property
    def resolved(self) -> int:
        return self.by_status.total() - self.open

    @property
    def decided(self) -> int:
        return self.by_status[Match.Status.DECIDED]

    @property
    def withdrawn(self) -> int:
        return self.by_status[Match.Status.WITHDRAWN]

    @property
    def statuses(self) -> list[tuple[str, Any, int]]:
        return [(value, label, self.by_status[value]) for value, label in Match.Status.choices if self.by_status[value]]

    @property
    def session_coverage(self) -> float | None:
        return sum(self.by_status[status] for status in JUDGED) / self.by_status.total() if self.by_status else None

    @property
    def coverage_percent(self) -> float | None:
        return None if self.session_coverage is None else self.session_coverage * 100

    @property
    def seconds_left(self) -> float | None:
        if self.tournament.status != Tournament.Status.RUNNING or not self.per_minute:
            return None
        return (self.open + self.to_come) / self.per_minute * 60

    @property
    def can_retry(self) -> bool:
        """Something failed that may be called again; what exactly, the page of the retry counts."""
        return bool(self.trial_errors or self.verdict_errors)

    @property
    def has_errors(self) -> bool:
        return bool(self.trial_errors or self.verdict_errors or self.call_errors)


@dataclass(frozen=True)
class Bench:
    """A candidate that sits out, and why."""

    label: str
    code: str
    meaning: Any
    advice: Any
    # As the provider said it, of the last answer that failed.
    error: str
    # Answers that it was asked for since.
    probes: int


def benches_of(tournament: Tournament) -> list[Bench]:
    candidates = list(tournament.candidates.filter(benched=True)) if tournament.started_at else []
    if not candidates:
        return []
    failed = Trial.objects.filter(requests__tournament=tournament, status=CallStatus.FAILED).order_by("pk")
    last = {trial.fingerprint: trial for trial in failed.only("pk", "fingerprint", "skip_code", "error")}
    asked = dict(
        BenchProbe.objects.filter(candidate__in=candidates).values_list("candidate").annotate(n=Count("pk")).order_by()
    )
    benches = []
    for candidate in candidates:
        trial = last.get(candidate.snapshot.get("fingerprint", ""))
        code = trial.skip_code if trial is not None else "OTHER_ERROR"
        error = trial.error if trial is not None else ""
        benches.append(Bench(candidate.label, code, *meaning_of(code), error, asked.get(candidate.pk, 0)))
    return benches


def to_come(tournament: Tournament, by_status: Mapping[str, int]) -> int:
    """Matches that an active tournament wants beside those planned; none where all are planned at once."""
    if not (tournament.follows_results and tournament.is_active):
        return 0
    planned = sum(by_status.values())
    samples = tournament.task_set.samples.all()
    if tournament.categories:
        samples = samples.filter(category__in=tournament.categories)
    playing = tournament.candidates.filter(benched=False).count()
    possible = playing * (playing - 1) // 2 * samples.count()
    left = tournament.max_matches - planned + by_status.get(Match.Status.WITHDRAWN, 0)
    return max(0, min(left, possible - planned))


def live_of(tournament: Tournament) -> Live:
    live = Live(tournament)
    _read_matches(live)
    live.to_come = to_come(tournament, live.by_status)
    live.benches = benches_of(tournament)
    _read_calls(live)
    _read_queue(live)
    return live


def _read_matches(live: Live) -> None:
    """Three queries: both sides of all matches, and the candidates. The first side alone counts each match once."""
    now = timezone.now()
    recent = Q(decided_at__gte=now - RATE_WINDOW)
    matches = live.tournament.matches.order_by()
    firsts = list(
        matches.values_list("first_id", "status").annotate(
            n=Count("pk"), recent=Count("pk", filter=recent), since=Min("decided_at", filter=recent)
        )
    )
    seconds = list(matches.values_list("second_id", "status").annotate(n=Count("pk")))
    for _first, status, n, _recent, _since in firsts:
        live.by_status[status] += n
    live.per_minute = _rate(
        sum(row[3] for row in firsts), min((row[4] for row in firsts if row[4]), default=None), live, now
    )
    found = live.tournament.candidates.values_list("pk", "label", "full_id", "benched")
    rows = {pk: CandidateCoverage(label, full_id, benched=benched) for pk, label, full_id, benched in found}
    for pk, status, n in [*(row[:3] for row in firsts), *seconds]:
        row = rows[pk]
        row.participated += n
        row.completed += n if status in JUDGED else 0
        row.void += n if status == Match.Status.VOID else 0
        row.withdrawn += n if status == Match.Status.WITHDRAWN else 0
    live.coverage = list(rows.values())


def _rate(recent: int, since: dt.datetime | None, live: Live, now: dt.datetime) -> float | None:
    tournament = live.tournament
    if tournament.settings.get("continued"):
        # The time it lay still is in between.
        return _rate_of_late(recent, since, live, now)
    if not tournament.is_active and tournament.started_at and tournament.finished_at:
        took = (tournament.finished_at - tournament.started_at).total_seconds()
        return live.resolved / took * 60 if took else None
    return _rate_of_late(recent, since, live, now)


def _rate_of_late(recent: int, since: dt.datetime | None, live: Live, now: dt.datetime) -> float | None:
    if live.tournament.status != Tournament.Status.RUNNING or since is None or recent < LEAST_FOR_RATE:
        return None
    # From the first of them on, so that a pause before it does not count.
    elapsed = (now - since).total_seconds()
    return (recent - 1) / elapsed * 60 if elapsed >= LEAST_SECONDS_FOR_RATE else None


def _read_calls(live: Live) -> None:
    calls = Call.objects.filter(tournament=live.tournament, rejudge=None)
    rows = (
        calls.order_by()
        .values_list("status", "error_code")
        .annotate(n=Count("pk"), cost=Sum("cost_usd"), unknown=Count("pk", filter=Q(cost_usd=None)))
    )
    errors: Counter[str] = Counter()
    for status, code, n, cost, unknown in rows:
        live.calls += n
        live.spent_usd += cost or Decimal(0)
        live.calls_of_unknown_cost += unknown
        if status in {Call.Status.LATE, Call.Status.LOST}:
            errors[status] += n
        elif status == Call.Status.ERROR:
            errors[code or "OTHER"] += n
    live.call_errors = _lines(errors)


def _read_queue(live: Live) -> None:
    trials = Trial.objects.filter(requests__tournament=live.tournament).order_by()
    verdicts = Verdict.objects.filter(tournament=live.tournament, rejudge=None).order_by()
    tallies = {"n": Count("pk"), "waits": Sum("waits"), "retries": Sum("failures")}
    found = [
        list(trials.values_list("status", "skip_code").annotate(**tallies)),
        list(verdicts.values_list("status", "error_code").annotate(**tallies)),
    ]
    errors: list[Counter[str]] = []
    for rows in found:
        failed: Counter[str] = Counter()
        for status, code, n, waits, retries in rows:
            live.in_flight += n if status == CallStatus.RUNNING else 0
            live.queued += n if status == CallStatus.QUEUED else 0
            live.waits += waits or 0
            live.retries += retries or 0
            if status == CallStatus.FAILED:
                failed[code or "OTHER"] += n
        errors.append(failed)
    live.trial_errors, live.verdict_errors = _lines(errors[0]), _lines(errors[1])


def _lines(counts: Counter[str]) -> list[ErrorLine]:
    return [ErrorLine(code, n, *meaning_of(code)) for code, n in counts.most_common()]
