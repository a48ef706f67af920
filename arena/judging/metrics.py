"""What of an answer's looks may sway a judge: its length and its markup."""

from __future__ import annotations

import re

_INLINE_MARKS = re.compile(r"[*_~`]")
# Possessive repeats: a long unclosed bracket or indent is read once and given up.
_LINKS = re.compile(r"!?\[[^\[\]\n]*+\]\([^()\s]*+\)")
_LINE_MARKS = re.compile(r"^[ \t]*+(?P<mark>#{1,6}|[-+]|>++|\d{1,9}[.)])(?=\s)", re.MULTILINE)
_BLANKS = re.compile(r"\s+")


def characters(text: str) -> int:
    """Unicode code points, as the database and Python count them."""
    return len(text)


def markdown_density(text: str) -> float:
    """The share of an answer's visible characters that are Markdown markup, from 0 to 1.

    Markup is every `*`, `_`, `~` and backtick; the marks that open a line (heading, list item,
    numbered item, quotation); and the brackets of links and images with their `!`. Blanks
    count on neither side. The bars of tables are not counted: prose and code use them too.
    """
    visible = len(text) - sum(len(match.group()) for match in _BLANKS.finditer(text))
    if visible == 0:
        return 0.0
    marks = sum(1 for _ in _INLINE_MARKS.finditer(text))
    marks += sum(len(match.group("mark")) for match in _LINE_MARKS.finditer(text))
    marks += sum(5 if match.group().startswith("!") else 4 for match in _LINKS.finditer(text))
    return marks / visible
