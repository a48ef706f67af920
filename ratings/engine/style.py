"""Style control: what the look of an answer is worth to raters, and ratings at equal looks.

Differences in style between the two answers enter the Bradley-Terry model as covariates, fitted together with the
strengths (Chiang et al. 2024, arXiv:2403.04132, section on style; Li et al. 2024 for LMArena). A feature is divided by
its standard deviation and not centred: equal answers must differ by zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import BoolArray, FloatArray
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.comparisons import Comparisons
from ratings.engine.covariates import JointFit, joint_fit, taken
from ratings.engine.intervals import Z_95, Intervals, fisher
from ratings.engine.likelihood import TieModel
from ratings.engine.scale import POINTS_PER_LOG_ODDS, error_to_display, to_display

STYLE_RIDGE = 0.05
POSITION = "position"
FEATURES = (POSITION, "verbosity", "formatting", "latency_ttft", "latency_duration")
# A feature unknown in this share of the rows would cost the fit as many rows as it keeps.
MOST_MISSING = 0.5
# A standard deviation below this share of the largest difference is rounding.
_ROUNDING = 1e-12

LeftOutReason = Literal["missing", "no_variation"]
StyleProblem = Literal["no_comparisons", "no_feature", "all_ties", "no_finite_optimum", "not_converged"]
Direction = Literal["higher", "lower", "unclear"]


@dataclass(frozen=True)
class StyleFinding:
    """What a coefficient says, for a page to put into words.

    Attributes
    ----------
    feature : str
    points, lower, upper : float
        Display points that one ``step`` of the feature is worth to raters, with 95 % limits.
    step : float
        In the feature's own unit: one standard deviation of its differences; 1, the seat, for ``position``.
    direction : {"higher", "lower", "unclear"}
        Raters prefer the answer with more of it, with less of it, or the interval holds 0. ``higher`` of
        ``position`` is the seat counted as +1.
    """

    feature: str
    points: float
    lower: float
    upper: float
    step: float
    direction: Direction

    def points_for(self, amount: float) -> float:
        """Display points of a difference of ``amount`` in the feature's own unit."""
        return self.points / self.step * amount


@dataclass(frozen=True)
class StyleCoefficient:
    """One coefficient of a style fit.

    Attributes
    ----------
    feature : str
    value, std_error : float
        Log odds per ``scale`` of the feature.
    scale : float
        What the feature was divided by, in its own unit.
    """

    feature: str
    value: float
    std_error: float
    scale: float

    def finding(self) -> StyleFinding:
        """Effect, interval and direction in display points."""
        half = Z_95 * self.std_error
        lower, upper = self.value - half, self.value + half
        direction: Direction = "unclear"
        if lower > 0:
            direction = "higher"
        elif upper < 0:
            direction = "lower"
        points, low, high = (POINTS_PER_LOG_ODDS * value for value in (self.value, lower, upper))
        return StyleFinding(self.feature, points, low, high, self.scale, direction)


