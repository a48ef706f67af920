from __future__ import annotations

import pytest

from annotation.blinding import NEUTRAL, Lexicon, masked, normalised

LEXICON = Lexicon(["demo/squire-1", "squire-1", "Acme Answers", "Nova", "42"])


def cover(text: str, context: str = "") -> str:
    return masked(text, LEXICON.leaks(text, context=context))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "As an AI language model developed by OpenAI, I cannot.",
            "As an AI language model developed by […], I cannot.",
        ),
        ("I'm Claude, made by Anthropic.", "I'm […], made by […]."),
        ("GPT-4o-mini and gpt 4 agree.", "[…] and […] agree."),
        ("Ask Gemini 2.0 Flash.", "Ask […]."),
        ("私はChatGPTです。", "私は[…]です。"),
        ("私はGoogleが開発した言語モデルです。", "私は[…]が開発した言語モデルです。"),
        ("As an assistant made by Frobnicate Labs, I help.", "As an assistant made by […], I help."),
        ("Squire 1 wrote this for ACME answers.", "[…] wrote this for […]."),
    ],
)
def test_names_are_found_and_covered(text: str, expected: str) -> None:
    assert cover(text) == expected.replace("[…]", NEUTRAL)


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry to hear that. I am Peter Smith, head of sales.",
        "The Gemini constellation rises; Claude Monet painted it.",
        "Google and Microsoft reported earnings.",
        "The bridge was built by Romans in 42.",
        "A meta analysis of falcon nests, see the granite cliffs of Nova Scotia.",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert LEXICON.leaks(text) == []


def test_names_of_the_prompt_give_nothing_away() -> None:
    answer = "ChatGPT costs 20 dollars; DeepSeek is free."
    assert cover(answer, context="What does chatgpt cost?") == f"ChatGPT costs 20 dollars; {NEUTRAL} is free."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>The user wants 4.</think>\n4", "4"),
        ("Four. <thinking>sure?</thinking>Yes.", "Four. Yes."),
        ("Never closed <tool_call> stays readable", "Never closed  stays readable"),
        ("Done.<|im_end|>", "Done."),
        ("See【4:0†source】 here :contentReference[oaicite:0]{index=0}.", "See here ."),
        ("A\u200bB\u200cC \u2060D\ufeff", "ABC D"),
        ("a\u202fb\u00a0c", "a b c"),
        ("https://example.com/a?utm_source=chatgpt.com&id=3#x", "https://example.com/a?id=3#x"),
        ("https://example.com/a?id=3&q=a%20b", "https://example.com/a?id=3&q=a%20b"),
        ("家族 👨‍👩‍👧 です", "家族 👨‍👩‍👧 です"),
    ],
)
def test_traces_of_the_making_are_taken_out(text: str, expected: str) -> None:
    assert normalised(text) == expected
    assert normalised(expected) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a" * 100_000, 0),
        ("<thinking>" * 10_000, 0),
        ("I am " * 20_000, 0),
        ("私は" + "A " * 50_000, 0),
        ("x developed by " * 7_000, 0),
        ("【1†" * 20_000, 0),
        ("https://" * 12_000, 0),
        ("ChatGPT, " * 5_000, 5_000),
    ],
)
def test_long_texts_are_read_once_through(text: str, names: int) -> None:
    # Each of these once took minutes: patterns that look far ahead from every place.
    assert len(LEXICON.leaks(normalised(text))) == names
