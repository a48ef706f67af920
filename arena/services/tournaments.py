"""The life of a tournament: create, start, pause, resume, stop. Every change of status is a conditional UPDATE."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Sum
from django.utils import timezone

from arena.dispatch import send, wake
from arena.manifest import versions
from arena.models import (
    Call,
    CallStatus,
    Candidate,
    Judge,
    Jury,
    LanguageModel,
    Match,
    Provider,
    Step,
    Team,
    Tournament,
    Trial,
    TrialRequest,
    User,
    Verdict,
)
from arena.selectors.specs import TournamentSpec, budget_problems, named, problems_of, spec_of
from arena.services import audit, benching, steps
from arena.services.wire import current_price

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


class TournamentError(Exception):
    """Lists everything that stands in the way, not only the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = list(problems)


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
    _seat_jury(tournament, spec)
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


def _seat_jury(tournament: Tournament, spec: TournamentSpec) -> None:
    jury = Jury.objects.create(tournament=tournament, primary=True, protocol=spec.protocol.to_json())
    panels = ((spec.judges, False), (spec.replacement_judges, True))
    for models, replacement in panels:
        for position, (model, label, full_id) in enumerate(named(models)):
            Judge.objects.create(
                jury=jury,
                language_model=model,
                position=position,
                replacement=replacement,
                label=label,
                full_id=full_id,
                snapshot=snapshot_of(model),
            )


def snapshot_of(model: LanguageModel) -> dict[str, Any]:
    """What the model was when it entered: reports and audits read this, never the live row."""
    price = current_price(model.pk)
    return {
        "model_id": model.model_id,
        "provider": model.provider.name if model.provider else None,
        "kind": model.provider.kind if model.provider else None,
        "base_url": model.provider.base_url if model.provider else None,
        "full_id": model.full_id,
        "display_name": model.display_name,
        "family": model.family,
        "system_prompt": model.system_prompt,
        "parameters": model.parameters,
        "max_tokens": model.max_tokens,
        "pdf_input": model.pdf_input,
        "image_input": model.image_input,
        "fingerprint": model.fingerprint,
        "price": None
        if price is None
        else {
            "input_per_million": str(price.input_per_million),
            "output_per_million": str(price.output_per_million),
            "source": price.source,
            "valid_from": price.valid_from.isoformat(),
        },
    }


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


def pause_for_budget(tournament_id: int, sentence: str, *, needed_usd: Decimal | None) -> None:
    """A hard stop: nothing more is sent until somebody raises the budget and resumes."""
    running = Tournament.objects.filter(pk=tournament_id, status=Status.RUNNING)
    if needed_usd is not None:
        # Looked at again: it may have been raised and resumed since the call did not fit.
        running = running.filter(budget_usd__lt=F("spent_usd") + F("reserved_usd") + needed_usd)
    running.update(status=Status.PAUSED, reason=Reason.BUDGET, reason_text=sentence)


@transaction.atomic
def resume_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    _change(tournament, {Status.PAUSED}, Status.RUNNING, Reason.NONE, actor=actor, action="resume")
    # What was sent while the tournament stood still found nobody to run it.
    queued = {"status": CallStatus.QUEUED}
    Verdict.objects.filter(tournament=tournament, **queued).update(dispatched_at=None)
    Trial.objects.filter(requests__tournament=tournament, **queued).update(dispatched_at=None)
    wake_all(tournament)
    send("arena.tasks.advance_tournament_task", tournament.pk)


@transaction.atomic
def stop_tournament(*, tournament: Tournament, actor: User | None = None) -> None:
    """For good: undecided matches are withdrawn; what is in flight is kept when it arrives."""
    # Nobody plans meanwhile what would then never be played.
    benching.lock_candidates(tournament.pk)
    _change(tournament, {Status.RUNNING, Status.PAUSED}, Status.STOPPED, Reason.BY_HAND, actor=actor, action="stop")
    Match.objects.filter(tournament=tournament).open().update(status=Match.Status.WITHDRAWN)
    withdraw_calls(tournament.pk)
    Step.objects.filter(tournament=tournament).exclude(status=Step.Status.COMPLETE).update(
        status=Step.Status.COMPLETE, completed_at=timezone.now()
    )
    Tournament.objects.filter(pk=tournament.pk).update(finished_at=timezone.now())
    tournament.juries.update(status=Jury.Status.FINISHED)


@transaction.atomic
def withdraw_calls(tournament_id: int) -> None:
    """Queued calls of a stopped tournament that no other one wants; also those that come back as a retry after it."""
    Verdict.objects.filter(tournament=tournament_id, status=CallStatus.QUEUED).update(status=CallStatus.WITHDRAWN)
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
    if locked.status not in {Status.DRAFT, Status.PAUSED}:
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
        spent = Call.objects.filter(tournament=locked).aggregate(total=Sum("cost_usd"))["total"]
        locked.spent_usd = spent or Decimal(0)
    locked.budget_usd = budget_usd
    locked.save(update_fields=["budget_usd", "spent_usd"])
    tournament.refresh_from_db()


def wake_all(tournament: Tournament) -> None:
    """Wake every provider that this tournament may call."""
    candidates = Provider.objects.filter(language_models__candidacies__tournament=tournament)
    judges = Provider.objects.filter(language_models__judgeships__jury__tournament=tournament)
    wake([*candidates.values_list("pk", flat=True), *judges.values_list("pk", flat=True)])
