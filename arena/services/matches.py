"""Fan-in: a match is judged as soon as both trials exist and decided as soon as its last verdict is in.

Each function is safe to repeat and to run twice at once. The completion that calls it is committed before;
then the parent is locked and everything counted anew: under READ COMMITTED two finishers that counted in
their own transactions could otherwise both leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.db import transaction
from django.utils import timezone

from arena import statements
from arena.dispatch import wake
from arena.judging import ballots as pure
from arena.judging.panels import ReplacementJudge, may_judge, stand_ins_due
from arena.judging.protocol import Protocol, seat_plan
from arena.judging.verdict import ErrorCode
from arena.models import Ballot, CallStatus, Decision, DecisionOutcome, Judge, Jury, Match, Verdict
from arena.selectors.cells import reads_as_judge
from arena.services import benching, known, rejudges, steps, tallies
from arena.services.known import Panel
from arena.services.wire import attachments_of

FINISHED = [CallStatus.SUCCEEDED, CallStatus.FAILED]


def begin_ready(tournament_id: int, ready: Sequence[tuple[int, int]]) -> None:
    """Begin with those of these matches, by key and number, of which it is certain whether they are played."""
    if not ready:
        return
    turns = benching.turns_of(tournament_id, [sequence for _, sequence in ready])
    for match_id, sequence in ready:
        if turns[sequence] is not benching.Turn.UNCERTAIN:
            begin_judging(match_id, turns[sequence])


def begin_judging(match_id: int, turn: benching.Turn | None = None) -> None:
    """Open the ballots of a match whose two trials are finished, or declare it void.

    It waits where an earlier answer that may bench one of its sides is not there yet; whoever completes that
    answer calls again.
    """
    with transaction.atomic():
        match = statements.lock_match(match_id)
        if match is None or match.status != Match.Status.WAITING or not _trials_finished(match):
            return
        turn = turn or benching.turns_of(match.tournament_id, [match.sequence])[match.sequence]
        if turn is benching.Turn.UNCERTAIN:
            return
        panel = known.panel_of(match.tournament_id)
        if turn is benching.Turn.WITHDRAWN:
            _resolve(match, Match.Status.WITHDRAWN)
        elif not _both_answered(match):
            forced_tie = panel.protocol.on_skip == "forced_tie"
            _resolve(match, Match.Status.VOID, forced_tie=forced_tie)
            tallies.count_void(match, panel.jury.pk, forced_tie=forced_tie)
        elif not _open_ballots(match, panel):
            _decide(match, panel, statements.ballots_of(panel.jury.pk, match.pk))
    if match.status not in {Match.Status.WAITING, Match.Status.JUDGING}:
        steps.complete_when_done(match.step_id)


def decide_when_complete(match_id: int, rejudge_id: int | None = None) -> None:
    """Reconcile, call stand-ins, or decide, once no verdict of the jury on the match is outstanding."""
    # Cheap and without a lock: whoever commits last sees all others' commits, and goes on.
    if statements.has_unfinished_verdicts(match_id, rejudge_id):
        return
    with transaction.atomic():
        match = statements.lock_match(match_id)
        if match is None or statements.has_unfinished_verdicts(match_id, rejudge_id):
            return
        panel = known.panel_of(match.tournament_id) if rejudge_id is None else known.rejudge_panel_of(rejudge_id)
        if panel.jury.primary and match.status != Match.Status.JUDGING:
            return
        ballots = statements.ballots_of(panel.jury.pk, match.pk)
        if not panel.jury.primary and not _may_decide(panel, ballots):
            return
        _reconcile(match, panel, ballots)
        if not _call_stand_ins(match, panel, ballots):
            _decide(match, panel, ballots)
    if not panel.jury.primary:
        rejudges.finish_when_done(panel.jury.pk)
    elif match.status != Match.Status.JUDGING:
        steps.complete_when_done(match.step_id)


def _may_decide(panel: Panel, ballots: list[Ballot]) -> bool:
    """Whether a rejudge still wants this: a match that a stop left half judged stays undecided."""
    pending = any(ballot.status == Ballot.Status.PENDING for ballot in ballots)
    return pending and Jury.objects.filter(pk=panel.jury.pk, status__in=rejudges.ACTIVE).exists()


def open_rejudged(match_id: int, jury_id: int) -> None:
    """Inside a transaction that holds the jury: open another jury's ballots on a match with two answers."""
    match = statements.lock_match(match_id)
    if match is None or not _both_answered(match):
        return
    panel = known.rejudge_panel_of(jury_id)
    if not _open_ballots(match, panel):
        _decide(match, panel, statements.ballots_of(jury_id, match.pk))


def _trials_finished(match: Match) -> bool:
    return all(trial is not None and trial.status in FINISHED for trial in (match.first_trial, match.second_trial))


def _both_answered(match: Match) -> bool:
    return all(trial is not None and trial.succeeded for trial in (match.first_trial, match.second_trial))


def _resolve(match: Match, status: str, *, forced_tie: bool = False) -> None:
    match.status = status
    statements.update(match, {"status": status, "forced_tie": forced_tie, "decided_at": timezone.now()})


def _open_ballots(match: Match, panel: Panel) -> bool:
    """Ballots for the panel and verdicts for those that may sit. False where nobody may."""
    types = _file_types(match)
    ballots = [
        Ballot(jury=panel.jury, match=match, judge=judge, status=_seat_of(judge, match, types, panel.protocol))
        for judge in panel.primary
    ]
    statements.insert(ballots)
    opened = _open_verdicts(match, panel, [ballot for ballot in ballots if ballot.status == Ballot.Status.PENDING])
    if opened and panel.jury.primary:
        match.status = Match.Status.JUDGING
        statements.update(match, {"status": match.status})
    return opened


