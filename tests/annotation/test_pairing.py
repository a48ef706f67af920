from __future__ import annotations

import random
from collections import Counter

import pytest

from annotation.pairing import (
    Candidates,
    Progress,
    SideCounts,
    Strength,
    at_random,
    balanced,
    first_goes_left,
    informative,
    keyed_draw,
    kind_of_next,
    least_voted,
)

SECRET = "a secret"


def layouts(seed: int, *, models: int = 4, matches: int = 240, raters: int = 9, per_match: int = 3) -> list[tuple]:
    """(match, rater, model on the left, model on the right) as a campaign lays them out, raters taking turns."""
    chance = random.Random(seed)
    pairs = [(a, b) for a in range(models) for b in range(a + 1, models)]
    balance: Counter[tuple[int, int]] = Counter()
    laid = []
    for match in range(matches):
        first, second = pairs[match % len(pairs)]
        counts: Counter[int] = Counter()
        for rater in chance.sample(range(raters), per_match):
            first_left = first_goes_left(
                SideCounts(counts[0], counts[1], balance[rater, first], balance[rater, second]),
                secret=f"{SECRET} {seed}",
                match=match,
                rater=rater,
            )
            left, right = (first, second) if first_left else (second, first)
            counts[0 if first_left else 1] += 1
            balance[rater, left] += 1
            balance[rater, right] -= 1
            laid.append((match, rater, left, right))
    return laid


@pytest.mark.parametrize("per_match", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_sides_are_level_for_match_rater_and_model(seed: int, per_match: int) -> None:
    laid = layouts(seed, per_match=per_match)
    by_match: Counter[tuple[int, bool]] = Counter()
    appearances: Counter[tuple[str, int]] = Counter()
    lefts: Counter[tuple[str, int]] = Counter()
    for match, rater, left, right in laid:
        by_match[match, left < right] += 1
        # Of a rater: how often the lower-numbered model of a pair stood left.
        appearances["rater", rater] += 1
        lefts["rater", rater] += left < right
        for model in (left, right):
            appearances["model", model] += 1
            lefts["model", model] += model == left
    assert all(abs(by_match[match, True] - by_match[match, False]) <= 1 for match, *_ in laid)
    for key, n in appearances.items():
        if n >= 20:
            assert 0.4 <= lefts[key] / n <= 0.6, (key, n)


def test_sides_of_new_matches_follow_the_secret_and_nothing_a_rater_knows() -> None:
    def first(secret: str) -> list[bool]:
        return [first_goes_left(SideCounts(), secret=secret, match=match, rater=1) for match in range(400)]

    assert first("one") == first("one")
    assert 140 < sum(a == b for a, b in zip(first("one"), first("other"), strict=True)) < 260
    assert 140 < sum(first("one")) < 260


def test_draws_are_even() -> None:
    draws = [keyed_draw(SECRET, "even", number) for number in range(4000)]
    assert min(draws) >= 0
    assert max(draws) < 1
    assert all(330 < sum(low <= d < low + 0.1 for d in draws) < 470 for low in (0, 0.2, 0.5, 0.9))


@pytest.mark.parametrize("offset", [0.0, 0.31, 0.99])
@pytest.mark.parametrize(("repeat_share", "gold_share"), [(0.05, 0.0), (0.1, 0.05), (0.08, 0.1), (0.0, 0.0)])
def test_shares_of_repeats_and_gold_are_held(repeat_share: float, gold_share: float, offset: float) -> None:
    given: list[str] = []
    for _ in range(400):
        counts = Counter(given)
        progress = Progress(counts["normal"], counts["gold"], counts["repeat"])
        given.append(kind_of_next(progress, gold_share=gold_share, repeat_share=repeat_share, offset=offset)[0])
    assert "repeat" not in given[:20]
    assert abs(given.count("repeat") - 400 * repeat_share) <= 1
    assert abs(given.count("gold") - 400 * gold_share) <= 1


def test_what_is_not_to_be_had_leaves_its_turn_to_normal_pairs() -> None:
    assert kind_of_next(Progress(40, 0, 0), gold_share=0.1, repeat_share=0.1, offset=0)[-1] == "normal"


A, B, C = Candidates(1, 2), Candidates(1, 3), Candidates(2, 3)


def test_balanced_takes_the_pair_with_the_least_load() -> None:
    assert balanced({A: 5, B: 2, C: 9}, secret=SECRET, rater=1, turn=1) == [B, A, C]
    firsts = {balanced({A: 1, B: 1, C: 1}, secret=SECRET, rater=rater, turn=1)[0] for rater in range(30)}
    assert firsts == {A, B, C}


def test_random_pairs_come_by_the_matches_they_have_left() -> None:
    weights = {A: 6, B: 3, C: 1}
    firsts = Counter(at_random(weights, secret=SECRET, rater=rater, turn=1)[0] for rater in range(3000))
    for pair, weight in weights.items():
        assert abs(firsts[pair] / 3000 - weight / 10) < 0.03
    assert len(at_random({**weights, A: 0}, secret=SECRET, rater=1, turn=1)) == 2


def test_informative_takes_the_pair_that_narrows_most() -> None:
    sure, unsure = Strength(0.0, 0.2), Strength(0.0, 2.0)
    order = informative([A, B, C], {1: sure, 2: sure, 3: unsure}, secret=SECRET, rater=1, turn=1)
    assert order[-1] == A
    # Between equally unsure models the close pair tells more than the lopsided one.
    far = {1: Strength(0.0, 1.0), 2: Strength(0.1, 1.0), 3: Strength(4.0, 1.0)}
    assert informative([C, B, A], far, secret=SECRET, rater=1, turn=1)[0] == A


def test_least_voted_first_and_equal_ones_in_an_order_of_the_raters_own() -> None:
    assert least_voted([(1, 2), (2, 0), (3, 1)], secret=SECRET, rater=1) == [2, 3, 1]
    level = [(key, 0) for key in range(20)]
    assert least_voted(level, secret=SECRET, rater=1) != least_voted(level, secret=SECRET, rater=2)
