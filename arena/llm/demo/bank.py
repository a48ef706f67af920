"""The prompts of the demo's task set with what a good answer to each contains."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

SAMPLES_PATH = Path(__file__).parents[2] / "ingest" / "starter" / "demo" / "samples.jsonl"
CHECKLISTS_PATH = Path(__file__).parent / "checklists.json"

Language = Literal["en", "ja"]


@dataclass(frozen=True, slots=True)
class Point:
    label: str
    key: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checklist:
    key: str
    language: Language
    lead: str
    points: tuple[Point, ...]
    errors: tuple[str, ...]
    # A text to be sent (opening and closing) rather than a list of points.
    frame: tuple[str, str] | None = None
    table: tuple[tuple[str, ...], ...] = ()
    code: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Bank:
    prompts: dict[str, str]
    checklists: dict[str, Checklist]

    def exact(self, text: str) -> Checklist | None:
        key = self.prompts.get(text.strip())
        return self.checklists[key] if key else None

    def within(self, texts: Iterable[str]) -> Checklist | None:
        """A bank prompt somewhere in a conversation, whatever stands around it. The last turn counts."""
        for text in reversed(list(texts)):
            for prompt, key in self.prompts.items():
                if prompt in text:
                    return self.checklists[key]
        return None


@cache
def load_bank() -> Bank:
    lines = SAMPLES_PATH.read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines if line.strip()]
    checklists = json.loads(CHECKLISTS_PATH.read_text(encoding="utf-8"))
    return Bank(
        prompts={_prompt_text(sample["input"]["messages"]): sample["id"] for sample in samples},
        checklists={key: _checklist(key, entry) for key, entry in checklists.items()},
    )


def _prompt_text(messages: list[dict[str, Any]]) -> str:
    content = messages[-1]["content"]
    if isinstance(content, str):
        return content.strip()
    return "\n\n".join(part["text"] for part in content if part["type"] == "text").strip()


def _checklist(key: str, entry: dict[str, Any]) -> Checklist:
    table = entry.get("table")
    code = entry.get("code")
    frame = entry.get("frame")
    return Checklist(
        key=key,
        language=entry["language"],
        lead=entry["lead"],
        points=tuple(Point(point["label"], point["key"], point["detail"]) for point in entry["points"]),
        errors=tuple(entry["errors"]),
        frame=(frame["opening"], frame["closing"]) if frame else None,
        table=tuple(tuple(row) for row in [table["header"], *table["rows"]]) if table else (),
        code=(code["language"], code["text"]) if code else None,
    )
