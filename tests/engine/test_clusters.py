from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ratings.engine.arrays import FloatArray, IntArray
from ratings.engine.bradley_terry import BradleyTerryFit, fit
from ratings.engine.clusters import ClusterCounts, cell_scores, cluster_robust, robust, two_way_robust
from ratings.engine.comparisons import Comparisons, PairCounts
from ratings.engine.intervals import Intervals, difference_std_error, difference_std_errors, fisher
from ratings.engine.likelihood import TIE_MODELS, TieModel, penalised_objective
from tests.engine.helpers import clustered, from_cells

TRUTH = np.array([0.9, 0.3, -0.2, -1.0])
SETTINGS = [("half_win", 0.0), ("rao_kupper", 0.0), ("rao_kupper", 0.01)]


def by_hand(
    fitted: BradleyTerryFit, data: Comparisons, labels: IntArray, factor: float, contrast: FloatArray
) -> FloatArray:
    """The sandwich written out: a gradient for every cluster from the objective itself."""
    n = data.n_candidates
    parameters = fitted.parameters
    meat = np.zeros((parameters.size, parameters.size))
    for label in np.unique(labels):
        rows = labels == label
        counts = PairCounts.from_codes(n, data.first[rows], data.second[rows], data.outcome[rows])
        score = penalised_objective(counts, parameters, ties=fitted.ties)[1]
        meat += np.outer(score, score)
    bread = np.linalg.pinv(fitted.hessian, rcond=1e-10)
    covariance = factor * bread @ meat @ bread
    result: FloatArray = contrast @ covariance[:n, :n] @ contrast.T
    return result