def _file_types(match: Match) -> set[str]:
    return {file.content_type for file in attachments_of(known.sample_of(match.sample_id)).values()}


def _contestants(match: Match) -> tuple[str, str]:
    return known.candidate_model_of(match.first_id), known.candidate_model_of(match.second_id)


def _seat_of(judge: Judge, match: Match, file_types: set[str], protocol: Protocol) -> str:
    if not may_judge(judge.snapshot["model_id"], *_contestants(match)):
        return Ballot.Status.EXCLUDED
    return Ballot.Status.PENDING if _reads(judge, file_types, protocol) else Ballot.Status.INPUT_SKIPPED


def _reads(judge: Judge, file_types: set[str], protocol: Protocol) -> bool:
    return reads_as_judge(judge.language_model, file_types, protocol)


def _open_verdicts(match: Match, panel: Panel, ballots: list[Ballot]) -> bool:
    """A queued verdict for each seat order of these ballots."""
    seed = known.tournament_of(match.tournament_id).seed
    orders = [
        Verdict.SeatOrder.FIRST_IN_A if first_in_a else Verdict.SeatOrder.SECOND_IN_A
        for first_in_a in seat_plan(panel.protocol, seed=seed, sequence=match.sequence)
    ]
    if not ballots:
        return False
    providers = {ballot.pk: panel.judge(ballot.judge_id).language_model.provider_id for ballot in ballots}
    verdicts = [
        Verdict(
            ballot=ballot,
            match=match,
            tournament_id=match.tournament_id,
            rejudge_id=panel.rejudge_id,
            provider_id=providers[ballot.pk],
            seat_order=order,
        )
        for ballot in ballots
        for order in orders
    ]
    statements.insert(verdicts)
    wake(provider for provider in providers.values() if provider is not None)
    return True


def _reconcile(match: Match, panel: Panel, ballots: list[Ballot]) -> None:
    seats: dict[int, list[pure.Vote | ErrorCode]] = {}
    for ballot_id, vote, error_code in statements.votes_of(match.pk, panel.rejudge_id):
        word = pure.Vote(vote) if vote else ErrorCode(error_code or ErrorCode.OTHER)
        seats.setdefault(ballot_id, []).append(word)
    for ballot in ballots:
        if ballot.status != Ballot.Status.PENDING:
            continue
        result = pure.reconcile(seats[ballot.pk], panel.protocol)
        ballot.status = result.status.value
        ballot.vote = result.vote.value if result.vote else ""
        ballot.flipped, ballot.flip_kind = result.flipped, result.flip_kind or ""
        changed = ("status", "vote", "flipped", "flip_kind")
        statements.update(ballot, {name: getattr(ballot, name) for name in changed})


def _pure_ballots(panel: Panel, ballots: list[Ballot]) -> list[pure.Ballot]:
    judges = {ballot.pk: ballot.judge_id for ballot in ballots}
    # A stand-in sits after the whole primary panel, in the order of the replacement list.
    after_panel = len(panel.judges)
    return [
        pure.Ballot(
            judge_id=row.judge_id,
            position=judge.position + (after_panel if judge.replacement else 0),
            status=pure.BallotStatus(row.status),
            vote=pure.Vote(row.vote) if row.vote else None,
            replaces=judges[row.replaces_id] if row.replaces_id else None,
        )
        for row, judge in ((row, panel.judge(row.judge_id)) for row in ballots)
    ]


def _call_stand_ins(match: Match, panel: Panel, ballots: list[Ballot]) -> bool:
    if not panel.replacements:
        return False
    types, (first_model_id, second_model_id) = _file_types(match), _contestants(match)
    due = stand_ins_due(
        _pure_ballots(panel, ballots),
        [
            ReplacementJudge(
                judge.pk,
                judge.snapshot["model_id"],
                judge.position,
                reads_input=_reads(judge, types, panel.protocol),
            )
            for judge in panel.replacements
        ],
        first_model_id=first_model_id,
        second_model_id=second_model_id,
    )
    rows = {ballot.judge_id: ballot for ballot in ballots}
    opened = [Ballot(jury=panel.jury, match=match, judge_id=one.judge_id, replaces=rows[one.replaces]) for one in due]
    if opened:
        statements.insert(opened)
    return _open_verdicts(match, panel, opened)


def _supersede(match: Match, jury: Jury) -> None:
    """Take back the decision that there was, if any, with what it counted for."""
    for outcome in Decision.objects.current().filter(jury=jury, match=match.pk).values_list("outcome", flat=True):
        statements.supersede(jury.pk, match.pk, timezone.now())
        tallies.take_back_decision(match, jury.pk, outcome)


def _decide(match: Match, panel: Panel, ballots: list[Ballot]) -> None:
    result = pure.decide(_pure_ballots(panel, ballots), panel.protocol)
    if not panel.jury.primary or match.decided_at is not None:
        # It was decided before, and calls that had failed were made again.
        _supersede(match, panel.jury)
    decision = Decision(
        jury=panel.jury,
        match=match,
        outcome=DecisionOutcome(result.outcome.value),
        reason=result.reason.value,
        counts=asdict(result.counts),
    )
    statements.insert([decision])
    tallies.count_decision(match, panel.jury.pk, result.outcome.value)
    if not panel.jury.primary:
        return
    conclusive = result.outcome is not pure.Outcome.INCONCLUSIVE
    _resolve(match, Match.Status.DECIDED if conclusive else Match.Status.INCONCLUSIVE)
