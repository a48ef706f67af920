from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.judging.ballots import (
    Ballot,
    BallotResult,
    BallotStatus,
    Counts,
    DecisionReason,
    FlipKind,
    Outcome,
    Vote,
    decide,
    decision_sentence,
    reconcile,
    seat_vote,
)
from arena.judging.protocol import AUDITED, MAJORITY, Protocol
from arena.judging.verdict import ErrorCode

FIRST, SECOND, TIE = Vote.FIRST, Vote.SECOND, Vote.TIE
SWAPPED_VOTE = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}
SWAPPED_OUTCOME = {
    Outcome.FIRST: Outcome.SECOND,
    Outcome.SECOND: Outcome.FIRST,
    Outcome.TIE: Outcome.TIE,
    Outcome.INCONCLUSIVE: Outcome.INCONCLUSIVE,
}
PRESETS = pytest.mark.parametrize("protocol", [AUDITED, MAJORITY], ids=["audited", "majority"])


def panel(*entries: Vote | BallotStatus, protocol: Protocol = AUDITED) -> list[Ballot]:
    """A vote, or the status of a ballot without one; a failure is what the protocol makes of it."""
    ballots = []
    for position, entry in enumerate(entries):
        if isinstance(entry, Vote):
            ballots.append(Ballot(position, position, BallotStatus.VOTE, entry))
        elif entry is BallotStatus.FAILED:
            failed = reconcile([ErrorCode.TIMEOUT] * protocol.seat_orders, protocol)
            ballots.append(Ballot(position, position, failed.status, failed.vote))
        else:
            ballots.append(Ballot(position, position, entry))
    return ballots


@pytest.mark.parametrize(
    ("winner", "first_in_seat_a", "vote"),
    [
        ("A", True, FIRST),
        ("B", True, SECOND),
        ("A", False, SECOND),
        ("B", False, FIRST),
        ("tie", True, TIE),
        ("tie", False, TIE),
    ],
)
def test_seats_become_sides(winner: Any, first_in_seat_a: bool, vote: Vote) -> None:
    assert seat_vote(winner, first_in_seat_a=first_in_seat_a) is vote


@pytest.mark.parametrize("vote", Vote)
def test_two_orders_that_agree_are_a_vote(vote: Vote) -> None:
    assert reconcile([vote, vote], AUDITED) == BallotResult(BallotStatus.VOTE, vote)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(Vote, 2)))
def test_two_orders_that_disagree_are_a_flip(one: Vote, other: Vote) -> None:
    kind: FlipKind = "tie" if TIE in (one, other) else "side"
    expected = BallotResult(BallotStatus.ABSTAINED, None, flipped=True, flip_kind=kind)
    assert reconcile([one, other], AUDITED) == expected


def test_a_judge_that_always_says_a_flips() -> None:
    seats = [seat_vote("A", first_in_seat_a=True), seat_vote("A", first_in_seat_a=False)]
    assert reconcile(seats, AUDITED).flip_kind == "side"


FAILURES = sorted(set(ErrorCode) - {ErrorCode.UNSUPPORTED_INPUT})


@pytest.mark.parametrize("code", FAILURES)
def test_a_failed_call_is_no_vote_and_no_flip_when_audited(code: ErrorCode) -> None:
    both: list[list[Vote | ErrorCode]] = [[code, FIRST], [SECOND, code], [code, code]]
    for seats in both:
        assert reconcile(seats, AUDITED) == BallotResult(BallotStatus.FAILED, None, error_code=code)


@pytest.mark.parametrize("code", FAILURES)
def test_a_failed_call_is_a_tie_by_majority(code: ErrorCode) -> None:
    assert reconcile([code], MAJORITY) == BallotResult(BallotStatus.FAILED, TIE, error_code=code)


@pytest.mark.parametrize("vote", Vote)
def test_one_order_cannot_flip(vote: Vote) -> None:
    assert reconcile([vote], MAJORITY) == BallotResult(BallotStatus.VOTE, vote)


@PRESETS
def test_a_judge_that_cannot_read_the_input_is_skipped_and_votes_nothing(protocol: Protocol) -> None:
    result = reconcile([ErrorCode.UNSUPPORTED_INPUT] * protocol.seat_orders, protocol)
    assert (result.status, result.vote) == (BallotStatus.INPUT_SKIPPED, None)


@pytest.mark.parametrize(("protocol", "number"), [(AUDITED, 1), (AUDITED, 3), (MAJORITY, 2), (MAJORITY, 0)])
def test_a_missing_seat_order_is_an_error(protocol: Protocol, number: int) -> None:
    with pytest.raises(ValueError, match="seat orders expected"):
        reconcile([FIRST] * number, protocol)


SEAT = st.sampled_from([*Vote, *FAILURES])