@pytest.mark.parametrize(("ties", "ridge"), SETTINGS)
def test_one_way_errors_are_the_sandwich_written_out(ties: TieModel, ridge: float) -> None:
    data = clustered(TRUTH, 30, 12, seed=1)
    fitted = fit(data.pair_counts(), ties=ties, ridge=ridge)
    errors = cluster_robust(fitted, data)

    assert data.cluster is not None
    expected = by_hand(fitted, data, data.cluster, 30 / 29, np.eye(4) - 0.25)
    np.testing.assert_allclose(errors.covariance, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(errors.std_error, np.sqrt(np.diag(expected)), rtol=1e-6)
    assert errors.errors == "cluster"
    assert errors.n_clusters is not None
    assert errors.n_clusters.tolist() == [30] * 4
    # The 97.5 % point of t with 29 degrees of freedom, from any table.
    np.testing.assert_allclose(errors.quantile, 2.04523, atol=1e-5)
    np.testing.assert_allclose(errors.upper - fitted.theta, errors.quantile * errors.std_error)


def test_a_pinned_reference_is_the_contrast() -> None:
    data = clustered(TRUTH, 30, 12, seed=1)
    fitted = fit(data.pair_counts(), reference=2)
    errors = cluster_robust(fitted, data)

    contrast = np.eye(4)
    contrast[:, 2] -= 1
    assert data.cluster is not None
    expected = np.sqrt(np.diag(by_hand(fitted, data, data.cluster, 30 / 29, contrast)))
    np.testing.assert_allclose(errors.std_error, expected, rtol=1e-6)
    assert (errors.lower[2], errors.upper[2]) == (0, 0)
    free = cluster_robust(fit(data.pair_counts()), data)
    assert difference_std_error(free, 0, 2) == pytest.approx(errors.std_error[0], rel=1e-9)


@pytest.mark.parametrize(("ties", "ridge"), SETTINGS)
def test_two_way_errors_add_both_and_take_off_what_is_in_both(ties: TieModel, ridge: float) -> None:
    data = clustered(TRUTH, 25, 12, seed=3, raters=9)
    fitted = fit(data.pair_counts(), ties=ties, ridge=ridge)
    errors = two_way_robust(fitted, data)

    assert data.cluster is not None
    assert data.rater is not None
    both = data.cluster * 100 + data.rater
    contrast = np.eye(4) - 0.25
    n_both = np.unique(both).size
    parts = [
        by_hand(fitted, data, labels, size / (size - 1), contrast)
        for labels, size in ((data.cluster, 25), (data.rater, 9), (both, n_both))
    ]
    assert not errors.two_way_adjusted
    np.testing.assert_allclose(errors.covariance, parts[0] + parts[1] - parts[2], rtol=1e-5, atol=1e-12)
    assert errors.n_clusters is not None
    assert errors.n_clusters.tolist() == [9] * 4
    np.testing.assert_allclose(errors.quantile, 2.30600, atol=1e-5)


def test_a_two_way_result_that_is_no_covariance_keeps_what_is_in_both() -> None:
    # Per sample and per rater the results cancel; only the single comparisons vary.
    first, second = np.zeros(8, dtype=np.int64), np.ones(8, dtype=np.int64)
    outcome = np.array([0, 1, 1, 0, 0, 1, 1, 0])
    data = Comparisons(2, first, second, outcome, None, np.repeat([0, 1, 2, 3], 2), np.tile([0, 1], 4))
    fitted = fit(data.pair_counts())
    errors = two_way_robust(fitted, data)

    assert errors.two_way_adjusted
    # Both one-way sums vanish here, so what remains is Fisher's.
    np.testing.assert_allclose(errors.std_error, fisher(fitted).std_error)


def test_every_comparison_its_own_cluster_is_the_robust_error_but_for_the_correction() -> None:
    data = clustered(TRUTH, 10, 24, seed=2)
    m = data.first.size
    own = Comparisons(4, data.first, data.second, data.outcome, None, np.arange(m))
    fitted = fit(data.pair_counts(), ties="rao_kupper")

    single, plain = cluster_robust(fitted, own), robust(fitted, data.pair_counts())
    np.testing.assert_allclose(single.std_error, plain.std_error * math.sqrt(m / (m - 1)), rtol=1e-9)
    assert plain.errors == "robust"


@pytest.mark.parametrize("ties", TIE_MODELS)
def test_scores_are_the_gradient_of_single_comparisons(ties: TieModel) -> None:
    counts = from_cells(3, [(0, 1, 6, 3, 2), (1, 2, 5, 4, 2), (0, 2, 3, 4, 1)])
    fitted = fit(counts, ties=ties)
    scores = cell_scores(fitted, counts).toarray()

    for pair, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        for outcome in range(3):
            one = PairCounts.from_codes(3, [i], [j], [outcome])
            gradient = penalised_objective(one, fitted.parameters, ties=ties)[1]
            np.testing.assert_allclose(scores[3 * pair + outcome], gradient, atol=1e-12)
    cells = np.stack([counts.wins_first, counts.wins_second, counts.ties], axis=1).ravel()
    np.testing.assert_allclose(cells @ scores, 0, atol=1e-8)


def test_shared_samples_make_errors_larger_than_fishers() -> None:
    data = clustered(TRUTH, 60, 30, seed=5, spread=1.5)
    fitted = fit(data.pair_counts(), ties="rao_kupper")

    assert (cluster_robust(fitted, data).std_error > 1.3 * fisher(fitted).std_error).all()


def test_components_do_not_touch_each_other() -> None:
    inner = clustered(TRUTH, 20, 12, seed=1)
    outer = clustered(TRUTH[:2], 7, 10, seed=2)
    assert inner.cluster is not None
    assert outer.cluster is not None
    data = Comparisons(
        6,
        np.concatenate([inner.first, outer.first + 4]),
        np.concatenate([inner.second, outer.second + 4]),
        np.concatenate([inner.outcome, outer.outcome]),
        None,
        np.concatenate([inner.cluster, outer.cluster + 500]),
    )
    errors = cluster_robust(fit(data.pair_counts()), data)
    alone = cluster_robust(fit(inner.pair_counts()), inner)

    np.testing.assert_allclose(errors.std_error[:4], alone.std_error, rtol=1e-9)
    assert errors.n_clusters is not None
    assert errors.n_clusters.tolist() == [20, 20, 20, 20, 7, 7]
    assert math.isnan(difference_std_error(errors, 0, 4))
    assert errors.quantile[5] > errors.quantile[0]


def test_rows_with_counts_are_rows_repeated() -> None:
    data = clustered(TRUTH, 6, 40, seed=4)
    assert data.cluster is not None
    columns = np.stack([data.cluster, data.first, data.second, data.outcome])
    unique, count = np.unique(columns, axis=1, return_counts=True)
    cluster, first, second, outcome = unique
    none = np.array([0])
    short = Comparisons(
        4,
        np.append(first, 0),
        np.append(second, 1),
        np.append(outcome, 0),
        np.append(count, none),
        np.append(cluster, 99),
    )
    fitted = fit(data.pair_counts())

    same(cluster_robust(fitted, short), cluster_robust(fitted, data))
    assert ClusterCounts.of(short).n_clusters == 6


def same(one: Intervals, other: Intervals) -> None:
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
    np.testing.assert_allclose(one.quantile, other.quantile)


def test_one_sample_says_nothing_about_others() -> None:
    data = clustered(TRUTH / 4, 1, 200, seed=8)
    errors = cluster_robust(fit(data.pair_counts()), data)

    assert np.isposinf(errors.std_error).all()
    assert np.isneginf(errors.lower).all()
    assert np.isposinf(errors.upper).all()
    assert errors.open_above.all()
    assert errors.open_below.all()


def test_open_ends_and_candidates_without_games_stay_so() -> None:
    rows = [(0, 1, 0)] * 6 + [(1, 2, 0)] * 4 + [(1, 2, 1)] * 3
    first, second, outcome = (np.array(column) for column in zip(*rows, strict=True))
    data = Comparisons(4, first, second, outcome, None, np.arange(13) % 5)
    for ridge in (0.0, 0.01):
        errors = cluster_robust(fit(data.pair_counts(), ridge=ridge), data)
        assert errors.upper[0] == math.inf
        assert (errors.lower[3], errors.upper[3]) == (-math.inf, math.inf)
        assert np.isfinite(errors.std_error[1:3]).all()


def test_all_ties_are_open_whatever_the_clusters() -> None:
    data = Comparisons(2, [0] * 8, [1] * 8, [2] * 8, None, [0, 0, 1, 1, 2, 2, 3, 3])  # type: ignore[arg-type]
    for ridge in (0.0, 0.01):
        fitted = fit(data.pair_counts(), ties="rao_kupper", ridge=ridge)
        errors = cluster_robust(fitted, data)
        assert np.isneginf(errors.lower).all()
        assert np.isposinf(errors.upper).all()
        assert errors.eta_std_error is not None
        assert math.isnan(errors.eta_std_error)


def test_no_comparisons_have_no_clusters() -> None:
    none: Any = np.zeros(0, dtype=np.int64)
    data = Comparisons(3, none, none, none, None, none, none)
    fitted = fit(data.pair_counts())

    for errors in (cluster_robust(fitted, data), two_way_robust(fitted, data), robust(fitted, data.pair_counts())):
        assert np.isposinf(errors.std_error).all()
    nobody = Comparisons(0, none, none, none, None, none)
    assert cluster_robust(fit(nobody.pair_counts()), nobody).std_error.size == 0


def test_missing_labels_and_other_candidates_are_refused() -> None:
    data = Comparisons(2, [0, 1], [1, 0], [0, 0])  # type: ignore[arg-type]
    fitted = fit(data.pair_counts())

    with pytest.raises(ValueError, match="no cluster labels"):
        cluster_robust(fitted, data)
    with pytest.raises(ValueError, match="no rater labels"):
        ClusterCounts.of(data, "rater")
    with pytest.raises(ValueError, match="Unknown way"):
        ClusterCounts.of(data, "judge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="The fit has 2 candidates, the comparisons 3"):
        robust(fitted, from_cells(3, [(0, 1, 1, 1, 0)]))


def test_all_differences_at_once() -> None:
    data = clustered(TRUTH, 20, 12, seed=1)
    errors = cluster_robust(fit(data.pair_counts()), data)

    table = difference_std_errors(errors)
    for i in range(4):
        for j in range(4):
            assert table[i, j] == pytest.approx(difference_std_error(errors, i, j))
