from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from arena.ingest.recorded import RunReading, read_record
from tests.arena.ingest.recorded.builders import JUDGES, manifest, round_line, vote, write_log


def read(folder: Path, *rounds: Any, beside: dict[str, Any] | None = None) -> RunReading:
    return read_record(write_log(folder, *rounds, beside=beside))


def sentences(reading: RunReading) -> list[str]:
    return [str(problem) for problem in reading.problems if problem.severity == "error"]


def test_a_log_with_its_manifest_becomes_a_run(tmp_path: Path) -> None:
    voided = round_line(3, response_b=None, majority_verdict=None, winner=None, judge_votes=[], error="504 from b")
    reading = read(tmp_path, round_line(1), round_line(2, match_id="M2"), voided, beside=manifest())
    assert reading.clean, sentences(reading)
    (run,) = reading.runs
    assert [model.full_id for model in run.candidates] == ["maker/ada", "maker/bram"]
    assert run.candidates[1].parameters == {"thinking": {"type": "disabled"}}
    assert [model.full_id for model in run.judges] == JUDGES
    assert (run.seed, run.protocol, run.planned_matches) == (42, {"preset": "audited", "quorum": 2}, 3)
    assert [(match.sequence, match.step, match.outcome) for match in run.matches] == [
        (1, 1, "a"),
        (2, 2, "a"),
        (3, 1, None),
    ]
    first = run.answers[0]
    assert first.cost_usd == Decimal("0.00041")
    assert (first.input_tokens, first.truncated, run.answers[1].truncated) == (10, False, True)
    lost = next(answer for answer in run.answers if answer.key == run.matches[2].answer_b)
    assert (lost.skip_code, lost.error, lost.text) == ("API_ERROR", "504 from b", "")
    assert run.matches[0].recorded["judge_tokens_in"] == 1000
    assert "votes_by_seat_order" in run.not_recorded


def test_votes_of_all_kinds(tmp_path: Path) -> None:
    votes = [
        vote(JUDGES[0], None),
        vote(JUDGES[1], None, flipped=False, completed=False),
        vote("third/judge-c", "tie", replacement=True),
    ]
    line = round_line(judge_votes=votes, majority_verdict="inconclusive", winner="inconclusive")
    (run,) = read(tmp_path, line, beside=manifest()).runs
    ballots = run.matches[0].ballots
    assert [(one.status, one.vote, one.flipped, one.replacement) for one in ballots] == [
        ("abstained", None, True, False),
        ("failed", None, False, False),
        ("vote", "tie", False, True),
    ]


def test_without_a_manifest_the_names_of_the_log_stand(tmp_path: Path) -> None:
    reading = read(tmp_path, round_line())
    assert reading.warning_count == 1
    (run,) = reading.runs
    assert [model.full_id for model in run.candidates] == ["ada", "bram"]
    assert run.answers[0].cost_usd is None
    assert run.seed is None
    assert {"seed", "prices", "panel"} <= set(run.not_recorded)


def test_later_logs_name_full_ids_themselves(tmp_path: Path) -> None:
    line = round_line(schema_version=5, model_a_id="maker/ada", model_b_id="maker/bram")
    (run,) = read(tmp_path, line).runs
    assert [(model.full_id, model.label) for model in run.candidates] == [("maker/ada", "ada"), ("maker/bram", "bram")]


