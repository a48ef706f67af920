from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ratings.engine.batch import Batch, solve
from ratings.engine.bootstrap import Bootstrap, bootstrap
from ratings.engine.bradley_terry import fit
from ratings.engine.clusters import ClusterCounts, cluster_robust, robust
from ratings.engine.comparisons import OUTCOMES, Comparisons, PairCounts
from ratings.engine.connectivity import bounds, connectivity
from ratings.engine.intervals import fisher
from ratings.engine.likelihood import TIE_MODELS, TieModel
from ratings.engine.newton import same_block
from tests.engine.helpers import clustered, from_cells, quickstart, simulated

CYCLE = [(0, 1, 6, 3, 1), (1, 2, 5, 4, 2), (0, 2, 4, 3, 0)]
PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
Cells = list[tuple[int, int, str, int]]
cells = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(OUTCOMES), st.integers(1, 3)).filter(
        lambda row: row[0] != row[1]
    ),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize(("ties", "ridge"), [("half_win", 0.0), ("rao_kupper", 0.0), ("rao_kupper", 0.01)])
@pytest.mark.parametrize("shared", [True, False])
def test_fits_of_a_batch_are_single_fits(ties: TieModel, ridge: float, shared: bool) -> None:
    truth = np.linspace(-1, 1, 6)
    sets = [PairCounts.from_codes(6, *simulated(truth, 900, seed, eta=0.3)) for seed in range(20)]
    first, second = sets[0].first, sets[0].second
    won, lost, tied = (
        np.stack([getattr(one, name) for one in sets], axis=1).astype(np.float64)
        for name in ("wins_first", "wins_second", "ties")
    )
    if ties == "half_win":
        won, lost, tied = won + tied / 2, lost + tied / 2, np.zeros_like(tied)
    whole = fit(sets[0], ties=ties, ridge=ridge)
    inverse = np.linalg.pinv(whole.hessian, rcond=1e-10) if shared else None
    batch = Batch(6, first, second, won, lost, tied, ties, ridge)
    found, converged = solve(batch, whole.parameters, inverse, same_block(whole.components))

    assert converged.all()
    for column, counts in enumerate(sets):
        single = fit(counts, ties=ties, ridge=ridge)
        np.testing.assert_allclose(found[:, column] - found[:6, column].mean() * (np.arange(len(found)) < 6),
                                   single.parameters, atol=1e-6)  # fmt: skip


def test_a_resample_without_ties_rests_eta_on_its_floor_as_the_single_fit_does() -> None:
    counts = from_cells(3, [(0, 1, 30, 10, 0), (0, 2, 35, 5, 1), (1, 2, 24, 16, 0)])
    found = bootstrap(fit(counts, ties="rao_kupper", ridge=0.01), counts, n_resamples=200, seed=4)

    assert found.not_converged == 0
    bounded = np.setdiff1d(np.arange(200), found.unbounded)
    assert np.isfinite(found.theta[bounded]).all()


@pytest.mark.parametrize(("ties", "ridge"), [("half_win", 0.0), ("rao_kupper", 0.01)])
def test_bootstrap_and_analytic_errors_agree_on_large_data(ties: TieModel, ridge: float) -> None:
    counts = PairCounts.from_codes(8, *simulated(np.linspace(-0.8, 0.8, 8), 40_000, 7, eta=0.35))
    fitted = fit(counts, ties=ties, ridge=ridge)
    found = bootstrap(fitted, counts)

    analytic = robust(fitted, counts)
    assert found.unbounded.size == 0
    np.testing.assert_allclose(found.std_error, analytic.std_error, rtol=0.1)
    np.testing.assert_allclose(found.std_error.mean(), analytic.std_error.mean(), rtol=0.03)
    np.testing.assert_allclose(found.lower, analytic.lower, atol=0.3 * analytic.std_error.max())
    np.testing.assert_allclose(found.upper, analytic.upper, atol=0.3 * analytic.std_error.max())
    if ties == "rao_kupper":
        np.testing.assert_allclose(found.std_error.mean(), fisher(fitted).std_error.mean(), rtol=0.04)


def test_cluster_bootstrap_and_cluster_robust_errors_agree_on_large_data() -> None:
    data = clustered(np.array([0.6, 0.2, -0.2, -0.6]), 300, 40, seed=6, spread=1.2)
    fitted = fit(data.pair_counts(), ties="rao_kupper")
    found = bootstrap(fitted, data)
    analytic = cluster_robust(fitted, data)

    assert found.by == "cluster"
    np.testing.assert_allclose(found.std_error, analytic.std_error, rtol=0.1)
    np.testing.assert_allclose(found.std_error.mean(), analytic.std_error.mean(), rtol=0.04)
    assert (found.std_error > 1.2 * fisher(fitted).std_error).all()


