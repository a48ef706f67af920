"""The files that votes leave and enter by: pure rows in, pure rows out.

Every key stands in every row with one type, so that tools that infer columns from the first rows find them all.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from arena.ingest.types import Problem

SCHEMA = "tiltyard.votes"
SCHEMA_VERSION = 1
# One prompt in ten is held out.
TEST_SHARE = 10
# What a spreadsheet would take for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
LONGEST_LINE = 32_000_000
MOST_PROBLEMS = 1_000
CHOICES = ("left", "right", "both_good", "both_bad", "skip", "undone")
STANDINGS = ("counted", "over_quota", "could_see_names", "repeat", "gold", "no_choice")
SIDES = ("first", "second")
KINDS = ("normal", "gold", "repeat")


class Field(NamedTuple):
    """What a key of votes.jsonl holds; `words` are its only values, where there are such."""

    name: str
    types: tuple[type, ...]
    optional: bool = False
    words: tuple[str, ...] = ()


FIELDS = (
    Field("schema", (str,), words=(SCHEMA,)),
    Field("schema_version", (int,)),
    Field("event", (str,), words=("vote", "decision")),
    Field("id", (str,)),
    Field("supersedes", (str,), optional=True),
    Field("is_current", (bool,)),
    Field("campaign", (str,)),
    Field("campaign_name", (str,)),
    Field("votes_per_match", (int,)),
    Field("rater", (str,)),
    Field("rater_kind", (str,)),
    Field("rater_left_out", (bool,)),
    Field("assignment", (str,)),
    Field("position", (int,)),
    Field("kind", (str,), words=KINDS),
    Field("repeat_of", (str,), optional=True),
    Field("match", (str,), optional=True),
    Field("sample_key", (str,)),
    Field("category", (str,)),
    Field("prompt_hash", (str,)),
    Field("file_hashes", (list,)),
    Field("prompt", (list,)),
    Field("first_model", (str,), optional=True),
    Field("second_model", (str,), optional=True),
    Field("first_answer", (str,)),
    Field("second_answer", (str,)),
    Field("gold_origin", (str,), optional=True),
    Field("gold_expected", (str,), optional=True),
    Field("left", (str,), words=SIDES),
    Field("choice", (str,), words=CHOICES),
    Field("outcome", (str,), words=(*SIDES, "tie", "")),
    Field("standing", (str,), words=STANDINGS),
    Field("place", (int,), optional=True),
    Field("first_tags", (list,)),
    Field("second_tags", (list,)),
    Field("first_comment", (str,)),
    Field("second_comment", (str,)),
    Field("reason", (str,)),
    Field("note", (str,)),
    Field("could_see_names", (bool,)),
    Field("active_ms", (int,), optional=True),
    Field("guideline_version", (int,), optional=True),
    Field("served_at", (str,)),
    Field("created_at", (str,)),
)
NAMES = tuple(field.name for field in FIELDS)
Row = dict[str, Any]


# Out ---------------------------------------------------------------------------------------------------------
def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Messages whose content is text alone: a file stands as its name in brackets."""
    return [{"role": str(message["role"]), "content": _text_of(message["content"])} for message in messages]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [str(part["text"]) if part.get("type") == "text" else f"[file: {part.get('path', '')}]" for part in content]
    return "\n\n".join(parts)


