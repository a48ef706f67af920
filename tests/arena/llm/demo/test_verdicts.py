"""The board that follows from the judges has to be the known one, and their flaws have to show."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from itertools import combinations

import pytest

from arena.llm.demo.answers import answer_to, bank_answer, quality_on
from arena.llm.demo.bank import load_bank
from arena.llm.demo.catalogue import DEMO_CANDIDATES, DEMO_JUDGES, DEMO_QUALITY, MODELS_BY_ID
from arena.llm.demo.engine import Engine
from arena.llm.demo.settings import DemoSettings
from arena.llm.demo.stats import Stats
from tests.arena.llm.demo.conversations import PROMPTS, judge_body

PDF_KEY = "ops-pdf-supply"
KEYS = sorted(load_bank().checklists)
PAIRS = list(combinations(DEMO_CANDIDATES, 2))
KNOWN_ORDER = sorted(DEMO_CANDIDATES, key=lambda model_id: -DEMO_QUALITY[model_id])
ENGINE = Engine(DemoSettings.quiet(), Stats())


@cache
def verdict(judge_id: str, a: str, b: str, key: str) -> str:
    """The winner as a model id, or tie."""
    body = judge_body(judge_id, PROMPTS[key], bank_answer(a, key).text, bank_answer(b, key).text)
    reply = ENGINE.reply("POST", "/v1/chat/completions", "Bearer demo", json.dumps(body).encode())
    content = json.loads(json.loads(reply.pieces[0])["choices"][0]["message"]["content"])
    assert list(content) == ["A", "B", "reason", "winner"]
    return {"A": a, "B": b, "tie": "tie"}[content["winner"]]


def may_judge(judge_id: str, a: str, b: str, key: str) -> bool:
    return judge_id not in (a, b) and (key != PDF_KEY or MODELS_BY_ID[judge_id].takes_pdf)


@cache
def decision(a: str, b: str, key: str) -> str | None:
    """Both orders, self-contradiction abstains, two votes and strict plurality."""
    votes: Counter[str] = Counter()
    for judge_id in DEMO_JUDGES:
        if may_judge(judge_id, a, b, key):
            first, second = verdict(judge_id, a, b, key), verdict(judge_id, b, a, key)
            votes.update([first] if first == second else [])
    most = votes.most_common(2)
    if votes.total() < 2 or (len(most) == 2 and most[0][1] == most[1][1]):
        return None
    return most[0][0]


def strengths(games: list[tuple[str, str, str]]) -> dict[str, float]:
    """Bradley-Terry with a tie as half a win, by minorisation-maximisation."""
    wins = dict.fromkeys(DEMO_CANDIDATES, 0.01)
    played: Counter[frozenset[str]] = Counter()
    for a, b, winner in games:
        played[frozenset((a, b))] += 1
        for model_id in (a, b):
            wins[model_id] += 0.5 if winner == "tie" else float(winner == model_id)
    strength = dict.fromkeys(DEMO_CANDIDATES, 1.0)
    for _ in range(150):
        strength = {
            model_id: wins[model_id]
            / sum(
                played[frozenset((model_id, other))] / (strength[model_id] + strength[other])
                for other in DEMO_CANDIDATES
                if other != model_id
            )
            for model_id in DEMO_CANDIDATES
        }
    return strength


def order_of(games: list[tuple[str, str, str]]) -> list[str]:
    strength = strengths(games)
    return sorted(strength, key=lambda model_id: -strength[model_id])


def audited_games(seed: int) -> list[tuple[str, str, str]]:
    draw = random.Random(seed)
    matches = [(a, b, key) for a, b in PAIRS for key in draw.sample(KEYS, 20)]
    decided = [(a, b, decision(a, b, key)) for a, b, key in matches]
    return [(a, b, winner) for a, b, winner in decided if winner is not None]


def majority(seats: tuple[str, str], key: str) -> str:
    """One order, and every judge's verdict counts."""
    judges = [judge_id for judge_id in DEMO_JUDGES if may_judge(judge_id, *seats, key)]
    return Counter(verdict(judge_id, *seats, key) for judge_id in judges).most_common(1)[0][0]


