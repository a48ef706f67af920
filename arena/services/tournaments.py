"""The life of a tournament: create, start, pause, resume, stop. Every change of status is a conditional UPDATE."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Sum
from django.utils import timezone

from arena.dispatch import send
from arena.manifest import versions
from arena.models import (
    Call,
    CallStatus,
    Candidate,
    Jury,
    Match,
    Step,
    Team,
    Tournament,
    Trial,
    TrialRequest,
    User,
    Verdict,
)
from arena.selectors.specs import TournamentSpec, budget_problems, named, problems_of, spec_of
from arena.services import audit, benching, retries, steps
from arena.services.claims import accounts_of
from arena.services.going_on import wake_all
from arena.services.seats import seat_judges, snapshot_of
from arena.services.tournament_errors import TournamentError
from arena.statements import Payer

__all__ = [
    "TournamentError",
    "TournamentSpec",
    "create_tournament",
    "delete_draft",
    "pause_for_budget",
    "pause_tournament",
    "problems_of",
    "resume_tournament",
    "set_budget",
    "snapshot_of",
    "start_tournament",
    "stop_tournament",
    "wake_all",
]

Status, Reason = Tournament.Status, Tournament.Reason
BATCH = 500


@transaction.atomic
def create_tournament(*, spec: TournamentSpec, actor: User | None) -> Tournament:
    problems = problems_of(spec)
    if problems:
        raise TournamentError(problems)
    team: Team = spec.task_set.team
    tournament = Tournament.objects.create(
        team=team,
        task_set=spec.task_set,
        name=spec.name,
        pairing=spec.pairing,
        max_matches=spec.max_matches,
        step_size=spec.step_size,
        seed=spec.seed,
        baseline_weight=spec.baseline_weight,
        categories=list(spec.categories),
        budget_usd=spec.budget_usd,
        settings={"versions": versions(), **spec.settings},
        created_by=actor,
    )
    _enter_candidates(tournament, spec)
    jury = Jury.objects.create(tournament=tournament, primary=True, protocol=spec.protocol.to_json())
    seat_judges(jury, spec.judges, spec.replacement_judges)
    audit.record(team=team, actor=actor, action="tournament.create", target=tournament.name)
    return tournament


def _enter_candidates(tournament: Tournament, spec: TournamentSpec) -> None:
    for position, (model, label, full_id) in enumerate(named(spec.candidates)):
        candidate = Candidate.objects.create(
            tournament=tournament,
            language_model=model,
            position=position,
            label=label,
            full_id=full_id,
            snapshot=snapshot_of(model),
        )
        if spec.baseline is not None and spec.baseline.pk == model.pk:
            tournament.baseline = candidate
            tournament.save(update_fields=["baseline"])


def start_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    with transaction.atomic():
        locked = Tournament.objects.select_for_update().get(pk=tournament.pk)
        if locked.status != Status.DRAFT:
            raise TournamentError([f"The tournament is {locked.get_status_display()} and cannot be started again."])
        # A draft may lie for weeks: a model was replaced, a price or a sample is gone.
        problems = problems_of(spec_of(locked))
        if problems:
            raise TournamentError(problems)
        locked.status, locked.started_at = Status.RUNNING, timezone.now()
        locked.save(update_fields=["status", "started_at"])
        steps.plan_first(locked)
        audit.record(team=locked.team, actor=actor, action="tournament.start", target=locked.name)
    tournament.refresh_from_db()


@transaction.atomic
def delete_draft(*, tournament: Tournament, actor: User | None = None) -> None:
    """Only a draft can go: what was paid for stays as evidence."""
    locked = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if locked.status != Status.DRAFT:
        raise TournamentError([f"The tournament is {locked.get_status_display()}; only drafts can be deleted."])
    audit.record(team=locked.team, actor=actor, action="tournament.delete", target=locked.name)
    locked.delete()


def pause_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    _change(tournament, {Status.RUNNING}, Status.PAUSED, Reason.BY_HAND, actor=actor, action="pause")


def pause_for_budget(payer: Payer, sentence: str, *, needed_usd: Decimal | None) -> None:
    """A hard stop: nothing more is sent until somebody raises the budget and resumes."""
    running = accounts_of(payer).filter(status=Status.RUNNING)
    if needed_usd is not None:
        # Looked at again: it may have been raised and resumed since the call did not fit.
        running = running.filter(budget_usd__lt=F("spent_usd") + F("reserved_usd") + needed_usd)
    running.update(status=Status.PAUSED, reason=Reason.BUDGET, reason_text=sentence)


@transaction.atomic
def resume_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    _change(tournament, {Status.PAUSED}, Status.RUNNING, Reason.NONE, actor=actor, action="resume")
    # What was sent while the tournament stood still found nobody to run it.
    queued = {"status": CallStatus.QUEUED}
    Verdict.objects.filter(tournament=tournament, rejudge=None, **queued).update(dispatched_at=None)
    Trial.objects.filter(requests__tournament=tournament, **queued).update(dispatched_at=None)
    wake_all(tournament)
    send("arena.tasks.advance_tournament_task", tournament.pk)


@transaction.atomic
def stop_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    """For good: undecided matches are withdrawn; what is in flight is kept when it arrives."""
    # Nobody plans meanwhile what would then never be played.
    benching.lock_candidates(tournament.pk)
    _change(tournament, {Status.RUNNING, Status.PAUSED}, Status.STOPPED, Reason.BY_HAND, actor=actor, action="stop")
    retries.put_back(tournament)
    Match.objects.filter(tournament=tournament).open().update(status=Match.Status.WITHDRAWN)
    withdraw_calls(tournament.pk)
    Step.objects.filter(tournament=tournament).exclude(status=Step.Status.COMPLETE).update(
        status=Step.Status.COMPLETE, completed_at=timezone.now()
    )
    Tournament.objects.filter(pk=tournament.pk).update(finished_at=timezone.now())
    tournament.juries.filter(primary=True).update(status=Jury.Status.FINISHED)


@transaction.atomic
def withdraw_calls(tournament_id: int) -> None:
    """Queued calls of a stopped tournament that no other one wants; also those that come back as a retry after it."""
    own = Verdict.objects.filter(tournament=tournament_id, rejudge=None)
    own.filter(status=CallStatus.QUEUED).update(status=CallStatus.WITHDRAWN)
    wanted_elsewhere = TrialRequest.objects.filter(
        trial=OuterRef("pk"), tournament__status__in=[Status.RUNNING, Status.PAUSED]
    )
    # Locked first and looked at again in a second statement: a tournament that starts at this moment holds its
    # trials until it is committed, and must find them queued.
    queued = Trial.objects.filter(status=CallStatus.QUEUED, requests__tournament=tournament_id).order_by("pk")
    ids = list(queued.select_for_update(of=("self",)).values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        batch = Trial.objects.filter(pk__in=ids[start : start + BATCH], status=CallStatus.QUEUED)
        batch.filter(~Exists(wanted_elsewhere)).update(status=CallStatus.WITHDRAWN)


def _change(
    tournament: Tournament, before: set[Any], after: str, reason: str, *, actor: User | None, action: str
) -> None:
    with transaction.atomic():
        changed = Tournament.objects.filter(pk=tournament.pk, status__in=before).update(
            status=after, reason=reason, reason_text=""
        )
        if not changed:
            tournament.refresh_from_db()
            raise TournamentError([f"The tournament is {tournament.get_status_display()}, so it cannot {action}."])
        audit.record(team=tournament.team, actor=actor, action=f"tournament.{action}", target=tournament.name)
    tournament.refresh_from_db()


@transaction.atomic
def set_budget(*, tournament: Tournament, budget_usd: Decimal | None, actor: User | None = None) -> None:
    """Change the budget of a tournament that does not run."""
    locked = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if locked.status not in {Status.DRAFT, Status.PAUSED, Status.FINISHED}:
        raise TournamentError(["Pause the tournament before changing its budget."])
    models = [row.language_model for row in locked.candidates.select_related("language_model__provider")]
    jury = locked.juries.get(primary=True)
    models += [row.language_model for row in jury.judges.select_related("language_model__provider")]
    models = list({model.pk: model for model in models}.values())
    problems = budget_problems(models) if budget_usd is not None else []
    if problems:
        raise TournamentError(sorted(set(problems)))
    audit.record(
        team=locked.team,
        actor=actor,
        action="tournament.budget",
        target=locked.name,
        old={"budget_usd": str(locked.budget_usd)},
        new={"budget_usd": str(budget_usd)},
    )
    if locked.budget_usd is None:
        # Without a budget nothing was kept count of.
        spent = Call.objects.filter(tournament=locked, rejudge=None).aggregate(total=Sum("cost_usd"))["total"]
        locked.spent_usd = spent or Decimal(0)
    locked.budget_usd = budget_usd
    locked.save(update_fields=["budget_usd", "spent_usd"])
    tournament.refresh_from_db()
