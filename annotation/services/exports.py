"""The files that votes leave by: streamed to a browser, or written into a folder that `datasets` loads."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from django.utils import timezone

from annotation.datasets import NAMES, SCHEMA_VERSION, TEST_SHARE, Row, json_line, safe_cell
from annotation.models import Campaign
from annotation.selectors.exports import ExportFilter, preference_rows, unwanted_rows, vote_rows

JSONL, CSV, MARKDOWN = "application/jsonl", "text/csv", "text/markdown"
BYTE_ORDER_MARK = "\ufeff"
SPLITS = ("train", "test")


class ExportFile(NamedTuple):
    name: str
    content_type: str
    lines: Callable[[Campaign, ExportFilter], Iterator[str]]


def _jsonl(rows: Iterator[Row]) -> Iterator[str]:
    return map(json_line, rows)


def _csv_lines(campaign: Campaign, chosen: ExportFilter) -> Iterator[str]:
    # A spreadsheet takes the file for UTF-8 by its first sign.
    yield BYTE_ORDER_MARK + _csv_line(NAMES)
    for row in vote_rows(campaign, chosen):
        yield _csv_line([safe_cell(row[name]) for name in NAMES])


def _csv_line(cells: list[str] | tuple[str, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _split(rows: Callable[..., Iterator[Row]], split: str) -> Callable[[Campaign, ExportFilter], Iterator[str]]:
    return lambda campaign, chosen: _jsonl(rows(campaign, chosen, split=split))


def _card_lines(campaign: Campaign, chosen: ExportFilter) -> Iterator[str]:
    yield dataset_card(campaign, chosen)


CARD = "README.md"
FILES = (
    ExportFile("votes.jsonl", JSONL, lambda campaign, chosen: _jsonl(vote_rows(campaign, chosen))),
    ExportFile("votes.csv", CSV, _csv_lines),
    *(ExportFile(f"preferences-{part}.jsonl", JSONL, _split(preference_rows, part)) for part in SPLITS),
    *(ExportFile(f"kto-{part}.jsonl", JSONL, _split(unwanted_rows, part)) for part in SPLITS),
    ExportFile(CARD, MARKDOWN, _card_lines),
)
BY_NAME = {file.name: file for file in FILES}
_CARD = """---
pretty_name: {pretty}
task_categories: [text-generation]
tags: [preference, human-feedback]
configs:
{configs}---

# {name}

Blind votes of people on pairs of answers, exported on {day} from the campaign `{campaign}`.

| file | what a line is |
|---|---|
| votes.jsonl, votes.csv | an event: a vote, skip, edit or undone vote (schema version {version}) |
| preferences-*.jsonl | `prompt`, `chosen`, `rejected` for DPO: matches on which more than half prefer one answer |
| kto-*.jsonl | `prompt`, `completion`, `label` for KTO: both answers of matches that more than half call bad |

- **Filter.** {filters}
- **In preferences and kto:** counted votes on normal pairs by raters who could not see names. Not in: repeats, gold
  items, skips, votes beyond the {wanted} asked for per match, superseded votes, sessions that were left out.
- **Splits.** One prompt in {share} is in `test`, drawn by the text of the prompt: no prompt is in both.
- **Raters** stand under pseudonyms. Comments are as the raters wrote them, and may say who somebody is.
- **Sides.** `first` and `second` are the order of the match; `left` says which of them stood on the left.
- **Files** of a prompt are not in here: `file_hashes` has their SHA-256, and the prompt their names.
- **Limits.** Names in an answer are masked by a list and by how models speak of themselves; a style can be recognised.
  Prompts, answers and who votes were chosen by one team: preferences of others may differ.
"""


def dataset_card(campaign: Campaign, chosen: ExportFilter, written: Collection[str] | None = None) -> str:
    """With a configuration for each kind of file; of those in `written` alone, where it is given."""
    paths = {"votes": {"train": "votes.jsonl"}}
    paths |= {kind: {part: f"{kind}-{part}.jsonl" for part in SPLITS} for kind in ("preferences", "kto")}
    configs = ""
    for kind, parts in paths.items():
        there = {part: path for part, path in parts.items() if written is None or path in written}
        if there:
            configs += f"- config_name: {kind}\n  data_files:\n"
            configs += "".join(f"  - split: {part}\n    path: {path}\n" for part, path in there.items())
    said = {"from": chosen.since, "until": chosen.until, "rater": chosen.rater, "category": chosen.category}
    filters = [f"{name} {value}" for name, value in said.items() if value]
    # A line of YAML and of Markdown: nothing in a name may end it.
    name = " ".join(campaign.name.replace('"', "'").replace("`", "'").split())
    return _CARD.format(
        # A string in JSON is one in YAML, whatever is in it.
        pretty=json.dumps(name, ensure_ascii=False),
        name=name,
        configs=configs,
        day=timezone.localdate().isoformat(),
        campaign=campaign.public_id,
        version=SCHEMA_VERSION,
        filters=f"Source {chosen.source}; {', '.join(filters) or 'nothing else'}.",
        wanted=campaign.raters_per_pair,
        share=TEST_SHARE,
    )


def write_folder(*, campaign: Campaign, chosen: ExportFilter, folder: Path) -> dict[str, int]:
    """Every file that has lines, and how many. An empty one is not written, since no reader infers its columns."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, int] = {}
    for file in FILES:
        if file.name == CARD:
            continue
        count = 0
        path = folder / file.name
        with path.open("w", encoding="utf-8", newline="") as out:
            for line in file.lines(campaign, chosen):
                out.write(line)
                count += 1
        if count == 0:
            path.unlink()
        else:
            written[file.name] = count
    (folder / CARD).write_text(dataset_card(campaign, chosen, written), encoding="utf-8")
    return written