@dataclass(frozen=True, eq=False)
class StyleFit:
    """Result of `style_fit`.

    Attributes
    ----------
    problem : str or None
        Why nothing may be shown: ``no_comparisons`` (none with all features known), ``no_feature`` (none left that
        varies), ``all_ties``, ``no_finite_optimum`` (only with a ridge of 0, or where eta has none), or
        ``not_converged``. Then there are no coefficients and ``strengths`` is the plain fit.
    strengths : BradleyTerryFit
        Style-controlled; errors of `fisher` on it allow for the coefficients being fitted.
    intervals : Intervals
        Of ``strengths``.
    plain : BradleyTerryFit
        The same rows, tie model and ridge without features.
    coefficients : tuple of StyleCoefficient
        In the order the features were given.
    covariance : (k, k) array
        Of the coefficients.
    left_out : dict of feature to reason
        ``missing`` (unknown in too many rows) or ``no_variation``.
    comparisons : int
        Comparisons in the fit.
    rows_missing : int
        Comparisons left out because a feature of the fit is unknown.
    missing : dict of feature to int
        Comparisons in which it is unknown, of all given.
    """

    problem: StyleProblem | None
    strengths: BradleyTerryFit
    intervals: Intervals
    plain: BradleyTerryFit
    coefficients: tuple[StyleCoefficient, ...]
    covariance: FloatArray
    left_out: Mapping[str, LeftOutReason]
    comparisons: int
    rows_missing: int
    missing: Mapping[str, int]

    @property
    def rating(self) -> FloatArray:
        """(n,) style-controlled display points, each component around 1000; NaN without comparisons."""
        return np.where(self._isolated, math.nan, to_display(self.strengths.theta))

    @property
    def rating_std_error(self) -> FloatArray:
        """(n,) in display points; NaN without comparisons."""
        return np.where(self._isolated, math.nan, error_to_display(self.intervals.std_error))

    @property
    def ci_lower(self) -> FloatArray:
        """(n,) in display points, infinite at an open end; NaN without comparisons."""
        return np.where(self._isolated, math.nan, to_display(self.intervals.lower))

    @property
    def ci_upper(self) -> FloatArray:
        """(n,) in display points, infinite at an open end; NaN without comparisons."""
        return np.where(self._isolated, math.nan, to_display(self.intervals.upper))

    @property
    def _isolated(self) -> BoolArray:
        components = self.plain.components
        alone: BoolArray = np.bincount(components, minlength=1)[components] == 1
        return alone

    @property
    def gap_points(self) -> FloatArray:
        """(n,) display points that a candidate's rating loses at equal style; NaN where open."""
        with np.errstate(invalid="ignore"):
            gap: FloatArray = POINTS_PER_LOG_ODDS * (self.plain.theta - self.strengths.theta)
        return np.where(np.isfinite(gap), gap, math.nan)

    def findings(self) -> tuple[StyleFinding, ...]:
        """`StyleCoefficient.finding` of each coefficient."""
        return tuple(coefficient.finding() for coefficient in self.coefficients)


def style_fit(
    comparisons: Comparisons,
    features: Mapping[str, ArrayLike],
    *,
    ties: TieModel = "rao_kupper",
    ridge: float = STYLE_RIDGE,
    reference: int | None = None,
    most_missing: float = MOST_MISSING,
) -> StyleFit:
    """Fit strengths and style coefficients together.

    Parameters
    ----------
    comparisons : Comparisons, m rows
    features : mapping of str to (m,) array_like
        Differences of ``first`` minus ``second`` in the feature's own unit, NaN where unknown. ``position`` is +1
        where ``first`` had the seat whose advantage is asked for (the left one), -1 where ``second`` had it, 0 where
        both orders were judged. Of the others, `FEATURES` names the usual ones: output tokens, markdown density,
        milliseconds to the first token and to the last.
    ties : {"half_win", "rao_kupper"}
    ridge : float
        Precision of the prior on strengths and on coefficients (per standard deviation), never on eta.
    reference : int, optional
        Candidate pinned at 0; else each component sums to zero.
    most_missing : float
        A feature unknown in this share of the comparisons or more is left out, instead of the comparisons.

    Returns
    -------
    StyleFit
        Comparisons with an unknown value of a feature that is kept are left out and counted; an unknown value is
        never taken as 0. What features and strengths cannot tell apart (answers of equal length for each candidate,
        say) is split by the prior, and the errors show it.

    Raises
    ------
    ValueError
        For a feature of another shape or infinite, positions other than -1, 0 and 1, ``most_missing`` outside 0 to
        1, and as `fit`.

    Notes
    -----
    The standard deviation is that of differences as seated, +1 minus -1. A comparison without a seat counts in both
    directions, half each, so that swapping ``first`` and ``second`` changes nothing. Without ``position`` it is that
    of the differences as given. ``position`` itself is not scaled: its step is the seat.

    References
    ----------
    Chiang et al. (2024), arXiv:2403.04132. Rao and Kupper (1967), doi:10.1080/01621459.1967.10482901.
    """
    if not 0 <= most_missing <= 1:
        raise ValueError(f"most_missing must lie between 0 and 1, got {most_missing}.")
    columns = _checked(comparisons, features)
    count = np.ones(comparisons.first.size) if comparisons.count is None else comparisons.count.astype(np.float64)
    total = float(count.sum())
    missing = {name: int(count[np.isnan(values)].sum()) for name, values in columns.items()}
    left_out: dict[str, LeftOutReason] = {
        name: "missing" for name in columns if missing[name] and missing[name] >= most_missing * total
    }
    known = np.ones(count.size, dtype=np.bool_)
    for name in columns.keys() - left_out.keys():
        known &= ~np.isnan(columns[name])
    rows = taken(comparisons, known)
    kept = {name: values[known] for name, values in columns.items() if name not in left_out}
    seat = kept.get(POSITION, np.ones(rows.first.size))
    scales = {name: _scale(name, values, seat, count[known]) for name, values in kept.items()}
    left_out |= {name: "no_variation" for name, scale in scales.items() if scale == 0 and count[known].any()}
    names = [name for name, scale in scales.items() if scale > 0]
    x = np.stack([kept[name] / scales[name] for name in names]) if names else np.zeros((0, rows.first.size))
    joint = joint_fit(rows, x, ties=ties, ridge=ridge, reference=reference)
    problem = _problem(rows, joint, names)
    strengths = joint.plain if problem else joint.adjusted
    return StyleFit(
        problem=problem,
        strengths=strengths,
        intervals=fisher(strengths),
        plain=joint.plain,
        coefficients=() if problem else _coefficients(names, joint, scales),
        covariance=np.zeros((0, 0)) if problem else joint.covariance,
        left_out=left_out,
        comparisons=int(count[known].sum()),
        rows_missing=int(count[~known].sum()),
        missing=missing,
    )


