from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

STARTER_FOLDER = Path(__file__).with_name("starter")


@dataclass(frozen=True, slots=True)
class Starter:
    """A task set of our own to begin with."""

    id: str
    title: str
    description: str
    language: str
    folder: str


def list_starters(root: Path = STARTER_FOLDER) -> tuple[Starter, ...]:
    entries = json.loads((root / "index.json").read_text(encoding="utf-8"))
    return tuple(
        Starter(
            id=entry["id"],
            title=entry["title"],
            description=entry["description"],
            language=entry["language"],
            folder=entry["folder"],
        )
        for entry in entries
    )


def starter_path(starter_id: str, root: Path = STARTER_FOLDER) -> Path:
    """The folder of a starter, to be read like any upload. KeyError where there is none of that id."""
    folders = {starter.id: starter.folder for starter in list_starters(root)}
    return root / folders[starter_id]
