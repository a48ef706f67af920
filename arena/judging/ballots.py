"""From the verdicts of a match to the jury's decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from arena.judging.protocol import Protocol
from arena.judging.verdict import ErrorCode, Winner


class Vote(StrEnum):
    FIRST = "first"
    SECOND = "second"
    TIE = "tie"


class Outcome(StrEnum):
    FIRST = "first"
    SECOND = "second"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"


class BallotStatus(StrEnum):
    PENDING = "pending"
    VOTE = "vote"
    ABSTAINED = "abstained"
    FAILED = "failed"
    INPUT_SKIPPED = "input_skipped"
    EXCLUDED = "excluded"


class DecisionReason(StrEnum):
    PLURALITY = "plurality"
    MOST_VOTES = "most_votes"
    FIRST_TO_MAXIMUM = "first_to_maximum"
    NO_PLURALITY = "no_plurality"
    BELOW_QUORUM = "below_quorum"
    ALL_FAILED = "all_failed"
    NO_VOTE = "no_vote"
    NO_JUDGE = "no_judge"


FlipKind = Literal["side", "tie"]


@dataclass(frozen=True, slots=True)
class BallotResult:
    status: BallotStatus
    # A failed ballot has a vote where the protocol counts failures as ties.
    vote: Vote | None = None
    flipped: bool = False
    # "side": the winner changed with the seats. "tie": one of the two orders was a tie.
    flip_kind: FlipKind | None = None
    error_code: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class Ballot:
    judge_id: int
    position: int
    status: BallotStatus
    vote: Vote | None = None
    replaces: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    first: int = 0
    second: int = 0
    tie: int = 0
    abstained: int = 0
    failed: int = 0
    input_skipped: int = 0
    excluded: int = 0

    @property
    def votes(self) -> int:
        return self.first + self.second + self.tie


@dataclass(frozen=True, slots=True)
class DecisionResult:
    outcome: Outcome
    reason: DecisionReason
    sentence: str
    counts: Counts


def seat_vote(winner: Winner, *, first_in_seat_a: bool) -> Vote:
    if winner == "tie":
        return Vote.TIE
    return Vote.FIRST if (winner == "A") == first_in_seat_a else Vote.SECOND


def reconcile(seats: Sequence[Vote | ErrorCode], protocol: Protocol) -> BallotResult:
    """One judge's word on a match from its verdict, or error, in each seat order."""
    if len(seats) != protocol.seat_orders:
        raise ValueError(f"{protocol.seat_orders} seat orders expected, not {len(seats)}")
    errors = [seat for seat in seats if isinstance(seat, ErrorCode)]
    if ErrorCode.UNSUPPORTED_INPUT in errors:
        # A judge that cannot read the material has no opinion on it, not even a tie.
        return BallotResult(BallotStatus.INPUT_SKIPPED, error_code=ErrorCode.UNSUPPORTED_INPUT)
    if errors:
        vote = Vote.TIE if protocol.on_error == "tie" else None
        return BallotResult(BallotStatus.FAILED, vote, error_code=errors[0])
    votes = [seat for seat in seats if isinstance(seat, Vote)]
    if len(set(votes)) > 1:
        kind: FlipKind = "tie" if Vote.TIE in votes else "side"
        return BallotResult(BallotStatus.ABSTAINED, flipped=True, flip_kind=kind)
    return BallotResult(BallotStatus.VOTE, votes[0])


def decide(ballots: Sequence[Ballot], protocol: Protocol) -> DecisionResult:
    """The jury's decision. Judge order rules, never the order in which calls came back."""
    in_order = sorted(ballots, key=lambda ballot: ballot.position)
    if any(ballot.status == BallotStatus.PENDING for ballot in in_order):
        raise ValueError("a match with a pending ballot cannot be decided")
    votes = _counted_votes(in_order)
    counts = _counts(in_order, votes)
    blocked = _why_nobody_voted(in_order)
    if blocked is not None:
        return _decision(Outcome.INCONCLUSIVE, blocked, counts, protocol)
    if len(votes) < protocol.quorum:
        return _decision(Outcome.INCONCLUSIVE, DecisionReason.BELOW_QUORUM, counts, protocol)
    top = max(Counter(votes).values())
    leaders = [vote for vote, count in Counter(votes).items() if count == top]
    if len(leaders) == 1:
        is_plurality = protocol.aggregation == "plurality"
        reason = DecisionReason.PLURALITY if is_plurality else DecisionReason.MOST_VOTES
        return _decision(Outcome(leaders[0]), reason, counts, protocol)
    if protocol.aggregation == "plurality":
        return _decision(Outcome.INCONCLUSIVE, DecisionReason.NO_PLURALITY, counts, protocol)
    winner = _first_to_reach(votes, top)
    return _decision(Outcome(winner), DecisionReason.FIRST_TO_MAXIMUM, counts, protocol)


