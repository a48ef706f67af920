"""Does the longer answer win, and what is left of the ratings without that?

First a count, which has no estimator behind it. Then length control after Dubois et al. (2024, arXiv:2404.04475): the
normalised difference in length enters the half-win Bradley-Terry fit with one coefficient gamma, without a prior.
The coefficient is shown only when it is identified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratings.engine.agreement import Wilson, wilson
from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import Comparisons
from ratings.engine.covariates import JointLikelihood, joint_fit, minimise, taken
from ratings.engine.scale import POINTS_PER_LOG_ODDS, to_display

RESAMPLES = 400
MOST_WITHOUT_GAMMA = 0.05
# Sums of length differences round a cycle that should be zero miss it by rounding.
_ROUNDING = 1e-12
_RESAMPLE_TOLERANCE = 1e-9

LengthStatus = Literal[
    "identified",
    "interval_includes_zero",
    "too_many_without_gamma",
    "not_converged",
    "no_finite_gamma",
    "no_difference_in_length",
    "no_comparisons",
]


@dataclass(frozen=True)
class LongerAnswer:
    """How often the longer answer won.

    Attributes
    ----------
    longer_won, decided : int
        Of the comparisons won by one side, with unequal known lengths, those that the longer answer won.
    share : Wilson
        The share with its 95 % interval, comparisons taken as independent.
    equal, ties, unknown : int
        Not in it: won with equal lengths, won by neither, a length unknown.
    """

    longer_won: int
    decided: int
    share: Wilson
    equal: int
    ties: int
    unknown: int


@dataclass(frozen=True, eq=False)
class LengthControl:
    """Result of `length_control`.

    Attributes
    ----------
    status : str
        ``identified``; or why not, the first that holds: ``no_comparisons``, ``no_difference_in_length``,
        ``no_finite_gamma`` (the data alone push it to an end, or cannot tell it from the strengths),
        ``not_converged``, ``too_many_without_gamma``, ``interval_includes_zero``. Show coefficient and adjusted
        ratings only when identified.
    gamma : float
        Log odds for the longer answer when the other is empty (a normalised difference of 1); infinite or NaN where
        there is no finite optimum.
    std_error : float
        From the inverse Hessian; NaN with ``gamma`` not finite.
    lower, upper : float
        95 % bootstrap limits; infinite where more than 2.5 % of resamples are without a limit on that side. NaN
        without a finite gamma.
    resamples, without_gamma : int
        Resamples drawn, and those in which no finite gamma exists or could be reached.
    log_likelihood : float
    iterations : int
    theta : (n,) array
        Length-adjusted strengths in log odds, anchored and open like those of `fit`; NaN without a finite gamma.
    plain_theta : (n,) array
        The same comparisons without length.
    comparisons, unknown : int
        Rows of the fit, and rows left out because a length is unknown.
    """

    status: LengthStatus
    gamma: float
    std_error: float
    lower: float
    upper: float
    resamples: int
    without_gamma: int
    log_likelihood: float
    iterations: int
    theta: FloatArray
    plain_theta: FloatArray
    comparisons: int
    unknown: int

    @property
    def identified(self) -> bool:
        """Whether coefficient and adjusted ratings may be shown."""
        return self.status == "identified"

    @property
    def rating(self) -> FloatArray:
        """(n,) length-adjusted display points."""
        return to_display(self.theta)

    @property
    def gap_points(self) -> FloatArray:
        """(n,) display points that a candidate's rating loses when length is priced out; NaN where open."""
        with np.errstate(invalid="ignore"):
            gap: FloatArray = POINTS_PER_LOG_ODDS * (self.plain_theta - self.theta)
        return np.where(np.isfinite(gap), gap, math.nan)


