"""Calling again what failed, and nothing else.

A failed answer stays as it is, and its match gets a new one. A failed judge call is made again in its row, which
keeps what came of it before; its match is decided anew by a new decision, and the one before stays as evidence.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from arena.models import (
    Ballot,
    CallStatus,
    Candidate,
    Decision,
    DecisionOutcome,
    Jury,
    Match,
    Tournament,
    User,
    Verdict,
)
from arena.selectors.retries import (
    RETRIED,
    RETRIED_JURIES,
    failed_verdicts,
    void_matches,
    withdrawn_matches,
)
from arena.services import audit, benching, rejudges, tallies
from arena.services.going_on import go_on
from arena.services.tournament_errors import TournamentError

BATCH = 200


@transaction.atomic
def retry_tournament(
    *, tournament: Tournament, answers: bool = True, verdicts: bool = True, actor: User | None = None
) -> None:
    """A finished or failed tournament runs again with what failed; a paused one does so when it is resumed."""
    candidates = benching.lock_candidates(tournament.pk)
    locked = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if locked.status not in RETRIED:
        status = locked.get_status_display()
        raise TournamentError([f"The tournament is {status}; pause it, or wait for its end, to retry what failed."])
    if locked.settings.get("imported"):
        raise TournamentError(["An imported record cannot be retried: nobody can be asked."])
    jury = locked.juries.get(primary=True)
    n_answers = _play_again(locked, candidates) if answers else 0
    n_verdicts = _judge_again(jury) if verdicts else 0
    if not n_answers and not n_verdicts:
        raise TournamentError(["Nothing of it failed that another call could change."])
    new = {"matches_played_again": n_answers, "judge_calls_again": n_verdicts}
    audit.record(team=locked.team, actor=actor, action="tournament.retry", target=locked.name, new=new)
    go_on(locked)
    tournament.refresh_from_db()


@transaction.atomic
def retry_rejudge(*, jury: Jury, actor: User | None = None) -> None:
    locked = (
        Jury.objects.select_for_update(of=("self",)).select_related("tournament__team").get(pk=jury.pk, primary=False)
    )
    if locked.status not in RETRIED_JURIES:
        status = locked.get_status_display()
        raise TournamentError([f"The rejudge is {status}; pause it, or wait for its end, to retry what failed."])
    count = _judge_again(locked)
    if not count:
        raise TournamentError(["No judge call of it failed that another call could change."])
    target = f"{locked.tournament.name}: {locked.name}"
    new = {"judge_calls_again": count}
    audit.record(team=locked.tournament.team, actor=actor, action="rejudge.retry", target=target, new=new)
    if locked.status != Jury.Status.PAUSED:
        locked.status, locked.reason, locked.reason_text = Jury.Status.RUNNING, "", ""
        locked.finished_at = None
        locked.save(update_fields=["status", "reason", "reason_text", "finished_at"])
        rejudges.set_going(locked)
    jury.refresh_from_db()


def _play_again(tournament: Tournament, candidates: list[Candidate]) -> int:
    """New answers for void matches; who sat out for its failed ones begins anew, with what it missed."""
    rows = void_matches(tournament)
    if not rows.exists():
        return 0
    benching.begin_anew(candidates)
    wanted = rows | withdrawn_matches(tournament)
    matches = list(wanted.select_related("step", "sample").order_by("sequence"))
    benching.play_after_all(tournament, matches, {candidate.pk: candidate for candidate in candidates})
    # They are void no more, and what their answers were counted for is known by the rows alone.
    tallies.recount(tournament.juries.get(primary=True))
    return len(matches)


def _judge_again(jury: Jury) -> int:
    """Queue failed judge calls of a jury; returns how many."""
    failed = list(failed_verdicts(jury).order_by("match", "pk"))
    for start in range(0, len(failed), BATCH):
        _queue_again(jury, failed[start : start + BATCH])
    return len(failed)


def _queue_again(jury: Jury, verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        verdict.earlier = [
            *verdict.earlier,
            {
                "error_code": verdict.error_code,
                "error": verdict.error,
                "raw": verdict.raw,
                "finished_at": verdict.finished_at.isoformat() if verdict.finished_at else None,
            },
        ]
        verdict.status, verdict.finished_at = CallStatus.QUEUED, None
        verdict.failures = verdict.waits = verdict.repairs = 0
        verdict.not_before = verdict.dispatched_at = None
        verdict.raw = ""
    fields = ["earlier", "status", "finished_at", "failures", "waits", "repairs", "not_before", "dispatched_at", "raw"]
    Verdict.objects.bulk_update(verdicts, fields)
    Ballot.objects.filter(pk__in={verdict.ballot_id for verdict in verdicts}).update(
        status=Ballot.Status.PENDING, vote=""
    )
    if jury.primary:
        judged = Match.objects.filter(pk__in={verdict.match_id for verdict in verdicts})
        judged.update(status=Match.Status.JUDGING)


def put_back(tournament: Tournament) -> None:
    """At a stop: matches that were only being decided again keep the decision that they had."""
    jury = tournament.juries.get(primary=True)
    held = Decision.objects.current().filter(jury=jury, match__status=Match.Status.JUDGING)
    matches = dict(held.values_list("match", "outcome"))
    if not matches:
        return
    undecided = [pk for pk, outcome in matches.items() if outcome == DecisionOutcome.INCONCLUSIVE]
    reopened = Match.objects.filter(pk__in=matches)
    reopened.filter(pk__in=undecided).update(status=Match.Status.INCONCLUSIVE)
    reopened.exclude(pk__in=undecided).update(status=Match.Status.DECIDED)
    pending = Ballot.objects.filter(jury=jury, match__in=matches, status=Ballot.Status.PENDING)
    queued = Verdict.objects.filter(ballot__in=pending, status=CallStatus.QUEUED)
    queued.update(status=CallStatus.FAILED, finished_at=timezone.now())
    failed_vote = "tie" if jury.protocol.get("on_error") == "tie" else ""
    pending.filter(replaces=None).update(status=Ballot.Status.FAILED, vote=failed_vote)
    pending.update(status=Ballot.Status.FAILED, vote="")