def test_the_same_evidence_hashes_alike_whatever_its_files_are_called(tmp_path: Path) -> None:
    one = read_record(write_log(tmp_path, round_line(), beside=manifest()))
    (tmp_path / "other").mkdir()
    again = read_record(write_log(tmp_path / "other", "", round_line(), beside=manifest(), name="log"))
    changed = read(tmp_path, round_line(winner="bram", majority_verdict="B"), beside=manifest())
    assert one.runs[0].content_hash() == again.runs[0].content_hash() != changed.runs[0].content_hash()


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2}, "schema_version: must be 3 or higher"),
    ({"tournament_id": "run-2"}, "tournament_id: is 'run-2'"),
    ({"model_a": "carol"}, "model_a: 'carol' is no candidate of the manifest"),
    ({"model_b": "ada"}, "model_b: is the model of model_a"),
    ({"winner": "bram"}, "winner: is 'bram', and majority_verdict says 'ada'"),
    ({"majority_verdict": "C"}, "majority_verdict: is 'C'; it must be one of A, B, tie, inconclusive"),
    ({"tokens_a_out": -1}, "tokens_a_out: must be a whole number"),
    ({"tokens_a_in": 2**40}, "tokens_a_in: must be a whole number"),
    ({"ttft_a_ms": "soon"}, "ttft_a_ms: must be a number of milliseconds"),
    ({"timestamp": 1e300}, "timestamp: must be a date and time"),
    ({"prompt_text": " "}, "prompt_text: is empty"),
    ({"judge_votes": "A"}, "judge_votes: must be a list"),
    ({"judge_votes": [vote("x/y", "A")]}, "judge_votes[0].model: 'x/y' is no judge of the manifest"),
    ({"judge_votes": [vote(JUDGES[0], "A"), vote(JUDGES[0], "B")]}, "judge_votes: names a judge twice"),
    ({"judge_votes": [vote(JUDGES[0], "A", flipped=True)]}, "judge_votes[0].vote: stands beside a flip"),
    ({"response_a": "\ud800"}, "response_a: holds half of a surrogate pair"),
    ({"response_a": 7}, "response_a: must be text"),
]


@pytest.mark.parametrize(("change", "sentence"), BROKEN, ids=lambda value: str(value)[:40])
def test_every_problem_names_file_line_and_field(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    reading = read(tmp_path, round_line(1), round_line(2, **change), beside=manifest())
    assert not reading.runs
    assert any(text.startswith(f"battles.jsonl line 2: {sentence}") for text in sentences(reading)), sentences(reading)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    reading = read(tmp_path, "{", round_line(2, winner="x"), "[1]", round_line(4, tokens_a_in=-5), beside=manifest())
    lines = {problem.line for problem in reading.problems}
    assert lines == {1, 2, 3, 4}
    assert not reading.clean


def test_the_same_round_twice_is_refused(tmp_path: Path) -> None:
    reading = read(tmp_path, round_line(), round_line(), beside=manifest())
    assert sentences(reading) == ["battles.jsonl line 2: is the same round of 'M1' as line 1"]


def test_a_prompt_that_changes_under_its_hash_is_refused(tmp_path: Path) -> None:
    reading = read(tmp_path, round_line(1), round_line(2, prompt_hash="hash-1"), beside=manifest())
    assert "prompt_text: is another text than that of 'hash-1' before" in sentences(reading)[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"candidates": []}, "battles.run.json: candidates: must be an object"),
        ({"judges": None}, "battles.run.json: judges: must be a list"),
        ({"seed": -1}, "battles.run.json: seed: must be a whole number"),
        ({"tournament_id": None}, "battles.run.json: tournament_id: is missing"),
        (
            {"candidates": {"ada": {"model": "m"}, "bram": {"model": "m"}}},
            "battles.run.json: candidates.bram.model: 'm' is named twice",
        ),
    ],
)
def test_a_manifest_is_read_as_carefully(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    reading = read(tmp_path, round_line(), beside=manifest(**changes))
    assert any(text.startswith(sentence) for text in sentences(reading)), sentences(reading)


def test_a_manifest_that_is_no_json(tmp_path: Path) -> None:
    path = write_log(tmp_path, round_line())
    (tmp_path / "battles.run.json").write_text("{]", encoding="utf-8")
    assert sentences(read_record(path))[0].startswith("battles.run.json: is not valid JSON")


def test_a_log_may_be_chosen_by_its_manifest(tmp_path: Path) -> None:
    write_log(tmp_path, round_line(), beside=manifest())
    assert read_record(tmp_path / "battles.run.json").clean


def test_an_empty_log_holds_no_rounds(tmp_path: Path) -> None:
    assert sentences(read(tmp_path)) == ["battles.jsonl: holds no rounds"]


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "battles.jsonl"
    path.write_bytes(json.dumps(round_line()).encode("utf-16"))
    assert "is written in UTF-16; save it as UTF-8" in sentences(read_record(path))[0]
