"""Standard errors and intervals of a fit.

Fisher: the covariance is the inverse Hessian of the penalised objective, eta included, seen through the
anchoring contrast of each component. Projecting through one contrast over all candidates would add the free
level between components, on which the data are silent, to every error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.newton import inverse_definite, invertible, same_block

Z_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Intervals:
    """Errors and 95 % limits of the strengths, in log odds.

    Attributes
    ----------
    std_error : (n,) array
        Infinite where the strength is not finite. 0 for a pinned candidate.
    lower, upper : (n,) arrays
        Strength -+ 1.96 standard errors; infinite at an open end. NaN at the other end of a strength that
        is itself infinite: an error needs an optimum to be taken at.
    open_below, open_above : (n,) bool arrays
        The data put no limit there; boards print an open end. A finite ``std_error`` beside it is the
        prior's.
    covariance : (n, n) array
        Of the anchored strengths; NaN between components, and where a strength is not finite.
    eta_std_error : float or None
        None where there is no eta; NaN where it rests on its floor or at infinity.
    """

    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    open_below: BoolArray
    open_above: BoolArray
    covariance: FloatArray
    eta_std_error: float | None


def fisher(fit: BradleyTerryFit) -> Intervals:
    """Analytic errors from the inverse Hessian at the optimum.

    Parameters
    ----------
    fit : BradleyTerryFit

    Returns
    -------
    Intervals
        A candidate without comparisons has the prior's own error, ``ridge ** -0.5`` (infinite without a
        prior), and both ends open.

    Notes
    -----
    With ``half_win`` and many ties these are too wide (a tie carries less variance than the win and loss of
    half weight it is counted as).
    """
    together = same_block(fit.finite_blocks)
    inverse, eta_std_error = _inverse(fit, together)
    covariance = _contrast(inverse, fit)
    finite = np.isfinite(fit.theta)
    alone = together.sum(axis=1) == 1
    if fit.ridge == 0:
        # Neither a candidate alone nor one among nothing but ties has any information on its strength.
        finite &= ~alone & (fit.eta != math.inf)
    covariance[~(together & finite[:, None] & finite[None, :])] = np.nan
    std_error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    std_error[~finite] = math.inf
    std_error[alone] = fit.ridge**-0.5 if fit.ridge > 0 else math.inf
    covariance[alone, alone] = std_error[alone] ** 2
    if fit.reference is not None:
        std_error[fit.reference] = 0.0
        covariance[fit.reference, fit.reference] = 0.0
    lower, upper = _limits(fit, std_error)
    return Intervals(std_error, lower, upper, fit.bounds.below, fit.bounds.above, covariance, eta_std_error)


def difference_std_error(intervals: Intervals, candidate: int, other: int) -> float:
    """Standard error of the difference of two strengths, in log odds.

    Parameters
    ----------
    intervals : Intervals
    candidate, other : int

    Returns
    -------
    float
        NaN for candidates of different components, or whose strengths are not finite: their difference is
        unknown. Where either is held by the prior, so is this error.
    """
    if candidate == other:
        return 0.0
    c = intervals.covariance
    variance = c[candidate, candidate] + c[other, other] - 2 * c[candidate, other]
    return float(np.sqrt(np.maximum(variance, 0.0)))


def _inverse(fit: BradleyTerryFit, together: BoolArray) -> tuple[FloatArray, float | None]:
    n = fit.theta.size
    if fit.eta == math.inf and fit.ridge == 0:
        return np.zeros((n, n)), math.nan
    size = n + 1 if fit.eta_free else n
    inverse = inverse_definite(invertible(fit.hessian[:size, :size], together))
    if fit.eta is None:
        return inverse, None
    return inverse[:n, :n], math.sqrt(inverse[n, n]) if fit.eta_free else math.nan


def _contrast(covariance: FloatArray, fit: BradleyTerryFit) -> FloatArray:
    """C V C' for C = I - 1/size per block, or I - e_reference in the pinned block."""
    n = fit.theta.size
    blocks = fit.finite_blocks
    n_blocks = int(blocks.max(initial=-1)) + 1
    weights = np.zeros((n_blocks, n))
    weights[blocks, np.arange(n)] = 1.0 / np.bincount(blocks)[blocks]
    if fit.reference is not None:
        weights[blocks[fit.reference]] = 0.0
        weights[blocks[fit.reference], fit.reference] = 1.0
    left = covariance - (weights @ covariance)[blocks]
    result: FloatArray = left - (left @ weights.T)[:, blocks]
    return result


def _limits(fit: BradleyTerryFit, std_error: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(invalid="ignore"):
        lower, upper = fit.theta - Z_95 * std_error, fit.theta + Z_95 * std_error
    infinite = ~np.isfinite(fit.theta)
    lower[infinite] = upper[infinite] = math.nan
    lower[fit.bounds.below] = -math.inf
    upper[fit.bounds.above] = math.inf
    return lower, upper
