"""Many fits of the same pairs at once, as the bootstrap needs them.

Columns of an array are data sets that share candidates and pairs and differ in the counts. A first pass takes
Newton steps with one inverse Hessian for all, a matrix product each; where resamples look alike it is all that
is needed. What it does not settle is minimised by a damped Newton iteration in which every column has its own
Hessian. Both judge by the projected gradient, as the single fit does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.likelihood import TieModel
from ratings.engine.newton import ETA_FLOOR

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TOLERANCE = 1e-9
_SHARED_STEPS = 12
_OWN_STEPS = 60
_HALVINGS = 30
_ARMIJO = 1e-4


class Slopes(NamedTuple):
    """Objective (b,) and gradient (k, b), and what the Hessian is made of: (p, b), (p, b) and (b,)."""

    value: FloatArray
    gradient: FloatArray
    weight: FloatArray
    cross: FloatArray
    eta_curvature: FloatArray


@dataclass(frozen=True, eq=False)
class Batch:
    """Counts of ``b`` data sets over the same ``p`` pairs.

    Attributes
    ----------
    n_candidates : int
    first, second : (p,) integer arrays
    up, down, tied : (p, b) float arrays
        As in `Likelihood`.
    ties : {"half_win", "rao_kupper"}
    ridge : float
    """

    n_candidates: int
    first: IntArray
    second: IntArray
    up: FloatArray
    down: FloatArray
    tied: FloatArray
    ties: TieModel
    ridge: float

    @property
    def size(self) -> int:
        """Data sets."""
        return int(self.up.shape[1])

    @property
    def n_parameters(self) -> int:
        """Strengths, and eta where ties have a parameter."""
        return self.n_candidates + (self.ties == "rao_kupper")

    @cached_property
    def total(self) -> FloatArray:
        """(b,) comparisons."""
        total: FloatArray = self.up.sum(axis=0) + self.down.sum(axis=0) + self.tied.sum(axis=0)
        return total

    @cached_property
    def total_tied(self) -> FloatArray:
        """(b,) ties that are terms of their own."""
        total: FloatArray = self.tied.sum(axis=0)
        return total

    @cached_property
    def incidence(self) -> csr_array[Any]:
        """(n, p) plus one where a candidate is first in the pair, minus one where second."""
        from scipy.sparse import csr_array

        p = self.first.size
        rows, columns = np.concatenate([self.first, self.second]), np.tile(np.arange(p), 2)
        signs = np.repeat([1.0, -1.0], p)
        return csr_array((signs, (rows, columns)), shape=(self.n_candidates, p))

    def columns(self, chosen: NDArray[Any]) -> Batch:
        """The same pairs with some of the data sets."""
        part = replace(self, up=self.up[:, chosen], down=self.down[:, chosen], tied=self.tied[:, chosen])
        part.__dict__["incidence"] = self.incidence
        return part

    def gradient(self, parameters: FloatArray) -> FloatArray:
        """(k, b) gradient alone."""
        n = self.n_candidates
        theta = parameters[:n]
        d = theta[self.first] - theta[self.second]
        gradient = np.empty((self.n_parameters, self.size))
        if self.ties == "half_win":
            slope = self.up + self.down
            slope *= _logistic(d)
            slope -= self.up
        else:
            eta = parameters[n]
            slope = self.up + self.tied
            slope *= _logistic(d - eta)
            slope -= self.up
            slope_v = self.down + self.tied
            np.add(d, eta, out=d)
            np.negative(d, out=d)
            slope_v *= _logistic(d)
            slope_v -= self.down
            gradient[n] = -(slope.sum(axis=0) + slope_v.sum(axis=0)) - self.total_tied * 2 * _tie_odds(eta)[0]
            slope -= slope_v
        gradient[:n] = self.incidence @ slope
        if self.ridge:
            gradient[:n] += self.ridge * theta
        return gradient

    def evaluate(self, parameters: FloatArray) -> Slopes:
        """Objective, gradient and curvature at (k, b) parameters."""
        n = self.n_candidates
        theta = parameters[:n]
        d = theta[self.first] - theta[self.second]
        gradient = np.empty((self.n_parameters, self.size))
        none = np.zeros((0, 0))
        if self.ties == "half_win":
            value, slope, weight = _terms(d, self.up, self.down)
            cross, eta_curvature = none, none
        else:
            eta = parameters[n]
            value_u, slope_u, weight_u = _terms(d - eta, self.up, self.tied)
            value_v, slope_v, weight_v = _terms(-d - eta, self.down, self.tied)
            odds, below_one = _tie_odds(eta)
            value = value_u + value_v - self.total_tied * np.log(below_one)
            slope, weight, cross = slope_u - slope_v, weight_u + weight_v, weight_v - weight_u
            gradient[n] = -(slope_u.sum(axis=0) + slope_v.sum(axis=0)) - self.total_tied * 2 * odds
            eta_curvature = weight.sum(axis=0) + self.total_tied * 4 * odds / below_one
        gradient[:n] = self.incidence @ slope
        value = value + self.ridge / 2 * np.einsum("ib,ib->b", theta, theta)
        gradient[:n] += self.ridge * theta
        return Slopes(value, gradient, weight, cross, eta_curvature)

    def hessians(self, slopes: Slopes, together: BoolArray) -> FloatArray:
        """(b, k, k) Hessians, the free level of each block made definite as in `newton.invertible`."""
        n, k = self.n_candidates, self.n_parameters
        hessian = np.zeros((self.size, k, k))
        hessian[:, self.first, self.second] = -slopes.weight.T
        hessian[:, self.second, self.first] = -slopes.weight.T
        diagonal = np.arange(n)
        hessian[:, diagonal, diagonal] = (abs(self.incidence) @ slopes.weight).T + self.ridge
        if k > n:
            cross = (self.incidence @ slopes.cross).T
            hessian[:, :n, n] = hessian[:, n, :n] = cross
            hessian[:, n, n] = slopes.eta_curvature
        stiffness = np.trace(hessian[:, :n, :n], axis1=1, axis2=2) / max(n, 1)
        stiffness[stiffness <= 0] = 1.0
        hessian[:, :n, :n] += (stiffness / max(n, 1))[:, None, None] * together
        return hessian


def solve(
    batch: Batch, start: FloatArray, inverse: FloatArray | None, together: BoolArray
) -> tuple[FloatArray, BoolArray]:
    """Optimum of every data set.

    Parameters
    ----------
    batch : Batch
    start : (k,) array
        Strengths, and eta above its floor, near which the optima are expected.
    inverse : (k, k) array or None
        Inverse Hessian shared by the first pass, zero for a parameter that rests; None to leave that pass out.
    together : (n, n) or (b, n, n) bool array
        Candidates whose strengths share a free level.

    Returns
    -------
    parameters : (k, b) array
    converged : (b,) bool array
    """
    parameters = np.repeat(start[:, None], batch.size, axis=1)
    settled = np.zeros(batch.size, dtype=np.bool_)
    if inverse is not None and batch.size:
        settled = _shared_steps(batch, parameters, inverse)
    left = np.flatnonzero(~settled)
    if left.size:
        part = batch if left.size == batch.size else batch.columns(left)
        mask = together if together.ndim == 2 else together[left]
        parameters[:, left], settled[left] = _own_steps(part, np.repeat(start[:, None], left.size, axis=1), mask)
    return parameters, settled


def _shared_steps(batch: Batch, parameters: FloatArray, inverse: FloatArray) -> BoolArray:
    """Move ``parameters`` in place; True where the tolerance is met."""
    target = TOLERANCE * np.maximum(1.0, batch.total)
    size = np.full(batch.size, np.inf)
    for _ in range(_SHARED_STEPS):
        gradient = _projected(batch, parameters, batch.gradient(parameters))
        largest = np.abs(gradient).max(axis=0, initial=0.0)
        settled: BoolArray = largest <= target
        # Gains of less than a half a step mean that the shared Hessian is too far off for these columns.
        moving = ~settled & (largest < size / 2)
        if not moving.any():
            return settled
        size = np.where(moving, largest, 0.0)
        # The level of a component is not moved: the gradient has no part along it, the inverse keeps that.
        step = inverse @ gradient
        step *= moving
        parameters -= step
        if batch.n_parameters > batch.n_candidates:
            np.maximum(parameters[-1], ETA_FLOOR, out=parameters[-1])
    gradient = _projected(batch, parameters, batch.gradient(parameters))
    return np.asarray(np.abs(gradient).max(axis=0, initial=0.0) <= target, dtype=np.bool_)


def _own_steps(batch: Batch, parameters: FloatArray, together: BoolArray) -> tuple[FloatArray, BoolArray]:
    result = parameters.copy()
    converged = np.zeros(batch.size, dtype=np.bool_)
    left = np.arange(batch.size)
    slopes = batch.evaluate(parameters)
    for _ in range(_OWN_STEPS):
        gradient = _projected(batch, parameters, slopes.gradient)
        done = np.abs(gradient).max(axis=0, initial=0.0) <= TOLERANCE * np.maximum(1.0, batch.total)
        if done.any():
            result[:, left[done]] = parameters[:, done]
            converged[left[done]] = True
            keep = np.flatnonzero(~done)
            if not keep.size:
                break
            left, batch, parameters = left[keep], batch.columns(keep), parameters[:, keep]
            together = together if together.ndim == 2 else together[keep]
            slopes = batch.evaluate(parameters)
            gradient = gradient[:, keep]
        step = _steps(batch, parameters, gradient, slopes, together)
        parameters, slopes = _searched(batch, parameters, step, slopes, gradient)
        result[:, left] = parameters
    return result, converged


def _projected(batch: Batch, parameters: FloatArray, gradient: FloatArray) -> FloatArray:
    if batch.n_parameters == batch.n_candidates:
        return gradient
    projected = gradient.copy()
    projected[-1, (parameters[-1] <= ETA_FLOOR) & (gradient[-1] >= 0)] = 0.0
    return projected


def _steps(
    batch: Batch, parameters: FloatArray, gradient: FloatArray, slopes: Slopes, together: BoolArray
) -> FloatArray:
    hessian = batch.hessians(slopes, together)
    right = -gradient.T
    if batch.n_parameters == batch.n_candidates:
        return _solved(hessian, right)
    n = batch.n_candidates
    resting = (parameters[n] <= ETA_FLOOR) & (slopes.gradient[n] >= 0)
    hessian[resting, n, :] = hessian[resting, :, n] = 0.0
    hessian[resting, n, n] = 1.0
    step = _solved(hessian, right)
    below = np.flatnonzero(~resting & (parameters[n] + step[n] < ETA_FLOOR))
    if below.size:
        # As the single fit: the same quadratic model with eta on its floor.
        fixed = ETA_FLOOR - parameters[n, below]
        reduced = hessian[below]
        shifted = right[below] - reduced[:, :, n] * fixed[:, None]
        reduced[:, n, :] = reduced[:, :, n] = 0.0
        reduced[:, n, n] = 1.0
        shifted[:, n] = fixed
        step[:, below] = _solved(reduced, shifted)
    return step


def _solved(hessian: FloatArray, right: FloatArray) -> FloatArray:
    if not right.shape[1]:
        return np.zeros(right.T.shape)
    return np.asarray(np.linalg.solve(hessian, right[:, :, None])[:, :, 0].T, dtype=np.float64)


def _searched(
    batch: Batch, parameters: FloatArray, step: FloatArray, slopes: Slopes, gradient: FloatArray
) -> tuple[FloatArray, Slopes]:
    n = batch.n_candidates
    slope = np.einsum("ib,ib->b", gradient, step)
    noise = 1e-13 * (1.0 + np.abs(slopes.value))
    length = np.ones(batch.size)
    for _ in range(_HALVINGS):
        moved = parameters + length * step
        np.maximum(moved[n:], ETA_FLOOR, out=moved[n:])
        found = batch.evaluate(moved)
        worse = ~(found.value <= slopes.value + _ARMIJO * length * slope + noise)
        if not worse.any():
            break
        length[worse] /= 2
    return moved, found


def _terms(x: FloatArray, positive: FloatArray, negative: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """-(positive log s(x) + negative log s(-x)): its sum over pairs, first and second derivative per pair."""
    small = np.exp(-np.abs(x))
    one_plus = 1.0 + small
    both = positive + negative
    up = np.where(x >= 0, 1.0, small) / one_plus
    per_pair = both * np.log1p(small) + np.where(x >= 0, negative, positive) * np.abs(x)
    return per_pair.sum(axis=0), both * up - positive, both * small / (one_plus * one_plus)


def _logistic(x: FloatArray) -> FloatArray:
    np.negative(x, out=x)
    with np.errstate(over="ignore"):
        np.exp(x, out=x)
    x += 1.0
    np.reciprocal(x, out=x)
    return x


def _tie_odds(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    below_one = -np.expm1(-2 * eta)
    return np.exp(-2 * eta) / below_one, below_one
