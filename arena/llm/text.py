"""Text as models send it, made fit to store and show."""

from __future__ import annotations

import re

# The tags of most open models, and those of Mistral's.
_TAGS = (
    (re.compile(r"\s*<think>", re.IGNORECASE), re.compile(r"</think>", re.IGNORECASE)),
    (re.compile(r"\s*\[THINK\]"), re.compile(r"\[/THINK\]")),
)
_LONE_CLOSE = re.compile(r"^[ \t]*</think>[ \t]*$", re.IGNORECASE | re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """(answer, reasoning): takes blocks of thought out of the start of a text.

    Only there: further down the tag may be what the answer is about. A block that never closes was cut by the
    token cap before any answer began. Where a server's template has opened the block already, only its end is
    sent: a closing tag alone on its line, once, with no opening one.
    """
    reasoning: list[str] = []
    position = 0
    while found := next(((match, close) for tag, close in _TAGS if (match := tag.match(text, position))), None):
        match, close = found
        end = close.search(text, match.end())
        reasoning.append(text[match.end() : end.start() if end else len(text)].strip())
        position = end.end() if end else len(text)
    if not position:
        return _split_at_lone_close(text)
    return text[position:].lstrip(), "\n\n".join(block for block in reasoning if block)


def _split_at_lone_close(text: str) -> tuple[str, str]:
    lowered = text.lower() if "</" in text else ""
    if lowered.count("</think>") != 1 or "<think>" in lowered or not (match := _LONE_CLOSE.search(text)):
        return text, ""
    return text[match.end() :].lstrip(), text[: match.start()].strip()


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
