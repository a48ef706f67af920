from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratings.engine.comparisons import Comparisons
from ratings.engine.elo import Elo, elo_pass, expected_score, k_factor

Rows = list[tuple[int, int, str, int]]
rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(["first", "second", "tie"]), st.just(1)).filter(
        lambda row: row[0] != row[1]
    ),
    max_size=80,
)


def rated(found: Rows, n: int = 5, start: Elo | None = None) -> Elo:
    return elo_pass(Comparisons.from_rows(n, found), start=start)


def by_the_book(found: Rows, n: int = 5) -> list[float]:
    ratings, games = [1500.0] * n, [0] * n
    for one, other, outcome, _ in found:
        score = {"first": 1.0, "second": 0.0, "tie": 0.5}[outcome]
        expected = 1 / (1 + 10 ** ((ratings[other] - ratings[one]) / 400))
        k = [32 if games[side] < 10 else 16 if games[side] < 30 else 10 for side in (one, other)]
        ratings[one] += k[0] * (score - expected)
        ratings[other] += k[1] * (expected - score)
        games[one] += 1
        games[other] += 1
    return ratings


@settings(max_examples=60, deadline=None)
@given(rows)
def test_the_pass_is_the_formula_match_by_match(found: Rows) -> None:
    result = rated(found)
    np.testing.assert_allclose(result.rating, by_the_book(found), rtol=0, atol=1e-9)
    assert result.games.sum() == 2 * len(found)


@settings(max_examples=30, deadline=None)
@given(rows, st.integers(0, 80))
def test_a_pass_goes_on_where_another_ended(found: Rows, cut: int) -> None:
    whole, both = rated(found), rated(found[cut:], start=rated(found[:cut]))
    np.testing.assert_array_equal(whole.rating, both.rating)
    np.testing.assert_array_equal(whole.games, both.games)


def test_first_matches_by_hand() -> None:
    result = rated([(0, 1, "first", 1)], n=3)
    assert result.rating.tolist() == [1516.0, 1484.0, 1500.0]
    assert rated([(0, 1, "tie", 1)], n=2).rating.tolist() == [1500.0, 1500.0]
    assert expected_score(1500, 1900) == pytest.approx(1 / 11)


def test_steps_get_shorter_with_games() -> None:
    assert [k_factor(games) for games in (0, 9, 10, 29, 30, 500)] == [32, 32, 16, 16, 10, 10]


def test_a_row_with_a_count_is_that_many_matches() -> None:
    np.testing.assert_array_equal(rated([(0, 1, "first", 12)]).rating, rated([(0, 1, "first", 1)] * 12).rating)


def test_order_matters_and_swapped_seats_do_not() -> None:
    found: Rows = [(0, 1, "first", 1), (1, 2, "first", 1), (2, 0, "first", 1)]
    assert rated(found).rating.tolist() != rated(found[::-1]).rating.tolist()
    swapped: Rows = [(other, one, {"first": "second"}[outcome], 1) for one, other, outcome, _ in found]
    np.testing.assert_allclose(rated(found).rating, rated(swapped).rating, rtol=0, atol=1e-9)


def test_nothing_played_and_a_start_of_another_size() -> None:
    assert rated([], n=2).rating.tolist() == [1500.0, 1500.0]
    with pytest.raises(ValueError, match="start holds 3 candidates"):
        rated([], n=2, start=Elo.start(3))


def test_the_strong_come_out_ahead() -> None:
    rng = np.random.default_rng(4)
    truth = np.array([1700.0, 1550.0, 1450.0, 1300.0])
    first = rng.integers(0, 4, 4000)
    second = (first + rng.integers(1, 4, 4000)) % 4
    wins = rng.random(4000) < 1 / (1 + 10 ** ((truth[second] - truth[first]) / 400))
    found = elo_pass(Comparisons(4, first, second, np.where(wins, 0, 1)))
    np.testing.assert_allclose(found.rating, truth, atol=120)
    assert found.rating.argsort().tolist() == [3, 2, 1, 0]
