from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from arena.ingest.problems import Report, clip

MAX_DEPTH = 100
# NUL cannot be stored by PostgreSQL, and half a surrogate pair cannot be written as UTF-8 at all.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _Refused(ValueError):
    pass


def _constant(name: str) -> None:
    raise _Refused(f"{name} is not JSON; use null or a number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"the number {clip(text, 30)} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > 400:
        raise _Refused(f"the number {clip(text, 30)} is too long")
    return int(text)


def parse_json(text: str, *, error: Report, warn: Report) -> Any:
    """The value of one JSON text, or None after an error was reported."""
    twice: dict[str, None] = {}

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    twice[key] = None
                seen.add(key)
        return found

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_constant=_constant, parse_float=_float, parse_int=_integer
        )
    except json.JSONDecodeError as bad:
        error(None, f"is not valid JSON: {bad.msg} (character {bad.pos + 1})")
        return None
    except _Refused as bad:
        error(None, str(bad))
        return None
    except RecursionError:
        error(None, f"is nested more than {MAX_DEPTH} levels deep")
        return None
    for key in twice:
        warn(clip(key), "appears twice in one object; the last value is used")
    return value


def check_values(value: object, *, error: Report, warn: Report) -> bool:
    """Whether a parsed value can be stored and hashed: depth and characters."""
    good = True
    for path, depth, text in _walk(value):
        if depth > MAX_DEPTH:
            error(None, f"is nested more than {MAX_DEPTH} levels deep")
            return False
        good = check_text(text, path, error=error, warn=warn) and good
    return good


def check_text(text: str, path: str, *, error: Report, warn: Report) -> bool:
    bad = _UNSTORABLE.search(text)
    if bad:
        code = ord(bad.group())
        what = "a NUL character" if code == 0 else f"half of a surrogate pair (\\u{code:04x})"
        error(path or None, f"holds {what} at character {bad.start() + 1}, which cannot be stored")
        return False
    odd = _CONTROL.search(text)
    if odd:
        warn(path or None, f"holds the control character U+{ord(odd.group()):04X}")
    return True


def _walk(value: object) -> Iterator[tuple[str, int, str]]:
    # Iterative: a hostile value may be nested deeper than the interpreter's stack.
    stack: list[tuple[str, int, object]] = [("", 1, value)]
    while stack:
        path, depth, item = stack.pop()
        if isinstance(item, str):
            yield path, depth, item
        elif depth > MAX_DEPTH and isinstance(item, (dict, list)):
            yield path, depth, ""
        elif isinstance(item, dict):
            for key, child in reversed(item.items()):
                name = clip(key)
                stack.append((f"{path}.{name}" if path else name, depth + 1, child))
                stack.append((path, depth + 1, key))
        elif isinstance(item, list):
            stack.extend((f"{path}[{i}]", depth + 1, item[i]) for i in range(len(item) - 1, -1, -1))
