from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratings.engine.comparisons import PairCounts
from ratings.engine.connectivity import connectivity
from ratings.engine.draws import draw, generator, seat, sub_seed
from ratings.engine.pairing import FIXED, STRATEGIES, Planned, pairs, remaining

BANK = ["general"] * 12 + ["code"] * 8 + ["math"] * 6 + ["writing"] * 4


def met(plan: list[Planned]) -> Counter[tuple[int, int]]:
    return Counter(match[:2] for match in plan)


def games(plan: list[Planned]) -> Counter[int]:
    return Counter(candidate for match in plan for candidate in match[:2])


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=30, deadline=None)
@given(
    n_candidates=st.integers(0, 7),
    categories=st.lists(st.sampled_from("abc"), max_size=6),
    limit=st.integers(0, 150),
    seed=st.integers(0, 2**32),
    weight=st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_every_plan_is_valid_and_as_long_as_it_can_be(
    strategy: str, n_candidates: int, categories: list[str], limit: int, seed: int, weight: float | None
) -> None:
    weight = weight if n_candidates else None
    plan = pairs(strategy, range(n_candidates), categories, limit, seed, baseline=0, baseline_weight=weight)

    possible = n_candidates * (n_candidates - 1) // 2 * len(categories)
    assert len(plan) == len(set(plan)) == min(limit, possible)
    assert all(0 <= first < second < n_candidates for first, second, _ in plan)
    assert remaining(range(n_candidates), len(categories), plan) == possible - len(plan)


@pytest.mark.parametrize("strategy", FIXED)
@settings(max_examples=30, deadline=None)
@given(cut=st.integers(0, 80), seed=st.integers(0, 99), weight=st.sampled_from([None, 0.6]))
def test_a_raised_limit_continues_the_schedule(strategy: str, cut: int, seed: int, weight: float | None) -> None:
    options: dict[str, Any] = {"baseline": 2, "baseline_weight": weight}
    whole = pairs(strategy, range(5), BANK, 80, seed, **options)
    start = pairs(strategy, range(5), BANK, cut, seed, **options)

    assert start == whole[:cut]
    assert start + pairs(strategy, range(5), BANK, 80 - cut, seed, already=set(start), **options) == whole


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_seed_decides_and_nothing_else(strategy: str) -> None:
    plan = pairs(strategy, range(5), BANK, 60, 7)

    assert pairs(strategy, {4, 2, 0, 1, 3}, BANK, 60, 7) == plan
    assert pairs(strategy, range(5), BANK, 60, 8) != plan


def test_draws_are_the_same_on_every_platform() -> None:
    assert draw(7, "pair", 3) == 15771961877667397425  # The first 8 bytes of SHA-256 of "7|pair|3".
    assert pairs("round_robin", range(4), ["a", "b"], 3, 7) == [(0, 3, 1), (1, 2, 0), (0, 2, 0)]
    assert pairs("random", range(4), ["a", "b"], 3, 7) == [(2, 3, 1), (2, 3, 0), (0, 3, 1)]


@settings(max_examples=40, deadline=None)
@given(n_candidates=st.integers(2, 9), limit=st.integers(0, 120), seed=st.integers(0, 2**16))
def test_round_robin_pairs_meet_equally_often(n_candidates: int, limit: int, seed: int) -> None:
    plan = pairs("round_robin", range(n_candidates), BANK, limit, seed)

    counts = [met(plan)[pair] for pair in combinations(range(n_candidates), 2)]
    assert max(counts) - min(counts) <= 1
    played = [games(plan)[candidate] for candidate in range(n_candidates)]
    assert max(played) - min(played) <= 2


def test_round_robin_connects_everyone_early() -> None:
    for n_candidates in (4, 7, 20):
        plan = pairs("round_robin", range(n_candidates), BANK, n_candidates + 1, 11)
        counts = PairCounts.from_rows(n_candidates, [(*match[:2], "tie", 1) for match in plan])
        assert connectivity(counts).n_components == 1


def test_sixty_matches_of_ten_pairs_use_the_samples() -> None:
    for seed in range(20):
        plan = pairs("round_robin", range(5), BANK, 60, seed)
        assert len({match.sample for match in plan}) >= 24


def test_samples_of_a_pair_are_balanced_over_categories() -> None:
    plan = pairs("round_robin", range(5), BANK, 60, 3)

    for pair in met(plan):
        of_pair = Counter(BANK[match.sample] for match in plan if match[:2] == pair)
        counts = [of_pair[category] for category in set(BANK)]
        assert max(counts) - min(counts) <= 1


def test_without_categories_every_sample_is_used_before_any_is_used_twice_more() -> None:
    plan = pairs("random", range(6), [None] * 40, 100, 5)

    used = Counter(match.sample for match in plan)
    assert len(used) == 40
    assert max(used.values()) <= 4


def test_an_added_candidate_catches_up_first() -> None:
    before = pairs("round_robin", range(4), BANK, 30, 1)
    after = pairs("round_robin", range(5), BANK, 20, sub_seed(1, 1), already=before)

    assert all(4 in match[:2] for match in after)
    assert max(met(after).values()) - min(met(after).values()) <= 1 or len(met(after)) == 4
    assert not set(before) & set(after)


def test_a_withdrawn_candidate_plays_no_more_but_its_samples_count_as_used() -> None:
    before = pairs("round_robin", range(3), ["a"] * 9, 6, 1)
    after = pairs("round_robin", [0, 2], ["a"] * 9, 3, 1, already=before)

    assert {match[:2] for match in after} == {(0, 2)}
    assert not {match.sample for match in after} & {match.sample for match in before}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.6, 1.0])