def longer_answer(comparisons: Comparisons, characters_first: ArrayLike, characters_second: ArrayLike) -> LongerAnswer:
    """Count how often the longer answer won.

    Parameters
    ----------
    comparisons : Comparisons, m rows
    characters_first, characters_second : (m,) array_like
        Lengths of the two answers in characters; NaN where unknown.

    Returns
    -------
    LongerAnswer
        Without such a comparison the counts are 0 and the share is undefined.

    Raises
    ------
    ValueError
        For lengths of another shape, negative or infinite.
    """
    first, second = _lengths(comparisons, characters_first, characters_second)
    count = _counts(comparisons)
    known = ~(np.isnan(first) | np.isnan(second))
    decisive = known & (comparisons.outcome < 2)
    unequal = decisive & (first != second)
    longer = unequal & ((first > second) == (comparisons.outcome == 0))
    decided = int(count[unequal].sum())
    return LongerAnswer(
        longer_won=int(count[longer].sum()),
        decided=decided,
        share=wilson(int(count[longer].sum()), decided),
        equal=int(count[decisive & ~unequal].sum()),
        ties=int(count[known & (comparisons.outcome == 2)].sum()),
        unknown=int(count[~known].sum()),
    )


def length_control(
    comparisons: Comparisons,
    characters_first: ArrayLike,
    characters_second: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    reference: int | None = None,
) -> LengthControl:
    """Fit the length coefficient and length-adjusted strengths, and say whether they are identified.

    Parameters
    ----------
    comparisons : Comparisons, m rows
        All rated comparisons, ties included.
    characters_first, characters_second : (m,) array_like
        Lengths of the two answers in characters; NaN where unknown. Such rows are left out and counted.
    resamples : int
        Bootstrap resamples over the rows.
    seed : int
        Of NumPy's default generator; resample b is the b-th draw of m row numbers.
    reference : int, optional
        Candidate pinned at 0.

    Returns
    -------
    LengthControl

    Raises
    ------
    ValueError
        For lengths of another shape, negative or infinite, fewer than 40 resamples, and as `fit`.

    Notes
    -----
    The covariate is (La - Lb) / (La + Lb), 0 for two empty answers. Whether a finite gamma exists is decided exactly:
    it has no bound above when strengths v exist with v_loser <= v_winner + x_winner for every win (both ways for a
    tie), x being the winner's covariate. Those are difference constraints, so they can be met unless some cycle of
    the win graph has a negative sum of x; likewise below with -x.

    Identified means: converged, the bootstrap interval excludes 0, and at most 5 % of resamples without a finite
    gamma. Those widen the interval: they stand at the end (or, where gamma cannot be told at all, at both ends).

    References
    ----------
    Dubois, Galambosi, Liang, Hashimoto (2024), arXiv:2404.04475.
    """
    if resamples < 40:
        raise ValueError(f"At least 40 resamples give limits at 2.5 %, got {resamples}.")
    first, second = _lengths(comparisons, characters_first, characters_second)
    known = ~(np.isnan(first) | np.isnan(second))
    unknown = int(_counts(comparisons)[~known].sum())
    rows = _single_rows(taken(comparisons, known))
    x = np.repeat(normalised_difference(first[known], second[known]), _counts(comparisons)[known])
    plain = fit(rows.pair_counts(), ridge=0.0, reference=reference)
    cycles = _Cycles.of(rows, x)
    unbounded = cycles.unbounded(np.ones(rows.first.size, dtype=np.bool_))
    if unbounded.any():
        status: LengthStatus = "no_finite_gamma"
        if not x.any():
            status = "no_difference_in_length" if x.size else "no_comparisons"
        return _unfitted(status, _end(unbounded), plain.theta, x.size, unknown)
    joint = joint_fit(rows, x[None, :], ties="half_win", ridge=0.0, reference=reference)
    if not joint.finite:
        return _unfitted("not_converged", math.nan, plain.theta, x.size, unknown)
    gamma = float(joint.coefficients[0])
    ends = _bootstrap(rows, x, cycles, joint.adjusted.theta, gamma, resamples, seed)
    lower, upper = _limits(ends)
    without = int((~np.isfinite(ends)).any(axis=1).sum())
    return LengthControl(
        status=_status(lower, upper, without / resamples),
        gamma=gamma,
        std_error=float(joint.std_error[0]),
        lower=lower,
        upper=upper,
        resamples=resamples,
        without_gamma=without,
        log_likelihood=joint.adjusted.log_likelihood,
        iterations=joint.adjusted.iterations,
        theta=joint.adjusted.theta,
        plain_theta=plain.theta,
        comparisons=x.size,
        unknown=unknown,
    )


