from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ratings.engine.arrays import FloatArray
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import Comparisons
from ratings.engine.covariates import JointLikelihood, finite_optimum, joint_fit, minimise
from ratings.engine.intervals import fisher
from ratings.engine.likelihood import TIE_MODELS, TieModel
from tests.engine.helpers import simulated

ROWS = Comparisons(
    3,
    np.array([0, 1, 2, 0, 1, 2, 0]),
    np.array([1, 2, 0, 2, 0, 1, 1]),
    np.array([0, 1, 2, 1, 0, 2, 2]),
    np.array([3, 1, 2, 1, 4, 1, 2]),
)
X = np.array([[0.4, -1.0, 0.3, 0.9, -0.2, 0.1, 0.7], [1.0, 1.0, -1.0, 1.0, -1.0, 0.0, -1.0]])


def literal(rows: Comparisons, x: FloatArray, ties: TieModel, at: FloatArray) -> float:
    """The log-likelihood as the probabilities are defined, without rearrangement."""

    def s(value: float) -> float:
        return 1 / (1 + np.exp(-value))

    n, k = rows.n_candidates, x.shape[0]
    total = 0.0
    counts = np.ones(rows.first.size) if rows.count is None else rows.count
    for i, j, outcome, count, features in zip(rows.first, rows.second, rows.outcome, counts, x.T, strict=True):
        d = at[i] - at[j] + at[n : n + k] @ features
        if ties == "half_win":
            terms = [np.log(s(d)), np.log(s(-d)), (np.log(s(d)) + np.log(s(-d))) / 2]
        else:
            eta = at[-1]
            terms = [np.log(s(d - eta)), np.log(s(-d - eta)), np.log(s(d + eta) - s(d - eta))]
        total += count * terms[outcome]
    return total


def point(ties: TieModel) -> FloatArray:
    return np.array([0.7, -0.2, -0.5, 0.3, -0.6] + [0.4] * (ties == "rao_kupper"))


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_objective_is_the_model_and_its_derivatives_are_exact(ties: TieModel, ridge: float) -> None:
    likelihood, at = JointLikelihood.of(ROWS, X, ties), point(ties)
    value, gradient, hessian = likelihood.evaluate(at, ridge)
    shifts = np.eye(at.size) * 1e-6
    pairs = [(likelihood.evaluate(at + shift, ridge), likelihood.evaluate(at - shift, ridge)) for shift in shifts]

    assert value == pytest.approx(ridge / 2 * float(at[:5] @ at[:5]) - literal(ROWS, X, ties, at), rel=1e-12)
    np.testing.assert_allclose(gradient, [(up[0] - down[0]) / 2e-6 for up, down in pairs], atol=1e-7)
    np.testing.assert_allclose(hessian, [(up[1] - down[1]) / 2e-6 for up, down in pairs], atol=1e-7)


@pytest.mark.parametrize("ties", TIE_MODELS)
def test_counts_are_rows_repeated(ties: TieModel) -> None:
    assert ROWS.count is not None
    columns = (np.repeat(column, ROWS.count) for column in (ROWS.first, ROWS.second, ROWS.outcome))
    single = Comparisons(3, *columns)
    counted = joint_fit(ROWS, X, ties=ties, ridge=0.05)
    repeated = joint_fit(single, np.repeat(X, ROWS.count, axis=1), ties=ties, ridge=0.05)

    np.testing.assert_allclose(counted.coefficients, repeated.coefficients, atol=1e-9)
    np.testing.assert_allclose(counted.adjusted.theta, repeated.adjusted.theta, atol=1e-9)


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_without_covariates_it_is_the_plain_fit(ties: TieModel, ridge: float) -> None:
    rows = Comparisons(6, *simulated(np.linspace(-1, 1, 6), 2000, 3, eta=0.3))
    joint, plain = (
        joint_fit(rows, np.zeros((0, 2000)), ties=ties, ridge=ridge),
        fit(rows.pair_counts(), ties=ties, ridge=ridge),
    )

    assert joint.finite
    np.testing.assert_allclose(joint.adjusted.theta, plain.theta, atol=1e-9)
    np.testing.assert_allclose(fisher(joint.adjusted).std_error, fisher(plain).std_error, rtol=1e-9)


