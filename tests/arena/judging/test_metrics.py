from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.judging.metrics import characters, markdown_density

SHARED = Path(os.environ.get("TILTYARD_SHARED") or Path(__file__).resolve().parents[3].parent / "shared")
REFERENCE = SHARED / "reference" / "omniarena_reference.json"


def test_characters_are_code_points() -> None:
    assert characters("") == 0
    assert characters("日本語 😀\n") == 6


@pytest.mark.parametrize(
    ("text", "marks", "visible"),
    [
        ("", 0, 1),
        (" \n\t\u3000", 0, 1),
        ("just words, well-known, 3.14", 0, 24),
        ("**bold** and `code`", 6, 17),
        ("# Title", 1, 6),
        ("####### seven", 0, 12),
        ("#hashtag", 0, 8),
        ("- one\n  + two\n", 2, 8),
        ("1. one\n23) two", 5, 11),
        ("3.14 is pi", 0, 8),
        (">> quoted twice", 2, 13),
        ("[a](b) ![c](d)", 9, 13),
        ("print(x) [1] (2)", 0, 14),
        ("[open\n](b)", 0, 9),
        ("| a | b |", 0, 5),
    ],
)
def test_density_counts_marks_over_visible_characters(text: str, marks: int, visible: int) -> None:
    assert markdown_density(text) == marks / visible


def test_the_recorded_style_metrics() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference numbers are not beside the checkout")
    rows = json.loads(REFERENCE.read_text(encoding="utf-8"))["server"]["style_metrics"]
    assert len(rows) >= 10
    for row in rows:
        assert markdown_density(row["text"]) == pytest.approx(row["markdown_density"], abs=1e-12), row["text"]


@given(st.text(st.sampled_from("#*_~`>-+[]()! \n1.a日")))
def test_density_is_a_share(text: str) -> None:
    assert 0 <= markdown_density(text) <= 1


@pytest.mark.parametrize("unit", ["[", "[]", "[](", "![a](", " ", "\n", "\t#", ">", "1", "#", "*", "- "])
def test_density_of_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    markdown_density(text)
    assert time.process_time() - started < 5
