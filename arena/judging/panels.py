"""Who may judge a match, who stands in, and what the plan must warn of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from arena.judging.ballots import Ballot, BallotStatus


@dataclass(frozen=True, slots=True)
class ReplacementJudge:
    judge_id: int
    model_id: str
    position: int
    reads_input: bool = True


@dataclass(frozen=True, slots=True)
class StandIn:
    judge_id: int
    replaces: int


@dataclass(frozen=True, slots=True)
class ShrunkPanel:
    first_model_id: str
    second_model_id: str
    judges_left: int


@dataclass(frozen=True, slots=True)
class FamilyMember:
    model_id: str
    family: str


@dataclass(frozen=True, slots=True)
class FamilyOverlap:
    judge_model_id: str
    candidate_model_id: str
    family: str


def is_same_model(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


def may_judge(judge_model_id: str, first_model_id: str, second_model_id: str) -> bool:
    """No model judges itself, whatever host serves it and whatever it is called on the page."""
    return not is_same_model(judge_model_id, first_model_id) and not is_same_model(judge_model_id, second_model_id)


def stand_ins_due(
    ballots: Sequence[Ballot],
    replacements: Sequence[ReplacementJudge],
    *,
    first_model_id: str,
    second_model_id: str,
) -> tuple[StandIn, ...]:
    """One stand-in for each primary judge that failed, once, in judge order.

    Nothing is due before every primary ballot is settled: handing stand-ins out in the order in
    which calls fail would let the network choose who replaces whom.
    """
    primaries = sorted((b for b in ballots if b.replaces is None), key=lambda b: b.position)
    if any(ballot.status == BallotStatus.PENDING for ballot in primaries):
        return ()
    relieved = {ballot.replaces for ballot in ballots if ballot.replaces is not None}
    seated = {ballot.judge_id for ballot in ballots}
    failed = [b for b in primaries if b.status == BallotStatus.FAILED and b.judge_id not in relieved]
    free = [
        judge
        for judge in sorted(replacements, key=lambda judge: judge.position)
        if judge.judge_id not in seated
        and judge.reads_input
        and may_judge(judge.model_id, first_model_id, second_model_id)
    ]
    return tuple(StandIn(judge.judge_id, ballot.judge_id) for ballot, judge in zip(failed, free, strict=False))


def panel_shrinks_below_quorum(
    judge_model_ids: Sequence[str], candidate_model_ids: Sequence[str], quorum: int
) -> tuple[ShrunkPanel, ...]:
    """Every pair of candidates that leaves fewer judges than the quorum asks for.

    Replacement judges do not help: they stand in for judges that fail, not for excluded ones.
    """
    shrunk = []
    for first, second in combinations(candidate_model_ids, 2):
        left = sum(may_judge(judge, first, second) for judge in judge_model_ids)
        if left < quorum:
            shrunk.append(ShrunkPanel(first, second, left))
    return tuple(shrunk)


def family_overlaps(judges: Sequence[FamilyMember], candidates: Sequence[FamilyMember]) -> tuple[FamilyOverlap, ...]:
    overlaps = []
    for judge in judges:
        family = judge.family.strip()
        for candidate in candidates:
            # A blank family is an unknown one, and two unknowns prove nothing.
            if family and is_same_model(family, candidate.family):
                overlaps.append(FamilyOverlap(judge.model_id, candidate.model_id, family))
    return tuple(overlaps)
