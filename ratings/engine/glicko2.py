"""Glicko-2: a rating, how far it may be off, and how much it wanders, by periods.

All matches of a period are taken at the values before it, and everybody is updated together, so their order
does not matter. For a tournament a step is a period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import FloatArray
from ratings.engine.comparisons import Comparisons

START, START_DEVIATION, START_VOLATILITY = 1500.0, 350.0, 0.06
TAU = 0.5
# Points of the display scale to one of the internal scale.
SCALE = 173.7178
TOLERANCE = 1e-6
_MOST_DEVIATION = START_DEVIATION / SCALE
_MOST_ROUNDS = 200
_SCORES = np.array([1.0, 0.0, 0.5])


@dataclass(frozen=True, eq=False)
class Glicko2:
    """Where a fold has come to.

    Attributes
    ----------
    rating : (n,) float64 array
        mu, in points around 1500.
    deviation : (n,) float64 array
        phi, in points; the rating is within 1.96 of it with about 95 %. 350 at most.
    volatility : (n,) float64 array
        sigma, on the internal scale, as Glickman prints it.
    """

    rating: FloatArray
    deviation: FloatArray
    volatility: FloatArray

    @classmethod
    def start(cls, n_candidates: int) -> Glicko2:
        """Everybody at 1500, deviation 350, volatility 0.06."""
        return cls(
            np.full(n_candidates, START),
            np.full(n_candidates, START_DEVIATION),
            np.full(n_candidates, START_VOLATILITY),
        )


def weight(deviation: ArrayLike) -> FloatArray:
    """g of an opponent's deviation on the *internal* scale: how much a match against it says, 0 to 1."""
    phi = np.asarray(deviation, dtype=np.float64)
    return np.asarray(1.0 / np.sqrt(1.0 + 3.0 * phi * phi / math.pi**2), dtype=np.float64)


def period(state: Glicko2, matches: Comparisons, *, tau: float = TAU) -> Glicko2:
    """One rating period.

    Parameters
    ----------
    state : Glicko2
        Before the period.
    matches : Comparisons
        Of this period, in any order; a row with a count is that many matches. May be empty.
    tau : float, default 0.5
        How freely the volatility changes; 0.3 to 1.2 are usual.

    Returns
    -------
    Glicko2
        A candidate without a match keeps rating and volatility, and its deviation grows to
        ``sqrt(phi**2 + sigma**2)``, 350 at most.

    Raises
    ------
    ValueError
        When state and matches are of another number of candidates, or ``tau`` is not positive.

    References
    ----------
    Glickman, M. E. (2022). Example of the Glicko-2 system. http://www.glicko.net/glicko/glicko2.pdf
    """
    n = matches.n_candidates
    if state.rating.shape != (n,):
        raise ValueError(f"The state holds {state.rating.size} candidates, and the matches {n}.")
    if not tau > 0:
        raise ValueError(f"tau must be positive, got {tau}.")
    phi = state.deviation / SCALE
    widened = np.minimum(np.sqrt(phi**2 + state.volatility**2), _MOST_DEVIATION)
    if matches.first.size == 0:
        return Glicko2(state.rating, widened * SCALE, state.volatility)
    own = np.concatenate((matches.first, matches.second))
    other = np.concatenate((matches.second, matches.first))
    score = _SCORES[matches.outcome]
    score = np.concatenate((score, 1.0 - score))
    mu = (state.rating - START) / SCALE
    g = weight(phi)[other]
    # Beyond that a result is certain to the last digit, and the information would underflow.
    expected = 1.0 / (1.0 + np.exp(np.clip(-g * (mu[own] - mu[other]), -35.0, 35.0)))
    times = np.ones(own.size) if matches.count is None else np.tile(matches.count, 2).astype(np.float64)
    information = np.bincount(own, times * g * g * expected * (1.0 - expected), n)
    gain = np.bincount(own, times * g * (score - expected), n)
    played = information > 0.0
    rating, deviation, volatility = state.rating.copy(), widened * SCALE, state.volatility.copy()
    if played.any():
        v, steps = 1.0 / information[played], gain[played]
        sigma = _volatility(phi[played], v, v * steps, state.volatility[played], tau)
        before = phi[played] ** 2 + sigma**2
        after = 1.0 / np.sqrt(1.0 / before + 1.0 / v)
        rating[played] = (mu[played] + after**2 * steps) * SCALE + START
        deviation[played] = np.minimum(after, _MOST_DEVIATION) * SCALE
        volatility[played] = sigma
    return Glicko2(rating, deviation, volatility)