@given(SEAT, SEAT, st.sampled_from([AUDITED, MAJORITY.with_overrides({"seat_orders": 2})]))
def test_reconciling_does_not_care_which_order_came_first(one: Any, other: Any, protocol: Protocol) -> None:
    result, mirrored = reconcile([one, other], protocol), reconcile([other, one], protocol)
    assert (result.status, result.vote, result.flipped, result.flip_kind) == (
        mirrored.status,
        mirrored.vote,
        mirrored.flipped,
        mirrored.flip_kind,
    )


A, F, S, X = BallotStatus.ABSTAINED, BallotStatus.FAILED, BallotStatus.INPUT_SKIPPED, BallotStatus.EXCLUDED


@pytest.mark.parametrize(
    ("entries", "outcome", "reason"),
    [
        ([FIRST, FIRST, SECOND], Outcome.FIRST, DecisionReason.PLURALITY),
        ([SECOND, SECOND], Outcome.SECOND, DecisionReason.PLURALITY),
        ([TIE, TIE, FIRST], Outcome.TIE, DecisionReason.PLURALITY),
        ([FIRST, FIRST, SECOND, TIE], Outcome.FIRST, DecisionReason.PLURALITY),
        ([FIRST, FIRST, A], Outcome.FIRST, DecisionReason.PLURALITY),
        ([FIRST, FIRST, F], Outcome.FIRST, DecisionReason.PLURALITY),
        ([FIRST, SECOND], Outcome.INCONCLUSIVE, DecisionReason.NO_PLURALITY),
        ([FIRST, SECOND, A], Outcome.INCONCLUSIVE, DecisionReason.NO_PLURALITY),
        ([FIRST, TIE], Outcome.INCONCLUSIVE, DecisionReason.NO_PLURALITY),
        ([FIRST, SECOND, TIE], Outcome.INCONCLUSIVE, DecisionReason.NO_PLURALITY),
        ([FIRST, A, A], Outcome.INCONCLUSIVE, DecisionReason.BELOW_QUORUM),
        ([FIRST, A, F], Outcome.INCONCLUSIVE, DecisionReason.BELOW_QUORUM),
        ([FIRST, X, X], Outcome.INCONCLUSIVE, DecisionReason.BELOW_QUORUM),
        ([A, A, A], Outcome.INCONCLUSIVE, DecisionReason.NO_VOTE),
        ([A, F], Outcome.INCONCLUSIVE, DecisionReason.NO_VOTE),
        ([F, F, F], Outcome.INCONCLUSIVE, DecisionReason.ALL_FAILED),
        ([F, S, X], Outcome.INCONCLUSIVE, DecisionReason.ALL_FAILED),
        ([S, S], Outcome.INCONCLUSIVE, DecisionReason.NO_JUDGE),
        ([X], Outcome.INCONCLUSIVE, DecisionReason.NO_JUDGE),
        ([], Outcome.INCONCLUSIVE, DecisionReason.NO_JUDGE),
    ],
)
def test_audited_decisions(entries: list[Any], outcome: Outcome, reason: DecisionReason) -> None:
    decision = decide(panel(*entries), AUDITED)
    assert (decision.outcome, decision.reason) == (outcome, reason)
    assert decision.sentence.endswith(".")


@pytest.mark.parametrize(
    ("entries", "outcome", "reason"),
    [
        ([FIRST, FIRST, TIE], Outcome.FIRST, DecisionReason.MOST_VOTES),
        ([SECOND], Outcome.SECOND, DecisionReason.MOST_VOTES),
        ([FIRST, SECOND], Outcome.FIRST, DecisionReason.FIRST_TO_MAXIMUM),
        ([SECOND, FIRST], Outcome.SECOND, DecisionReason.FIRST_TO_MAXIMUM),
        ([TIE, FIRST, SECOND], Outcome.TIE, DecisionReason.FIRST_TO_MAXIMUM),
        ([FIRST, SECOND, SECOND, FIRST], Outcome.SECOND, DecisionReason.FIRST_TO_MAXIMUM),
        ([F, FIRST], Outcome.TIE, DecisionReason.FIRST_TO_MAXIMUM),
        ([FIRST, F], Outcome.FIRST, DecisionReason.FIRST_TO_MAXIMUM),
        ([F, F, FIRST], Outcome.TIE, DecisionReason.MOST_VOTES),
        ([S, S, FIRST], Outcome.FIRST, DecisionReason.MOST_VOTES),
        ([F, F, F], Outcome.INCONCLUSIVE, DecisionReason.ALL_FAILED),
        ([S, X], Outcome.INCONCLUSIVE, DecisionReason.NO_JUDGE),
    ],
)
def test_majority_decisions(entries: list[Any], outcome: Outcome, reason: DecisionReason) -> None:
    decision = decide(panel(*entries, protocol=MAJORITY), MAJORITY)
    assert (decision.outcome, decision.reason) == (outcome, reason)


@PRESETS
def test_a_failure_that_counts_as_a_tie_never_decides_alone(protocol: Protocol) -> None:
    changed = protocol.with_overrides({"on_error": "tie", "seat_orders": 2})
    decision = decide(panel(F, F, A, protocol=changed), changed)
    assert (decision.outcome, decision.reason) == (Outcome.INCONCLUSIVE, DecisionReason.NO_VOTE)


