"""Standard errors and intervals of a fit.

Fisher's are here; those that allow for clusters are in `clusters` and share `intervals_of`. Fisher: the
covariance is the inverse Hessian of the penalised objective, eta included, seen through the anchoring contrast
of each component. Projecting through one contrast over all candidates would add the free level between
components, on which the data are silent, to every error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.newton import inverse_definite, invertible, same_block

Z_95 = 1.959963984540054
Errors = Literal["fisher", "robust", "cluster", "two_way"]
# A variance below this share of Fisher's is rounding of nought.
_VANISHED = 1e-9


@dataclass(frozen=True, eq=False)
class Intervals:
    """Errors and 95 % limits of the strengths, in log odds.

    Attributes
    ----------
    std_error : (n,) array
        Infinite where the strength is not finite. 0 for a pinned candidate.
    lower, upper : (n,) arrays
        Strength -+ ``quantile`` standard errors; infinite at an open end. NaN at the other end of a strength that
        is itself infinite: an error needs an optimum to be taken at.
    open_below, open_above : (n,) bool arrays
        The data put no limit there; boards print an open end. A finite ``std_error`` beside it is the
        prior's.
    covariance : (n, n) array
        Of the anchored strengths; NaN between components, and where a strength is not finite.
    eta_std_error : float or None
        None where there is no eta; NaN where it rests on its floor or at infinity.
    errors : {"fisher", "robust", "cluster", "two_way"}
        Where the errors come from.
    quantile : (n,) array
        Standard errors from the strength to a limit; infinite with fewer than two clusters.
    n_clusters : (n,) integer array or None
        Clusters behind each candidate's error; None where there are none to count.
    two_way_adjusted : bool
        The two-way estimate was no covariance, and the wider sum was taken.
    """

    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    open_below: BoolArray
    open_above: BoolArray
    covariance: FloatArray
    eta_std_error: float | None
    errors: Errors
    quantile: FloatArray
    n_clusters: IntArray | None = None
    two_way_adjusted: bool = False


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
    return intervals_of(fit, bread(fit)[0], Z_95, errors="fisher")


def bread(fit: BradleyTerryFit) -> tuple[FloatArray, int]:
    """Inverse Hessian over the free parameters, before any contrast, and their number.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the Hessian is singular to rounding.
    """
    n = fit.theta.size
    size = n + 1 if fit.eta_free else n
    if fit.eta == math.inf and fit.ridge == 0:
        return np.zeros((size, size)), size
    together = same_block(fit.finite_blocks)
    return inverse_definite(invertible(fit.hessian[:size, :size], together)), size


def intervals_of(
    fit: BradleyTerryFit,
    full: FloatArray,
    quantile: FloatArray | float,
    *,
    errors: Errors,
    fallback: FloatArray | None = None,
    n_clusters: IntArray | None = None,
    two_way_adjusted: bool = False,
) -> Intervals:
    """Errors and limits from a covariance of the free parameters.

    Parameters
    ----------
    fit : BradleyTerryFit
    full : (k, k) array
        Covariance before anchoring; with or without eta as the fit has it free.
    quantile : float or (n,) array
    errors : {"fisher", "robust", "cluster", "two_way"}
    fallback : (k, k) array, optional
        Covariance for candidates whose variance in ``full`` vanishes.
    n_clusters : (n,) integer array, optional
    two_way_adjusted : bool

    Returns
    -------
    Intervals
    """
    n = fit.theta.size
    together = same_block(fit.finite_blocks)
    covariance = _contrast(full[:n, :n], fit)
    finite = np.isfinite(fit.theta)
    alone = together.sum(axis=1) == 1
    if fit.ridge == 0:
        # Neither a candidate alone nor one among nothing but ties has any information on its strength.
        finite &= ~alone & (fit.eta != math.inf)
    variance = np.diag(covariance).copy()
    if fallback is not None:
        known = np.diag(_contrast(fallback[:n, :n], fit))
        variance = np.where(variance > _VANISHED * known, variance, known)
    quantiles: FloatArray = np.broadcast_to(np.asarray(quantile, dtype=np.float64), (n,)).copy()
    quantiles[alone] = Z_95
    silent = np.isinf(quantiles)
    covariance[np.arange(n), np.arange(n)] = np.maximum(variance, 0.0)
    covariance[~(together & finite[:, None] & finite[None, :])] = np.nan
    covariance[silent] = covariance[:, silent] = np.nan
    std_error = np.sqrt(np.diag(covariance))
    std_error[~finite | silent] = math.inf
    std_error[alone] = fit.ridge**-0.5 if fit.ridge > 0 else math.inf
    covariance[alone, alone] = std_error[alone] ** 2
    open_below, open_above = fit.bounds.below | silent, fit.bounds.above | silent
    if fit.reference is not None:
        std_error[fit.reference] = 0.0
        covariance[fit.reference, fit.reference] = 0.0
        open_below[fit.reference] &= fit.bounds.below[fit.reference]
        open_above[fit.reference] &= fit.bounds.above[fit.reference]
    eta_std_error = None
    if fit.eta is not None:
        eta_std_error = math.sqrt(max(full[n, n], 0.0)) if fit.eta_free else math.nan
    lower, upper = _limits(fit, std_error, quantiles, open_below, open_above)
    return Intervals(
        std_error,
        lower,
        upper,
        open_below,
        open_above,
        covariance,
        eta_std_error,
        errors,
        quantiles,
        n_clusters,
        two_way_adjusted,
    )


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


def difference_std_errors(intervals: Intervals) -> FloatArray:
    """Standard errors of all differences, (n, n) in log odds; NaN where `difference_std_error` is."""
    c = intervals.covariance
    variances = np.diag(c)
    with np.errstate(invalid="ignore"):
        spread = variances[:, None] + variances[None, :] - 2 * c
    errors: FloatArray = np.sqrt(np.maximum(spread, 0.0))
    np.fill_diagonal(errors, 0.0)
    return errors


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


def _limits(
    fit: BradleyTerryFit, std_error: FloatArray, quantile: FloatArray, open_below: BoolArray, open_above: BoolArray
) -> tuple[FloatArray, FloatArray]:
    with np.errstate(invalid="ignore"):
        reach = np.where(std_error == 0, 0.0, quantile * std_error)
        lower, upper = fit.theta - reach, fit.theta + reach
    infinite = ~np.isfinite(fit.theta)
    lower[infinite] = upper[infinite] = math.nan
    lower[open_below] = -math.inf
    upper[open_above] = math.inf
    return lower, upper