def _checked(comparisons: Comparisons, features: Mapping[str, ArrayLike]) -> dict[str, FloatArray]:
    columns = {}
    for name, values in features.items():
        column = np.asarray(values, dtype=np.float64)
        if column.shape != comparisons.first.shape:
            raise ValueError(f"Feature {name} has shape {column.shape}; expected {comparisons.first.shape}.")
        if np.isinf(column).any():
            raise ValueError(f"Feature {name} holds an infinite value.")
        if name == POSITION and not np.isin(column, (-1.0, 0.0, 1.0)).all():
            raise ValueError("position must be -1, 0 or 1 in every row.")
        columns[name] = column
    return columns


def _scale(name: str, values: FloatArray, seat: FloatArray, count: FloatArray) -> float:
    """The standard deviation as seated; 0 where nothing can be learnt from the feature."""
    total = float(count.sum())
    if total == 0:
        return 0.0
    inside: BoolArray = count > 0
    largest = float(np.abs(values[inside]).max())
    if name == POSITION:
        return largest
    seated = values * seat
    mean = float((count * seated).sum()) / total
    squares = np.where(seat == 0, values * values + mean * mean, (seated - mean) ** 2)
    deviation = math.sqrt(float((count * squares).sum()) / total)
    return deviation if deviation > _ROUNDING * largest else 0.0


def _problem(rows: Comparisons, joint: JointFit, names: list[str]) -> StyleProblem | None:
    counts = joint.plain.connectivity
    if counts.n_components == rows.n_candidates:
        return "no_comparisons"
    if not names:
        return "no_feature"
    if joint.finite:
        return None
    present = rows.outcome if rows.count is None else rows.outcome[rows.count > 0]
    if (present == 2).all():
        return "all_ties"
    return "no_finite_optimum" if joint.adjusted.ridge == 0 or joint.plain.eta == math.inf else "not_converged"


def _coefficients(names: list[str], joint: JointFit, scales: Mapping[str, float]) -> tuple[StyleCoefficient, ...]:
    values = zip(names, joint.coefficients, joint.std_error, strict=True)
    return tuple(StyleCoefficient(name, float(value), float(error), scales[name]) for name, value, error in values)
