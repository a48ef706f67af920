"""Minimisers of the Bradley-Terry objective: a damped Newton iteration, and L-BFGS-B as the reference path.

Both keep eta at or above ``ETA_FLOOR`` and judge convergence by the *projected* gradient: at the floor the
plain gradient points below it and never vanishes, so there the component of eta is left out, and with it
eta's row of the Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.likelihood import Likelihood

ETA_FLOOR = 1e-4
_ARMIJO = 1e-4
_MAX_HALVINGS = 50
# Up to this size dpotri gains nothing on a plain inverse, and may wake the threads of BLAS.
_SMALL = 64


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a minimiser stopped.

    Attributes
    ----------
    parameters, gradient : (k,) arrays
        The gradient is the projected one.
    hessian : (k, k) array
    value : float
    iterations : int
    eta_free : bool
        False where there is no eta or it rests on its floor.
    """

    parameters: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    value: float
    iterations: int
    eta_free: bool


def newton(
    likelihood: Likelihood,
    start: FloatArray,
    blocks: IntArray,
    *,
    ridge: float,
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """Damped Newton with the exact Hessian and Armijo backtracking.

    Parameters
    ----------
    likelihood : Likelihood
    start : (k,) array
        Strengths summing to zero in each block; eta above the floor.
    blocks : (n,) integer array
        Candidates whose strengths share a free level, which the objective does not see.
    ridge, tolerance : float
        Stops when the projected gradient is at most ``tolerance * max(1, comparisons)`` in every component.
    max_iterations : int

    Returns
    -------
    Solution
    """
    target = tolerance * max(1.0, likelihood.total)
    parameters = start
    value, gradient, hessian = likelihood.evaluate(parameters, ridge)
    together = same_block(blocks)
    iterations = 0
    while True:
        eta_free = _eta_free(likelihood, parameters, gradient)
        projected = _project(likelihood, gradient, eta_free=eta_free)
        if iterations >= max_iterations or np.abs(projected).max(initial=0.0) <= target:
            break
        step = _step(likelihood, parameters, projected, hessian, together, eta_free=eta_free)
        moved = _line_search(likelihood, parameters, step, value, float(projected @ step), ridge)
        if moved is None:
            break
        parameters, value, gradient, hessian = moved
        iterations += 1
    return Solution(parameters, projected, hessian, value, iterations, eta_free)


def lbfgs(
    likelihood: Likelihood,
    start: FloatArray,
    blocks: IntArray,
    *,
    ridge: float,
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """SciPy's L-BFGS-B on the same objective, divided by the number of comparisons.

    Parameters and result are those of `newton`; ``blocks`` is not needed, because the gradient has no part
    along a block's free level. It is asked for a thousandth of the tolerance and stops
    where rounding of the objective ends its line search, usually between the two.
    """
    from scipy.optimize import minimize

    scale = max(1.0, likelihood.total)

    def scaled(parameters: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _ = likelihood.evaluate(parameters, ridge)
        return value / scale, gradient / scale

    n = likelihood.n_candidates
    limits: list[tuple[float | None, float | None]] = [(None, None)] * n
    limits += [(ETA_FLOOR, None)] * (start.size - n)
    found = minimize(
        scaled,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={
            "maxiter": max_iterations,
            "maxfun": 20 * max_iterations,
            "ftol": 0.0,
            "gtol": tolerance / 1000,
            "maxcor": 30,
        },
    )
    parameters = np.asarray(found.x, dtype=np.float64)
    value, gradient, hessian = likelihood.evaluate(parameters, ridge)
    eta_free = _eta_free(likelihood, parameters, gradient)
    projected = _project(likelihood, gradient, eta_free=eta_free)
    return Solution(parameters, projected, hessian, value, int(found.nit), eta_free)


def invertible(hessian: FloatArray, together: BoolArray) -> FloatArray:
    """The Hessian with the free level of each block made definite.

    The gradient sums to zero within a block and eta's column does too, so what is added changes neither a
    step nor any contrast of the inverse; without a prior the matrix would be singular.
    """
    n = together.shape[0]
    filled = hessian.copy()
    stiffness = float(np.trace(hessian[:n, :n])) / max(n, 1) or 1.0
    filled[:n, :n] += (stiffness / max(n, 1)) * together
    return filled


def solve_definite(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a symmetric positive definite system; by least squares where rounding made it indefinite."""
    from scipy.linalg.lapack import dposv

    if right.size == 0:
        return right
    _, solved, info = dposv(matrix, right)
    if info != 0:
        solved = np.linalg.lstsq(matrix, right)[0]
    return np.asarray(solved, dtype=np.float64)


def inverse_definite(matrix: FloatArray) -> FloatArray:
    """Inverse of a symmetric positive definite matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is singular to rounding.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    if matrix.shape[0] <= _SMALL:
        return np.linalg.inv(matrix).astype(np.float64)
    factor, info = dpotrf(matrix, lower=1)
    if info != 0:
        return np.linalg.inv(matrix).astype(np.float64)
    lower = np.tril(dpotri(factor, lower=1)[0])
    return np.asarray(lower + np.tril(lower, -1).T, dtype=np.float64)


def same_block(blocks: IntArray) -> BoolArray:
    """(n, n) mask of candidates that share a block."""
    together: BoolArray = np.equal.outer(blocks, blocks)
    return together


def _eta_free(likelihood: Likelihood, parameters: FloatArray, gradient: FloatArray) -> bool:
    n = likelihood.n_candidates
    return parameters.size > n and not (parameters[n] <= ETA_FLOOR and gradient[n] >= 0)


def _project(likelihood: Likelihood, gradient: FloatArray, *, eta_free: bool) -> FloatArray:
    if eta_free or gradient.size == likelihood.n_candidates:
        return gradient
    projected = gradient.copy()
    projected[-1] = 0.0
    return projected


def _step(
    likelihood: Likelihood,
    parameters: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    together: BoolArray,
    *,
    eta_free: bool,
) -> FloatArray:
    n = likelihood.n_candidates
    filled = invertible(hessian, together)
    step = np.zeros_like(parameters)
    if not eta_free:
        step[:n] = solve_definite(filled[:n, :n], -gradient[:n])
        return step
    step[:] = solve_definite(filled, -gradient)
    if parameters[n] + step[n] < ETA_FLOOR:
        # Past the floor: minimise the same quadratic model with eta on it. Cutting eta alone may go uphill.
        step[n] = ETA_FLOOR - parameters[n]
        step[:n] = solve_definite(filled[:n, :n], -(gradient[:n] + filled[:n, n] * step[n]))
    return step


def _line_search(
    likelihood: Likelihood, parameters: FloatArray, step: FloatArray, value: float, slope: float, ridge: float
) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:
    noise = 1e-13 * (1.0 + abs(value))
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        candidate = parameters + length * step
        candidate[likelihood.n_candidates :] = np.maximum(candidate[likelihood.n_candidates :], ETA_FLOOR)
        found = likelihood.evaluate(candidate, ridge)
        if found[0] <= value + _ARMIJO * length * slope + noise:
            return candidate, *found
        length /= 2
    return None