def _counted_votes(ballots: Sequence[Ballot]) -> list[Vote]:
    # The tie of a failed judge gives way to a stand-in that answered, and a stand-in that failed
    # adds no second one: each place on the panel speaks once.
    relieved = {
        ballot.replaces
        for ballot in ballots
        if ballot.replaces is not None and ballot.status in (BallotStatus.VOTE, BallotStatus.ABSTAINED)
    }
    votes = []
    for ballot in ballots:
        is_failure = ballot.status == BallotStatus.FAILED
        silent = is_failure and (ballot.judge_id in relieved or ballot.replaces is not None)
        if ballot.vote is not None and not silent:
            votes.append(ballot.vote)
    return votes


def _counts(ballots: Sequence[Ballot], votes: Sequence[Vote]) -> Counts:
    statuses = Counter(ballot.status for ballot in ballots)
    return Counts(
        first=votes.count(Vote.FIRST),
        second=votes.count(Vote.SECOND),
        tie=votes.count(Vote.TIE),
        abstained=statuses[BallotStatus.ABSTAINED],
        failed=statuses[BallotStatus.FAILED],
        input_skipped=statuses[BallotStatus.INPUT_SKIPPED],
        excluded=statuses[BallotStatus.EXCLUDED],
    )


def _why_nobody_voted(ballots: Sequence[Ballot]) -> DecisionReason | None:
    """Ties that stand for failures never decide a match by themselves."""
    statuses = {ballot.status for ballot in ballots}
    if BallotStatus.VOTE in statuses:
        return None
    if BallotStatus.ABSTAINED in statuses:
        return DecisionReason.NO_VOTE
    return DecisionReason.ALL_FAILED if BallotStatus.FAILED in statuses else DecisionReason.NO_JUDGE


def _first_to_reach(votes: Sequence[Vote], top: int) -> Vote:
    running: Counter[Vote] = Counter()
    for vote in votes:
        running[vote] += 1
        if running[vote] == top:
            return vote
    raise ValueError("no vote reaches a maximum that was counted from the same votes")


def _decision(outcome: Outcome, reason: DecisionReason, counts: Counts, protocol: Protocol) -> DecisionResult:
    return DecisionResult(outcome, reason, decision_sentence(reason, counts, quorum=protocol.quorum), counts)


def decision_sentence(
    reason: DecisionReason, counts: Counts, *, quorum: int, sides: tuple[str, str] = ("first", "second")
) -> str:
    ties = "1 tie" if counts.tie == 1 else f"{counts.tie} ties"
    tally = f"{counts.first} for {sides[0]}, {counts.second} for {sides[1]}, {ties}"
    sentences = {
        DecisionReason.PLURALITY: f"Strict plurality: {tally}.",
        DecisionReason.MOST_VOTES: f"Most votes: {tally}.",
        DecisionReason.FIRST_TO_MAXIMUM: (
            f"Equal votes ({tally}): the result that first reached the maximum in judge order stands."
        ),
        DecisionReason.NO_PLURALITY: f"No strict plurality: {tally}.",
        DecisionReason.BELOW_QUORUM: f"{counts.votes} of the {quorum} votes of the quorum.",
        DecisionReason.ALL_FAILED: f"Every judge call failed ({counts.failed} judges).",
        DecisionReason.NO_VOTE: f"No vote is left: {counts.abstained} abstained, {counts.failed} failed.",
        DecisionReason.NO_JUDGE: (
            f"No judge could sit: {counts.excluded} excluded as contestants, "
            f"{counts.input_skipped} cannot read the input."
        ),
    }
    return sentences[reason]