@pytest.mark.parametrize("ties", TIE_MODELS)
def test_errors_are_those_of_the_full_inverse_hessian(ties: TieModel) -> None:
    rows = Comparisons(4, *simulated(np.linspace(-1, 1, 4), 900, 5, eta=0.3))
    x = np.random.default_rng(1).normal(size=(2, 900))
    joint = joint_fit(rows, x, ties=ties, ridge=0.05)
    likelihood = JointLikelihood.of(rows, x, ties)
    eta = [] if joint.adjusted.eta is None else [joint.adjusted.eta]
    inverse = np.linalg.inv(likelihood.evaluate(np.r_[joint.adjusted.theta, joint.coefficients, eta], 0.05)[2])
    contrast = np.eye(4) - 0.25
    errors = fisher(joint.adjusted)

    np.testing.assert_allclose(errors.covariance, contrast @ inverse[:4, :4] @ contrast, atol=1e-9)
    np.testing.assert_allclose(joint.covariance, inverse[4:6, 4:6], atol=1e-9)
    if eta:
        assert errors.eta_std_error == pytest.approx(inverse[6, 6] ** 0.5)


def test_a_pinned_candidate_moves_the_level_alone() -> None:
    rows = Comparisons(4, *simulated(np.linspace(-1, 1, 4), 900, 5, eta=0.3))
    x = np.random.default_rng(1).normal(size=(1, 900))
    free = joint_fit(rows, x, ties="rao_kupper", ridge=0.05)
    pinned = joint_fit(rows, x, ties="rao_kupper", ridge=0.05, reference=2)

    np.testing.assert_allclose(pinned.adjusted.theta, free.adjusted.theta - free.adjusted.theta[2], atol=1e-12)
    assert fisher(pinned.adjusted).std_error[2] == 0
    np.testing.assert_allclose(pinned.coefficients, free.coefficients, rtol=1e-12)


def test_components_are_anchored_and_projected_apart() -> None:
    part = simulated(np.linspace(-1, 1, 3), 500, 7, eta=0.3)
    rows = Comparisons(6, np.r_[part[0], part[0] + 3], np.r_[part[1], part[1] + 3], np.r_[part[2], part[2]])
    x = np.tile(np.random.default_rng(1).normal(size=(1, 500)), 2)
    both, one = (
        joint_fit(rows, x, ties="rao_kupper", ridge=0.0),
        joint_fit(Comparisons(3, *part), x[:, :500], ties="rao_kupper", ridge=0.0),
    )

    np.testing.assert_allclose(both.adjusted.theta, np.tile(one.adjusted.theta, 2), atol=1e-9)
    assert both.std_error[0] == pytest.approx(one.std_error[0] / 2**0.5)
    np.testing.assert_allclose(fisher(both.adjusted).std_error[3:], fisher(both.adjusted).std_error[:3], rtol=1e-9)


def separating(rows: Comparisons, x: FloatArray) -> bool:
    """By linear programming: may some margin grow while none falls, or is a coefficient without any effect?"""
    n, k = rows.n_candidates, x.shape[0]
    design = np.zeros((rows.first.size, n + k))
    index = np.arange(rows.first.size)
    design[index, rows.first] += 1
    design[index, rows.second] -= 1
    design[:, n:] = x.T
    wins = np.where((rows.outcome == 1)[:, None], -design, design)
    oriented = np.concatenate([wins, -wins[rows.outcome == 2]])
    found = linprog(-oriented.sum(axis=0), A_ub=-oriented, b_ub=np.zeros(len(oriented)), bounds=(-1, 1))
    n_blocks = fit(rows.pair_counts()).connectivity.n_components
    return bool(-found.fun > 1e-7 or np.linalg.matrix_rank(design) < n + k - n_blocks)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2), st.integers(-3, 3)), min_size=1, max_size=14
    )
)
def test_the_proof_of_a_finite_optimum_agrees_with_linear_programming(rows: list[tuple[int, int, int, int]]) -> None:
    first = np.array([row[0] for row in rows])
    found = Comparisons(4, first, (first + [row[1] for row in rows]) % 4, np.array([row[2] for row in rows]))
    x = np.array([[row[3] / 2 for row in rows]])
    blocks = fit(found.pair_counts()).components
    likelihood = JointLikelihood.of(found, x, "half_win")
    solution = minimise(likelihood, np.zeros(5), blocks, ridge=0.0)

    assert finite_optimum(likelihood, solution, blocks) == (not separating(found, x))


def test_no_rows_and_no_candidates() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    empty = joint_fit(Comparisons(3, nothing, nothing, nothing), np.zeros((1, 0)), ties="rao_kupper", ridge=0.05)

    np.testing.assert_array_equal(empty.adjusted.theta, np.zeros(3))
    assert empty.coefficients == pytest.approx([0.0], abs=1e-12)
    assert empty.std_error == pytest.approx([0.05**-0.5])
    joint_fit(Comparisons(0, nothing, nothing, nothing), np.zeros((1, 0)), ties="half_win", ridge=0.0)
