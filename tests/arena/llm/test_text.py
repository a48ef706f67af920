from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.llm.text import split_thinking, storable


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("plain", "plain", ""),
        ("  kept as it is\n", "  kept as it is\n", ""),
        ("<think>Hm.</think>\n\n42", "42", "Hm."),
        ("\n<think>\nHm.\n</think>42 \n", "42 \n", "Hm."),
        ("<think>\n\n</think>\n\n42", "42", ""),
        ("<think>a</think>\n<think>b</think>42", "42", "a\n\nb"),
        ("<THINK>a</Think>42", "42", "a"),
        ("<think>cut by the cap", "", "cut by the cap"),
        ("The tag <think>x</think> is", "The tag <think>x</think> is", ""),
        ("<thinking>x</thinking>", "<thinking>x</thinking>", ""),
        ("<think>a</think>b<think>c</think>", "b<think>c</think>", "a"),
        ("[THINK]Hm.[/THINK]42", "42", "Hm."),
        ("[think]x[/think]42", "[think]x[/think]42", ""),
        # The server's template had opened the block.
        ("Hm.\nSo.\n</think>\n\n42", "42", "Hm.\nSo."),
        ("</think>\n42", "42", ""),
        ("Close it with </think> there", "Close it with </think> there", ""),
        ("a\n</think>\nb\n</think>\nc", "a\n</think>\nb\n</think>\nc", ""),
        ("Write\n<think>\nx\n</think>\nhere", "Write\n<think>\nx\n</think>\nhere", ""),
        ("", "", ""),
    ],
)
def test_split_thinking(text: str, answer: str, reasoning: str) -> None:
    assert split_thinking(text) == (answer, reasoning)


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=[])))
def test_storable_text_can_be_encoded_and_holds_no_nul(text: str) -> None:
    assert "\x00" not in storable(text).encode().decode()


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_storable_leaves_good_text_alone(text: str) -> None:
    assert storable(text) == text.replace("\x00", "\ufffd")
