from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.ingest.recorded import RunReading, read_record
from tests.arena.ingest.recorded.builders import (
    JUDGES,
    MODELS,
    SKIPPED,
    judged,
    match_object,
    trial,
    write,
    write_static,
    write_worker,
)

Write = Callable[..., Path]
LAYOUTS = pytest.mark.parametrize("layout", [write_static, write_worker])


def sentences(reading: RunReading) -> list[str]:
    return [str(problem) for problem in reading.problems if problem.severity == "error"]


def skip_votes() -> dict[str, Any]:
    said = {"winner": "tie", "output": f"Skipped: {MODELS[1]}: Trial skipped"}
    return {"judge_details": dict.fromkeys(JUDGES, said), "winner": "tie"}


@LAYOUTS
def test_matches_answers_and_seats(tmp_path: Path, layout: Write) -> None:
    reading = read_record(layout(tmp_path, [match_object(0), match_object(1)]))
    assert reading.clean, sentences(reading)
    (run,) = reading.runs
    assert [(match.sequence, match.a, match.b, match.outcome) for match in run.matches] == [
        (1, 0, 1, "a"),
        (2, 1, 0, "a"),
    ]
    assert all(match.a_sat_first for match in run.matches)
    # Both matches fought with the same two answers.
    assert len(run.answers) == 2
    assert run.answers[0].output_tokens == 50
    assert run.seed == 7
    assert run.protocol["preset"] == "majority"
    assert run.recorded["lost_matches"] == [3]
    assert [ballot.raw for ballot in run.matches[0].ballots] == [judged("A"), judged("A")]


@LAYOUTS
def test_a_skipped_answer_makes_a_forced_tie(tmp_path: Path, layout: Write) -> None:
    # One writes the object, the other its text.
    output = SKIPPED if layout is write_worker else json.dumps(SKIPPED)
    reading = read_record(layout(tmp_path, [match_object(0, **skip_votes())], {MODELS[1]: trial(MODELS[1], output)}))
    (run,) = reading.runs
    (match,) = run.matches
    assert (match.outcome, match.forced_tie, match.ballots) == (None, True, ())
    skipped = next(answer for answer in run.answers if answer.failed)
    assert (skipped.skip_code, skipped.error) == ("CONTEXT_OVERFLOW", "too long")
    # Nought in the record stands for nothing known.
    assert (skipped.input_tokens, skipped.cost_usd) == (None, None)


def test_a_cost_of_nought_is_unknown(tmp_path: Path) -> None:
    (run,) = read_record(write_static(tmp_path, [match_object(0)], {MODELS[0]: trial(MODELS[0], cost_usd=0)})).runs
    assert run.answers[0].cost_usd is None
    assert run.answers[1].cost_usd is not None


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"winner": "lab/carol"}, "match.winner: is 'lab/carol'; it must be one of the two models, or tie"),
    ({"match_id": "first"}, "match.match_id: 'first' must be match_ and a number"),
    ({"sample_id": ""}, "match.sample_id: must be 1 to 200 printable characters"),
    ({"model_b": MODELS[0]}, "match.model_b: is the model of model_a"),
    ({"judge_details": []}, "match.judge_details: must be an object"),
    ({"judge_models": [*JUDGES, "x/z"]}, "match.judge_details.x/z: is on the panel and has no vote"),
    (
        {"judge_details": {JUDGES[0]: {"winner": 1}, JUDGES[1]: {"winner": "tie"}}},
        f"match.judge_details.{JUDGES[0]}.winner",
    ),
    ({"created_at": "yesterday"}, "match.created_at: must be a date and time"),
    (skip_votes(), "match.judge_details: says that an answer was skipped, and both are there"),
]


