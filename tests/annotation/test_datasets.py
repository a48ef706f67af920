from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.datasets import (
    NAMES,
    Judged,
    fingerprint_of,
    json_line,
    kto_rows,
    plain_messages,
    preference_row,
    read_votes,
    safe_cell,
    split_of,
    winner_of,
)

MOMENT = "2026-11-30T12:00:00+00:00"


def judged(*labels: str, text: str = "Why?") -> Judged:
    prompt = [{"role": "user", "content": text}]
    return Judged("m1", prompt, "h", "law", "host/a", "host/b", "One.", "Två 😀", labels, "people")


def row(**values: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "schema": "tiltyard.votes",
        "schema_version": 1,
        "event": "vote",
        "id": "v-1",
        "supersedes": None,
        "is_current": True,
        "campaign": "c",
        "campaign_name": "Spring",
        "votes_per_match": 3,
        "rater": "r-1",
        "rater_kind": "member",
        "rater_left_out": False,
        "assignment": "a-1",
        "position": 1,
        "kind": "normal",
        "repeat_of": None,
        "match": "m-1",
        "sample_key": "k",
        "category": "",
        "prompt_hash": "h",
        "file_hashes": [],
        "prompt": [{"role": "user", "content": "Why?"}],
        "first_model": "a",
        "second_model": "b",
        "first_answer": "One",
        "second_answer": "Two",
        "gold_origin": None,
        "gold_expected": None,
        "left": "first",
        "choice": "left",
        "outcome": "first",
        "standing": "counted",
        "place": 1,
        "first_tags": [],
        "second_tags": ["wrong"],
        "first_comment": "",
        "second_comment": "no",
        "reason": "",
        "note": "",
        "could_see_names": False,
        "active_ms": 900,
        "guideline_version": None,
        "served_at": MOMENT,
        "created_at": MOMENT,
    }
    assert plain.keys() == set(NAMES)
    return plain | values


def read(*rows: dict[str, Any]) -> tuple[list[dict[str, Any]], list[tuple[int | None, str | None]]]:
    found, problems = read_votes([json_line(one).encode() for one in rows], "votes.jsonl")
    assert all(problem.file == "votes.jsonl" for problem in problems)
    return found, [(problem.line, problem.field) for problem in problems]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", " =", "＝"])
def test_no_cell_begins_a_formula(begin: str) -> None:
    assert safe_cell(f"{begin}cmd|' /C calc'!A0").startswith("'")
    assert safe_cell([f"{begin}1"]).startswith("'")


def test_plain_cells_stay_as_they_are() -> None:
    cells = [safe_cell(one) for one in ("Müller 😀", None, True, -3, ["a", "b"], [{"role": "user", "content": "x"}])]
    assert cells == ["Müller 😀", "", "true", "-3", "a;b", "user: x"]


def test_no_prompt_is_in_both_splits() -> None:
    """Case and space make no other prompt, and both splits are used."""
    prompts = [[{"role": "user", "content": f"Question {number}"}] for number in range(300)]
    splits = [split_of(prompt) for prompt in prompts]
    assert 10 < splits.count("test") < 60
    again = [[{"role": "user", "content": f"  QUESTION\n {number} "}] for number in range(300)]
    assert [split_of(prompt) for prompt in again] == splits


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["first", "first", "second"], "first"),
        (["first", "second"], None),
        (["first", "first", "second", "both_bad"], None),
        ([], None),
    ],
)
def test_more_than_half_decide(labels: list[str], expected: str | None) -> None:
    assert winner_of(labels) == expected


def test_a_preference_has_the_answer_that_most_prefer() -> None:
    made = preference_row(judged("second", "second", "first"))
    assert made is not None
    assert made["chosen"] == [{"role": "assistant", "content": "Två 😀"}]
    assert made["rejected"] == [{"role": "assistant", "content": "One."}]
    assert (made["chosen_model"], made["votes"], made["margin"]) == ("host/b", 3, pytest.approx(1 / 3))
    for labels in (("both_bad", "both_bad"), ("first", "second"), ("both_good",)):
        assert preference_row(judged(*labels)) is None


