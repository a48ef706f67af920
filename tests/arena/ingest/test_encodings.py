from __future__ import annotations

from pathlib import Path

import pytest

from .builders import inspect_bytes, message_line, sentences


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        ("utf-16", "is written in UTF-16"),
        ("utf-32", "is written in UTF-32"),
        ("utf-16-le", "looks like UTF-16"),
        ("utf-16-be", "looks like UTF-16"),
    ],
)
@pytest.mark.parametrize("file", ["samples.jsonl", "samples.csv"])
def test_a_wide_encoding_is_one_problem(tmp_path: Path, codec: str, name: str, file: str) -> None:
    found = inspect_bytes(tmp_path, '{"prompt": "Grüße an alle"}\n'.encode(codec), file)
    assert found.refused
    assert sentences(found) == [f"{file}: {name}; save it as UTF-8"]


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("日本語の質問です", "cp932", "Shift_JIS"),
        ("日本語の質問です", "euc_jp", "EUC-JP"),
        ("Was heißt „Größe“?", "cp1252", "Windows-1252"),
        ("Résumé de l'été", "latin-1", "Windows-1252"),
    ],
)
def test_a_wrong_encoding_is_named_with_its_line(tmp_path: Path, text: str, codec: str, name: str) -> None:
    bad = ('{"prompt": "' + text + '"}').encode(codec)
    found = inspect_bytes(tmp_path, b"\n".join([message_line().encode(), b"", bad]))
    assert found.good_count == 1
    assert sentences(found)[0].startswith("samples.jsonl line 3: is not UTF-8 (byte ")
    assert f"it looks like {name}" in sentences(found)[0]


def test_a_wrong_encoding_in_a_table_spoils_only_its_row(tmp_path: Path) -> None:
    content = 'prompt\n"two\nlines é"\nfine\n'.encode("latin-1")
    found = inspect_bytes(tmp_path, content, "samples.csv")
    assert [sample.source_line for sample in found.preview] == [4]
    assert [problem.line for problem in found.problems] == [3]


def test_line_separators_of_unicode_do_not_split_a_line(tmp_path: Path) -> None:
    text = '{"prompt": "a\u2028b\x85c"}\nbroken'
    found = inspect_bytes(tmp_path, text)
    assert found.good_count == 1
    assert [problem.line for problem in found.problems] == [2]
