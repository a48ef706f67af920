"""Which two answers a judge is shown, whatever the words around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from arena.llm.demo.answers import Answer, bank_answer, language_of, quality_on
from arena.llm.demo.bank import Checklist, Language, load_bank
from arena.llm.demo.catalogue import DEMO_CANDIDATES
from arena.llm.demo.draws import digest
from arena.llm.demo.phrases import GENERALITIES
from arena.llm.demo.reading import ChatCall

# An answer cut by its token cap is still known by its beginning.
_LEAST_BEGINNING = 24
_SIGNATURE_WINDOW = 300
# Where the last mark is looked for: near the end first, which is enough for short instructions.
_TAILS = (3_000, 30_000)
_MARKS_TRIED = 40
_WORD = re.compile(r"[0-9A-Za-z]+")
_LEAST_MARK, _LONGEST_MARK = 8, 64
_SEAT = re.compile(r"(?<![A-Za-z])([AB])(?![A-Za-z])")
_HEADING = re.compile(
    r"^\W*(?:(?:the )?(?:answer|response|assistant|回答|応答)\s*)([AB])\b.{0,40}$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING_SCAN_CHARACTERS = 1_000_000
_ASKED_JAPANESE = re.compile(r"\b(?:comments?|reasons?|verdict)\b[^.\n]{0,60}\bin Japanese\b", re.IGNORECASE)


@dataclass(frozen=True)
class Shown:
    """One answer as a judge sees it. Without a model it was written elsewhere: its text is all there is."""

    text: str
    quality: float
    model_id: str | None = None
    covered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> str:
        return digest(self.model_id or "", self.text)


def shown_pair(call: ChatCall) -> tuple[Shown, Shown] | None:
    """The answers in seats A and B, or None where the conversation holds no two answers."""
    texts = call.texts("user")
    checklist = load_bank().within(texts)
    for text in reversed(texts):
        blocks = _marked_blocks(text) or _headed_blocks(text)
        if blocks is not None:
            return _recognise(blocks[0], checklist), _recognise(blocks[1], checklist)
        found = _occurrences(text, checklist)
        if len(found) >= 2:
            return found[0], found[1]
    return None


def _recognise(text: str, checklist: Checklist | None) -> Shown:
    text = text.strip()
    if checklist is not None:
        for model_id in DEMO_CANDIDATES:
            answer = bank_answer(model_id, checklist.key)
            is_cut = len(text) >= _LEAST_BEGINNING and answer.text.startswith(text)
            if text == answer.text or is_cut:
                return _known(answer, text)
    model_id_by_sign = _signed_by(text)
    if model_id_by_sign is not None:
        return Shown(text, quality_on(model_id_by_sign, digest(text)), model_id_by_sign)
    return Shown(text, text_quality(text))


def _known(answer: Answer, text: str) -> Shown:
    lost_share = 1 - len(text) / max(1, len(answer.text))
    return Shown(
        text=text,
        quality=answer.quality - 2 * lost_share,
        model_id=answer.model_id,
        covered=answer.covered,
        missing=answer.missing,
        errors=answer.errors,
    )


def _signed_by(text: str) -> str | None:
    head = text[:_SIGNATURE_WINDOW]
    for language in GENERALITIES.values():
        for model_id, signature in language.signatures.items():
            if signature.removesuffix("{topic}").strip() in head:
                return model_id
    return None


def text_quality(text: str) -> float:
    """For answers from elsewhere: some substance and some structure, on the scale of DEMO_QUALITY."""
    if not text.strip():
        return -2.0
    head = text[:20_000]
    words = max(len(head.split()), len(head) // 3 if language_of(head) == "ja" else 0)
    substance = min(words, 250) / 100
    structure = 0.5 * bool(re.search(r"^\s*(?:[-*]|\d+[.)])\s", head, re.MULTILINE)) + 0.3 * (
        "**" in head or "#" in head
    )
    excess = max(0, len(text) - 4_000) / 4_000
    return max(-1.0, substance + structure - min(excess, 2.0))


def _marked_blocks(text: str) -> tuple[str, str] | None:
    """Blocks between lines that carry a mark: a token with digits that begins and ends both answers."""
    for mark in _marks(text):
        lines = _lines_with(text, mark)
        seats: dict[str, str] = {}
        for (start, end), (next_start, _) in pairwise(lines):
            seat = _SEAT.search(text[start:end].replace(mark, ""))
            # The line that ends a block names its seat too; what follows it is no answer.
            if seat and seat[1] not in seats:
                seats[seat[1]] = text[end:next_start]
        if len(seats) == 2:
            return seats["A"], seats["B"]
    return None


def _marks(text: str) -> Iterator[str]:
    tried: set[str] = set()
    for tail in _TAILS:
        for word in _words_with_digits(text[-tail:]):
            if word in tried:
                continue
            if len(tried) >= _MARKS_TRIED:
                return
            tried.add(word)
            if text.count(word) >= 4:
                yield word
        if len(text) <= tail:
            return


def _words_with_digits(text: str) -> Iterator[str]:
    """From the end, long ones only."""
    for chunk in reversed(text.split()):
        # Almost every word ends here; the expression below is slow.
        if len(chunk) < _LEAST_MARK or chunk.isalpha():
            continue
        for word in _WORD.findall(chunk):
            if _LEAST_MARK <= len(word) <= _LONGEST_MARK and not word.isalpha():
                yield word


def _lines_with(text: str, mark: str) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    position = text.find(mark)
    while position >= 0:
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        lines.append((start, end))
        position = text.find(mark, end)
    return lines


def _headed_blocks(text: str) -> tuple[str, str] | None:
    headings = list(_HEADING.finditer(text[:_HEADING_SCAN_CHARACTERS]))
    for first, second in pairwise(headings):
        if first[1].upper() == "A" and second[1].upper() == "B":
            after = next((later.start() for later in headings if later.start() > second.end()), len(text))
            return text[first.end() : second.start()], text[second.end() : after]
    return None


def _occurrences(text: str, checklist: Checklist | None) -> list[Shown]:
    if checklist is None:
        return []
    answers = [bank_answer(model_id, checklist.key) for model_id in DEMO_CANDIDATES]
    found = [(text.find(answer.text), _known(answer, answer.text)) for answer in answers]
    return [shown for position, shown in sorted(found, key=lambda pair: pair[0]) if position >= 0]


def verdict_language(call: ChatCall) -> Language:
    """The language a judge is asked to write in: that of its instructions, unless they name another."""
    for text in call.texts("system", "user"):
        # The plain test first: it is a hundred times as fast.
        if "in Japanese" in text and _ASKED_JAPANESE.search(text):
            return "ja"
    own = call.texts("system", "developer")
    # Without a message of the judge's own, its instructions are what follows the answers.
    return language_of(" ".join(own or [text[-800:] for text in call.texts("user")[-1:]]))
