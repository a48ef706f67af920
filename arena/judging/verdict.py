"""What a judge's reply says, or why it says nothing.

Accepted: one JSON object, bare, in a code fence or amid prose; its keys and its winner in any
case; extra keys. Refused, because two readers could read it in two ways:
- anything after an object that begins like JSON and breaks off or is malformed;
- a verdict's own key given twice with different values;
- several complete verdicts that name different winners, or over a thousand objects;
- a winner that is more than A, B or tie ("Answer A", "draw"), or a comment that is not text.
NaN and Infinity are not JSON. A verdict wrapped in another object is not unwrapped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Literal

Winner = Literal["A", "B", "tie"]

COMMENT_CHARACTER_CAP = 4_000
OBJECT_CAP = 1_000

VERDICT_SCHEMA_NAME = "verdict"
# The winner stands last, so that a model which writes in order decides after its reasons.
# What a key is for is said in the language of the prompt: `arena.judging.prompts.verdict_schema`.
VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "A": {"type": "string"},
        "B": {"type": "string"},
        "reason": {"type": "string"},
        "winner": {"type": "string", "enum": ["A", "B", "tie"]},
    },
    "required": ["A", "B", "reason", "winner"],
    "additionalProperties": False,
}

_WINNERS: dict[str, Winner] = {"a": "A", "b": "B", "tie": "tie"}
_KEYS = ("a", "b", "reason", "winner")
# What the wire formats call an answer that the model or its provider withheld.
_REFUSAL_FINISHES = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "image_safety",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)
_CUT_FINISHES = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
_OBJECT_START = re.compile(r'\{(?=\s*+")')
_SURROGATE = re.compile("[\ud800-\udfff]")


class ErrorCode(StrEnum):
    SERVER_ERROR = "SERVER_ERROR"
    EMPTY = "EMPTY"
    INVALID_JSON = "INVALID_JSON"
    INVALID_SCHEMA = "INVALID_SCHEMA"
    REFUSED = "REFUSED"
    TIMEOUT = "TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
    OTHER = "OTHER"


REPAIRABLE = frozenset({ErrorCode.EMPTY, ErrorCode.INVALID_JSON, ErrorCode.INVALID_SCHEMA})


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    winner: Winner
    comment_a: str
    comment_b: str
    reason: str


@dataclass(frozen=True, slots=True)
class VerdictError:
    code: ErrorCode
    message: str
    # Set where the reply holds no trace of an object: prose in place of a verdict.
    is_prose: bool = False


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, so that a key given twice can be seen."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# Numbers are never part of a verdict; float takes any digits without Python's limit on int.
_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant, parse_int=float)


def parse_verdict(
    text: str | None, *, refusal: str | None = None, finish_reason: str | None = None
) -> ParsedVerdict | VerdictError:
    finish = (finish_reason or "").casefold()
    if refusal or finish in _REFUSAL_FINISHES:
        why = f"finish reason {finish_reason}" if finish in _REFUSAL_FINISHES else "refusal in the reply"
        return VerdictError(ErrorCode.REFUSED, f"The judge refused ({why}).")
    cut = " It was cut by its token cap." if finish in _CUT_FINISHES else ""
    cleaned = (text or "").replace("\0", "").strip("\ufeff \t\r\n")
    if not cleaned:
        return VerdictError(ErrorCode.EMPTY, f"The reply is empty.{cut}")
    try:
        objects = list(islice(_objects(cleaned), OBJECT_CAP + 1))
    except RecursionError:
        return VerdictError(ErrorCode.INVALID_JSON, "The JSON of the reply is nested too deep.")
    except ValueError as error:
        return VerdictError(ErrorCode.INVALID_JSON, f"The reply is not valid JSON: {error}.{cut}")
    if not objects:
        return _without_object(cleaned, cut)
    if len(objects) > OBJECT_CAP:
        return VerdictError(ErrorCode.INVALID_SCHEMA, f"The reply holds over {OBJECT_CAP} JSON objects.")
    return _one_verdict([_read_object(pairs) for pairs in objects])


def wants_repair(error: VerdictError, *, repairs_made: int, repair_attempts: int) -> bool:
    """A refusal on the wire is an answer; only an unusable reply is worth asking again."""
    return error.code in REPAIRABLE and repairs_made < repair_attempts


def final_code(error: VerdictError, *, repaired: bool) -> ErrorCode:
    """A judge that still writes prose after being asked again for JSON declines to judge.

    Broken JSON stays INVALID_JSON: whoever tried to write an object did not refuse.
    """
    if repaired and error.code is ErrorCode.INVALID_JSON and error.is_prose:
        return ErrorCode.REFUSED
    return error.code


def _objects(text: str) -> Iterator[_Pairs]:
    # The first malformed object ends the search. Going on inside it would be quadratic, and would
    # let a verdict that the judge merely quoted from an answer pass for its own.
    position = 0
    while start := _OBJECT_START.search(text, position):
        value, position = _DECODER.raw_decode(text, start.start())
        yield value


def _without_object(text: str, cut: str) -> VerdictError:
    if _is_other_json(text):
        return VerdictError(ErrorCode.INVALID_SCHEMA, "The reply is JSON, but not an object with a verdict.")
    return VerdictError(ErrorCode.INVALID_JSON, f"The reply holds no JSON object.{cut}", is_prose="{" not in text)


def _is_other_json(text: str) -> bool:
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _one_verdict(readings: list[ParsedVerdict | VerdictError]) -> ParsedVerdict | VerdictError:
    verdicts = [reading for reading in readings if isinstance(reading, ParsedVerdict)]
    if not verdicts:
        return readings[0]
    if len({verdict.winner for verdict in verdicts}) > 1:
        return VerdictError(ErrorCode.INVALID_SCHEMA, "The reply holds several verdicts that disagree.")
    return verdicts[0]


def _read_object(pairs: _Pairs) -> ParsedVerdict | VerdictError:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        if name not in _KEYS:
            continue
        if name in found and found[name] != value:
            return _schema_error(f"the key {name!r} occurs twice with different values")
        found[name] = value
    missing = [name for name in _KEYS if name not in found]
    if missing:
        return _schema_error(f"missing {', '.join(missing)}")
    not_text = [name for name in _KEYS if not isinstance(found[name], str)]
    if not_text:
        return _schema_error(f"not text: {', '.join(not_text)}")
    winner = _WINNERS.get(found["winner"].strip().casefold())
    if winner is None:
        return _schema_error("winner must be A, B or tie")
    return ParsedVerdict(winner, _stored(found["a"]), _stored(found["b"]), _stored(found["reason"]))


def _schema_error(problem: str) -> VerdictError:
    return VerdictError(ErrorCode.INVALID_SCHEMA, f"The JSON does not follow the schema: {problem}.")


def _stored(comment: str) -> str:
    # PostgreSQL stores no NUL, and UTF-8 no half of a surrogate pair; JSON escapes can hold both.
    cleaned = _SURROGATE.sub("\ufffd", comment.replace("\0", ""))
    if len(cleaned) <= COMMENT_CHARACTER_CAP:
        return cleaned
    return cleaned[: COMMENT_CHARACTER_CAP - 1] + "…"
