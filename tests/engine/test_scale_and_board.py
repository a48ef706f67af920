from __future__ import annotations

import math

import numpy as np
import pytest

from ratings.engine.board import rate, without_busiest_rater
from ratings.engine.clusters import cluster_robust
from ratings.engine.comparisons import Comparisons, PairCounts
from ratings.engine.intervals import fisher
from ratings.engine.scale import error_to_display, from_display, to_display, win_share
from tests.engine.helpers import clustered, from_cells

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


TRUTH = np.array([0.6, 0.1, -0.7])


def test_labels_decide_which_errors_a_board_has() -> None:
    data = clustered(TRUTH, 40, 12, seed=1, raters=8)
    plain = Comparisons(3, data.first, data.second, data.outcome)
    sampled = Comparisons(3, data.first, data.second, data.outcome, None, data.cluster)
    rated = Comparisons(3, data.first, data.second, data.outcome, None, None, data.rater)
    fisher, cluster, raters, both = (rate(one) for one in (plain, sampled, rated, data))

    assert [one.errors for one in (fisher, cluster, raters, both)] == ["fisher", "cluster", "cluster", "two_way"]
    np.testing.assert_array_equal(fisher.rating, both.rating)
    assert cluster.intervals.n_clusters is not None
    assert raters.intervals.n_clusters is not None
    assert (cluster.intervals.n_clusters[0], raters.intervals.n_clusters[0]) == (40, 8)
    assert rate(data, errors="fisher").std_error.tolist() == fisher.std_error.tolist()
    assert rate(data, errors="robust").errors == "robust"
    assert fisher.ranks is None


def test_a_board_with_resamples_has_ranks() -> None:
    data = clustered(TRUTH, 40, 12, seed=1)
    board = rate(data, ties="rao_kupper", ridge=0.01, resamples=200, seed=5)

    assert board.ranks is not None
    assert board.resampled is not None
    assert board.resampled.by == "cluster"
    assert board.ranks.order.tolist() == board.ranking().tolist() == [0, 1, 2]
    again = rate(data, ties="rao_kupper", ridge=0.01, resamples=200, seed=5)
    assert again.ranks is not None
    np.testing.assert_array_equal(again.ranks.ahead_share, board.ranks.ahead_share)


def test_a_board_without_its_busiest_rater() -> None:
    fair = clustered(TRUTH, 40, 12, seed=1, raters=8)
    assert fair.rater is not None
    assert fair.cluster is not None
    # One more votes the weakest up, a hundred and fifty times.
    column = np.zeros(150, dtype=np.int64)
    data = Comparisons(
        3,
        np.append(fair.first, column + 2),
        np.append(fair.second, column),
        np.append(fair.outcome, column),
        None,
        np.append(fair.cluster, np.arange(150) % 40),
        np.append(fair.rater, column + 77),
    )
    board = rate(data)
    found = without_busiest_rater(data, board)

    assert found is not None
    assert (found.rater, found.n_comparisons) == (77, 150)
    assert found.share == pytest.approx(150 / 630)
    np.testing.assert_allclose(found.board.rating, rate(fair).rating)
    np.testing.assert_allclose(found.shift_points, found.board.rating - board.rating)
    assert found.shift_points[0] > 50
    assert found.shift_points[2] < -50
    assert found.ranking_changed
    assert found.board.errors == "two_way"


def test_nobody_is_left_out_of_a_board_of_one_rater() -> None:
    data = Comparisons(2, [0, 1], [1, 0], [0, 0], None, None, [4, 4])  # type: ignore[arg-type]

    assert without_busiest_rater(data, rate(data)) is None
    with pytest.raises(ValueError, match="no rater labels"):
        without_busiest_rater(Comparisons(2, [0], [1], [0]), rate(data))  # type: ignore[arg-type]


def test_errors_of_those_held_by_the_prior_are_no_narrower_than_fishers() -> None:
    # The first two take turns; the third lost all of its matches, every one alike.
    rows = [(0, 1, sample % 3 == 0, sample) for sample in range(30)]
    rows += [(first, 2, 0, sample) for first in (0, 1) for sample in range(30)]
    first, second, outcome, sample = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    data = Comparisons(3, first, second, outcome, cluster=sample)

    board = rate(data, ridge=0.01)
    sandwich, plain = cluster_robust(board.fit, data), fisher(board.fit)

    assert board.errors == "cluster"
    assert sandwich.std_error[2] < plain.std_error[2] / 3
    np.testing.assert_allclose(board.std_error, error_to_display(plain.std_error))
    assert board.upper[2] == pytest.approx(to_display(plain.upper)[2])
    assert np.isneginf(board.lower[2])
    # What the data bound keeps the errors that were asked for.
    np.testing.assert_array_equal(board.intervals.covariance, sandwich.covariance)
    free = rate(data, ridge=0.0)
    np.testing.assert_allclose(
        free.std_error[:2], error_to_display(cluster_robust(free.fit, data).std_error[:2]), rtol=1e-12
    )


def test_errors_without_their_labels_are_refused() -> None:
    counts = from_cells(2, [(0, 1, 3, 2, 0)])

    with pytest.raises(ValueError, match="need comparisons with labels"):
        rate(counts, errors="cluster")
    with pytest.raises(ValueError, match="no cluster labels"):
        rate(Comparisons(2, [0], [1], [0]), errors="two_way")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown errors 'bayes'"):
        rate(counts, errors="bayes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="resamples must not be negative"):
        rate(counts, resamples=-1)
