"""Two texts word by word: what each says that the other does not say in that place.

The alignment is rapidfuzz's, whose time is bounded by the product of the lengths whatever the texts are; that of
`difflib` takes minutes on texts made for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz.distance import Indel

from arena.rendering.text import visible

# Words of each text that are compared, and characters that are looked at to find them.
WORDS_COMPARED = 8_000
CHARACTERS_COMPARED = 200_000

# Scripts that put no spaces between words are compared sign by sign.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_SAYS_SOMETHING = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    # Only this text has it here.
    is_own: bool


@dataclass(frozen=True, slots=True)
class Side:
    pieces: tuple[Piece, ...]
    own_words: int
    words: int
    # It goes on behind what was compared.
    is_cut: bool


@dataclass(frozen=True, slots=True)
class WordDiff:
    first: Side
    second: Side

    @property
    def is_same(self) -> bool:
        return not self.first.own_words and not self.second.own_words

    @property
    def is_cut(self) -> bool:
        return self.first.is_cut or self.second.is_cut


def word_diff(first: str, second: str) -> WordDiff:
    texts = _Text(first), _Text(second)
    own: tuple[list[bool], list[bool]] = [True] * len(texts[0].words), [True] * len(texts[1].words)
    for opcode in Indel.opcodes(texts[0].words, texts[1].words):
        if opcode.tag == "equal":
            said = range(opcode.src_start, opcode.src_end), range(opcode.dest_start, opcode.dest_end)
            if _is_chance(texts[0], said[0]) and _stands_between_changes(texts, said):
                continue
            for marks, places in zip(own, said, strict=True):
                for place in places:
                    marks[place] = False
    return WordDiff(texts[0].side(own[0]), texts[1].side(own[1]))


class _Text:
    def __init__(self, text: str) -> None:
        # Cut first: what nobody looks at needs no cleaning.
        shown = visible(text[:CHARACTERS_COMPARED])
        self.spans = [found.span() for found in _bounded(shown)]
        self.is_cut = len(self.spans) > WORDS_COMPARED or len(text) > CHARACTERS_COMPARED
        if len(self.spans) > WORDS_COMPARED:
            shown = shown[: self.spans[WORDS_COMPARED][0]]
            del self.spans[WORDS_COMPARED:]
        self.text = shown
        self.words = [shown[start:end] for start, end in self.spans]

    def side(self, own: list[bool]) -> Side:
        return Side(tuple(self._pieces(own)), sum(own), len(self.words), self.is_cut)

    def _pieces(self, own: list[bool]) -> Iterator[Piece]:
        """Runs of words that are marked alike; the space behind a marked run is not marked."""
        done, place = 0, 0
        while place < len(own):
            after = place
            while after < len(own) and own[after] == own[place]:
                after += 1
            start, end = self.spans[place][0], self.spans[after - 1][1]
            if own[place]:
                if start > done:
                    yield Piece(self.text[done:start], is_own=False)
                yield Piece(self.text[start:end], is_own=True)
                done = end
            else:
                until = self.spans[after][0] if after < len(own) else len(self.text)
                yield Piece(self.text[done:until], is_own=False)
                done = until
            place = after
        if done < len(self.text):
            yield Piece(self.text[done:], is_own=False)


def _bounded(text: str) -> Iterator[re.Match[str]]:
    """One more than is compared, which tells that there are more."""
    for n, found in enumerate(_WORD.finditer(text)):
        if n > WORDS_COMPARED:
            return
        yield found


def _is_chance(text: _Text, places: range) -> bool:
    """A comma or one short word in the middle of two other sentences is no agreement."""
    said = [word for word in (text.words[place] for place in places) if _SAYS_SOMETHING.match(word)]
    return len(said) < 2 and sum(map(len, said)) < 4


def _stands_between_changes(texts: tuple[_Text, _Text], said: tuple[range, range]) -> bool:
    """Not at the begin or end of both, where it anchors the rest."""
    begins = all(places.start == 0 for places in said)
    ends = all(places.stop == len(text.words) for text, places in zip(texts, said, strict=True))
    return not begins and not ends