def glicko2_periods(
    matches: Comparisons, periods: ArrayLike, n_periods: int | None = None, *, tau: float = TAU
) -> list[Glicko2]:
    """Fold matches period by period.

    Parameters
    ----------
    matches : Comparisons
        m rows in any order.
    periods : (m,) integer array
        Period of each row, from 0.
    n_periods : int, optional
        Periods to fold, those without a match included; up to the last match when omitted.
    tau : float, default 0.5

    Returns
    -------
    list of Glicko2
        The state after each period; empty without periods.

    Raises
    ------
    ValueError
        For periods of another length, negative ones, or ones beyond ``n_periods``.
    """
    numbers = np.asarray(periods)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise ValueError(f"periods must hold integers, not {numbers.dtype}.")
    numbers = numbers.astype(np.int64)
    if numbers.shape != matches.first.shape:
        raise ValueError(f"There are {matches.first.size} matches and periods of shape {numbers.shape}.")
    last = int(numbers.max()) + 1 if numbers.size else 0
    total = last if n_periods is None else n_periods
    if numbers.size and (numbers.min() < 0 or last > total):
        raise ValueError(f"Periods run from 0 to {total - 1}, got {numbers.min()} to {last - 1}.")
    order = np.argsort(numbers, kind="stable")
    first, second, outcome = (column[order] for column in (matches.first, matches.second, matches.outcome))
    count = None if matches.count is None else matches.count[order]
    ends = np.searchsorted(numbers[order], np.arange(total + 1))
    state, states = Glicko2.start(matches.n_candidates), []
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        cut = slice(begin, end)
        cut_count = None if count is None else count[cut]
        rows = Comparisons(matches.n_candidates, first[cut], second[cut], outcome[cut], cut_count)
        state = period(state, rows, tau=tau)
        states.append(state)
    return states


def _volatility(phi: FloatArray, v: FloatArray, delta: FloatArray, sigma: FloatArray, tau: float) -> FloatArray:
    """Step 5 of Glickman's example for all candidates at once, by the Illinois method."""
    a = np.log(sigma**2)
    spread, squared = phi**2, delta**2

    def f(x: FloatArray) -> FloatArray:
        e = np.exp(x)
        total = spread + v + e
        return np.asarray(e * (squared - total) / (2.0 * total * total) - (x - a) / tau**2)

    low, high = a.copy(), _other_end(f, a, squared - spread - v, tau)
    f_low, f_high = f(low), f(high)
    for _ in range(_MOST_ROUNDS):
        wide = np.abs(high - low) > TOLERANCE
        if not wide.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.where(wide, low + (low - high) * f_low / (f_high - f_low), low)
        f_middle = f(middle)
        crossed = f_middle * f_high <= 0.0
        # The end that stays put loses half its value, else the same end would move again and again.
        new_low, new_f_low = np.where(crossed, high, low), np.where(crossed, f_high, f_low / 2.0)
        low, f_low = np.where(wide, new_low, low), np.where(wide, new_f_low, f_low)
        high, f_high = np.where(wide, middle, high), np.where(wide, f_middle, f_high)
    return np.asarray(np.exp(low / 2.0), dtype=np.float64)


def _other_end(f: Callable[[FloatArray], FloatArray], a: FloatArray, excess: FloatArray, tau: float) -> FloatArray:
    """A second point such that the root lies between it and ``a``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        end = np.where(excess > 0.0, np.log(np.maximum(excess, 1e-300)), a - tau)
    below = excess <= 0.0
    for k in range(2, _MOST_ROUNDS):
        short = below & (f(end) < 0.0)
        if not short.any():
            break
        end = np.where(short, a - k * tau, end)
    return np.asarray(end, dtype=np.float64)
