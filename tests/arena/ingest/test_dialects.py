from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.ingest import SampleDraft

from .builders import inspect_lines, message_line, sentences


def only_sample(folder: Path, record: dict[str, Any], dialect: str) -> SampleDraft:
    found = inspect_lines(folder, json.dumps(record))
    assert [p for p in found.problems if p.severity == "error"] == []
    assert found.dialect == dialect
    return found.preview[0]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_jury_arena(tmp_path: Path) -> None:
    sample = only_sample(tmp_path, json.loads(message_line("Hi", usage_output=None)), "juryarena")
    assert sample.messages == [user("Hi")]
    assert sample.metadata == {}


def test_our_own(tmp_path: Path) -> None:
    labels = {
        "id": "refund-1",
        "category": " refunds ",
        "reference": "Within 14 days.",
        "criteria": ["Names the deadline", "Is polite"],
        "tags": ["law", "law", " short "],
        "metadata": {"source": "mail"},
        "json_schema": {"type": "object"},
    }
    sample = only_sample(tmp_path, json.loads(message_line("Refund?", **labels)), "tiltyard")
    assert sample.key == "refund-1"
    assert sample.category == "refunds"
    assert sample.reference == "Within 14 days."
    assert sample.criteria == "Names the deadline\nIs polite"
    assert sample.tags == ("law", "short")
    assert sample.metadata == {"source": "mail"}
    assert sample.json_schema == {"type": "object"}


@pytest.mark.parametrize("key", ["prompt", "text"])
def test_orq_arena(tmp_path: Path, key: str) -> None:
    sample = only_sample(tmp_path, {key: "Hi", "category": "chat", "lang": "en"}, "orq-arena")
    assert sample.messages == [user("Hi")]
    assert sample.category == "chat"
    assert sample.metadata == {"lang": "en"}


def test_openai_evals(tmp_path: Path) -> None:
    record = {"input": [{"role": "system", "content": "Short."}, user("2+2?")], "ideal": "4"}
    sample = only_sample(tmp_path, record, "openai-evals")
    assert [message["role"] for message in sample.messages] == ["system", "user"]
    assert sample.reference == "4"


def test_openai_evals_with_several_right_answers(tmp_path: Path) -> None:
    sample = only_sample(tmp_path, {"input": "2+2?", "ideal": ["4", "four"]}, "openai-evals")
    assert sample.reference == "4\nfour"
    assert sample.metadata == {"ideal": ["4", "four"]}


def test_mt_bench_with_answers_asks_the_last_turn(tmp_path: Path) -> None:
    record = {
        "question_id": 111,
        "category": "math",
        "turns": ["Area?", "And the volume?"],
        "reference": ["3", "9"],
    }
    sample = only_sample(tmp_path, record, "mt-bench")
    assert sample.key == "111"
    assert sample.category == "math"
    assert sample.messages == [user("Area?"), {"role": "assistant", "content": "3"}, user("And the volume?")]
    assert sample.reference == "9"
    assert sample.metadata == {}


