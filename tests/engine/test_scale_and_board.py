from __future__ import annotations

import math

import numpy as np
import pytest

from ratings.engine.board import rate
from ratings.engine.comparisons import PairCounts
from ratings.engine.scale import error_to_display, from_display, to_display, win_share
from tests.engine.helpers import from_cells

ONE = np.zeros(2, dtype=np.int64)


def test_four_hundred_points_are_ten_to_one() -> None:
    assert to_display(0.0) == 1000
    assert to_display(math.log(10)) == pytest.approx(1400)
    assert error_to_display(math.log(10)) == pytest.approx(400)
    np.testing.assert_allclose(from_display(to_display([-2.0, 0.3])), [-2.0, 0.3])
    assert to_display([math.inf, -math.inf]).tolist() == [math.inf, -math.inf]


def test_win_share_against_one_opponent() -> None:
    theta = np.array([math.log(3), 0.0])

    np.testing.assert_allclose(win_share(theta, None, ONE), [0.75, 0.25])
    win, loss = 1 / (1 + math.exp(0.5) / 3), 1 / (1 + math.exp(0.5) * 3)
    np.testing.assert_allclose(win_share(theta, 0.5, ONE)[0], win + (1 - win - loss) / 2)
    np.testing.assert_allclose(win_share(theta, math.inf, ONE), [0.5, 0.5])


def test_win_share_counts_only_the_own_component() -> None:
    share = win_share(np.array([1.0, -1.0, 9.0, 0.0]), None, np.array([0, 0, 1, 2]))

    assert share[0] == pytest.approx(1 / (1 + math.exp(-2)))
    assert np.isnan(share[2:]).all()


def test_win_shares_with_unbounded_strengths() -> None:
    share = win_share(np.array([math.inf, 0.0, 0.0]), None, np.zeros(3, dtype=np.int64))

    np.testing.assert_allclose(share, [1, 0.25, 0.25])


def test_a_board_prints_counts_and_no_rating_for_the_unmet() -> None:
    board = rate(from_cells(4, [(0, 1, 6, 3, 1), (1, 2, 5, 4, 2), (2, 0, 3, 4, 0)]))

    assert board.isolated.tolist() == [False, False, False, True]
    assert np.isnan([board.rating[3], board.std_error[3], board.lower[3], board.win_share[3]]).all()
    assert board.games.tolist() == [17, 21, 18, 0]
    assert board.wins.tolist() == [10, 8, 7, 0]
    assert board.losses.tolist() == [6, 10, 9, 0]
    assert board.ties.tolist() == [1, 3, 2, 0]
    assert board.ridge == 0
    assert not board.ridge_by_default
    assert board.rating[:3].mean() == pytest.approx(1000)
    assert board.ranking().tolist() == [0, 1, 2]


def test_a_board_says_when_a_prior_had_to_hold_it() -> None:
    board = rate(from_cells(2, [(0, 1, 3, 0, 0)]))

    assert board.ridge == 0.01
    assert board.ridge_by_default
    assert board.open_above.tolist() == [True, False]
    assert board.upper[0] == math.inf
    assert np.isfinite(board.rating).all()


def test_components_are_ranked_apart() -> None:
    board = rate(from_cells(4, [(0, 2, 1, 2, 0), (1, 3, 9, 1, 0)]))

    assert board.ranking().tolist() == [2, 0, 1, 3]


def test_an_empty_board() -> None:
    board = rate(PairCounts.from_rows(0, []), ties="rao_kupper")

    assert board.rating.size == 0
    assert board.ranking().tolist() == []