def test_both_ways_are_drawn_where_raters_are_known() -> None:
    data = clustered(np.array([0.6, 0.0, -0.6]), 60, 40, seed=6, spread=0.8, raters=12)
    fitted = fit(data.pair_counts(), ties="rao_kupper")
    both, samples = bootstrap(fitted, data, n_resamples=400), bootstrap(fitted, data, n_resamples=400, by="cluster")

    assert both.by == "both"
    assert (both.std_error > samples.std_error).all()


def test_clusters_of_one_comparison_are_single_comparisons_drawn() -> None:
    data = clustered(np.array([0.6, 0.0, -0.6]), 500, 1, seed=6)
    fitted = fit(data.pair_counts())
    one = bootstrap(fitted, ClusterCounts.of(data))
    other = bootstrap(fitted, data, by="comparison")

    np.testing.assert_allclose(one.std_error, other.std_error, rtol=0.12)


def test_the_seed_decides() -> None:
    counts = from_cells(3, CYCLE)
    fitted = fit(counts)
    one, same, other = (bootstrap(fitted, counts, n_resamples=50, seed=seed) for seed in (1, 1, 2))

    np.testing.assert_array_equal(one.theta, same.theta)
    assert not np.array_equal(one.theta, other.theta, equal_nan=True)


def test_resamples_of_many_comparisons_have_the_moments_of_a_multinomial() -> None:
    from ratings.engine.bootstrap import _Multinomial

    counts = from_cells(3, [(0, 1, 2000, 1000, 500), (1, 2, 900, 80, 3), (0, 2, 1, 40, 0)])
    drawn = _Multinomial(counts, np.random.default_rng(5)).draw(4000)

    assert (drawn.sum(axis=0) == counts.total).all()
    expected = np.array([2000, 1000, 500, 1, 40, 0, 900, 80, 3], dtype=np.float64)
    share = expected / counts.total
    deviation = np.sqrt(counts.total * share * (1 - share))
    assert (np.abs(drawn.mean(axis=1) - expected) < 5 * deviation / math.sqrt(4000) + 1e-9).all()
    np.testing.assert_allclose(drawn.std(axis=1), deviation, rtol=0.06)
    covariance = np.cov(drawn[0], drawn[1])[0, 1]
    assert covariance == pytest.approx(-counts.total * share[0] * share[1], rel=0.2)


def test_almost_half_of_the_quickstarts_resamples_have_no_optimum() -> None:
    names, counts = quickstart()
    fitted = fit(counts)
    found = bootstrap(fitted, counts)

    assert 0.42 < found.unbounded.size / 1000 < 0.52
    champion, last = names.index("gemini-3.5-flash"), names.index("gemini-3.1-pro-preview")
    assert found.upper[champion] == math.inf
    assert found.lower[last] == -math.inf
    assert found.std_error[champion] == math.inf
    held = bootstrap(fit(counts, ridge=0.01), counts)
    # What is open does not depend on a prior, and no end that is not open follows it far.
    np.testing.assert_array_equal(held.open_above, found.open_above)
    np.testing.assert_array_equal(held.open_below, found.open_below)
    closed = ~found.open_above
    np.testing.assert_allclose(held.upper[closed], found.upper[closed], atol=0.15)


@PROPERTY
@given(rows=cells, ties=st.sampled_from(TIE_MODELS), ridge=st.sampled_from([0.0, 0.05]))
def test_open_ends_of_a_resample_are_those_of_the_same_counts_alone(rows: Cells, ties: TieModel, ridge: float) -> None:
    """Drawing the one and only cluster gives back the data."""
    counts = PairCounts.from_rows(4, rows)
    fitted = fit(counts, ties=ties, ridge=ridge)
    data = Comparisons.from_rows(4, rows)
    whole = Comparisons(4, data.first, data.second, data.outcome, data.count, np.zeros(len(rows), dtype=np.int64))
    found = bootstrap(fitted, whole, n_resamples=2)

    alone = bounds(counts, connectivity(counts), ties=ties)
    open_ends = alone.above | alone.below
    met = counts.games > 0
    assert found.not_converged == 0
    assert (found.unbounded.size == 2) == bool(open_ends[met].any() or alone.eta)
    if not alone.eta:
        expected = np.where(alone.above & alone.below, np.nan, np.where(alone.above, np.inf, -np.inf))
        for resample in found.theta:
            np.testing.assert_array_equal(resample[open_ends & met], expected[open_ends & met])
            bounded = ~open_ends & met & np.isfinite(fitted.theta)
            np.testing.assert_allclose(resample[bounded], fitted.theta[bounded], atol=1e-5)


