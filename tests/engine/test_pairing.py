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
from ratings.engine.draws import draw, generator, seat, step_seed, sub_seed
from ratings.engine.pairing import FIXED, STRATEGIES, Outlook, Planned, pairs, remaining

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


# Strategies that follow results --------------------------------------------------------------------------------
LEVEL = Outlook(dict.fromkeys(range(8), 1500.0), dict.fromkeys(range(8), 60.0))


def gain(view: Outlook, first: int, second: int) -> float:
    """By the formula: what one match is expected to take off the two variances."""
    total = 0.0
    for own, other in ((first, second), (second, first)):
        phi, opponent = (view.deviations[side] / 173.7178 for side in (own, other))
        g = 1 / np.sqrt(1 + 3 * opponent**2 / np.pi**2)
        expected = 1 / (1 + np.exp(-g * (view.ratings[own] - view.ratings[other]) / 173.7178))
        information = g**2 * expected * (1 - expected)
        total += phi**4 * information / (1 + phi**2 * information)
    return float(total)


@settings(max_examples=30, deadline=None)
@given(
    ratings=st.lists(st.floats(900, 2100), min_size=6, max_size=6),
    deviations=st.lists(st.floats(40, 350), min_size=6, max_size=6),
)
def test_glicko2_starts_with_the_pair_that_tells_most(ratings: list[float], deviations: list[float]) -> None:
    view = Outlook(dict(enumerate(ratings)), dict(enumerate(deviations)))
    first, second, _ = pairs("glicko2", range(6), BANK, 1, 3, outlook=view)[0]
    best = max(gain(view, one, other) for one, other in combinations(range(6), 2))
    assert gain(view, first, second) == pytest.approx(best, abs=1e-8)


def test_glicko2_prefers_the_uncertain_and_the_close() -> None:
    uncertain = Outlook(LEVEL.ratings, {**LEVEL.deviations, 5: 300.0})
    assert 5 in pairs("glicko2", range(8), BANK, 1, 1, outlook=uncertain)[0][:2]
    apart = Outlook({0: 2100.0, 1: 1500.0, 2: 1490.0, 3: 900.0}, dict.fromkeys(range(4), 80.0))
    assert pairs("glicko2", range(4), BANK, 1, 1, outlook=apart)[0][:2] == (1, 2)


def test_glicko2_counts_on_what_is_planned_already() -> None:
    uncertain = Outlook(LEVEL.ratings, {**LEVEL.deviations, 5: 120.0})
    waiting = Outlook(uncertain.ratings, uncertain.deviations, pending=[(5, 6)] * 60)
    assert 5 in pairs("glicko2", range(8), BANK, 1, 1, outlook=uncertain)[0][:2]
    assert 5 not in pairs("glicko2", range(8), BANK, 1, 1, outlook=waiting)[0][:2]


@pytest.mark.parametrize("strategy", ["glicko2", "elo"])
def test_nobody_plays_twice_in_a_step_while_others_wait(strategy: str) -> None:
    view = Outlook({one: 1500.0 + 7 * one for one in range(8)}, dict.fromkeys(range(8), 100.0))
    plan = pairs(strategy, range(8), BANK, 4, 2, outlook=view)
    assert len(games(plan)) == 8


@pytest.mark.parametrize("strategy", ["glicko2", "elo"])
def test_pairs_of_the_last_matches_are_avoided_while_there_are_others(strategy: str) -> None:
    best = pairs(strategy, range(10), BANK, 3, 2, outlook=LEVEL)
    recent = Outlook(LEVEL.ratings, LEVEL.deviations, recent=[match[:2] for match in best])
    assert not met(best).keys() & met(pairs(strategy, range(10), BANK, 3, 2, outlook=recent)).keys()
    # Where there is but one pair it meets again.
    assert len(pairs(strategy, range(2), BANK, 5, 2, outlook=Outlook(recent=[(0, 1)] * 5))) == 5


@pytest.mark.parametrize("strategy", ["glicko2", "elo"])
def test_a_step_larger_than_the_number_of_pairs_is_filled_evenly_among_equals(strategy: str) -> None:
    plan = pairs(strategy, range(4), BANK, 24, 6)
    assert set(met(plan).values()) <= {3, 4, 5}


@pytest.mark.parametrize("strategy", ["glicko2", "elo"])
def test_exhausted_pairs_drop_out(strategy: str) -> None:
    plan = pairs(strategy, range(3), ["a", "b"], 50, 6)
    assert len(plan) == 6
    assert pairs(strategy, range(3), ["a", "b"], 50, 6, already=plan) == []


def test_elo_pairs_the_closest_and_shares_with_the_baseline() -> None:
    view = Outlook({0: 1500.0, 1: 1700.0, 2: 1690.0, 3: 1300.0, 4: 1100.0})
    assert pairs("elo", range(5), BANK, 1, 1, outlook=view)[0][:2] == (1, 2)
    plan = pairs("elo", range(5), BANK, 50, 1, outlook=view, baseline=0)
    star = [match for match in plan if 0 in match[:2]]
    # The star of 0.6 is the default, and whoever has played least is next.
    assert len(star) == 30
    level = games(plan)
    assert max(level[one] for one in range(1, 5)) - min(level[one] for one in range(1, 5)) <= 2
    assert sum(0 in match[:2] for match in pairs("elo", range(5), BANK, 50, 1, outlook=view)) < 25


def test_the_baseline_meets_whoever_has_played_least() -> None:
    before = [(1, 2, 0), (1, 2, 1), (1, 3, 2), (2, 3, 3), (0, 2, 4)]
    plan = pairs("elo", range(5), BANK, 1, 1, already=before, baseline=0, baseline_weight=1.0)
    assert plan[0][:2] == (0, 4)


def test_a_baseline_that_sits_out_is_no_error() -> None:
    assert len(pairs("elo", [1, 2, 3], BANK, 5, 1, baseline=0)) == 5


def test_steps_have_seeds_of_their_own() -> None:
    assert len({step_seed(5, number) for number in range(50)}) == 50
    assert {match[:2] for match in pairs("glicko2", range(8), BANK, 4, step_seed(5, 1))} != {
        match[:2] for match in pairs("glicko2", range(8), BANK, 4, step_seed(5, 2))
    }
