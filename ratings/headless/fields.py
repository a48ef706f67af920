"""Typed reading of a mapping: each field names its own problem, and unknown keys are problems too."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from ratings.headless.yaml_tree import Node, Problem

MOST_TEXT = 100_000
# Names under which people write keys down. A value under one of them is never repeated in a message.
SECRETS = frozenset({"key", "api_key", "apikey", "token", "secret", "password", "authorization", "bearer"})
NO_KEYS_HERE = (
    "a key does not belong in this file, which is copied, shared and kept: put it into an environment variable "
    "whose name begins with TILTYARD_KEY_ and name that as key_variable"
)


@dataclass
class Log:
    """The problems of a file, and the line of every value, for what only later turns out to be wrong."""

    problems: list[Problem]
    lines: dict[str, int] = field(default_factory=dict)

    def add(self, line: int | None, path: str, message: str) -> None:
        self.problems.append(Problem(line, path, message))


class Section:
    def __init__(self, log: Log, node: Node, path: str) -> None:
        self.log, self.path, self.line = log, path, node.line
        self._entries: dict[str, Node] = node.value if isinstance(node.value, dict) else {}
        self._known: list[str] = []
        log.lines[path] = node.line
        for key, child in self._entries.items():
            log.lines[self.at(key)] = child.line
        if not isinstance(node.value, dict):
            log.add(node.line, path, "must be a mapping of names to values")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def problem(self, name: str, message: str) -> None:
        node = self._entries.get(name)
        self.log.add(node.line if node else self.line, self.at(name), message)

    def take(self, name: str, *, required: bool = False) -> Node | None:
        """The value under a name; null is the same as nothing."""
        self._known.append(name)
        node = self._entries.get(name)
        if node is None or node.value is None:
            if required:
                self.problem(name, "is missing")
            return None
        return node

    def close(self) -> None:
        """Everything was asked for that there can be: the rest is unknown."""
        for key, node in self._entries.items():
            if key in self._known:
                continue
            if key.lower() in SECRETS:
                self.log.add(node.line, self.at(key), NO_KEYS_HERE)
                continue
            close = difflib.get_close_matches(key, self._known, n=1)
            hint = f", did you mean {close[0]}?" if close else f"; there are {', '.join(self._known)}"
            self.log.add(node.line, self.at(key), f"is not known here{hint}")

    def text(self, name: str, *, required: bool = False, most: int = MOST_TEXT) -> str | None:
        node = self.take(name, required=required)
        if node is None:
            return None
        if not isinstance(node.value, str):
            self.problem(name, "must be text; put it in quotes if it is meant as text")
        elif not node.value.strip():
            self.problem(name, "must not be blank")
        elif len(node.value) > most:
            self.problem(name, f"must have at most {most} characters")
        else:
            return node.value
        return None

    def whole(self, name: str, *, low: int, high: int, required: bool = False) -> int | None:
        node = self.take(name, required=required)
        if node is None:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.problem(name, "must be a whole number")
        elif not low <= value <= high:
            self.problem(name, f"must be from {low} to {high}")
        else:
            return value
        return None

    def number(self, name: str, *, low: float, high: float) -> float | None:
        value = self.decimal(name, low=Decimal(str(low)), high=Decimal(str(high)), places=None)
        return None if value is None else float(value)

    def decimal(
        self, name: str, *, low: Decimal, high: Decimal, places: int | None, required: bool = False
    ) -> Decimal | None:
        """Exactly as it is written: 1.10 is no binary fraction."""
        node = self.take(name, required=required)
        if node is None:
            return None
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.problem(name, "must be a number")
            return None
        try:
            value = Decimal(node.text.replace("_", "")) if isinstance(node.value, float) else Decimal(node.value)
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not low <= value <= high:
            self.problem(name, f"must be a number from {low} to {high}")
            return None
        if places is not None and value != round(value, places):
            self.problem(name, f"must have at most {places} decimals")
            return None
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str | None:
        node = self.take(name)
        if node is None:
            return None
        if not isinstance(node.value, str) or node.value not in choices:
            self.problem(name, f"must be one of {', '.join(choices)}")
            return None
        return node.value

    def texts(self, name: str) -> tuple[str, ...]:
        node = self.take(name)
        if node is None:
            return ()
        if not isinstance(node.value, list) or not all(isinstance(item.value, str) for item in node.value):
            self.problem(name, "must be a list of texts")
            return ()
        return tuple(str(item.value) for item in node.value)

    def mapping(self, name: str) -> dict[str, Any]:
        node = self.take(name)
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.problem(name, "must be a mapping of names to values")
            return {}
        self._note_lines(self.at(name), node)
        plain: dict[str, Any] = node.plain()
        return plain

    def section(self, name: str) -> Section | None:
        node = self.take(name)
        return None if node is None else Section(self.log, node, self.at(name))

    def items(self, name: str, *, required: bool = False) -> Iterator[Section]:
        node = self.take(name, required=required)
        if node is None:
            return
        if not isinstance(node.value, list):
            self.problem(name, "must be a list")
            return
        for index, item in enumerate(node.value):
            yield Section(self.log, item, f"{self.at(name)}[{index}]")

    def named(self, name: str) -> Iterator[tuple[str, Section]]:
        node = self.take(name)
        if node is None:
            return
        if not isinstance(node.value, dict):
            self.problem(name, "must be a mapping of names to values")
            return
        for key, item in node.value.items():
            yield key, Section(self.log, item, f"{self.at(name)}.{key}")

    def _note_lines(self, path: str, node: Node) -> None:
        if isinstance(node.value, dict):
            for key, child in node.value.items():
                self.log.lines[f"{path}.{key}"] = child.line
