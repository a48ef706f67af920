from __future__ import annotations

import math

import numpy as np
import pytest

from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import PairCounts
from ratings.engine.intervals import difference_std_error, fisher
from ratings.engine.likelihood import TIE_MODELS, TieModel
from ratings.engine.scale import POINTS_PER_LOG_ODDS
from tests.engine.helpers import from_cells, simulated

SPLIT = from_cells(4, [(0, 1, 600, 400, 0), (2, 3, 550, 450, 0)])


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_components_do_not_widen_each_other(ridge: float) -> None:
    """Projected over all candidates at once this would be 869 points."""
    errors = fisher(fit(SPLIT, ridge=ridge)).std_error * POINTS_PER_LOG_ODDS

    # The difference has variance 1 / (n p q), each side half its error.
    expected = [POINTS_PER_LOG_ODDS / 2 / math.sqrt(1000 * p * (1 - p)) for p in (0.6, 0.6, 0.55, 0.55)]
    np.testing.assert_allclose(errors, expected, rtol=1e-3)
    assert errors.max() < 5.7


def test_a_component_has_the_errors_it_has_alone() -> None:
    inside = [(0, 1, 30, 20, 10), (0, 2, 35, 15, 10), (1, 2, 28, 22, 10)]
    alone = fisher(fit(from_cells(3, inside)))
    beside = fisher(fit(from_cells(6, [*inside, (3, 4, 5, 5, 2)])))

    np.testing.assert_allclose(beside.std_error[:3], alone.std_error, rtol=1e-9)


def test_errors_match_the_spread_of_simulated_fits() -> None:
    truth = np.array([0.8, 0.1, -0.2, -0.7])
    counts = [PairCounts.from_codes(4, *simulated(truth, 1500, seed, eta=0.3)) for seed in range(300)]
    fits = [fit(one, ties="rao_kupper") for one in counts]

    spread = np.std([one.theta for one in fits], axis=0)
    np.testing.assert_allclose(fisher(fits[0]).std_error, spread, rtol=0.15)
    eta_error = fisher(fits[0]).eta_std_error
    assert eta_error == pytest.approx(float(np.std([one.parameters[-1] for one in fits])), rel=0.15)


@pytest.mark.parametrize("ties", TIE_MODELS)
def test_the_error_of_a_difference_needs_no_anchor(ties: TieModel) -> None:
    counts = from_cells(3, [(0, 1, 30, 20, 10), (0, 2, 35, 15, 10), (1, 2, 28, 22, 10)])
    free = fisher(fit(counts, ties=ties))
    pinned = fisher(fit(counts, ties=ties, reference=2))

    assert pinned.std_error[2] == 0
    assert pinned.lower[2] == pinned.upper[2] == 0
    assert difference_std_error(free, 0, 1) == pytest.approx(difference_std_error(pinned, 0, 1), rel=1e-9)
    assert pinned.std_error[0] == pytest.approx(difference_std_error(free, 0, 2), rel=1e-9)
    assert difference_std_error(free, 1, 1) == 0


def test_differences_between_components_have_no_error() -> None:
    assert math.isnan(difference_std_error(fisher(fit(SPLIT, ridge=0.01)), 0, 2))


def test_limits_are_a_normal_interval() -> None:
    fitted = fit(SPLIT)
    errors = fisher(fitted)

    np.testing.assert_allclose(errors.upper - fitted.theta, 1.959963984540054 * errors.std_error)
    np.testing.assert_allclose(fitted.theta - errors.lower, 1.959963984540054 * errors.std_error)


def test_a_candidate_without_games_has_the_priors_interval() -> None:
    counts = from_cells(3, [(0, 1, 6, 4, 1)])

    held = fisher(fit(counts, ridge=0.01))
    free = fisher(fit(counts))

    assert held.std_error[2] == pytest.approx(10)
    assert free.std_error[2] == math.inf
    for errors in (held, free):
        assert (errors.lower[2], errors.upper[2]) == (-math.inf, math.inf)
        assert np.isfinite(errors.std_error[:2]).all()


def test_open_ends_are_infinite_and_the_core_keeps_its_interval() -> None:
    counts = from_cells(4, [(0, 1, 9, 0, 0), (0, 2, 9, 0, 0), (1, 2, 6, 3, 1), (2, 3, 5, 0, 0)])

    held, free = fisher(fit(counts, ridge=0.01)), fisher(fit(counts))

    assert np.isfinite(held.lower[0])
    assert held.upper[0] == math.inf
    assert held.lower[3] == -math.inf
    assert np.isfinite(held.std_error).all()
    assert free.std_error[0] == math.inf
    assert free.upper[0] == math.inf
    assert math.isnan(free.lower[0])
    alone = fisher(fit(from_cells(2, [(0, 1, 6, 3, 1)])))
    np.testing.assert_allclose(free.std_error[1:3], alone.std_error, rtol=1e-9)
    assert math.isnan(difference_std_error(free, 0, 1))


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_all_ties_are_open_on_both_sides(ridge: float) -> None:
    errors = fisher(fit(from_cells(2, [(0, 1, 0, 0, 10)]), ties="rao_kupper", ridge=ridge))

    assert np.isneginf(errors.lower).all()
    assert np.isposinf(errors.upper).all()
    expected = math.sqrt(1 / 0.01 / 2) if ridge else math.inf
    np.testing.assert_allclose(errors.std_error, expected)
    assert errors.eta_std_error is not None
    assert math.isnan(errors.eta_std_error)


def test_no_candidates_have_no_errors() -> None:
    assert fisher(fit(PairCounts.from_rows(0, []))).std_error.size == 0
