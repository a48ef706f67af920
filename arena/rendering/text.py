from __future__ import annotations

import html
import re

DISPLAY_CHARACTERS = 1_000_000

# Removed rather than shown: they are invisible, so they can mark whose answer it is, hide text from a reader
# that a judge still sees, or turn a line around. Joiners and variation selectors are handled apart, because
# emoji, Japanese names and several scripts need them.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_JOINER = re.compile("[\u200c\u200d]+")
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")


def visible(text: str) -> str:
    """Drop what a reader cannot see; line ends become one kind."""
    text = _INVISIBLE.sub("", _LINE_END.sub("\n", text))
    return _SELECTOR.sub(_needed_selector, _JOINER.sub(_needed_joiner, text))


def _needed_joiner(found: re.Match[str]) -> str:
    before, after = (
        found.string[found.start() - 1 : found.start()],
        found.string[found.end() : found.end() + 1],
    )
    return found[0][0] if before > "\u02ff" and after > "\u02ff" else ""


def _needed_selector(found: re.Match[str]) -> str:
    before = found.string[found.start() - 1 : found.start()]
    return found[0][0] if before > "\u00ff" or before in {"#", "*", *"0123456789", "\u00a9", "\u00ae"} else ""


def render_plain(text: str) -> str:
    """Escaped text as it was written, cut for display."""
    shown = visible(text[:DISPLAY_CHARACTERS])
    block = f'<pre class="plain">{html.escape(shown, quote=False)}</pre>'
    if len(text) <= DISPLAY_CHARACTERS:
        return block
    note = f"The first {DISPLAY_CHARACTERS:,} of {len(text):,} characters are shown."
    return f'{block}\n<p class="render-note">{note}</p>'
