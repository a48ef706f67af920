from __future__ import annotations

from pathlib import Path

import pytest

from arena.ingest import Limits

from .builders import inspect_bytes, sentences


def test_columns_become_labels_and_the_rest_metadata(tmp_path: Path) -> None:
    content = 'Key,Prompt,Category,Reference,criteria,tags,Team,Empty\nq1,"Hi, you",chat,Hello,Be kind,"a; b",sales,\n'
    found = inspect_bytes(tmp_path, content, "q.csv")
    assert found.problems == ()
    assert found.dialect == "table"
    sample = found.preview[0]
    assert sample.messages == [{"role": "user", "content": "Hi, you"}]
    assert (sample.key, sample.category, sample.reference) == ("q1", "chat", "Hello")
    assert (sample.criteria, sample.tags) == ("Be kind", ("a", "b"))
    assert sample.metadata == {"Team": "sales"}


def test_line_numbers_are_those_of_the_editor(tmp_path: Path) -> None:
    content = 'prompt,category\n"one\ntwo\n\nfour",a\n\n"",b\n"last ""quoted""",c\nx,y,z\n'
    found = inspect_bytes(tmp_path, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode(), "q.csv")
    assert [sample.source_line for sample in found.preview] == [2, 8]
    assert found.preview[0].messages[0]["content"] == "one\ntwo\n\nfour"
    assert found.preview[1].messages[0]["content"] == 'last "quoted"'
    assert sentences(found) == [
        "q.csv line 7: prompt: is empty",
        "q.csv line 9: has 3 cells; the header has 2",
    ]
    assert found.sample_count == 4


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.tsv", "prompt\tcategory\na, b; c\tx\n"),
        ("q.csv", "prompt\tcategory\na, b; c\tx\n"),
        ("q.csv", 'prompt;category\n"a, b; c";x\n'),
        ("q.csv", 'text,category\n"a, b; c",x\n'),
    ],
)
def test_delimiters(tmp_path: Path, name: str, content: str) -> None:
    found = inspect_bytes(tmp_path, content, name)
    assert found.problems == ()
    assert found.preview[0].messages[0]["content"] == "a, b; c"
    assert found.preview[0].category == "x"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "question,category\na,b\n",
            "q.csv line 1: has no prompt column; its columns are question, category",
        ),
        ("\n\nprompt,Prompt\na,b\n", "q.csv line 3: has the column 'prompt' twice"),
        ("id,key,prompt\n1,2,a\n", "q.csv line 1: has the column 'id' twice"),
        ('prompt\nfine\n"never closed\nx\n', "q.csv line 3: a quoted cell that starts here is not closed"),
        ('prompt\n"a" b\n', "q.csv line 2: is not valid CSV"),
        ('"prompt\na\n', "q.csv line 1: a quoted cell that starts here is not closed"),
        ("prompt\n", "q.csv: holds no samples"),
        ("\n\n", "q.csv: holds no samples"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    found = inspect_bytes(tmp_path, content, "q.csv")
    assert found.refused
    assert sentences(found)[0].startswith(sentence)
    assert found.error_count == 1


def test_a_short_row_is_a_warning(tmp_path: Path) -> None:
    found = inspect_bytes(tmp_path, "prompt,category,note\na\n", "q.csv")
    assert found.clean
    assert sentences(found) == ["q.csv line 2: has 1 cells; the header has 3"]


def test_nul_and_control_characters(tmp_path: Path) -> None:
    found = inspect_bytes(tmp_path, "prompt\na\0b\na\x07b\n", "q.csv")
    assert found.good_count == 1
    assert "NUL" in sentences(found)[0]
    assert "U+0007" in sentences(found)[1]


def test_a_long_prompt_is_no_problem_and_a_too_long_line_stops_the_table(tmp_path: Path) -> None:
    limits = Limits(line_bytes=400_000)
    long = "prompt\n" + "x" * 300_000 + "\n"
    assert inspect_bytes(tmp_path, long, "q.csv", limits=limits).clean
    found = inspect_bytes(tmp_path, long + "y" * 500_000 + "\nz\n", "q.csv", limits=limits)
    assert found.refused
    assert [problem.line for problem in found.problems] == [3, 3]
    assert found.good_count == 1


def test_an_unclosed_quote_does_not_load_the_file(tmp_path: Path) -> None:
    content = 'prompt\n"' + ("x" * 999 + "\n") * 2_000
    found = inspect_bytes(tmp_path, content, "q.csv", limits=Limits(line_bytes=100_000))
    assert found.refused
    assert found.problems[0].line == 2


def test_the_limit_of_samples_counts_rows(tmp_path: Path) -> None:
    found = inspect_bytes(tmp_path, 'prompt\n"a\nb"\nc\nd\n', "q.csv", limits=Limits(samples=2))
    assert found.refused
    assert (found.sample_count, found.good_count) == (3, 2)
