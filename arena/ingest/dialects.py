"""Recognises the dialect of one record and brings it to one shape.

Turns of MT-Bench: a later turn only makes sense after an answer to the earlier ones. Where the file holds
reference answers to all of them, they stand as assistant messages and the last turn is asked; otherwise the
first turn is asked alone, and the others are kept in the metadata, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from arena.ingest.problems import Report, clip

OURS = "tiltyard"
JURY_ARENA = "juryarena"
ORQ_ARENA = "orq-arena"
OPENAI_EVALS = "openai-evals"
MT_BENCH = "mt-bench"
ARENA_HARD = "arena-hard"
TABLE = "table"

_OWN_KEYS = ("id", "category", "reference", "criteria", "tags", "metadata", "json_schema")
Record = dict[str, Any]


@dataclass(slots=True)
class RawSample:
    """Messages and labels as they stand in the file, not yet checked."""

    dialect: str
    messages: object
    messages_field: str
    labels: Record
    rest: Record = field(default_factory=dict)
    # The names that the file gives to our labels, so that a problem names the file's own field.
    names: dict[str, str] = field(default_factory=dict)
    # Where the file keeps the content of each message, when it has no messages of its own.
    content_fields: tuple[str, ...] = ()


def recognise(record: Record, *, error: Report, warn: Report) -> RawSample | None:
    take: Callable[..., RawSample]
    if isinstance(record.get("input"), dict):
        take = _messages_object
    elif "input" in record:
        take = _openai_evals
    elif "turns" in record:
        turns = record["turns"]
        if not isinstance(turns, list) or not turns:
            error("turns", "must be a list with at least one turn")
            return None
        take = _arena_hard_turns if isinstance(turns[0], dict) else _mt_bench
    elif "prompt" in record or "text" in record:
        take = _prompt
    else:
        hint = "; put messages inside input" if "messages" in record else ""
        error(None, f"has neither input.messages, prompt, text nor turns{hint}")
        return None
    return take(record, error=error, warn=warn)


def family(dialect: str) -> str:
    """Dialects that may stand together without surprise."""
    return OURS if dialect == JURY_ARENA else dialect


def _split(record: Record, known: dict[str, str], dropped: tuple[str, ...]) -> tuple[Record, Record]:
    """Labels by our names, and every key that nobody knows."""
    labels = {ours: record[theirs] for ours, theirs in known.items() if theirs in record}
    taken = {*known.values(), *dropped}
    return labels, {key: value for key, value in record.items() if key not in taken}


def _messages_object(record: Record, *, error: Report, warn: Report) -> RawSample:
    body = record["input"]
    labels, rest = _split(record, {key: key for key in _OWN_KEYS}, ("input",))
    rest.update({f"input.{key}": value for key, value in body.items() if key != "messages"})
    # Always present in files of this dialect, and says nothing when null.
    if rest.get("usage_output", ...) is None:
        del rest["usage_output"]
    dialect = OURS if labels else JURY_ARENA
    return RawSample(dialect, body.get("messages"), "input.messages", labels, rest)


def _openai_evals(record: Record, *, error: Report, warn: Report) -> RawSample:
    known = {key: key for key in _OWN_KEYS if key != "reference"}
    labels, rest = _split(record, known, ("input", "ideal"))
    ideal = record.get("ideal")
    names = {"reference": "ideal"}
    if isinstance(ideal, list) and all(isinstance(item, str) for item in ideal):
        # Any of several answers is right: a person and a judge read them one below the other.
        labels["reference"] = "\n".join(ideal)
        if len(ideal) > 1:
            rest["ideal"] = ideal
    elif ideal is not None:
        labels["reference"] = ideal
    value = record["input"]
    messages = [{"role": "user", "content": value}] if isinstance(value, str) else value
    fields = ("input",) if isinstance(value, str) else ()
    return RawSample(OPENAI_EVALS, messages, "input", labels, rest, names, fields)


def _prompt(record: Record, *, error: Report, warn: Report) -> RawSample:
    prompt = "prompt" if "prompt" in record else "text"
    known = {key: key for key in _OWN_KEYS}
    dialect = ORQ_ARENA
    if "uid" in record and "id" not in record:
        dialect, known["id"] = ARENA_HARD, "uid"
    elif "question_id" in record and "id" not in record:
        dialect, known["id"] = ARENA_HARD, "question_id"
    if dialect == ARENA_HARD and "cluster" in record:
        known["category"] = "cluster"
    labels, rest = _split(record, known, (prompt,))
    messages = [{"role": "user", "content": record[prompt]}]
    return RawSample(dialect, messages, prompt, labels, rest, known, (prompt,))


def _arena_hard_turns(record: Record, *, error: Report, warn: Report) -> RawSample:
    known = {key: key for key in _OWN_KEYS}
    known["id"] = "uid" if "uid" in record else "question_id"
    if "cluster" in record:
        known["category"] = "cluster"
    labels, rest = _split(record, known, ("turns",))
    turns = record["turns"]
    if len(turns) > 1:
        warn("turns", "only the first turn is asked: there is no answer to it that the next could follow")
        rest["turns"] = turns[1:]
    content = turns[0].get("content")
    extra = {f"turns[0].{clip(key)}": value for key, value in turns[0].items() if key != "content"}
    messages = [{"role": "user", "content": content}]
    fields = ("turns[0].content",)
    return RawSample(ARENA_HARD, messages, "turns", labels, {**rest, **extra}, known, fields)


def _mt_bench(record: Record, *, error: Report, warn: Report) -> RawSample:
    known = {key: key for key in _OWN_KEYS if key != "reference"}
    known["id"] = "question_id"
    labels, rest = _split(record, known, ("turns", "reference"))
    turns = record["turns"]
    reference = record.get("reference") or []
    answers = reference if isinstance(reference, list) else [reference]
    for i, answer in enumerate(answers):
        if not isinstance(answer, str):
            error(f"reference[{i}]", "must be text")
            answers = []
            break
    asked = len(turns) if len(answers) >= len(turns) - 1 else 1
    messages: list[dict[str, object]] = []
    fields: list[str] = []
    for i, turn in enumerate(turns[:asked]):
        messages.append({"role": "user", "content": turn})
        fields.append(f"turns[{i}]")
        if i < asked - 1:
            messages.append({"role": "assistant", "content": answers[i]})
            fields.append(f"reference[{i}]")
    if asked < len(turns):
        warn("turns", "only the first turn is asked: the file has no answer to it that the next could follow")
        rest["turns"] = turns[1:]
    if len(answers) >= asked:
        labels["reference"] = answers[asked - 1]
    if len(answers) > asked:
        rest["reference"] = answers[asked:]
    return RawSample(MT_BENCH, messages, "turns", labels, rest, known, tuple(fields))
