from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arena.ingest.lines import Line
from arena.ingest.problems import ProblemLog, clip

_LABELS = {
    "id": "id",
    "key": "id",
    "category": "category",
    "reference": "reference",
    "criteria": "criteria",
    "tags": "tags",
}
_PROMPT_COLUMNS = ("prompt", "text")


@dataclass(frozen=True, slots=True)
class Row:
    line: int
    record: dict[str, Any] | None  # None: an error was reported


class _Lines:
    """Feeds physical lines to csv and remembers which of them were bad."""

    def __init__(self, lines: Iterator[Line], log: ProblemLog) -> None:
        self.number = 0
        self.bad = False
        self.broken = False
        self._lines = lines
        self._log = log

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number = line.number
            if line.problem:
                self.bad = True
                self._log.error(line.problem, line=line.number)
            if line.too_long:
                # A quote may open or close in what was skipped: nothing after it can be trusted.
                self.broken = True
                self._log.refuse("the table cannot be read any further", line=line.number)
                return
            yield line.text + "\n"


def read_table(
    lines: Iterator[Line], *, delimiter: str | None, field_characters: int, log: ProblemLog
) -> Iterator[Row]:
    """The rows of a CSV or TSV as records of the prompt dialect, each with the line that it starts on."""
    # The limit is one number for the whole process; 131,072 characters is short of a long prompt.
    csv.field_size_limit(max(csv.field_size_limit(), field_characters))
    source = _Lines(lines, log)
    physical = iter(source)
    first = next((text for text in physical if text.strip()), None)
    if first is None:
        return
    header_line = source.number
    if delimiter is None:
        delimiter = max(",;\t", key=first.count) if "," not in first else ","
    reader = csv.reader(_chain(first, physical), delimiter=delimiter, strict=True)
    header = _read_header(reader, header_line, log)
    if header is None:
        return
    before = source.number
    while True:
        source.bad = False
        try:
            cells = next(reader, None)
        except csv.Error as bad:
            log.refuse(f"{_csv_reason(bad)}; the table cannot be read any further", line=before + 1)
            return
        if cells is None or source.broken:
            return
        start, before = before + 1, source.number
        if cells:
            yield Row(start, None if source.bad else _record(cells, header, start, log))


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _csv_reason(bad: csv.Error) -> str:
    text = str(bad)
    if "unexpected end" in text or "field larger" in text:
        return "a quoted cell that starts here is not closed"
    return f"is not valid CSV: {text}"


def _read_header(reader: Iterator[list[str]], line: int, log: ProblemLog) -> list[str] | None:
    try:
        cells = next(reader)
    except csv.Error as bad:
        log.refuse(_csv_reason(bad), line=line)
        return None
    header: list[str] = []
    for i, cell in enumerate(cells):
        name = cell.strip()
        known = name.lower() in _LABELS or name.lower() in _PROMPT_COLUMNS
        header.append((name.lower() if known else name) or f"column {i + 1}")
    targets = [_LABELS.get(name, name) for name in header]
    for target in sorted({name for name in targets if targets.count(name) > 1}):
        log.refuse(f"has the column {clip(target)!r} twice", line=line)
    if not any(name in header for name in _PROMPT_COLUMNS):
        log.refuse(f"has no prompt column; its columns are {clip(', '.join(header), 200)}", line=line)
    return None if log.refused else header


def _record(cells: list[str], header: list[str], line: int, log: ProblemLog) -> dict[str, Any] | None:
    if len(cells) > len(header):
        log.error(f"has {len(cells)} cells; the header has {len(header)}", line=line)
        return None
    if len(cells) < len(header):
        log.warn(f"has {len(cells)} cells; the header has {len(header)}", line=line)
        cells = cells + [""] * (len(header) - len(cells))
    record: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    prompt = next(name for name in _PROMPT_COLUMNS if name in header)
    for name, cell in zip(header, cells, strict=True):
        if name == prompt:
            record[name] = cell
        elif not cell.strip():
            continue
        elif name in _LABELS:
            record[_LABELS[name]] = cell
        else:
            metadata[name] = cell
    if metadata:
        record["metadata"] = metadata
    return record
