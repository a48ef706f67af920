from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from arena.rendering.text import visible
from arena.rendering.word_diff import CHARACTERS_COMPARED, WORDS_COMPARED, Side, WordDiff, word_diff


def marked(side: Side) -> str:
    return "".join(f"[{piece.text}]" if piece.is_own else piece.text for piece in side.pieces)


def both(diff: WordDiff) -> tuple[str, str]:
    return marked(diff.first), marked(diff.second)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            "The bridge opens at nine.",
            "The bridge opens at ten.",
            ("The bridge opens at [nine].", "The bridge opens at [ten]."),
        ),
        (
            "The old bridge opens at nine.",
            "The bridge opens at nine.",
            ("The [old] bridge opens at nine.", "The bridge opens at nine."),
        ),
        ("one\n\ntwo  three", "one two three", ("one\n\ntwo  three", "one two three")),
        ("it costs 10.50 euros", "it costs 10.75 euros", ("it costs 10.[50] euros", "it costs 10.[75] euros")),
        ("駅は東京です。", "駅は京都です。", ("駅は[東京]です。", "駅は[京都]です。")),
        ("", "only here", ("", "[only here]")),
        ("", "", ("", "")),
    ],
)
def test_what_only_one_says_is_marked(first: str, second: str, expected: tuple[str, str]) -> None:
    assert both(word_diff(first, second)) == expected


def test_the_same_text_has_nothing_marked() -> None:
    diff = word_diff("The same, twice.", "The same,\n twice.")
    assert diff.is_same
    assert not diff.is_cut
    assert (diff.first.words, diff.second.own_words) == (5, 0)


def test_a_comma_between_other_words_is_no_agreement() -> None:
    diff = word_diff("Kyoto, an ancient city, sleeps", "Rome, which never ages, wakes")
    assert both(diff) == ("[Kyoto, an ancient city, sleeps]", "[Rome, which never ages, wakes]")


def test_what_no_reader_sees_is_not_shown() -> None:
    assert both(word_diff("a\u202eb\u200b c", "ab c")) == ("ab c", "ab c")


@pytest.mark.parametrize("text", ["x y " * 200_000, "word" * 500_000, "x" * 3_000_000, "駅" * 300_000, ", " * 300_000])
def test_huge_and_hostile_answers_are_bounded(text: str) -> None:
    diff = word_diff(text, "y x x " * 100_000)
    assert diff.first.is_cut
    assert diff.is_cut
    assert diff.first.words <= WORDS_COMPARED
    assert sum(len(piece.text) for piece in diff.first.pieces) <= CHARACTERS_COMPARED
    assert len(diff.first.pieces) <= 2 * WORDS_COMPARED + 1


@given(first=st.text(alphabet="ab ,\n駅.", max_size=60), second=st.text(alphabet="ab ,\n駅.", max_size=60))
def test_nothing_is_lost_and_what_is_unmarked_is_said_by_both(first: str, second: str) -> None:
    diff = word_diff(first, second)
    for side, text in ((diff.first, first), (diff.second, second)):
        assert "".join(piece.text for piece in side.pieces) == visible(text)
        assert all(piece.text for piece in side.pieces)
        assert all(piece.text == piece.text.strip() for piece in side.pieces if piece.is_own)
    common = [
        "".join("".join(piece.text.split()) for piece in side.pieces if not piece.is_own)
        for side in (diff.first, diff.second)
    ]
    assert common[0] == common[1]
