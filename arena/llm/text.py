"""Text as models send it, made fit to store and show."""

from __future__ import annotations

import re

_THINK_OPEN = re.compile(r"\s*<think>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</think>", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """(answer, reasoning): takes `<think>` blocks out of the start of a text.

    Only there: further down the tag may be what the answer is about. A block that never closes was cut by the
    token cap before any answer began.
    """
    reasoning: list[str] = []
    position = 0
    while match := _THINK_OPEN.match(text, position):
        end = _THINK_CLOSE.search(text, match.end())
        reasoning.append(text[match.end() : end.start() if end else len(text)].strip())
        position = end.end() if end else len(text)
    if not position:
        return text, ""
    return text[position:].lstrip(), "\n\n".join(block for block in reasoning if block)


def storable(text: str) -> str:
    """No lone surrogates (a pair may have been cut between two chunks), no NUL (PostgreSQL refuses it)."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    # Joins pairs that arrived apart; what stays alone is replaced.
    return text if _encodable(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
