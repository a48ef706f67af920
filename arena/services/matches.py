"""Fan-in: a match is judged as soon as both trials exist and decided as soon as its last verdict is in.

Each function is safe to repeat and to run twice at once. The completion that calls it is committed before;
then the parent is locked and everything counted anew: under READ COMMITTED two finishers that counted in
their own transactions could otherwise both leave.
"""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction
from django.utils import timezone

from arena.dispatch import wake
from arena.judging import ballots as pure
from arena.judging.panels import ReplacementJudge, may_judge, stand_ins_due
from arena.judging.protocol import Protocol, seat_plan
from arena.judging.verdict import ErrorCode
from arena.models import Ballot, CallStatus, Decision, DecisionOutcome, Judge, Jury, Match, Verdict
from arena.selectors.cells import reads_as_judge
from arena.services import known, steps
from arena.services.wire import attachments_of

FINISHED = [CallStatus.SUCCEEDED, CallStatus.FAILED]


def begin_judging(match_id: int) -> None:
    """Open the ballots of a match whose two trials are finished, or declare it void."""
    with transaction.atomic():
        match = _locked(match_id)
        if match is None or match.status != Match.Status.WAITING or not _trials_finished(match):
            return
        jury = Jury.objects.get(tournament_id=match.tournament_id, primary=True)
        protocol = known.protocol_of(jury.pk)
        if not _both_answered(match):
            _resolve(match, Match.Status.VOID, forced_tie=protocol.on_skip == "forced_tie")
        elif not _open_ballots(match, jury, protocol):
            _decide(match, jury, protocol)
    if match.status not in {Match.Status.WAITING, Match.Status.JUDGING}:
        steps.complete_when_done(match.step_id)


def decide_when_complete(match_id: int) -> None:
    """Reconcile, call stand-ins, or decide, once no verdict of the match is outstanding."""
    # Cheap and without a lock: whoever commits last sees all others' commits, and goes on.
    if Verdict.objects.filter(match_id=match_id).unfinished().exists():
        return
    with transaction.atomic():
        match = _locked(match_id)
        if match is None or match.status != Match.Status.JUDGING:
            return
        if Verdict.objects.filter(match_id=match_id).unfinished().exists():
            return
        jury = Jury.objects.get(tournament_id=match.tournament_id, primary=True)
        protocol = known.protocol_of(jury.pk)
        _reconcile(match, jury, protocol)
        if not _call_stand_ins(match, jury, protocol):
            _decide(match, jury, protocol)
    if match.status != Match.Status.JUDGING:
        steps.complete_when_done(match.step_id)


NEEDED = (
    "status",
    "sequence",
    "tournament_id",
    "step_id",
    "sample_id",
    "first__snapshot",
    "second__snapshot",
    "first_trial__status",
    "second_trial__status",
)


def _locked(match_id: int) -> Match | None:
    return (
        Match.objects.select_for_update(of=("self",))
        .select_related("first", "second", "first_trial", "second_trial")
        .only(*NEEDED)
        .filter(pk=match_id)
        .first()
    )


def _trials_finished(match: Match) -> bool:
    return all(trial is not None and trial.status in FINISHED for trial in (match.first_trial, match.second_trial))


def _both_answered(match: Match) -> bool:
    return all(trial is not None and trial.succeeded for trial in (match.first_trial, match.second_trial))


def _resolve(match: Match, status: str, *, forced_tie: bool = False) -> None:
    match.status, match.forced_tie, match.decided_at = status, forced_tie, timezone.now()
    match.save(update_fields=["status", "forced_tie", "decided_at"])


def _open_ballots(match: Match, jury: Jury, protocol: Protocol) -> bool:
    """Ballots for the panel and verdicts for those that may sit. False where nobody may."""
    judges = list(jury.judges.filter(replacement=False).select_related("language_model"))
    file_types = {file.content_type for file in attachments_of(known.sample_of(match.sample_id)).values()}
    Ballot.objects.bulk_create(
        [
            Ballot(jury=jury, match=match, judge=judge, status=_seat_of(judge, match, file_types, protocol))
            for judge in judges
        ],
        ignore_conflicts=True,
    )
    opened = _open_verdicts(match, jury, protocol)
    if opened:
        match.status = Match.Status.JUDGING
        match.save(update_fields=["status"])
    return opened


def _seat_of(judge: Judge, match: Match, file_types: set[str], protocol: Protocol) -> str:
    contestants = match.first.snapshot["model_id"], match.second.snapshot["model_id"]
    if not may_judge(judge.snapshot["model_id"], *contestants):
        return Ballot.Status.EXCLUDED
    return Ballot.Status.PENDING if _reads(judge, file_types, protocol) else Ballot.Status.INPUT_SKIPPED


