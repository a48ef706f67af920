from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from arena.ingest import Limits, UploadError, inspect_upload, read_samples

from .builders import inspect_bytes, inspect_lines, message_line, sentences


def test_every_problem_is_named_with_its_own_line(tmp_path: Path) -> None:
    bad_role = json.dumps({"input": {"messages": [{"role": "robot", "content": "x"}]}})
    found = inspect_lines(tmp_path, message_line(), "", "   ", bad_role, "{", "3", message_line("two"))
    assert sentences(found) == [
        "samples.jsonl line 4: input.messages[0].role: must be one of system, user, assistant, developer, tool",
        "samples.jsonl line 4: input.messages: has no user message",
        "samples.jsonl line 5: is not valid JSON: Expecting property name enclosed in double quotes (character 2)",
        "samples.jsonl line 6: must be a JSON object",
    ]
    assert (found.sample_count, found.good_count, found.error_count) == (5, 2, 4)
    assert found.usable
    assert not found.clean


def test_bom_and_crlf_change_nothing(tmp_path: Path) -> None:
    lines = [message_line("eins"), message_line("zwei")]
    plain = inspect_lines(tmp_path, *lines)
    marked = inspect_bytes(tmp_path, b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert marked.clean
    assert marked.content_hash == plain.content_hash


@pytest.mark.parametrize("content", ["", "\n \n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    found = inspect_bytes(tmp_path, content)
    assert found.refused
    assert not found.usable
    assert sentences(found)[0] in ("samples.jsonl: is empty", "samples.jsonl: holds no samples")


@pytest.mark.parametrize("document", ['[{"prompt": "a"}]', '{\n  "prompt": "a"\n}'])
def test_one_json_document_is_refused_in_one_sentence(tmp_path: Path, document: str) -> None:
    found = inspect_bytes(tmp_path, document)
    assert sentences(found) == ["samples.jsonl line 1: is one JSON document; JSONL has one object on each line"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("NaN", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "is too large"),
        ("9" * 5000, "is too long"),
        ("[" * 100_000, "is nested more than 100 levels deep"),
        ("[" * 500 + "]" * 500, "is nested more than 100 levels deep"),
        ('"\\u0000"', "holds a NUL character at character 1, which cannot be stored"),
        ('"ab\\ud83d"', "holds half of a surrogate pair (\\ud83d) at character 3"),
        ('{"\\udc00": 1}', "holds half of a surrogate pair"),
        ('"a\x01b"', "is not valid JSON: Invalid control character"),
    ],
)
def test_what_cannot_be_stored_is_an_error(tmp_path: Path, value: str, sentence: str) -> None:
    found = inspect_lines(tmp_path, '{"prompt": "x", "note": ' + value + "}", message_line())
    assert found.good_count == 1
    assert found.error_count == 1
    assert "line 1" in sentences(found)[0]
    assert sentence in sentences(found)[0]
    assert sentences(found)[0].isprintable()


def test_escaped_control_characters_are_a_warning(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, '{"prompt": "bell \\u0007"}')
    assert found.clean
    assert sentences(found) == ["samples.jsonl line 1: prompt: holds the control character U+0007"]


def test_a_surrogate_pair_is_one_character(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, '{"prompt": "\\ud83d\\ude00"}')
    assert found.problems == ()
    assert found.preview[0].messages[0]["content"] == "\U0001f600"


def test_duplicate_keys_and_duplicate_inputs_are_warnings(tmp_path: Path) -> None:
    found = inspect_lines(
        tmp_path, '{"prompt": "a", "prompt": "b"}', '{"prompt": "b", "category": "c"}', '{"prompt": "c"}'
    )
    assert found.clean
    assert sentences(found) == [
        "samples.jsonl line 1: prompt: appears twice in one object; the last value is used",
        "samples.jsonl line 2: has the same input as line 1",
    ]


def test_keys_are_given_or_made_from_the_position_and_unique(tmp_path: Path) -> None:
    found = inspect_lines(
        tmp_path,
        '{"prompt": "a"}',
        "broken",
        '{"prompt": "b"}',
        '{"prompt": "c", "id": 7}',
        '{"prompt": "d", "id": "7"}',
        '{"prompt": "e", "id": "s0007"}',
        '{"prompt": "f"}',
        '{"prompt": "g", "id": ["x"]}',
    )
    assert [sample.key for sample in found.preview] == ["s0001", "s0003", "7", "s0007"]
    assert [sample.position for sample in found.preview] == [1, 3, 4, 6]
    assert sentences(found)[1:] == [
        "samples.jsonl line 5: id: '7' is taken by line 4",
        "samples.jsonl line 7: id: 's0007' (made from its position, as it has none) is taken by line 6",
        "samples.jsonl line 8: id: must be text or a whole number",
    ]


def test_too_many_samples_are_refused_and_counted(tmp_path: Path) -> None:
    lines = [message_line(f"Question {i}") for i in range(5_001)]
    lines[3] = "broken"
    found = inspect_lines(tmp_path, *lines, "also broken")
    assert found.refused
    assert found.sample_count == 5_002
    assert found.good_count == 4_999
    assert [problem.line for problem in found.problems] == [4, None]
    assert sentences(found)[1] == (
        "samples.jsonl: holds 5,002 samples; the limit is 5,000 (those after it were counted, not checked)"
    )


def test_exactly_the_limit_is_taken(tmp_path: Path) -> None:
    limits = Limits(samples=3)
    assert inspect_lines(tmp_path, *(message_line(f"{i}") for i in range(3)), limits=limits).clean
    assert inspect_lines(tmp_path, *(message_line(f"{i}") for i in range(4)), limits=limits).refused
    with pytest.raises(UploadError, match="the limit is 3"):
        list(read_samples(tmp_path / "stored-upload", "samples.jsonl", limits=limits, only_good=True))


def test_a_huge_line_is_named_without_being_loaded(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    size = 60 * 1024 * 1024
    with path.open("wb") as stream:
        stream.write(message_line("first").encode() + b"\n")
        stream.seek(size, 1)  # a hole: one line of NUL bytes
        stream.write(b"\n" + message_line("last").encode())
    tracemalloc.start()
    try:
        found = inspect_upload(path, "samples.jsonl", limits=Limits(line_bytes=1024 * 1024))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sentences(found) == [f"samples.jsonl line 2: is {size:,} bytes long; the limit for one line is 1,048,576"]
    assert found.good_count == 2
    assert peak < 8 * 1024 * 1024


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    with path.open("w") as stream:
        for i in range(600):
            stream.write(message_line(f"{i} " + "x" * 10_000) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_samples(path, "samples.jsonl")) == 600
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024 < path.stat().st_size / 5


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    found = inspect_lines(tmp_path, message_line("x" * 100), limits=Limits(packed_bytes=50))
    assert found.refused
    assert "the limit is 50" in sentences(found)[0]


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    found = inspect_bytes(tmp_path, b"%PDF-1.4", "C:\\docs\\paper.pdf")
    assert sentences(found) == [
        "paper.pdf: is not a kind of file that can be read here (JSONL, CSV, TSV or ZIP); it is a PDF file"
    ]


def test_reading_stops_at_the_first_error_or_takes_the_good_ones(tmp_path: Path) -> None:
    inspect_lines(tmp_path, message_line("one"), "broken", message_line("three"))
    path = tmp_path / "stored-upload"
    samples = read_samples(path, "samples.jsonl")
    assert next(samples).key == "s0001"
    with pytest.raises(UploadError, match="line 2: is not valid JSON") as caught:
        next(samples)
    assert caught.value.problem.line == 2
    good = read_samples(path, "samples.jsonl", only_good=True)
    assert [sample.key for sample in good] == ["s0001", "s0003"]


def test_an_error_on_the_last_line_is_not_missed(tmp_path: Path) -> None:
    inspect_lines(tmp_path, message_line("one"), "broken")
    with pytest.raises(UploadError, match="line 2"):
        list(read_samples(tmp_path / "stored-upload", "samples.jsonl"))


def test_stored_problems_are_capped_and_errors_come_before_warnings(tmp_path: Path) -> None:
    warned = ['{"prompt": "a", "prompt": "b"}'] * 10
    found = inspect_lines(tmp_path, *warned, "broken", limits=Limits(stored_problems=5))
    assert len(found.problems) == 5
    assert (found.error_count, found.warning_count, found.problem_count) == (1, 19, 20)
    assert found.problems[-1].severity == "error"