def test_mt_bench_without_answers_asks_the_first_turn(tmp_path: Path) -> None:
    record = {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite it."]}
    sample = only_sample(tmp_path, record, "mt-bench")
    assert sample.messages == [user("Write.")]
    assert sample.reference == ""
    assert sample.metadata == {"turns": ["Rewrite it."]}
    found = inspect_lines(tmp_path, json.dumps(record))
    assert "only the first turn is asked" in sentences(found)[0]


def test_mt_bench_with_an_answer_to_the_first_turn_only(tmp_path: Path) -> None:
    record = {"question_id": 1, "turns": ["a", "b"], "reference": ["A"]}
    sample = only_sample(tmp_path, record, "mt-bench")
    assert sample.messages == [user("a"), {"role": "assistant", "content": "A"}, user("b")]
    assert sample.reference == ""


def test_arena_hard_first_edition(tmp_path: Path) -> None:
    record = {
        "question_id": "abc",
        "category": "arena-hard-v0.1",
        "cluster": "Games",
        "turns": [{"content": "Play."}],
    }
    sample = only_sample(tmp_path, record, "arena-hard")
    assert (sample.key, sample.category) == ("abc", "Games")
    assert sample.messages == [user("Play.")]
    assert sample.metadata == {"category": "arena-hard-v0.1"}


def test_arena_hard_second_edition(tmp_path: Path) -> None:
    record = {"uid": "u1", "category": "hard_prompt", "subcategory": "coding", "prompt": "Sort."}
    sample = only_sample(tmp_path, record, "arena-hard")
    assert (sample.key, sample.category) == ("u1", "hard_prompt")
    assert sample.metadata == {"subcategory": "coding"}


def test_mixed_dialects_are_read_with_a_warning(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, message_line("a"), '{"prompt": "b"}', message_line("c", category="x"))
    assert found.clean
    assert found.dialect == "mixed"
    assert found.dialects == {"juryarena": 1, "orq-arena": 1, "tiltyard": 1}
    assert sentences(found) == ["samples.jsonl line 2: mixes dialects: tiltyard, orq-arena"]


def test_ours_beside_jury_arena_is_no_mixture(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, message_line("a"), message_line("c", category="x"))
    assert found.problems == ()
    assert found.dialect == "tiltyard"
    assert found.categories == {"": 1, "x": 1}


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"question": "a"}, "has neither input.messages, prompt, text nor turns"),
        ({"messages": [user("a")]}, "put messages inside input"),
        ({"turns": []}, "turns: must be a list with at least one turn"),
        ({"turns": "a"}, "turns: must be a list with at least one turn"),
        ({"turns": [3]}, "turns[0]: must be text or a list of parts"),
        ({"turns": [{"text": "a"}]}, "turns[0].content: must be text or a list of parts"),
        ({"turns": ["a"], "reference": [3]}, "reference[0]: must be text"),
        ({"prompt": None}, "prompt: must be text"),
        ({"input": 3}, "input: must be a list of messages"),
        ({"input": "a", "ideal": {"x": 1}}, "ideal: must be text"),
        ({"uid": [1], "prompt": "a"}, "uid: must be text or a whole number"),
        ({"prompt": "a", "id": True}, "id: must be text or a whole number"),
        ({"prompt": "a", "id": " "}, "id: must be 1 to 200 printable characters"),
        ({"prompt": "a", "category": 3}, "category: must be text"),
        ({"prompt": "a", "category": "x" * 101}, "category: is longer than 100 characters"),
        ({"prompt": "a", "reference": ["x"]}, "reference: must be text"),
        ({"prompt": "a", "criteria": {"x": 1}}, "criteria: must be text or a list of texts"),
        ({"prompt": "a", "tags": [1]}, "tags: must be a list of texts"),
        ({"prompt": "a", "tags": ["x" * 101]}, "tags: has a tag longer than 100 characters"),
        ({"prompt": "a", "metadata": []}, "metadata: must be an object"),
        ({"prompt": "a", "json_schema": "x"}, "json_schema: must be an object"),
        ({"prompt": "a", "json_schema": {"type": "objekt"}}, "json_schema: is not a JSON schema"),
    ],
)
def test_bad_records_are_named_by_field(tmp_path: Path, record: dict[str, Any], sentence: str) -> None:
    found = inspect_lines(tmp_path, json.dumps(record))
    assert found.good_count == 0
    assert any(sentence in text for text in sentences(found)), sentences(found)


def test_null_labels_are_absent_labels(tmp_path: Path) -> None:
    labels = dict.fromkeys(["id", "category", "reference", "criteria", "tags", "metadata", "json_schema"])
    bare = inspect_lines(tmp_path, message_line("a"))
    null = inspect_lines(tmp_path, message_line("a", **labels))
    assert null.problems == ()
    assert null.content_hash == bare.content_hash