def _reads(judge: Judge, file_types: set[str], protocol: Protocol) -> bool:
    return reads_as_judge(judge.language_model, file_types, protocol)


def _open_verdicts(match: Match, jury: Jury, protocol: Protocol) -> bool:
    """A queued verdict for each seat order of each pending ballot that has none yet."""
    pending = list(
        Ballot.objects.filter(jury=jury, match=match, status=Ballot.Status.PENDING, verdicts=None).select_related(
            "judge__language_model"
        )
    )
    seed = known.tournament_of(match.tournament_id).seed
    orders = [
        Verdict.SeatOrder.FIRST_IN_A if first_in_a else Verdict.SeatOrder.SECOND_IN_A
        for first_in_a in seat_plan(
            protocol, seed=known.tournament_of(match.tournament_id).seed, sequence=match.sequence
        )
    ]
    Verdict.objects.bulk_create(
        [
            Verdict(
                ballot=ballot,
                match=match,
                tournament_id=match.tournament_id,
                provider_id=ballot.judge.language_model.provider_id,
                seat_order=order,
            )
            for ballot in pending
            for order in orders
        ],
        ignore_conflicts=True,
    )
    wake(
        ballot.judge.language_model.provider_id
        for ballot in pending
        if ballot.judge.language_model.provider_id is not None
    )
    return bool(pending)


def _reconcile(match: Match, jury: Jury, protocol: Protocol) -> None:
    pending = list(
        Ballot.objects.filter(jury=jury, match=match, status=Ballot.Status.PENDING).prefetch_related("verdicts")
    )
    for ballot in pending:
        seats: list[pure.Vote | ErrorCode] = [
            pure.Vote(verdict.vote) if verdict.vote else ErrorCode(verdict.error_code or ErrorCode.OTHER)
            for verdict in sorted(ballot.verdicts.all(), key=lambda verdict: verdict.seat_order)
        ]
        result = pure.reconcile(seats, protocol)
        ballot.status = result.status.value
        ballot.vote = result.vote.value if result.vote else ""
        ballot.flipped, ballot.flip_kind = result.flipped, result.flip_kind or ""
    Ballot.objects.bulk_update(pending, ["status", "vote", "flipped", "flip_kind"])


def _pure_ballots(match: Match, jury: Jury) -> tuple[list[pure.Ballot], dict[int, Ballot]]:
    rows = list(Ballot.objects.filter(jury=jury, match=match).select_related("judge", "replaces"))
    # A stand-in sits after the whole primary panel, in the order of the replacement list.
    ballots = [
        pure.Ballot(
            judge_id=row.judge_id,
            position=row.judge.position + (10_000 if row.judge.replacement else 0),
            status=pure.BallotStatus(row.status),
            vote=pure.Vote(row.vote) if row.vote else None,
            replaces=row.replaces.judge_id if row.replaces else None,
        )
        for row in rows
    ]
    return ballots, {row.judge_id: row for row in rows}


def _call_stand_ins(match: Match, jury: Jury, protocol: Protocol) -> bool:
    replacements = list(jury.judges.filter(replacement=True).select_related("language_model"))
    if not replacements:
        return False
    file_types = {file.content_type for file in attachments_of(known.sample_of(match.sample_id)).values()}
    ballots, rows = _pure_ballots(match, jury)
    due = stand_ins_due(
        ballots,
        [
            ReplacementJudge(
                judge.pk,
                judge.snapshot["model_id"],
                judge.position,
                reads_input=_reads(judge, file_types, protocol),
            )
            for judge in replacements
        ],
        first_model_id=match.first.snapshot["model_id"],
        second_model_id=match.second.snapshot["model_id"],
    )
    Ballot.objects.bulk_create(
        [Ballot(jury=jury, match=match, judge_id=due_one.judge_id, replaces=rows[due_one.replaces]) for due_one in due]
    )
    return _open_verdicts(match, jury, protocol) if due else False


def _decide(match: Match, jury: Jury, protocol: Protocol) -> None:
    ballots, _ = _pure_ballots(match, jury)
    result = pure.decide(ballots, protocol)
    Decision.objects.create(
        jury=jury,
        match=match,
        outcome=DecisionOutcome(result.outcome.value),
        reason=result.reason.value,
        counts=asdict(result.counts),
    )
    conclusive = result.outcome is not pure.Outcome.INCONCLUSIVE
    _resolve(match, Match.Status.DECIDED if conclusive else Match.Status.INCONCLUSIVE)