@pytest.mark.parametrize(("change", "sentence"), BROKEN, ids=lambda value: str(value)[:40])
def test_every_problem_names_file_and_field(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    reading = read_record(write_static(tmp_path, [match_object(0, **change)]))
    assert not reading.runs
    expected = f"matches/detail/id-0.json: {sentence}"
    assert any(text.startswith(expected) for text in sentences(reading)), sentences(reading)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_static(tmp_path, [match_object(0), match_object(1)])
    (folder / "matches" / "detail" / "id-1.json").unlink()
    write(folder / "matches" / "detail" / "stray.json", {"match": match_object(5)})
    assert sentences(read_record(folder)) == [
        "matches/eval-1.json: matches[1].id: matches/detail/id-1.json is not in the record",
        "matches/detail/stray.json: is a match of no evaluation under matches/",
    ]


def test_an_answer_that_is_missing_is_named(tmp_path: Path) -> None:
    reading = read_record(write_worker(tmp_path, [match_object(0)], {MODELS[1]: "null"}))
    assert "match.model_b: has no trial for this sample in the record" in sentences(reading)[0]


def test_two_matches_with_one_number_are_refused(tmp_path: Path) -> None:
    reading = read_record(write_worker(tmp_path, [match_object(0), match_object(0)]))
    assert "is also the match of benchmarks/spring/arena_matches/00000.json" in sentences(reading)[0]


def test_samples_with_files_are_refused_by_name(tmp_path: Path) -> None:
    folder = write_worker(tmp_path, [match_object(0)])
    content = [{"type": "file_ref", "path": "attachments/a.pdf"}]
    write(folder / "samples" / "s1" / "info.json", {"input": {"messages": [{"role": "user", "content": content}]}})
    (sentence,) = sentences(read_record(folder))
    assert sentence.startswith("samples/s1/info.json: input.messages[0].content[0].path: names a file")


def test_a_configuration_that_builds_objects_builds_nothing(tmp_path: Path) -> None:
    folder = write_worker(tmp_path, [match_object(0)])
    write(folder / "benchmarks" / "spring" / "config.yaml", "a: !!python/object/apply:os.system ['true']")
    (sentence,) = sentences(read_record(folder))
    assert "config.yaml: is not YAML that can be read" in sentence


def packed(folder: Path, **extra: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"record/{path.relative_to(folder)}")
        for name, data in extra.items():
            archive.writestr(name, data)
    return target.getvalue()


def test_an_archive_is_the_same_record(tmp_path: Path) -> None:
    folder = write_static(tmp_path / "static", [match_object(0)])
    path = tmp_path / "record.zip"
    path.write_bytes(packed(folder))
    assert read_record(path).runs[0].content_hash() == read_record(folder).runs[0].content_hash()


@pytest.mark.parametrize("name", ["../outside.json", "/etc/passwd"])
def test_an_archive_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "record.zip"
    path.write_bytes(packed(write_static(tmp_path / "static", [match_object(0)]), **{name: b"{}"}))
    reading = read_record(path)
    assert reading.refused
    assert not reading.runs


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "record.zip"
    path.write_bytes(packed(write_static(tmp_path / "static", [match_object(0)]), bomb=b" " * 20_000_000))
    assert read_record(path).refused


def test_a_link_in_a_folder_is_refused(tmp_path: Path) -> None:
    folder = write_static(tmp_path / "static", [match_object(0)])
    (folder / "samples" / "secret.json").symlink_to("/etc/passwd")
    assert "samples/secret.json: is a link or a special file" in sentences(read_record(folder))


def test_something_else_is_named(tmp_path: Path) -> None:
    write(tmp_path / "notes.json", {})
    assert "holds no recorded run" in sentences(read_record(tmp_path))[0]


def test_json_nested_past_the_stack_is_an_error(tmp_path: Path) -> None:
    folder = write_static(tmp_path, [match_object(0)])
    write(folder / "matches" / "detail" / "id-0.json", "[" * 100_000)
    assert not read_record(folder).clean


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.zip"
    path.write_bytes(packed(write_static(tmp_path / "static", [match_object(0)]))[:-40])
    assert read_record(path).refused