@PROPERTY
@given(rows=cells, order=st.permutations(range(4)))
def test_what_is_open_follows_the_labels(rows: Cells, order: list[int]) -> None:
    renamed = [(order[i], order[j], outcome, count) for i, j, outcome, count in rows]
    one, other = (PairCounts.from_rows(4, some) for some in (rows, renamed))
    found, moved = (bootstrap(fit(counts, ridge=0.01), counts, n_resamples=400) for counts in (one, other))

    # Other draws, so shares agree but for chance; certain ends agree exactly.
    share = np.isposinf(found.theta).mean(axis=0)
    again = np.isposinf(moved.theta).mean(axis=0)[list(order)]
    np.testing.assert_allclose(share, again, atol=0.16)


def test_a_difference_is_infinite_or_unknown_where_the_resample_says_so() -> None:
    # One lost to nobody and met one opponent twice: it is above, or never drawn.
    counts = from_cells(4, [*CYCLE, (0, 3, 0, 2, 0)])
    found = bootstrap(fit(counts, ridge=0.01), counts, n_resamples=300, seed=1)
    low, high = found.difference(3, 0)

    assert found.unbounded.size == 300
    assert set(low.tolist()) <= {math.inf, -math.inf}
    assert (high == math.inf).all()
    missing = (low == -math.inf).mean()
    assert missing == pytest.approx((1 - 2 / 30) ** 30, abs=0.06)
    assert found.open_above[3]
    assert found.open_below[3]
    back = found.difference(0, 3)
    np.testing.assert_array_equal(back[0], -high)
    np.testing.assert_array_equal(back[1], -low)


def test_components_are_resampled_together_and_never_compared() -> None:
    counts = from_cells(5, [(0, 1, 60, 40, 0), (2, 3, 55, 45, 0)])
    found = bootstrap(fit(counts), counts, n_resamples=200)

    assert found.unbounded.size == 0
    np.testing.assert_allclose(found.theta[:, :2].sum(axis=1), 0, atol=1e-9)
    assert (found.open_above[4], found.open_below[4]) == (True, True)
    with pytest.raises(ValueError, match="never compared"):
        found.difference(0, 2)


def test_a_pinned_reference_is_pinned_in_every_resample() -> None:
    counts = PairCounts.from_codes(4, *simulated(np.linspace(-0.5, 0.5, 4), 3000, 1, eta=0.2))
    found = bootstrap(fit(counts, reference=1, ridge=0.01), counts, n_resamples=100)

    assert (found.theta[:, 1] == 0).all()
    assert found.std_error[1] == 0
    free = bootstrap(fit(counts, ridge=0.01), counts, n_resamples=100)
    np.testing.assert_allclose(found.theta[:, 0], free.theta[:, 0] - free.theta[:, 1], atol=1e-6)


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_degenerate_data_end_open(ties: TieModel, ridge: float) -> None:
    nothing, one_vote, all_ties = (from_cells(3, rows) for rows in ([], [(0, 1, 1, 0, 0)], [(0, 1, 0, 0, 9)]))

    def resampled(counts: PairCounts) -> Bootstrap:
        return bootstrap(fit(counts, ties=ties, ridge=ridge), counts, n_resamples=40)

    for counts in (nothing, one_vote):
        found = resampled(counts)
        assert (found.open_above | found.open_below).all()
        assert np.isposinf(found.upper[0])
    assert resampled(one_vote).lower[2] == -math.inf
    tied = resampled(all_ties)
    if ties == "half_win":
        np.testing.assert_allclose(tied.theta[:, :2], 0, atol=1e-9)
    else:
        assert tied.open_above.all()
        assert tied.open_below.all()
    assert bootstrap(fit(from_cells(1, [])), from_cells(1, []), n_resamples=5).open_above.all()


def test_bad_arguments_are_refused() -> None:
    counts = from_cells(3, CYCLE)
    fitted = fit(counts)

    with pytest.raises(ValueError, match="n_resamples must be positive"):
        bootstrap(fitted, counts, n_resamples=0)
    with pytest.raises(ValueError, match="no cluster labels"):
        bootstrap(fitted, counts, by="cluster")
    with pytest.raises(ValueError, match="no rater labels"):
        bootstrap(fitted, Comparisons(3, counts.first, counts.second, counts.ties * 0), by="rater")
    with pytest.raises(ValueError, match="3 candidates, the data 2"):
        bootstrap(fitted, from_cells(2, [(0, 1, 1, 1, 0)]))


def test_a_resample_without_any_comparison_leaves_every_end_open() -> None:
    """Each rater judged a sample of their own, so half of the draws of two samples and two raters hold nothing."""
    labels = np.array([0, 1])
    data = Comparisons(2, np.zeros(2, int), np.ones(2, int), np.array([0, 2]), None, labels, labels)
    fitted = fit(data.pair_counts(), ties="rao_kupper", ridge=0.01)
    found = bootstrap(fitted, data, n_resamples=200, by="both")
    assert found.open_above.all()
    assert found.open_below.all()
