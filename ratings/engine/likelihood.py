"""The penalised Bradley-Terry objective with exact gradient and Hessian.

With log-strengths r, d = r_i - r_j and s the logistic function:

``half_win``
    P(i beats j) = s(d) (Bradley and Terry 1952, doi:10.2307/2334029); a tie is half a win for each side.
``rao_kupper``
    P(i) = s(d - eta), P(j) = s(-d - eta), P(tie) = s(d + eta) - s(d - eta), eta > 0 (Rao and Kupper 1967,
    doi:10.1080/01621459.1967.10482901).

Because s(d + eta) - s(d - eta) = s(d + eta) s(eta - d) (1 - exp(-2 eta)), the log-likelihood of a pair with
a wins of i, b wins of j and t ties is, with u = d - eta and v = -d - eta,

    a log s(u) + t log s(-u) + b log s(v) + t log s(-v) + t log(1 - exp(-2 eta)),

two logistic terms and one in eta alone: jointly concave, no difference of probabilities to clip, Hessian
exact. The objective, to be minimised, is minus that plus ``ridge / 2 * |r|^2``; eta is never penalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.comparisons import PairCounts

TieModel = Literal["half_win", "rao_kupper"]
TIE_MODELS: tuple[TieModel, ...] = ("half_win", "rao_kupper")


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Counts laid out for repeated evaluation.

    Attributes
    ----------
    n_candidates : int
    ties : {"half_win", "rao_kupper"}
    first, second : (p,) integer arrays
    up, down : (p,) float arrays
        Wins of ``first`` and of ``second``; with ``half_win`` half the ties are in both.
    tied : (p,) float array
        Ties that are terms of their own; all zero with ``half_win``.
    """

    n_candidates: int
    ties: TieModel
    first: IntArray
    second: IntArray
    up: FloatArray
    down: FloatArray
    tied: FloatArray
    total: float
    total_tied: float

    @classmethod
    def of(cls, counts: PairCounts, ties: TieModel, kept: BoolArray | None = None) -> Likelihood:
        """Lay out counts, all pairs or only those ``kept``.

        Raises
        ------
        ValueError
            If ``ties`` names no tie model.
        """
        if ties not in TIE_MODELS:
            raise ValueError(f"Unknown tie model {ties!r}; expected one of {', '.join(TIE_MODELS)}.")
        columns = (counts.first, counts.second, counts.wins_first, counts.wins_second, counts.ties)
        if kept is not None:
            columns = tuple(column[kept] for column in columns)  # type: ignore[assignment]
        first, second, wins_first, wins_second, tie_counts = columns
        up, down, tied = (column.astype(np.float64) for column in (wins_first, wins_second, tie_counts))
        total = float(up.sum() + down.sum() + tied.sum())
        if ties == "half_win":
            up, down, tied = up + tied / 2, down + tied / 2, np.zeros_like(tied)
        return cls(counts.n_candidates, ties, first, second, up, down, tied, total, float(tied.sum()))

    @property
    def n_parameters(self) -> int:
        """Strengths, and eta where ties have a parameter."""
        return self.n_candidates + (self.ties == "rao_kupper")

    def evaluate(self, parameters: FloatArray, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        """Objective, gradient and Hessian.

        Parameters
        ----------
        parameters : (k,) array
            Log-strengths, then eta (positive) with ``rao_kupper``.
        ridge : float

        Returns
        -------
        value : float
        gradient : (k,) array
        hessian : (k, k) array
        """
        n = self.n_candidates
        theta = parameters[:n]
        d = theta[self.first] - theta[self.second]
        if self.ties == "half_win":
            value, slope, weight = _logistic_terms(d, self.up, self.down)
            gradient, hessian = self._assemble(slope, weight, self.n_parameters)
        else:
            value, gradient, hessian = self._with_eta(d, float(parameters[n]))
        value += ridge / 2 * float(theta @ theta)
        gradient[:n] += ridge * theta
        hessian.reshape(-1)[: n * (hessian.shape[0] + 1) : hessian.shape[0] + 1] += ridge
        return value, gradient, hessian

    def _with_eta(self, d: FloatArray, eta: float) -> tuple[float, FloatArray, FloatArray]:
        n = self.n_candidates
        value_u, slope_u, weight_u = _logistic_terms(d - eta, self.up, self.tied)
        value_v, slope_v, weight_v = _logistic_terms(-d - eta, self.down, self.tied)
        gradient, hessian = self._assemble(slope_u - slope_v, weight_u + weight_v, n + 1)
        # d(u)/d(eta) = d(v)/d(eta) = -1, while d(u)/d(d) = 1 and d(v)/d(d) = -1.
        cross = weight_v - weight_u
        hessian[:n, n] = hessian[n, :n] = self._scatter(cross)
        gradient[n] = -(slope_u.sum() + slope_v.sum())
        hessian[n, n] = weight_u.sum() + weight_v.sum()
        value = value_u + value_v
        if self.total_tied:
            # exp(-2 eta) instead of exp(2 eta), which overflows.
            below_one = -np.expm1(-2 * eta)
            value -= self.total_tied * float(np.log(below_one))
            odds = float(np.exp(-2 * eta)) / below_one
            gradient[n] -= self.total_tied * 2 * odds
            hessian[n, n] += self.total_tied * 4 * odds / below_one
        return value, gradient, hessian

    def _scatter(self, per_pair: FloatArray) -> FloatArray:
        n = self.n_candidates
        scattered = np.bincount(self.first, per_pair, n) - np.bincount(self.second, per_pair, n)
        return scattered.astype(np.float64, copy=False)

    def _assemble(self, slope: FloatArray, weight: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
        n = self.n_candidates
        gradient = np.zeros(size)
        gradient[:n] = self._scatter(slope)
        hessian = np.zeros((size, size))
        hessian[self.first, self.second] = -weight
        hessian[self.second, self.first] = -weight
        diagonal = np.bincount(self.first, weight, n) + np.bincount(self.second, weight, n)
        hessian.reshape(-1)[: n * (size + 1) : size + 1] = diagonal
        return gradient, hessian


def penalised_objective(
    counts: PairCounts, parameters: FloatArray, *, ties: TieModel = "half_win", ridge: float = 0.0
) -> tuple[float, FloatArray, FloatArray]:
    """Minus the penalised log-likelihood, with gradient and Hessian, at any point.

    Parameters
    ----------
    counts : PairCounts
    parameters : (n,) or (n + 1,) array
        Log-strengths; then eta, positive, with ``rao_kupper``.
    ties : {"half_win", "rao_kupper"}
    ridge : float

    Returns
    -------
    value : float
    gradient : array like ``parameters``
    hessian : square array of that size

    Raises
    ------
    ValueError
        For an unknown tie model or a wrong number of parameters.
    """
    likelihood = Likelihood.of(counts, ties)
    parameters = np.asarray(parameters, dtype=np.float64)
    if parameters.shape != (likelihood.n_parameters,):
        raise ValueError(f"Expected {likelihood.n_parameters} parameters, got shape {parameters.shape}.")
    return likelihood.evaluate(parameters, ridge)


def _logistic_terms(x: FloatArray, positive: FloatArray, negative: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """-(positive log s(x) + negative log s(-x)): its sum, and first and second derivative per pair."""
    small = np.exp(-np.abs(x))
    one_plus = 1.0 + small
    both = positive + negative
    up = np.where(x >= 0, 1.0, small) / one_plus
    value = _dot(both, np.log1p(small)) + _dot(np.where(x >= 0, negative, positive), np.abs(x))
    return value, both * up - positive, both * small / (one_plus * one_plus)


def _dot(x: FloatArray, y: FloatArray) -> float:
    # Not x @ y: on long vectors BLAS wakes its threads for it, which costs milliseconds on a busy machine.
    return float(np.einsum("i,i->", x, y))