def test_the_baseline_gets_its_share(strategy: str, weight: float) -> None:
    plan = pairs(strategy, range(6), BANK, 100, 4, baseline=3, baseline_weight=weight)

    for length in (10, 37, 100):
        share = sum(3 in match[:2] for match in plan[:length])
        assert abs(share - weight * length) <= 1


def test_random_covers_all_pairs_about_evenly() -> None:
    plan = pairs("random", range(5), [None] * 400, 2000, 9)

    counts = met(plan)
    assert len(counts) == 10
    assert 150 < min(counts.values()) <= max(counts.values()) < 250


def test_seats_are_a_fair_coin() -> None:
    sides = [seat(5, sequence) for sequence in range(2000)]

    assert 900 < sum(sides) < 1100
    assert sides == [seat(5, sequence) for sequence in range(2000)]
    assert sides != [seat(6, sequence) for sequence in range(2000)]


def test_generators_repeat_and_differ_by_purpose() -> None:
    one = generator(5, "step", 1).random(4)

    np.testing.assert_array_equal(one, generator(5, "step", 1).random(4))
    assert (one != generator(5, "step", 2).random(4)).all()
    assert sub_seed(5, 0) == 5
    assert len({sub_seed(5, extension) for extension in range(10)}) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "swiss"}, "Unknown strategy 'swiss'"),
        ({"max_matches": -1}, "max_matches"),
        ({"candidates": [-1, 0]}, "Candidates are indexes"),
        ({"already": [(1, 0, 0)]}, "first < second"),
        ({"already": [(0, 1, 30)]}, "known sample"),
        ({"baseline": 0, "baseline_weight": 1.2}, "from 0 to 1"),
        ({"baseline": 9, "baseline_weight": 0.2}, "needs a baseline"),
        ({"baseline_weight": 0.2}, "needs a baseline"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    plain: dict[str, Any] = {
        "strategy": "random",
        "candidates": range(3),
        "categories": BANK,
        "max_matches": 5,
        "seed": 1,
    }
    with pytest.raises(ValueError, match=message):
        pairs(**(plain | arguments))
