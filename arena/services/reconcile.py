"""What makes lost messages and killed workers harmless: it repeats every fan-in and sends what is due.

It runs at start, every few seconds in an embedded process, and by beat in a team installation. Everything it
does is safe to do twice and at the same time as the work itself.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from arena.dispatch import fill
from arena.models import (
    Ballot,
    CallStatus,
    Jury,
    LoginLink,
    Match,
    Provider,
    Step,
    Tournament,
    Trial,
    TrialRequest,
    UploadDraft,
    Verdict,
    Worker,
)
from arena.services import benching, claims, matches, rejudges, steps, tournaments, workers

logger = logging.getLogger(__name__)
BATCH = 500
ACTIVE = [Tournament.Status.RUNNING, Tournament.Status.PAUSED]


def reconcile() -> None:
    # A suspended machine may wake this thread before the one that beats.
    workers.prove_alive()
    _safely("dead claims", free_dead_claims)
    for tournament_id in list(Tournament.objects.filter(status__in=ACTIVE).values_list("pk", flat=True)):
        _safely(f"tournament {tournament_id}", partial(advance_tournament, tournament_id))
    for jury_id in list(Jury.objects.filter(primary=False, status__in=rejudges.ACTIVE).values_list("pk", flat=True)):
        _safely(f"rejudge {jury_id}", partial(advance_rejudge, jury_id))
    rejudges.withdraw_stopped()
    for tournament_id in stopped_with_calls():
        _safely(f"stopped tournament {tournament_id}", partial(tournaments.withdraw_calls, tournament_id))
    for provider_id in providers_with_work():
        _safely(f"provider {provider_id}", partial(fill, provider_id))


def reconcile_in_turn() -> None:
    """For a team installation, where every worker and beat offers to do it: whoever asks first does."""
    if cache.add("tiltyard-reconciler", workers.worker_id(), timeout=settings.RECONCILE_SECONDS):
        reconcile()


def _safely(what: str, action: Callable[[], object]) -> None:
    """One row that cannot be dealt with must not keep the others waiting; it is told, and tried again."""
    try:
        action()
    except Exception:
        logger.exception("The reconciler could not deal with %s.", what)


def forget_messages() -> None:
    """Take every queued row for unsent: the broker that held the messages is gone."""
    for model in (Trial, Verdict):
        model.objects.filter(status=CallStatus.QUEUED).exclude(dispatched_at=None).update(dispatched_at=None)


def free_dead_claims() -> None:
    """Queue the rows of dead workers again."""
    now = timezone.now()
    for trial in Trial.objects.lost(now).select_related("payer")[:BATCH]:
        _safely(f"trial {trial.pk}", partial(claims.free_lost, trial, now))
    for verdict in Verdict.objects.lost(now).select_related("tournament", "rejudge", "ballot__judge")[:BATCH]:
        _safely(f"verdict {verdict.pk}", partial(claims.free_lost, verdict, now))
    silent_since = now - dt.timedelta(seconds=settings.WORKER_DEAD_SECONDS)
    Worker.objects.filter(beat_at__lt=silent_since).delete()


def advance_tournament(tournament_id: int) -> None:
    """Repeat the fan-ins of one tournament: matches ready to be judged or decided, steps ready to be closed."""
    _safely(f"the plan of tournament {tournament_id}", partial(steps.plan_when_due, tournament_id))
    finished = [CallStatus.SUCCEEDED, CallStatus.FAILED]
    ready = Match.objects.filter(
        tournament=tournament_id,
        status=Match.Status.WAITING,
        first_trial__status__in=finished,
        second_trial__status__in=finished,
    )
    found = list(ready.order_by("sequence").values_list("pk", "sequence")[:BATCH])
    turns = benching.turns_of(tournament_id, [sequence for _, sequence in found]) if found else {}
    for match_id, sequence in found:
        if turns[sequence] is not benching.Turn.UNCERTAIN:
            _safely(f"match {match_id}", partial(matches.begin_judging, match_id, turns[sequence]))
    outstanding = Verdict.objects.filter(match=OuterRef("pk"), rejudge=None).unfinished()
    complete = Match.objects.filter(~Exists(outstanding), tournament=tournament_id, status=Match.Status.JUDGING)
    for match_id in complete.values_list("pk", flat=True)[:BATCH]:
        _safely(f"match {match_id}", partial(matches.decide_when_complete, match_id))
    still_open = Match.objects.filter(step=OuterRef("pk")).open()
    done = Step.objects.filter(~Exists(still_open), tournament=tournament_id).exclude(status=Step.Status.COMPLETE)
    for step_id in done.order_by("number").values_list("pk", flat=True):
        _safely(f"step {step_id}", partial(steps.complete_when_done, step_id))
    steps.finish_when_done(tournament_id)


def advance_rejudge(jury_id: int) -> None:
    """Repeat the fan-ins of a rejudge: ballots to open, matches ready to be decided, the end."""
    while batch := rejudges.unopened(jury_id):
        rejudges.open_batch(jury_id, batch, matches.open_rejudged)
    outstanding = Verdict.objects.filter(match=OuterRef("match"), rejudge=jury_id).unfinished()
    pending = Ballot.objects.filter(~Exists(outstanding), jury=jury_id, status=Ballot.Status.PENDING)
    for match_id in sorted(set(pending.values_list("match", flat=True)[:BATCH])):
        _safely(f"match {match_id}", partial(matches.decide_when_complete, match_id, jury_id))
    rejudges.finish_when_done(jury_id)


def providers_with_work() -> list[int]:
    running = Tournament.Status.RUNNING
    unfinished = [CallStatus.QUEUED, CallStatus.RUNNING]
    trials = Trial.objects.filter(status__in=unfinished, requests__tournament__status=running)
    verdicts = Verdict.objects.filter(
        Q(rejudge=None, tournament__status=running) | Q(rejudge__status=running), status__in=unfinished
    )
    return list(
        Provider.objects.filter(
            Exists(trials.filter(provider=OuterRef("pk"))) | Exists(verdicts.filter(provider=OuterRef("pk")))
        ).values_list("pk", flat=True)
    )


def stopped_with_calls() -> list[int]:
    """Stopped tournaments to which a call that was in flight came back as a retry."""
    queued = {"status": CallStatus.QUEUED}
    verdicts = Verdict.objects.filter(tournament=OuterRef("pk"), rejudge=None, **queued)
    active = TrialRequest.objects.filter(trial=OuterRef("pk"), tournament__status__in=ACTIVE)
    trials = Trial.objects.filter(~Exists(active), requests__tournament=OuterRef("pk"), **queued)
    stopped = Tournament.objects.filter(Exists(verdicts) | Exists(trials), status=Tournament.Status.STOPPED)
    return list(stopped.values_list("pk", flat=True))


def drop_expired() -> None:
    """Upload drafts and login links that nobody will use any more."""
    now = timezone.now()
    for draft in UploadDraft.objects.filter(expires_at__lt=now)[:BATCH]:
        draft.file.delete(save=False)
        draft.delete()
    LoginLink.objects.filter(expires_at__lt=now - dt.timedelta(days=30)).delete()