def majority_games(seed: int) -> list[tuple[str, str, str]]:
    draw = random.Random(seed)
    games = []
    for a, b in PAIRS:
        for key in draw.sample(KEYS, 20):
            seats = (a, b) if draw.random() < 0.5 else (b, a)
            games.append((a, b, majority(seats, key)))
    return games


def test_two_hundred_matches_find_the_known_order() -> None:
    assert order_of(audited_games(1)) == KNOWN_ORDER
    right = sum(order_of(audited_games(seed)) == KNOWN_ORDER for seed in range(1, 101))
    assert right > 95


def test_one_order_by_majority_is_worse_but_knows_best_and_worst() -> None:
    orders = [order_of(majority_games(seed)) for seed in range(1, 41)]
    assert sum(order[0] == KNOWN_ORDER[0] and order[-1] == KNOWN_ORDER[-1] for order in orders) >= 36
    audited = sum(order_of(audited_games(seed)) == KNOWN_ORDER for seed in range(1, 41))
    assert sum(order == KNOWN_ORDER for order in orders) <= audited
    # Nearly every order of two hundred matches is right, and one is no more right than another. The decisions under
    # it tell: all there are, so that no draw of matches has a say.
    matches = [(a, b, key, worse_of(a, b, key)) for a, b in PAIRS for key in KEYS]
    wrong = sum(decision(a, b, key) == worse for a, b, key, worse in matches)
    by_majority = [(seats, key, worse) for a, b, key, worse in matches for seats in ((a, b), (b, a))]
    assert wrong * 2 < sum(majority(seats, key) == worse for seats, key, worse in by_majority) / 2


def worse_of(a: str, b: str, key: str) -> str:
    """A weaker model has its better days: the truth is that of the two answers."""
    return b if quality_on(a, key) > quality_on(b, key) else a


def both_orders(judge_id: str) -> list[tuple[str, str, str, str, str]]:
    return [
        (a, b, key, verdict(judge_id, a, b, key), verdict(judge_id, b, a, key))
        for a, b in PAIRS
        for key in KEYS
        if may_judge(judge_id, a, b, key)
    ]


def flip_rate(judge_id: str) -> float:
    rows = both_orders(judge_id)
    return sum(forth != back for *_, forth, back in rows) / len(rows)


def first_seat_share(judge_id: str) -> float:
    rows = both_orders(judge_id)
    firsts = sum((forth == a) + (back == b) for a, b, _, forth, back in rows)
    return firsts / sum((forth != "tie") + (back != "tie") for *_, forth, back in rows)


@pytest.mark.parametrize("judge_id", ["magistrate-1", "lancer-large"])
def test_careful_judges_are_steady_and_mostly_right(judge_id: str) -> None:
    rows = both_orders(judge_id)
    right = sum(forth == back != worse_of(a, b, key) and forth != "tie" for a, b, key, forth, back in rows) / len(rows)
    assert 0.01 < flip_rate(judge_id) < 0.08
    assert 0.45 < first_seat_share(judge_id) < 0.55
    assert 0.8 < right < 0.98


def test_usher_prefers_the_first_seat() -> None:
    assert 0.4 <= flip_rate("usher-2") <= 0.5
    assert first_seat_share("usher-2") > 0.65


def test_scrivener_prefers_the_longer_answer() -> None:
    steady = [(a, b, key, forth) for a, b, key, forth, back in both_orders("scrivener-4") if forth == back != "tie"]
    longer = sum(
        winner == max(a, b, key=lambda model_id: len(bank_answer(model_id, key).text)) for a, b, key, winner in steady
    )
    assert longer / len(steady) > 0.85
    assert flip_rate("scrivener-4") < 0.08


def test_unknown_prompts_are_judged_by_the_same_qualities() -> None:
    rights = 0
    for number in range(20):
        prompt = f"Write a Python function for exercise {number}."
        texts = [answer_to(model_id, prompt).text for model_id in ("page-mini", "squire-1")]
        body = judge_body("magistrate-1", prompt, *texts)
        reply = ENGINE.reply("POST", "/v1/chat/completions", "Bearer demo", json.dumps(body).encode())
        content = json.loads(reply.pieces[0])["choices"][0]["message"]["content"]
        rights += json.loads(content)["winner"] == "B"
    assert rights >= 18