def test_counts_name_every_ballot() -> None:
    decision = decide(panel(FIRST, FIRST, SECOND, TIE, A, F, S, X), AUDITED)
    assert decision.counts == Counts(first=2, second=1, tie=1, abstained=1, failed=1, input_skipped=1, excluded=1)
    assert decision.counts.votes == 4


def test_the_quorum_can_be_raised() -> None:
    protocol = AUDITED.with_overrides({"quorum": 3})
    assert decide(panel(FIRST, FIRST, A), protocol).reason is DecisionReason.BELOW_QUORUM
    assert "2 of the 3" in decide(panel(FIRST, FIRST, A), protocol).sentence


def test_a_pending_ballot_forbids_a_decision() -> None:
    with pytest.raises(ValueError, match="pending"):
        decide(panel(FIRST, FIRST, BallotStatus.PENDING), AUDITED)


def stand_in(position: int, replaces: int, status: BallotStatus, vote: Vote | None = None) -> Ballot:
    return Ballot(position, position, status, vote, replaces)


def test_a_stand_in_completes_the_quorum() -> None:
    ballots = [*panel(FIRST, F), stand_in(9, 1, BallotStatus.VOTE, FIRST)]
    assert decide(ballots, AUDITED).outcome is Outcome.FIRST


def test_a_stand_in_takes_the_place_of_the_tie_it_relieves() -> None:
    ballots = [*panel(F, FIRST, protocol=MAJORITY), stand_in(9, 0, BallotStatus.VOTE, SECOND)]
    decision = decide(ballots, MAJORITY)
    assert (decision.outcome, decision.counts.tie) == (Outcome.FIRST, 0)


def test_a_stand_in_that_fails_too_adds_no_second_tie() -> None:
    ballots = [*panel(FIRST, F, protocol=MAJORITY), stand_in(9, 1, BallotStatus.FAILED, TIE)]
    decision = decide(ballots, MAJORITY)
    assert (decision.outcome, decision.counts.tie, decision.counts.failed) == (Outcome.FIRST, 1, 2)


ENTRY = st.sampled_from([*Vote, A, F, S, X])
PROTOCOLS = st.sampled_from([AUDITED, MAJORITY])


@given(st.lists(ENTRY, max_size=7), PROTOCOLS, st.randoms(use_true_random=False))
def test_arrival_decides_nothing(entries: list[Any], protocol: Protocol, shuffle: random.Random) -> None:
    ballots = panel(*entries, protocol=protocol)
    arrived = list(ballots)
    shuffle.shuffle(arrived)
    assert decide(arrived, protocol) == decide(ballots, protocol)


@given(st.lists(ENTRY, max_size=7), PROTOCOLS)
def test_swapping_the_candidates_swaps_the_outcome(entries: list[Any], protocol: Protocol) -> None:
    mirrored = [SWAPPED_VOTE[entry] if isinstance(entry, Vote) else entry for entry in entries]
    there = decide(panel(*entries, protocol=protocol), protocol)
    back = decide(panel(*mirrored, protocol=protocol), protocol)
    assert back.outcome is SWAPPED_OUTCOME[there.outcome]
    assert back.reason is there.reason


@given(st.lists(ENTRY, max_size=7), PROTOCOLS)
def test_who_did_not_sit_changes_nothing(entries: list[Any], protocol: Protocol) -> None:
    seated = [entry for entry in entries if entry not in (S, X)]
    there = decide(panel(*entries, protocol=protocol), protocol)
    assert there.outcome is decide(panel(*seated, protocol=protocol), protocol).outcome


@given(st.lists(ENTRY, max_size=7))
def test_an_audited_decision_has_quorum_and_strict_plurality(entries: list[Any]) -> None:
    decision = decide(panel(*entries), AUDITED)
    tally = Counter(entry for entry in entries if isinstance(entry, Vote)).most_common()
    is_strict = bool(tally) and (len(tally) == 1 or tally[0][1] > tally[1][1])
    expected = tally[0][0].value if is_strict and tally and sum(n for _, n in tally) >= 2 else "inconclusive"
    assert decision.outcome.value == expected


@given(st.lists(ENTRY, max_size=7))
def test_a_majority_decision_is_inconclusive_only_without_votes(entries: list[Any]) -> None:
    decision = decide(panel(*entries, protocol=MAJORITY), MAJORITY)
    nobody = not any(isinstance(entry, Vote) for entry in entries)
    assert (decision.outcome is Outcome.INCONCLUSIVE) is nobody


@pytest.mark.parametrize(("ties", "words"), [(0, "0 ties"), (1, "1 tie"), (2, "2 ties")])
def test_the_sentence_counts_in_good_english(ties: int, words: str) -> None:
    sentence = decision_sentence(DecisionReason.PLURALITY, Counts(first=3, second=1, tie=ties), quorum=2)
    assert sentence == f"Strict plurality: 3 for first, 1 for second, {words}."
