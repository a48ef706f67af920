from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from typing import Any

import pypdfium2
import pytest

from arena.llm.demo.answers import language_of
from arena.llm.demo.bank import SAMPLES_PATH, load_bank

STARTER = SAMPLES_PATH.parents[1]
INDEX = json.loads((STARTER / "index.json").read_text(encoding="utf-8"))


def samples(folder: str) -> list[dict[str, Any]]:
    text = (STARTER / folder / "samples.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["id"])
def test_every_task_set_is_complete(entry: dict[str, str]) -> None:
    assert set(entry) == {"id", "title", "description", "language", "folder"}
    rows = samples(entry["folder"])
    assert len(rows) >= 12
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        messages = row["input"]["messages"]
        assert row["category"]
        assert messages[-1]["role"] == "user"
        assert {message["role"] for message in messages} <= {"system", "user", "assistant"}
        assert all(message["content"] for message in messages)


def test_demo_set_has_four_categories_languages_and_shapes() -> None:
    rows = samples("demo")
    categories = Counter(row["category"] for row in rows)
    assert len(rows) == 30
    assert len(categories) == 4
    assert min(categories.values()) >= 6
    texts = [json.dumps(row["input"], ensure_ascii=False) for row in rows]
    assert sum(language_of(text) == "ja" for text in texts) == 5
    assert sum(len(row["input"]["messages"]) > 2 for row in rows) == 1
    assert sum('"system"' in text for text in texts) == 2
    assert sum("reference" in row for row in rows) >= 8
    assert "smoke test" in INDEX[0]["description"]


def test_demo_pdf_can_be_read() -> None:
    paths = [
        SAMPLES_PATH.parent / part["path"]
        for row in samples("demo")
        for message in row["input"]["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "file_ref"
    ]
    assert len(paths) == 1
    assert paths[0].stat().st_size < 40_000
    document = pypdfium2.PdfDocument(paths[0])
    try:
        pages = [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()
    assert len(pages) == 2
    assert "at most 3.5%" in pages[0]


def test_every_prompt_has_a_checklist_and_none_contains_another() -> None:
    bank = load_bank()
    assert set(bank.prompts.values()) == set(bank.checklists)
    assert not [(a, b) for a, b in permutations(bank.prompts, 2) if a in b]
    for checklist in bank.checklists.values():
        assert len(checklist.points) >= 4
        assert checklist.errors
