from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arena.llm.errors import clean_message, retry_after_seconds

KEY = "sk-a/b+c=0123"
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("1e999", 86_400.0),
        ("nan", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0),
        ("Mon, 30 Nov 2026 13:00:30 +0100", 30.0),
        ("Mon, 30 Nov 2026 12:00:30 -0000", 30.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        f"key {KEY} is bad",
        "key sk-a%2Fb%2Bc%3D0123 is bad",
        f"key {KEY[:5]}\u200b{KEY[5:]} is bad",
    ],
)
def test_key_is_removed(text: str) -> None:
    assert clean_message(text, KEY) == "key [key removed] is bad"


def test_key_at_the_cut_is_removed_whole() -> None:
    cleaned = clean_message("x" * 495 + KEY, KEY)
    assert "sk-" not in cleaned
    assert len(cleaned) <= 500


def test_key_with_white_space_around_it() -> None:
    assert clean_message(f"{KEY}!", f" {KEY}\n") == "[key removed]!"


def test_control_characters_go() -> None:
    assert clean_message("a\x00b\r\n\x1b[31mc\u202ed\u2028e", None) == "a b [31mcd e"
