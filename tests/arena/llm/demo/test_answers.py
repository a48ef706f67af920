from __future__ import annotations

from statistics import mean

import pytest

from arena.llm.demo.answers import answer_to, bank_answer, language_of
from arena.llm.demo.bank import load_bank
from arena.llm.demo.catalogue import DEMO_CANDIDATES, DEMO_QUALITY
from tests.arena.llm.demo.conversations import PROMPT

KEYS = sorted(load_bank().checklists)


def test_every_answer_is_unlike_the_others() -> None:
    for key in KEYS:
        assert len({bank_answer(model_id, key).text for model_id in DEMO_CANDIDATES}) == len(DEMO_CANDIDATES)


def test_same_prompt_gives_same_answer_whatever_surrounds_it() -> None:
    assert answer_to("squire-1", PROMPT) == answer_to("squire-1", f"\n{PROMPT}  ")


def test_better_models_cover_more_and_err_less() -> None:
    covered = [mean(len(bank_answer(model_id, key).covered) for key in KEYS) for model_id in DEMO_CANDIDATES]
    errors = [mean(len(bank_answer(model_id, key).errors) for key in KEYS) for model_id in DEMO_CANDIDATES]
    assert covered == sorted(covered, reverse=True)
    assert errors[0] < 0.1
    assert errors[0] < errors[2] < errors[3] < errors[4]


def test_the_text_holds_what_the_answer_claims() -> None:
    for key in KEYS:
        checklist = load_bank().checklists[key]
        for model_id in DEMO_CANDIDATES:
            answer = bank_answer(model_id, key)
            for point in checklist.points:
                assert (point.key in answer.text) == (point.label in answer.covered)
            for error in answer.errors:
                assert error in answer.text


def test_length_does_not_follow_quality() -> None:
    length = {model_id: mean(len(bank_answer(model_id, key).text) for key in KEYS) for model_id in DEMO_CANDIDATES}
    by_length = sorted(DEMO_CANDIDATES, key=lambda model_id: -length[model_id])
    by_quality = sorted(DEMO_CANDIDATES, key=lambda model_id: -DEMO_QUALITY[model_id])
    assert by_length[0] == by_quality[-2]
    assert by_length[-1] == by_quality[1]


@pytest.mark.parametrize("model_id", DEMO_CANDIDATES)
def test_unknown_prompt_gets_an_answer_in_its_language(model_id: str) -> None:
    english = answer_to(model_id, "Write a Python function that reverses a linked list.")
    japanese = answer_to(model_id, "新入社員向けの研修計画を作成してください。")
    assert "reverses a linked list" in english.text
    assert (english.language, language_of(japanese.text)) == ("en", "ja")
    assert english.text != answer_to(model_id, "Write a Python function that reverses a string.").text


def test_code_is_answered_with_code() -> None:
    assert "```" in answer_to("lancer-large", "Write a Python function that reverses a linked list.").text
    assert "```" not in answer_to("lancer-large", "Plan a training for new colleagues.").text


def test_thoughts_stay_out_of_the_answer() -> None:
    assert bank_answer("herald-x", KEYS[0]).wire_text.startswith("<think>")
    assert "<think>" not in bank_answer("herald-x", KEYS[0]).text
    assert bank_answer("lancer-large", KEYS[0]).reasoning
