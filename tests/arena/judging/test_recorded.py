"""Juries that others recorded, decided and read once more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.judging.ballots import Ballot, BallotStatus, DecisionReason, Outcome, Vote, decide, seat_vote
from arena.judging.protocol import AUDITED, MAJORITY
from arena.judging.verdict import ParsedVerdict, parse_verdict

SHARED = Path(os.environ.get("TILTYARD_SHARED") or Path(__file__).resolve().parents[3].parent / "shared")
AUDITED_RUN = SHARED / "data" / "orq_quickstart" / "battles.jsonl"
MAJORITY_RUN = SHARED / "data" / "juryarena_demo" / "matches" / "detail"
VOTES = {"A": Vote.FIRST, "B": Vote.SECOND, "tie": Vote.TIE}


def test_an_audited_run_is_decided_as_recorded() -> None:
    if not AUDITED_RUN.exists():
        pytest.skip("the recorded run is not beside the checkout")
    rounds = [json.loads(line) for line in AUDITED_RUN.read_text(encoding="utf-8").splitlines()]
    assert len(rounds) == 140
    for recorded in rounds:
        verdict = recorded["majority_verdict"]
        expected = Outcome(VOTES[verdict]) if verdict in VOTES else Outcome.INCONCLUSIVE
        assert decide([*_recorded_ballots(recorded["judge_votes"])], AUDITED).outcome is expected


def _recorded_ballots(votes: list[dict[str, Any]]) -> Iterator[Ballot]:
    for position, vote in enumerate(votes):
        status = BallotStatus.ABSTAINED if vote["flipped"] else BallotStatus.VOTE
        yield Ballot(position, position, status, VOTES.get(vote["vote"]))


def test_a_majority_run_is_read_and_decided_as_recorded() -> None:
    """Save where votes were equal: there the recorded run took whichever judge answered first."""
    if not MAJORITY_RUN.exists():
        pytest.skip("the recorded run is not beside the checkout")
    matches = [json.loads(path.read_text(encoding="utf-8"))["match"] for path in MAJORITY_RUN.iterdir()]
    judged = [match for match in matches if not _is_forced_tie(match)]
    assert (len(matches), len(judged)) == (385, 380)
    equal = 0
    for match in judged:
        decision = decide(_read_ballots(match), MAJORITY)
        if decision.reason is DecisionReason.FIRST_TO_MAXIMUM:
            equal += 1
        else:
            assert _named(match, decision.outcome) == match["winner"]
    assert equal == 22


def _is_forced_tie(match: dict[str, Any]) -> bool:
    return all(details["output"].startswith("Skipped:") for details in match["judge_details"].values())


def _read_ballots(match: dict[str, Any]) -> list[Ballot]:
    ballots = []
    for position, judge in enumerate(match["judge_models"]):
        details = match["judge_details"][judge]
        verdict = parse_verdict(details["output"])
        assert isinstance(verdict, ParsedVerdict), details["output"]
        vote = seat_vote(verdict.winner, first_in_seat_a=True)
        assert _named(match, Outcome(vote)) == details["winner"]
        ballots.append(Ballot(position, position, BallotStatus.VOTE, vote))
    return ballots


def _named(match: dict[str, Any], outcome: Outcome) -> str:
    names = {Outcome.FIRST: match["model_a"], Outcome.SECOND: match["model_b"], Outcome.TIE: "tie"}
    return str(names[outcome])