def own_share(comparisons: Comparisons, differences: ArrayLike) -> float:
    """How much of a covariate's differences is not told by who answered.

    Where it is near 0 the candidates differ in it throughout and hardly from answer to answer: its coefficient and
    the strengths then stand for nearly the same thing, however sharp the fit.

    Parameters
    ----------
    comparisons : Comparisons
        Rows with their counts.
    differences : (m,) array_like
        First minus second; rows that are not finite are left out.

    Returns
    -------
    float
        One minus the share of the sum of squares that a value for each candidate explains by least squares; NaN
        where nothing differs.
    """
    x = np.asarray(differences, dtype=np.float64)
    known = np.isfinite(x)
    weight, x = _counts(comparisons)[known].astype(np.float64), x[known]
    first, second, n = comparisons.first[known], comparisons.second[known], comparisons.n_candidates
    total = float(weight @ (x * x))
    if total == 0:
        return math.nan
    gram = np.zeros((n, n))
    np.add.at(gram, (first, first), weight)
    np.add.at(gram, (second, second), weight)
    np.add.at(gram, (first, second), -weight)
    np.add.at(gram, (second, first), -weight)
    moment = np.bincount(first, weight * x, n) - np.bincount(second, weight * x, n)
    explained = float(moment @ np.linalg.lstsq(gram, moment, rcond=None)[0])
    return min(1.0, max(0.0, 1 - explained / total))


