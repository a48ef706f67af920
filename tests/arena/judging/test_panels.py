from __future__ import annotations

import itertools

import pytest

from arena.judging.ballots import Ballot, BallotStatus, Vote
from arena.judging.panels import (
    FamilyMember,
    FamilyOverlap,
    ReplacementJudge,
    ShrunkPanel,
    StandIn,
    family_overlaps,
    may_judge,
    panel_shrinks_below_quorum,
    stand_ins_due,
)

CONTESTANTS = {"first_model_id": "lab/red", "second_model_id": "lab/blue"}


def ballot(judge_id: int, status: BallotStatus, replaces: int | None = None) -> Ballot:
    vote = Vote.FIRST if status is BallotStatus.VOTE else None
    return Ballot(judge_id, judge_id, status, vote, replaces)


def replacement(judge_id: int, model_id: str = "spare", *, reads_input: bool = True) -> ReplacementJudge:
    return ReplacementJudge(judge_id, model_id, judge_id, reads_input)


def due(ballots: list[Ballot], *replacements: ReplacementJudge) -> tuple[StandIn, ...]:
    return stand_ins_due(ballots, replacements, **CONTESTANTS)


@pytest.mark.parametrize(
    ("judge", "may"),
    [
        ("lab/red", False),
        ("LAB/Blue", False),
        (" lab/red ", False),
        ("lab/red-mini", True),
        ("red", True),
        ("lab/green", True),
    ],
)
def test_no_contestant_judges_itself(judge: str, may: bool) -> None:
    assert may_judge(judge, "lab/red", "lab/blue") is may


def test_one_stand_in_for_each_judge_that_failed() -> None:
    ballots = [ballot(1, BallotStatus.FAILED), ballot(2, BallotStatus.VOTE), ballot(3, BallotStatus.FAILED)]
    assert due(ballots, replacement(8), replacement(7), replacement(9)) == (StandIn(7, 1), StandIn(8, 3))


@pytest.mark.parametrize(
    "status",
    [BallotStatus.VOTE, BallotStatus.ABSTAINED, BallotStatus.EXCLUDED, BallotStatus.INPUT_SKIPPED],
)
def test_no_stand_in_for_a_judge_that_did_not_fail(status: BallotStatus) -> None:
    assert due([ballot(1, status)], replacement(7)) == ()


@pytest.mark.parametrize("status", BallotStatus)
def test_a_stand_in_is_called_once(status: BallotStatus) -> None:
    ballots = [ballot(1, BallotStatus.FAILED), ballot(7, status, replaces=1)]
    assert due(ballots, replacement(7), replacement(8)) == ()


def test_a_replacement_sits_once_in_a_match() -> None:
    ballots = [
        ballot(1, BallotStatus.FAILED),
        ballot(2, BallotStatus.FAILED),
        ballot(7, BallotStatus.VOTE, replaces=1),
    ]
    assert due(ballots, replacement(7)) == ()
    assert due(ballots, replacement(7), replacement(8)) == (StandIn(8, 2),)


def test_a_replacement_that_competes_or_cannot_read_is_passed_over() -> None:
    ballots = [ballot(1, BallotStatus.FAILED)]
    spares = [replacement(7, "LAB/RED"), replacement(8, reads_input=False), replacement(9)]
    assert due(ballots, *spares) == (StandIn(9, 1),)


def test_nothing_is_due_before_every_primary_judge_is_settled() -> None:
    ballots = [ballot(1, BallotStatus.PENDING), ballot(2, BallotStatus.FAILED)]
    assert due(ballots, replacement(7)) == ()


def test_stand_ins_do_not_hang_on_the_order_of_arrival() -> None:
    statuses = [BallotStatus.FAILED, BallotStatus.VOTE, BallotStatus.FAILED]
    ballots = [ballot(number, status) for number, status in enumerate(statuses, 1)]
    spares = [replacement(8), replacement(9)]
    results = {due(list(order), *spares) for order in itertools.permutations(ballots)}
    assert results == {(StandIn(8, 1), StandIn(9, 3))}


def test_pairs_that_lose_their_quorum() -> None:
    shrunk = panel_shrinks_below_quorum(["red", "BLUE", "green"], ["red", "blue", "white"], 2)
    assert shrunk == (ShrunkPanel("red", "blue", 1),)
    assert panel_shrinks_below_quorum(["green", "black"], ["red", "blue", "white"], 2) == ()
    assert len(panel_shrinks_below_quorum(["green"], ["red", "blue", "white"], 2)) == 3


def test_family_overlaps() -> None:
    judges = [FamilyMember("a/judge", "Acme"), FamilyMember("x/judge", ""), FamilyMember("c/judge", "Corp")]
    candidates = [FamilyMember("a/one", "acme "), FamilyMember("x/one", " "), FamilyMember("d/one", "Dyn")]
    assert family_overlaps(judges, candidates) == (FamilyOverlap("a/judge", "a/one", "Acme"),)
