from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratings.engine.comparisons import Comparisons
from ratings.engine.glicko2 import SCALE, Glicko2, glicko2_periods, period

Rows = list[tuple[int, int, str, int]]
rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(["first", "second", "tie"]), st.just(1)).filter(
        lambda row: row[0] != row[1]
    ),
    max_size=60,
)


def played(found: Rows, n: int = 5, state: Glicko2 | None = None) -> Glicko2:
    return period(state or Glicko2.start(n), Comparisons.from_rows(n, found))


def test_the_example_of_glickman() -> None:
    state = Glicko2(np.array([1500.0, 1400, 1550, 1700]), np.array([200.0, 30, 100, 300]), np.full(4, 0.06))
    after = played([(0, 1, "first", 1), (0, 2, "second", 1), (0, 3, "second", 1)], 4, state)
    assert round(float(after.rating[0]), 2) == 1464.05
    assert round(float(after.deviation[0]), 2) == 151.52
    assert round(float(after.volatility[0]), 6) == 0.059996


def glickmans_f(x: float, phi: float, v: float, delta: float, sigma: float, tau: float = 0.5) -> float:
    e = math.exp(x)
    total = phi**2 + v + e
    return e * (delta**2 - total) / (2 * total**2) - (x - math.log(sigma**2)) / tau**2


@settings(max_examples=60, deadline=None)
@given(st.floats(30, 350), st.floats(0.02, 0.3), st.integers(1, 40), st.sampled_from(["first", "second"]))
def test_the_volatility_is_the_root(deviation: float, sigma: float, games: int, outcome: str) -> None:
    state = Glicko2(np.array([1500.0, 1750.0]), np.array([deviation, 60.0]), np.array([sigma, 0.06]))
    after = played([(0, 1, outcome, games)], 2, state)
    phi, other = deviation / SCALE, 60 / SCALE
    g = 1 / math.sqrt(1 + 3 * other**2 / math.pi**2)
    expected = 1 / (1 + math.exp(-g * (1500 - 1750) / SCALE))
    v = 1 / (games * g**2 * expected * (1 - expected))
    delta = v * games * g * ((outcome == "first") - expected)
    # Far from what was expected there may be three roots; the method finds one, where f falls through zero.
    x = 2 * math.log(after.volatility[0])
    below, above = (glickmans_f(x + step, phi, v, delta, sigma) for step in (-1e-5, 1e-5))
    assert below > 0 > above


@settings(max_examples=40, deadline=None)
@given(rows, st.permutations(range(5)))
def test_neither_order_nor_names_matter(found: Rows, names: list[int]) -> None:
    plain, backwards = played(found), played(found[::-1])
    np.testing.assert_allclose(plain.rating, backwards.rating, rtol=0, atol=1e-9)
    renamed = played([(names[one], names[other], outcome, n) for one, other, outcome, n in found])
    np.testing.assert_allclose(renamed.rating[names], plain.rating, rtol=0, atol=1e-9)
    np.testing.assert_allclose(renamed.deviation[names], plain.deviation, rtol=0, atol=1e-9)


def test_without_a_game_only_the_deviation_grows_and_not_beyond_its_start() -> None:
    state = Glicko2(np.array([1620.0, 1400.0]), np.array([50.0, 349.9]), np.array([0.06, 0.06]))
    for after in (played([], 2, state), played([(0, 1, "first", 0)], 2, state)):
        assert after.rating.tolist() == [1620.0, 1400.0]
        assert after.deviation[0] == pytest.approx(math.hypot(50, 0.06 * SCALE))
        assert after.deviation[1] == pytest.approx(350)
        assert after.volatility.tolist() == [0.06, 0.06]


def test_a_bystander_is_treated_like_one_without_games() -> None:
    after = played([(0, 1, "first", 3)], 3)
    assert (after.rating[2], after.deviation[2]) == (1500.0, pytest.approx(350))
    assert after.rating[0] > 1500 > after.rating[1]


def test_counts_are_matches() -> None:
    np.testing.assert_allclose(played([(0, 1, "tie", 3)]).deviation, played([(0, 1, "tie", 1)] * 3).deviation)


def test_periods_are_folded_one_after_the_other_and_gaps_count() -> None:
    found = Comparisons.from_rows(3, [(0, 1, "first", 1), (1, 2, "first", 1), (0, 2, "tie", 1)])
    states = glicko2_periods(found, [2, 0, 2], 4)
    assert len(states) == 4
    by_hand = Glicko2.start(3)
    for batch in ([(1, 2, "first", 1)], [], [(0, 1, "first", 1), (0, 2, "tie", 1)], []):
        by_hand = played(batch, 3, by_hand)
    np.testing.assert_allclose(states[-1].rating, by_hand.rating, rtol=0, atol=1e-9)
    np.testing.assert_allclose(states[-1].deviation, by_hand.deviation, rtol=0, atol=1e-9)
    assert glicko2_periods(Comparisons.from_rows(3, []), []) == []


def test_extreme_ratings_stay_finite() -> None:
    state = Glicko2(np.array([9e5, -9e5]), np.array([350.0, 350.0]), np.full(2, 0.06))
    for outcome in ("first", "second"):
        after = played([(0, 1, outcome, 1)], 2, state)
        for values in (after.rating, after.deviation, after.volatility):
            assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: period(Glicko2.start(2), Comparisons.from_rows(3, [])), "state holds 2 candidates"),
        (lambda: period(Glicko2.start(3), Comparisons.from_rows(3, []), tau=0), "tau must be positive"),
        (lambda: glicko2_periods(Comparisons.from_rows(3, [(0, 1, "tie", 1)]), [0, 1]), "periods of shape"),
        (lambda: glicko2_periods(Comparisons.from_rows(3, [(0, 1, "tie", 1)]), [-1]), "Periods run from 0"),
        (lambda: glicko2_periods(Comparisons.from_rows(3, [(0, 1, "tie", 1)]), [3], 3), "Periods run from 0 to 2"),
        (lambda: glicko2_periods(Comparisons.from_rows(3, [(0, 1, "tie", 1)]), [0.5]), "must hold integers"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
