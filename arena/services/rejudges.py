"""A rejudge: another jury over the recorded answers of a tournament that is over. Judge calls only.

It has its own decisions, budget and life, and changes nothing of the tournament. Its matches are settled when it
begins: those with two answers, up to the last number there is.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Sum
from django.utils import timezone

from arena.dispatch import send, wake
from arena.models import (
    Ballot,
    Call,
    CallStatus,
    Decision,
    DecisionOutcome,
    Judge,
    Jury,
    Provider,
    Tournament,
    User,
    Verdict,
)
from arena.selectors.rejudging import RejudgeSpec, answered_matches, problems_of_rejudge
from arena.selectors.specs import budget_problems
from arena.services import audit, known
from arena.services.seats import seat_judges
from arena.services.tournament_errors import TournamentError

Status, Reason = Jury.Status, Tournament.Reason
ACTIVE = [Status.RUNNING, Status.PAUSED]
BATCH = 200


@transaction.atomic
def start_rejudge(*, spec: RejudgeSpec, actor: User | None) -> Jury:
    """Make the jury and set it going; its ballots are opened in batches, by whoever comes first."""
    tournament = Tournament.objects.select_for_update().get(pk=spec.tournament.pk)
    problems = problems_of_rejudge(spec)
    if problems:
        raise TournamentError(problems)
    last = answered_matches(tournament).order_by("-sequence").values_list("sequence", flat=True).first()
    jury = Jury.objects.create(
        tournament=tournament,
        primary=False,
        name=spec.name.strip(),
        protocol=spec.protocol.to_json(),
        budget_usd=spec.budget_usd,
        last_sequence=last,
        created_by=actor,
    )
    seat_judges(jury, spec.judges, spec.replacement_judges)
    _note(jury, actor, "start")
    send("arena.tasks.advance_rejudge_task", jury.pk)
    return jury


def unopened(jury_id: int) -> list[int]:
    """Matches that wait for their ballots, a batch of them."""
    jury = Jury.objects.select_related("tournament").get(pk=jury_id)
    if jury.status not in ACTIVE or jury.last_sequence is None:
        return []
    ballots = Ballot.objects.filter(jury=jury_id, match=OuterRef("pk"))
    matches = answered_matches(jury.tournament).filter(~Exists(ballots), sequence__lte=jury.last_sequence)
    return list(matches.order_by("sequence").values_list("pk", flat=True)[:BATCH])


@transaction.atomic
def open_batch(jury_id: int, match_ids: list[int], open_match: Callable[[int, int], None]) -> None:
    # Under the lock nobody else opens the same ones, and no stop comes in between.
    jury = Jury.objects.select_for_update().get(pk=jury_id)
    if jury.status not in ACTIVE:
        return
    there = set(Ballot.objects.filter(jury=jury_id, match__in=match_ids).values_list("match", flat=True))
    for match_id in match_ids:
        if match_id not in there:
            open_match(match_id, jury_id)


def finish_when_done(jury_id: int) -> None:
    unfinished = Verdict.objects.filter(rejudge=jury_id).unfinished()
    if unfinished.exists():
        return
    with transaction.atomic():
        jury = Jury.objects.select_for_update(of=("self",)).select_related("tournament").get(pk=jury_id)
        if jury.status not in ACTIVE or unfinished.exists() or unopened(jury_id):
            return
        if Ballot.objects.filter(jury=jury_id, status=Ballot.Status.PENDING).exists():
            return
        jury.status, jury.reason, jury.reason_text = _ending(jury)
        jury.finished_at = timezone.now()
        jury.save(update_fields=["status", "reason", "reason_text", "finished_at"])


def _ending(jury: Jury) -> tuple[str, str, str]:
    decisions = Decision.objects.current().filter(jury=jury)
    if decisions.exclude(outcome=DecisionOutcome.INCONCLUSIVE).exists():
        return Status.FINISHED, Reason.NONE, ""
    voted = Ballot.objects.filter(jury=jury, status__in=[Ballot.Status.VOTE, Ballot.Status.ABSTAINED])
    if voted.exists():
        text = "Every match is inconclusive: judges contradicted themselves or each other, or the quorum was missed."
        return Status.FINISHED, Reason.NONE, text
    text = "No judge gave a usable verdict on any match, so there is no ranking."
    return Status.FAILED, Reason.NO_VERDICTS, text


# Pause, resume, stop -----------------------------------------------------------------------------------------
def pause_rejudge(*, jury: Jury, actor: User | None = None) -> None:
    _change(jury, [Status.RUNNING], Status.PAUSED, Reason.BY_HAND, actor=actor, action="pause")


@transaction.atomic
def resume_rejudge(*, jury: Jury, actor: User | None = None) -> None:
    _change(jury, [Status.PAUSED], Status.RUNNING, Reason.NONE, actor=actor, action="resume")
    set_going(jury)


def set_going(jury: Jury) -> None:
    """Inside a transaction: what was sent while it stood still found nobody to run it."""
    Verdict.objects.filter(rejudge=jury, status=CallStatus.QUEUED).update(dispatched_at=None)
    wake(Provider.objects.filter(language_models__judgeships__jury=jury).values_list("pk", flat=True))
    send("arena.tasks.advance_rejudge_task", jury.pk)


@transaction.atomic
def stop_rejudge(*, jury: Jury, actor: User | None = None) -> None:
    """For good: what is decided stays, what is in flight is kept when it arrives and decides nothing."""
    _change(jury, ACTIVE, Status.STOPPED, Reason.BY_HAND, actor=actor, action="stop")
    Jury.objects.filter(pk=jury.pk).update(finished_at=timezone.now())
    _withdraw(jury.pk)


def withdraw_stopped() -> None:
    """Calls that come back as a retry after the stop."""
    queued = Verdict.objects.filter(rejudge__status=Status.STOPPED, status=CallStatus.QUEUED)
    for jury_id in set(queued.values_list("rejudge", flat=True)):
        assert jury_id is not None
        _withdraw(jury_id)


def _withdraw(jury_id: int) -> None:
    Verdict.objects.filter(rejudge=jury_id, status=CallStatus.QUEUED).update(status=CallStatus.WITHDRAWN)


@transaction.atomic
def set_rejudge_budget(*, jury: Jury, budget_usd: Decimal | None, actor: User | None = None) -> None:
    locked = Jury.objects.select_for_update(of=("self",)).select_related("tournament__team").get(pk=jury.pk)
    if locked.status != Status.PAUSED:
        raise TournamentError(["Pause the rejudge before changing its budget."])
    judges = Judge.objects.filter(jury=locked).select_related("language_model__provider")
    problems = budget_problems([row.language_model for row in judges]) if budget_usd is not None else []
    if problems:
        raise TournamentError(sorted(set(problems)))
    if locked.budget_usd is None:
        # Without a budget nothing was kept count of.
        spent = Call.objects.filter(rejudge=locked).aggregate(total=Sum("cost_usd"))["total"]
        locked.spent_usd = spent or Decimal(0)
    old = {"budget_usd": str(locked.budget_usd)}
    locked.budget_usd = budget_usd
    locked.save(update_fields=["budget_usd", "spent_usd"])
    _note(locked, actor, "budget", old=old, new={"budget_usd": str(budget_usd)})
    known.rejudge_of.forget(locked.pk)
    jury.refresh_from_db()


def _change(jury: Jury, before: list[Any], after: str, reason: str, *, actor: User | None, action: str) -> None:
    with transaction.atomic():
        rows = Jury.objects.filter(pk=jury.pk, primary=False, status__in=before)
        changed = rows.update(status=after, reason=reason, reason_text="")
        if not changed:
            jury.refresh_from_db()
            raise TournamentError([f"The rejudge is {jury.get_status_display()}, so it cannot {action}."])
        _note(jury, actor, action)
    jury.refresh_from_db()


def _note(jury: Jury, actor: User | None, action: str, **values: dict[str, Any]) -> None:
    target = f"{jury.tournament.name}: {jury.name}"
    audit.record(team=jury.tournament.team, actor=actor, action=f"rejudge.{action}", target=target, **values)