def test_both_bad_gives_two_unwanted_completions() -> None:
    made = list(kto_rows(judged("both_bad", "both_bad", "first")))
    assert [(one["model"], one["label"]) for one in made] == [("host/a", False), ("host/b", False)]
    assert list(kto_rows(judged("both_bad", "first"))) == []


def test_files_of_a_prompt_stand_as_their_names() -> None:
    content = [{"type": "text", "text": "Read."}, {"type": "file_ref", "path": "a/terms.pdf"}]
    messages = plain_messages([{"role": "user", "content": content}])
    assert messages == [{"role": "user", "content": "Read.\n\n[file: a/terms.pdf]"}]


def test_what_was_written_is_read_and_has_the_same_fingerprint() -> None:
    rows = [row(), row(id="v-2", assignment="a-2", rater="r-2", place=2, first_comment="Ünï ‮😀\u2028")]
    found, problems = read(*rows)
    assert (found, problems) == (rows, [])
    assert fingerprint_of(found) == fingerprint_of(rows)


def test_the_order_of_matches_is_kept_where_all_models_fit_into_one() -> None:
    rows = [row(first_model="z"), row(id="v-2", assignment="a-2", match="m-2", first_model="y", second_model="z")]
    assert read(*rows) == (rows, [])


def test_models_are_turned_into_one_order_where_there_is_none() -> None:
    around = row(id="v-2", assignment="a-2", match="m-2", first_model="b", second_model="a", first_comment="of b")
    found, problems = read(row(), around)
    assert problems == []
    assert found[0] == row()
    names = ("first_model", "second_model", "first_answer", "left", "outcome", "choice", "second_comment")
    assert [found[1][name] for name in names] == ["a", "b", "Two", "second", "second", "left", "of b"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema": "other"}, "schema"),
        ({"schema_version": 2}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"choice": "thumb"}, "choice"),
        ({"outcome": "second"}, "outcome"),
        ({"choice": "skip", "outcome": "", "standing": "no_choice", "place": None}, "reason"),
        ({"place": 4}, "place"),
        ({"place": None}, "place"),
        ({"votes_per_match": 0, "place": None, "standing": "over_quota"}, "votes_per_match"),
        ({"position": 0}, "position"),
        ({"match": None}, "match"),
        ({"second_model": "a"}, "second_model"),
        ({"repeat_of": "a-9"}, "repeat_of"),
        ({"kind": "gold", "match": None, "standing": "gold", "place": None}, "gold_expected"),
        ({"first_tags": [1]}, "first_tags"),
        ({"prompt": []}, "prompt"),
        ({"active_ms": 1.5}, "active_ms"),
        ({"created_at": "2026-11-30T12:00:00"}, "created_at"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"first_comment": "\x00"}, "first_comment"),
        ({"rater": None}, "rater"),
        ({"supersedes": "v-0"}, "supersedes"),
    ],
    ids=str,
)
def test_each_problem_names_its_field(change: dict[str, Any], field: str) -> None:
    assert (1, field) in read(row(**change))[1]


def test_what_lines_say_of_each_other() -> None:
    _, problems = read(row(), row(id="v-2", position=2), row(id="v-2", assignment="a-2", place=2, prompt_hash="g"))
    assert set(problems) == {(2, "is_current"), (2, "place"), (2, "position"), (3, "id"), (3, "prompt_hash")}


def test_all_problems_are_told_at_once() -> None:
    lines = [b"{", b"[]", b"", json.dumps(row(choice="x", left="up")).encode(), b"\xff"]
    _, problems = read_votes(lines, "f")
    assert [(one.line, one.field) for one in problems] == [(1, None), (2, None), (4, "left"), (4, "choice"), (5, None)]
    assert str(problems[2]).startswith("f line 4: left: ")
    assert [str(one) for one in read_votes([b"\n"], "f")[1]] == ["f: There is no vote in this file."]