def normalised_difference(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """``(first - second) / (first + second)``, 0 where both are 0.

    Parameters
    ----------
    first, second : (m,) array_like
        Lengths, not negative.

    Returns
    -------
    (m,) array
        Between -1 and 1.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    total = one + other
    result: FloatArray = np.divide(one - other, total, out=np.zeros_like(total), where=total > 0)
    return result


def _unfitted(
    status: LengthStatus, gamma: float, plain_theta: FloatArray, comparisons: int, unknown: int
) -> LengthControl:
    return LengthControl(
        status=status,
        gamma=gamma,
        std_error=math.nan,
        lower=math.nan,
        upper=math.nan,
        resamples=0,
        without_gamma=0,
        log_likelihood=math.nan,
        iterations=0,
        theta=np.full_like(plain_theta, math.nan),
        plain_theta=plain_theta,
        comparisons=comparisons,
        unknown=unknown,
    )


def _status(lower: float, upper: float, share_without: float) -> LengthStatus:
    if share_without > MOST_WITHOUT_GAMMA:
        return "too_many_without_gamma"
    return "interval_includes_zero" if lower <= 0 <= upper else "identified"


def _end(unbounded: BoolArray) -> float:
    if unbounded.all():
        return math.nan
    return math.inf if unbounded[0] else -math.inf


@dataclass(frozen=True, eq=False)
class _Cycles:
    """The win graph laid out for exact tests on subsets of the rows.

    Attributes
    ----------
    n : int
    winner, loser : (t,) integer arrays
        One edge for each win, two for a tie.
    x : (t,) array
        Covariate of the winner minus the loser.
    row : (t,) integer array
    """

    n: int
    winner: IntArray
    loser: IntArray
    x: FloatArray
    row: IntArray

    @classmethod
    def of(cls, rows: Comparisons, x: FloatArray) -> _Cycles:
        down, up = np.flatnonzero(rows.outcome != 1), np.flatnonzero(rows.outcome != 0)
        return cls(
            rows.n_candidates,
            np.concatenate([rows.first[down], rows.second[up]]),
            np.concatenate([rows.second[down], rows.first[up]]),
            np.concatenate([x[down], -x[up]]),
            np.concatenate([down, up]),
        )

    def unbounded(self, present: BoolArray) -> BoolArray:
        """(2,) whether gamma has no bound above, and none below, given the rows present."""
        inside = present[self.row]
        edges = self.winner[inside], self.loser[inside], self.x[inside]
        return np.array([not self._negative_cycle(*edges, sign) for sign in (1.0, -1.0)])

    def groups(self, present: BoolArray) -> IntArray:
        """(n,) strong component of each candidate, given the rows present."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        inside = present[self.row]
        winner, loser = self.winner[inside], self.loser[inside]
        edges = csr_array((np.ones(winner.size), (winner, loser)), shape=(self.n, self.n))
        labels: NDArray[np.int32] = connected_components(edges, directed=True, connection="strong")[1]
        return labels.astype(np.int64)

    def _negative_cycle(self, winner: IntArray, loser: IntArray, x: FloatArray, sign: float) -> bool:
        shortest = np.full((self.n, self.n), math.inf)
        np.minimum.at(shortest, (winner, loser), sign * x)
        # Two candidates that beat each other against the sign settle it, the usual case.
        if (shortest + shortest.T).min(initial=0.0) < -_ROUNDING:
            return True
        for via in range(self.n):
            np.minimum(shortest, shortest[:, via : via + 1] + shortest[via : via + 1], out=shortest)
            if np.diag(shortest).min() < -_ROUNDING:
                return True
        return False


def _bootstrap(
    rows: Comparisons, x: FloatArray, cycles: _Cycles, theta: FloatArray, gamma: float, resamples: int, seed: int
) -> FloatArray:
    """(resamples, 2) gamma as it counts for the lower and for the upper limit; infinite where it has no optimum."""
    generator = np.random.default_rng(seed)
    likelihood = JointLikelihood.of(rows, x[None, :], "half_win")
    start = np.append(np.where(np.isfinite(theta), theta, 0.0), gamma)
    ends = np.empty((resamples, 2))
    for resample in range(resamples):
        counts = np.bincount(generator.integers(0, x.size, x.size), minlength=x.size)
        unbounded = cycles.unbounded(counts > 0)
        if unbounded.any():
            ends[resample] = _without_optimum(unbounded)
            continue
        groups = cycles.groups(counts > 0)
        # Between strong groups nothing is left to fit.
        within = counts * (groups[rows.first] == groups[rows.second])
        ends[resample] = _refit(likelihood.reweighted(within.astype(np.float64)), start, groups)
    return ends


def _without_optimum(unbounded: BoolArray) -> tuple[float, float]:
    above, below = unbounded
    return -math.inf if below else math.inf, math.inf if above else -math.inf


def _refit(likelihood: JointLikelihood, start: FloatArray, groups: IntArray) -> tuple[float, float]:
    solution = minimise(likelihood, start, groups, ridge=0.0, tolerance=_RESAMPLE_TOLERANCE)
    if not solution.converged:
        # There is an optimum, too far out to be reached in rounded numbers: it could be at either end.
        return -math.inf, math.inf
    gamma = float(solution.parameters[-1])
    return gamma, gamma


def _limits(ends: FloatArray) -> tuple[float, float]:
    # Whole order statistics, outwards: between a number and infinity there is nothing to interpolate.
    last = ends.shape[0] - 1
    lower = np.sort(ends[:, 0])[math.floor(0.025 * last)]
    upper = np.sort(ends[:, 1])[math.ceil(0.975 * last)]
    return float(lower), float(upper)


def _counts(comparisons: Comparisons) -> IntArray:
    return np.ones(comparisons.first.size, dtype=np.int64) if comparisons.count is None else comparisons.count


def _single_rows(comparisons: Comparisons) -> Comparisons:
    count = comparisons.count
    if count is None:
        return comparisons
    first, second, outcome = (
        np.repeat(column, count) for column in (comparisons.first, comparisons.second, comparisons.outcome)
    )
    return Comparisons(comparisons.n_candidates, first, second, outcome)


def _lengths(comparisons: Comparisons, first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    found = []
    for name, values in (("characters_first", first), ("characters_second", second)):
        lengths = np.asarray(values, dtype=np.float64)
        if lengths.shape != comparisons.first.shape:
            raise ValueError(f"{name} has shape {lengths.shape}; expected {comparisons.first.shape}.")
        if (lengths < 0).any() or np.isinf(lengths).any():
            raise ValueError(f"{name} must hold lengths of 0 or more, or NaN where unknown.")
        found.append(lengths)
    return found[0], found[1]
