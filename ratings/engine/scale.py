"""The display scale, and expected win shares.

Strengths are natural-log odds (``theta``); boards show ``1000 + 400 / ln 10 * theta``, on which 400 points
are ten-to-one odds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import FloatArray, IntArray

BASELINE = 1000.0
POINTS_PER_LOG_ODDS = 400.0 / math.log(10.0)


def to_display(theta: ArrayLike) -> FloatArray:
    """Display points of log-strengths; infinities and NaN pass through.

    Parameters
    ----------
    theta : array_like
        Log-odds, any shape.

    Returns
    -------
    float64 array of the same shape
    """
    return BASELINE + POINTS_PER_LOG_ODDS * np.asarray(theta, dtype=np.float64)


def from_display(rating: ArrayLike) -> FloatArray:
    """Log-strengths of display points, the inverse of `to_display`."""
    return (np.asarray(rating, dtype=np.float64) - BASELINE) / POINTS_PER_LOG_ODDS


def error_to_display(std_error: ArrayLike) -> FloatArray:
    """A standard error or a difference, from log-odds to display points."""
    return POINTS_PER_LOG_ODDS * np.asarray(std_error, dtype=np.float64)


def logistic(x: ArrayLike) -> FloatArray:
    """``1 / (1 + exp(-x))`` without overflow, elementwise."""
    values = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1.0 + small)


def win_share(theta: FloatArray, eta: float | None, components: IntArray) -> FloatArray:
    """Expected share of wins, ties as half, against the rest of the own component.

    Parameters
    ----------
    theta : (n,) array
        Log-strengths; infinite where a candidate has no bound.
    eta : float or None
        Tie parameter of Rao and Kupper (may be infinite: every comparison ties); None where a tie is half a
        win.
    components : (n,) integer array
        Connected component of each candidate.

    Returns
    -------
    (n,) array
        Each opponent of the component weighs the same, whoever was met how often. NaN for a candidate alone
        in its component, and where a strength involved is NaN or two equal infinities meet.

    Notes
    -----
    Under Rao and Kupper P(win) + P(tie) / 2 = (s(d - eta) + s(d + eta)) / 2.
    """
    theta = np.asarray(theta, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        difference = theta[:, None] - theta[None, :]
        if eta is None:
            share = logistic(difference)
        elif math.isinf(eta):
            share = np.where(np.isnan(difference), np.nan, 0.5)
        else:
            share = (logistic(difference - eta) + logistic(difference + eta)) / 2
    opponents = components[:, None] == components[None, :]
    np.fill_diagonal(opponents, False)  # noqa: FBT003
    n_opponents = opponents.sum(axis=1)
    summed: FloatArray = np.where(opponents, share, 0.0).sum(axis=1)
    shares = np.full(theta.size, np.nan)
    np.divide(summed, n_opponents, out=shares, where=n_opponents > 0)
    return shares