def json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def safe_cell(value: Any) -> str:
    """Text that no spreadsheet runs, whatever an answer or comment begins with."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list):
        value = ";".join(one if isinstance(one, str) else f"{one['role']}: {one['content']}" for one in value)
    text = str(value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def split_of(prompt: Sequence[Mapping[str, str]]) -> str:
    """train or test, by what is asked alone: no prompt is in both, however often and under whatever key it came."""
    words = " ".join(f"{message['role']} {' '.join(message['content'].casefold().split())}" for message in prompt)
    digest = hashlib.sha256(words.encode()).digest()
    return "test" if int.from_bytes(digest[:8], "big") % TEST_SHARE == 0 else "train"


class Judged(NamedTuple):
    """A match with what was said about it, in the four-way coding."""

    match: str
    prompt: list[dict[str, str]]
    prompt_hash: str
    category: str
    first_model: str
    second_model: str
    first_answer: str
    second_answer: str
    labels: tuple[str, ...]
    source: str


def winner_of(labels: Sequence[str]) -> str | None:
    """What more than half of the votes say."""
    return next((label for label in sorted(set(labels)) if 2 * labels.count(label) > len(labels)), None)


def preference_row(judged: Judged) -> Row | None:
    """For DPO, in the conversational form; None where no answer was preferred by more than half."""
    winner = winner_of(judged.labels)
    if winner not in SIDES:
        return None
    chosen, rejected = (SIDES if winner == "first" else SIDES[::-1])[:2]
    answers = {"first": judged.first_answer, "second": judged.second_answer}
    models = {"first": judged.first_model, "second": judged.second_model}
    return {
        "prompt": judged.prompt,
        "chosen": _said(answers[chosen]),
        "rejected": _said(answers[rejected]),
        "votes": len(judged.labels),
        "margin": (judged.labels.count(chosen) - judged.labels.count(rejected)) / len(judged.labels),
        "chosen_model": models[chosen],
        "rejected_model": models[rejected],
        "category": judged.category,
        "prompt_hash": judged.prompt_hash,
        "match": judged.match,
        "source": judged.source,
        "split": split_of(judged.prompt),
    }


def kto_rows(judged: Judged) -> Iterator[Row]:
    """Both answers of a match that more than half call bad, as completions that are not wanted."""
    if winner_of(judged.labels) != "both_bad":
        return
    for model, answer in (
        (judged.first_model, judged.first_answer),
        (judged.second_model, judged.second_answer),
    ):
        yield {
            "prompt": judged.prompt,
            "completion": _said(answer),
            "label": False,
            "votes": len(judged.labels),
            "model": model,
            "category": judged.category,
            "prompt_hash": judged.prompt_hash,
            "match": judged.match,
            "source": judged.source,
            "split": split_of(judged.prompt),
        }


def _said(answer: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": answer}]


# In ----------------------------------------------------------------------------------------------------------
def read_votes(lines: Iterable[bytes], file: str) -> tuple[list[Row], list[Problem]]:
    """Rows of votes and everything that is wrong with the file; rows of decisions are passed over.

    Rows are turned where that is needed to bring all models into one order: see `model_order`.
    """
    rows: list[tuple[int, Row]] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or len(problems) > MOST_PROBLEMS:
            continue
        row = _row_of(line, file, number, problems)
        if row is not None and row["event"] == "vote":
            rows.append((number, row))
    if not rows and not problems:
        problems.append(Problem(file, None, None, "There is no vote in this file."))
    if not problems:
        problems += _across(rows, file)
    plain = [row for _, row in rows]
    if problems:
        return plain, problems
    order = {name: number for number, name in enumerate(model_order(plain))}
    return [_canonical(row, order) for row in plain], problems


def model_order(rows: Iterable[Row]) -> list[str]:
    """The models so that `first_model` comes before `second_model` in every row; by name where no order does that.

    Which answer is the first matters to a kappa, so the order of the matches is kept where it can be.
    """
    after: dict[str, set[str]] = {}
    for row in rows:
        if row["first_model"] is not None:
            after.setdefault(row["first_model"], set())
            after.setdefault(row["second_model"], set()).add(row["first_model"])
    try:
        return list(TopologicalSorter({name: sorted(after[name]) for name in sorted(after)}).static_order())
    except CycleError:
        return sorted(after)


def _row_of(line: bytes, file: str, number: int, problems: list[Problem]) -> Row | None:
    before = len(problems)
    try:
        if len(line) > LONGEST_LINE:
            raise ValueError(f"the line is longer than {LONGEST_LINE:,} bytes")
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        problems.append(Problem(file, number, None, f"This is not a line of JSON: {error}."))
        return None
    if not isinstance(row, dict):
        problems.append(Problem(file, number, None, "Each line must be an object."))
        return None
    for field in FIELDS:
        problem = _problem_of(field, row)
        if problem:
            problems.append(Problem(file, number, field.name, problem))
    if len(problems) == before and row["event"] == "vote":
        problems += [Problem(file, number, *found) for found in _contradictions(row)]
    return row if len(problems) == before else None


def _problem_of(field: Field, row: Row) -> str:
    if field.name not in row:
        return "This key is missing."
    value: Any = row[field.name]
    if value is None:
        return "" if field.optional else "This must not be null."
    # By the exact type: True is an int to Python, and to nobody else.
    if type(value) not in field.types:
        return f"This must be {_NAMES_OF_TYPES[field.types[0]]}."
    if field.words and value not in field.words:
        return f"{value!r} is none of {', '.join(word or 'nothing' for word in field.words)}."
    if field.name == "schema_version" and value != SCHEMA_VERSION:
        return f"This program reads version {SCHEMA_VERSION}, not {value}."
    if field.name in {"served_at", "created_at"}:
        return _problem_of_moment(value)
    if field.name == "prompt" and not _are_messages(value):
        return "This must be a list of messages, each with a role and content as text."
    if field.types == (list,) and field.name != "prompt" and not all(isinstance(one, str) for one in value):
        return "This must be a list of strings."
    if isinstance(value, str) and "\x00" in value:
        return "A NUL character cannot be stored."
    return ""


_NAMES_OF_TYPES = {str: "a string", int: "a whole number", bool: "true or false", list: "a list"}


def _problem_of_moment(value: str) -> str:
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return f"{value!r} is no moment in ISO 8601."
    return "" if moment.tzinfo is not None else "The moment has no offset from UTC."


def _are_messages(value: list[Any]) -> bool:
    return bool(value) and all(
        isinstance(one, dict) and isinstance(one.get("role"), str) and isinstance(one.get("content"), str)
        for one in value
    )


def _contradictions(row: Row) -> Iterator[tuple[str, str]]:
    right = SIDES[1 - SIDES.index(row["left"])]
    means = {"left": row["left"], "right": right, "both_good": "tie", "both_bad": "tie"}.get(row["choice"], "")
    if row["outcome"] != means:
        yield "outcome", f"{row['choice']} with {row['left']} on the left means {means or 'nothing'}."
    if (row["choice"] == "skip") != bool(row["reason"]):
        yield "reason", "A skip has a reason, and nothing else has."
    counted = row["standing"] == "counted"
    if counted != (row["place"] is not None) or (counted and not 1 <= row["place"] <= row["votes_per_match"]):
        yield "place", "A counted vote has a place from 1 to votes_per_match, and no other vote has one."
    if not 1 <= row["votes_per_match"] <= 50:
        yield "votes_per_match", "This must be from 1 to 50."
    if not 1 <= row["position"] <= 1_000_000:
        yield "position", "This must be from 1 to 1,000,000."
    if row["kind"] == "gold":
        if row["gold_expected"] not in (*SIDES, "tie") or row["gold_origin"] not in ("agreed", "degraded", "identical"):
            yield "gold_expected", "A gold item has an expected outcome and an origin."
        if row["match"] is not None:
            yield "match", "A gold item has no match."
    else:
        if not row["match"] or not row["first_model"] or not row["second_model"]:
            yield "match", "A pair that is not gold has a match and two models."
        elif row["first_model"] == row["second_model"]:
            yield "second_model", "The two models have the same id."
    if (row["kind"] == "repeat") != (row["repeat_of"] is not None):
        yield "repeat_of", "A repeat names the assignment that it shows again, and nothing else does."
    if row["standing"] in {"repeat", "gold"} and row["standing"] != row["kind"]:
        yield "standing", f"A pair of kind {row['kind']} cannot stand as {row['standing']}."


def _across(rows: Sequence[tuple[int, Row]], file: str) -> Iterator[Problem]:
    """What no line shows by itself."""
    by_id: dict[str, Row] = {}
    current: set[str] = set()
    places: set[tuple[str, int]] = set()
    known: dict[tuple[str, str], tuple[int, Any]] = {}
    assignments = {row["assignment"] for _, row in rows}
    for number, row in rows:

        def problem(field: str, message: str, at: int = number) -> Problem:
            return Problem(file, at, field, message)

        if row["id"] in by_id:
            yield problem("id", f"{row['id']!r} occurs twice.")
        before = row["supersedes"]
        if before is not None and (before not in by_id or by_id[before]["assignment"] != row["assignment"]):
            yield problem("supersedes", f"No line above has the id {before!r} on the same assignment.")
        by_id[row["id"]] = row
        if row["is_current"]:
            if row["assignment"] in current:
                yield problem("is_current", "Another vote on this assignment is current too.")
            current.add(row["assignment"])
            if row["place"] is not None:
                if (row["match"], row["place"]) in places:
                    yield problem("place", "Another counted vote on this match has the same place.")
                places.add((row["match"], row["place"]))
        if row["repeat_of"] is not None and row["repeat_of"] not in assignments:
            yield problem("repeat_of", f"No line has the assignment {row['repeat_of']!r}.")
        for key, names in _SAME_WITHIN.items():
            said = tuple(json.dumps(row[name], sort_keys=True) for name in names)
            at, first = known.setdefault((key, str(row[key])), (number, said))
            if first != said and row[key] is not None:
                other = next(name for name, a, b in zip(names, first, said, strict=True) if a != b)
                yield problem(other, f"Line {at} says something else for the same {key}.")


# What must not differ between rows that name the same thing.
_SAME_WITHIN: Mapping[str, tuple[str, ...]] = {
    "schema": ("campaign", "votes_per_match"),
    "assignment": ("rater", "kind", "match", "left", "position", "repeat_of", "first_answer", "second_answer"),
    "match": ("prompt_hash", "first_model", "second_model", "first_answer", "second_answer"),
    "prompt_hash": ("prompt",),
    "rater": ("rater_left_out",),
}
_TURNED = {"first": "second", "second": "first"}


def _canonical(row: Row, order: Mapping[str, int]) -> Row:
    if row["first_model"] is None or order[row["first_model"]] < order[row["second_model"]]:
        return row
    turned = dict(row)
    for name in ("model", "answer", "tags", "comment"):
        turned[f"first_{name}"], turned[f"second_{name}"] = row[f"second_{name}"], row[f"first_{name}"]
    for name in ("left", "outcome"):
        turned[name] = _TURNED.get(row[name], row[name])
    return turned


def fingerprint_of(rows: Iterable[Row]) -> str:
    """The same for the same votes, however the file was named or its lines were spaced."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()
