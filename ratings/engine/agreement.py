"""Do raters agree with each other, and rankings with rankings?

Votes are coded by the *model* preferred, never by the seat: raters who see swapped seats and prefer the same model
agree. Every statistic is a function of sums over units, so a bootstrap over samples reweights sums per sample.

Statistics that correct for chance are undefined where nothing varies: raters who only ever use one category show
neither agreement nor its absence. The result then has no value and a reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.comparisons import FIRST, SECOND, TIE
from ratings.engine.intervals import Z_95

BOTH_GOOD = "both_good"
BOTH_BAD = "both_bad"
MISSING = -1
RESAMPLES = 1000
FEWEST_FOR_VERDICT = 5
# With more undefined resamples than fit into the tails, the limits are those of a selection.
MOST_UNDEFINED = 0.05
_CHUNK_CELLS = 4_000_000

Coding = Literal["four_way", "ties_merged", "decisive"]
CATEGORIES: Mapping[Coding, tuple[str, ...]] = {
    "four_way": (FIRST, SECOND, BOTH_GOOD, BOTH_BAD),
    "ties_merged": (FIRST, SECOND, TIE),
    "decisive": (FIRST, SECOND),
}
_CODES: Mapping[Coding, Mapping[str, int]] = {
    "four_way": {FIRST: 0, SECOND: 1, TIE: 2, BOTH_GOOD: 2, BOTH_BAD: 3},
    "ties_merged": {FIRST: 0, SECOND: 1, TIE: 2, BOTH_GOOD: 2, BOTH_BAD: 2},
    "decisive": {FIRST: 0, SECOND: 1, TIE: MISSING, BOTH_GOOD: MISSING, BOTH_BAD: MISSING},
}
Reason = Literal["no_votes", "no_shared_units", "no_variation", "no_complete_units"]
IntervalReason = Literal["undefined", "one_sample", "many_undefined_resamples"]
Verdict = Literal["very_high", "high", "moderate", "low"]
# The words of Landis and Koch, each up to and with its bound.
LANDIS_KOCH = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"), (1.0, "almost perfect"))
_VERDICTS: tuple[tuple[float, Verdict], ...] = ((0.9, "very_high"), (0.7, "high"), (0.4, "moderate"))


@dataclass(frozen=True)
class Wilson:
    """A share with Wilson's 95 % score interval; all None without trials.

    Attributes
    ----------
    successes, trials : int
    share, lower, upper : float or None
    """

    successes: int
    trials: int
    share: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Estimate:
    """One statistic of agreement.

    Attributes
    ----------
    value : float or None
        None where undefined, never NaN.
    reason : str or None
        Why there is no value: ``no_votes``, ``no_shared_units`` (no unit has two votes), ``no_complete_units`` (no
        unit has a vote of every rater), ``no_variation`` (one category alone was used).
    label : str or None
        Landis and Koch's word; None for shares, which are not corrected for chance.
    units : int
        Units it rests on.
    lower, upper : float or None
        95 % bootstrap limits over samples.
    no_interval : str or None
        Why there are no limits: ``undefined``, ``one_sample``, ``many_undefined_resamples`` (over 5 % of them).
    resamples, undefined_resamples : int
    """

    value: float | None
    reason: Reason | None
    label: str | None
    units: int
    lower: float | None
    upper: float | None
    no_interval: IntervalReason | None
    resamples: int
    undefined_resamples: int


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of raters on units, coded by model.

    Parameters
    ----------
    codes : (u, r) integer array
        Category of each rater's vote on each unit, from 0; ``MISSING`` (-1) where there is none.
    n_categories : int
        Categories of the coding, used or not; at least 2.
    cluster : (u,) integer array, optional
        Sample of each unit, the cluster of the bootstrap; each unit its own when omitted.
    raters : tuple, optional
        Names of the r columns.

    Raises
    ------
    ValueError
        For arrays of other shapes, codes that are not integers or out of range, fewer than two categories.
    """

    codes: IntArray
    n_categories: int
    cluster: IntArray | None = None
    raters: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 2 or (codes.size and codes.dtype.kind not in "iu"):
            raise ValueError(f"codes must be a table of integers, not {codes.dtype} of shape {codes.shape}.")
        codes = codes.astype(np.int64)
        if self.n_categories < 2:
            raise ValueError(f"Agreement needs at least two categories, got {self.n_categories}.")
        if codes.size and (codes.min() < MISSING or codes.max() >= self.n_categories):
            raise ValueError(f"codes must lie between {MISSING} and {self.n_categories - 1}.")
        cluster = np.arange(codes.shape[0]) if self.cluster is None else np.asarray(self.cluster)
        if cluster.shape != (codes.shape[0],):
            raise ValueError(f"cluster has shape {cluster.shape}; expected {(codes.shape[0],)}.")
        raters = self.raters or tuple(range(codes.shape[1]))
        if len(raters) != codes.shape[1]:
            raise ValueError(f"{len(raters)} raters named for {codes.shape[1]} columns.")
        _, cluster = np.unique(cluster, return_inverse=True)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "cluster", cluster)
        object.__setattr__(self, "raters", raters)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Hashable, Hashable, str]],
        coding: Coding,
        samples: Mapping[Hashable, Hashable] | None = None,
    ) -> Votes:
        """Votes from ``(unit, rater, label)`` rows.

        Parameters
        ----------
        rows : iterable
            At most one row per unit and rater. Labels are ``first``, ``second`` (of the unit's two models, whatever
            the seats), ``tie``, ``both_good``, ``both_bad``. ``tie`` and ``both_good`` are one category.
        coding : {"four_way", "ties_merged", "decisive"}
            ``decisive`` leaves ties out as if not voted.
        samples : mapping, optional
            Sample of each unit; each unit its own when omitted.

        Raises
        ------
        ValueError
            For an unknown coding or label, and a second vote of one rater on one unit.
        KeyError
            For a unit missing from ``samples``.
        """
        if coding not in _CODES:
            raise ValueError(f"Unknown coding {coding!r}; expected one of {', '.join(_CODES)}.")
        known = _CODES[coding]
        units: dict[Hashable, int] = {}
        raters: dict[Hashable, int] = {}
        cells: dict[tuple[int, int], int] = {}
        for unit, rater, label in rows:
            if label not in known:
                raise ValueError(f"Unknown label {label!r}; expected one of {', '.join(known)}.")
            cell = units.setdefault(unit, len(units)), raters.setdefault(rater, len(raters))
            if cell in cells:
                raise ValueError(f"Rater {rater!r} has two votes on unit {unit!r}.")
            cells[cell] = known[label]
        codes = np.full((len(units), len(raters)), MISSING, dtype=np.int64)
        for (row, column), code in cells.items():
            codes[row, column] = code
        cluster = None
        if samples is not None:
            numbers: dict[Hashable, int] = {}
            cluster = np.array([numbers.setdefault(samples[unit], len(numbers)) for unit in units], dtype=np.int64)
        return cls(codes, len(CATEGORIES[coding]), cluster, tuple(raters))

    @cached_property
    def counts(self) -> IntArray:
        """(u, q) votes for each category on each unit."""
        return np.stack([(self.codes == category).sum(axis=1) for category in range(self.n_categories)], axis=1)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Result of `agreement`.

    Attributes
    ----------
    raters, units, votes : int
        Sizes of the table; units with no vote in this coding included.
    modal_share : Estimate
        Mean share of a unit's most frequent category, over units with at least two votes.
    raw : Estimate
        Mean share of agreeing pairs of votes on a unit, over the same units.
    fleiss : Estimate
        Fleiss' kappa over the units that every rater voted on.
    fleiss_gaps : Estimate
        Category shares averaged over units with a vote, agreement over units with at least two.
    alpha : Estimate
        Krippendorff's alpha for nominal data.
    ac1 : Estimate
        Gwet's AC1; defined without variation too.
    cohen : mapping of pairs of raters to Estimate
        Over the units both voted on; in the order of the raters.
    """

    raters: int
    units: int
    votes: int
    modal_share: Estimate
    raw: Estimate
    fleiss: Estimate
    fleiss_gaps: Estimate
    alpha: Estimate
    ac1: Estimate
    cohen: Mapping[tuple[Hashable, Hashable], Estimate]


@dataclass(frozen=True)
class RankAgreement:
    """Correlation of two rankings; print ``n`` beside it.

    Attributes
    ----------
    n : int
        Candidates in both.
    spearman, kendall : float or None
        Rho and tau-b, ties averaged. None for fewer than two candidates or a ranking that is all one tie.
    verdict : str or None
        ``very_high`` (rho from 0.9), ``high`` (0.7), ``moderate`` (0.4), ``low``; None under five candidates.
    """

    n: int
    spearman: float | None
    kendall: float | None
    verdict: Verdict | None


def agreement(votes: Votes, *, resamples: int = RESAMPLES, seed: int = 0, pairs: bool = True) -> Agreement:
    """All statistics of agreement of one coding.

    Parameters
    ----------
    votes : Votes
    resamples : int
        Bootstrap resamples over samples; 0 for no intervals.
    seed : int
    pairs : bool
        False leaves out Cohen's kappa of each pair of raters: among a hundred there are 4,950.

    Returns
    -------
    Agreement
        Degenerate tables have reasons in place of values: see `Estimate`.

    References
    ----------
    Fleiss (1971), doi:10.1037/h0031619. Cohen (1960), doi:10.1177/001316446002000104. Krippendorff (2004), Content
    Analysis, ch. 11. Gwet (2008), doi:10.1348/000711006X126600. Landis and Koch (1977), doi:10.2307/2529310.
    """
    counts = votes.counts
    per_vote = counts.sum(axis=1)
    weights = _Resamples(_clusters(votes), resamples, seed)
    sums = _UnitSums.of(votes)
    two, full = int((per_vote >= 2).sum()), int(sums.complete.sum())

    def estimate(
        of: Callable[[_UnitSums, FloatArray], FloatArray], units: int, reason: Reason, *, label: bool
    ) -> Estimate:
        return _estimate(lambda rows: of(sums, rows), sums.table, weights, votes, units, reason, label=label)

    return Agreement(
        raters=votes.codes.shape[1],
        units=counts.shape[0],
        votes=int(per_vote.sum()),
        modal_share=estimate(_UnitSums.modal_share, two, "no_shared_units", label=False),
        raw=estimate(_UnitSums.raw, two, "no_shared_units", label=False),
        fleiss=estimate(_UnitSums.fleiss, full, "no_complete_units", label=True),
        fleiss_gaps=estimate(_UnitSums.fleiss_gaps, two, "no_shared_units", label=True),
        alpha=estimate(_UnitSums.alpha, two, "no_shared_units", label=True),
        ac1=estimate(_UnitSums.ac1, two, "no_shared_units", label=True),
        cohen={
            (votes.raters[one], votes.raters[other]): _cohen(votes, votes.codes[:, one], votes.codes[:, other], weights)
            for one, other in itertools.combinations(range(votes.codes.shape[1]) if pairs else (), 2)
        },
    )


def by_coding(
    rows: Iterable[tuple[Hashable, Hashable, str]],
    samples: Mapping[Hashable, Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    pairs: bool = True,
) -> dict[Coding, Agreement]:
    """`agreement` in each of the three codings.

    Parameters
    ----------
    rows, samples
        As in `Votes.from_rows`.
    resamples, seed, pairs
        As in `agreement`.

    Raises
    ------
    ValueError, KeyError
        As `Votes.from_rows`.
    """
    listed = list(rows)
    return {
        coding: agreement(Votes.from_rows(listed, coding, samples), resamples=resamples, seed=seed, pairs=pairs)
        for coding in CATEGORIES
    }


def cohen(
    one: ArrayLike,
    other: ArrayLike,
    n_categories: int,
    *,
    cluster: IntArray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Cohen's kappa of two raters, of a rater and a jury, or of two juries.

    Parameters
    ----------
    one, other : (u,) integer array_like
        Categories from 0; -1 where missing.
    n_categories : int
    cluster : (u,) integer array, optional
    resamples, seed : int

    Returns
    -------
    Estimate
        Over the units both have. ``no_variation`` where both used one and the same category alone.

    Raises
    ------
    ValueError
        As `Votes`.
    """
    votes = Votes(np.stack([np.asarray(one), np.asarray(other)], axis=1), n_categories, cluster)
    weights = _Resamples(_clusters(votes), resamples, seed)
    return _cohen(votes, votes.codes[:, 0], votes.codes[:, 1], weights)


def against_others(votes: Votes, *, resamples: int = RESAMPLES, seed: int = 0) -> dict[Hashable, Estimate]:
    """Cohen's kappa of each rater against the majority of the others.

    Parameters
    ----------
    votes : Votes
    resamples, seed : int

    Returns
    -------
    dict of rater to Estimate
        Over units the rater voted on where one category has more of the other votes than each other one.
    """
    weights = _Resamples(_clusters(votes), resamples, seed)
    found = {}
    for column, rater in enumerate(votes.raters):
        own = votes.codes[:, column]
        others = votes.counts.copy()
        voted = np.flatnonzero(own != MISSING)
        others[voted, own[voted]] -= 1
        found[rater] = _cohen(votes, own, _strict_mode(others), weights)
    return found


def rank_agreement(one: ArrayLike, other: ArrayLike) -> RankAgreement:
    """Spearman's rho and Kendall's tau-b between two ratings of the same candidates.

    Parameters
    ----------
    one, other : (n,) array_like
        Ratings, larger is better; equal ones are ties, infinities included. A candidate with NaN in either is left
        out.

    Returns
    -------
    RankAgreement

    Raises
    ------
    ValueError
        For unequal lengths.
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"Rankings must be of equal length, not of shapes {a.shape} and {b.shape}.")
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    n = int(a.size)
    if n < 2 or (a == a[0]).all() or (b == b[0]).all():
        return RankAgreement(n, None, None, None)
    ranks = _average_ranks(a), _average_ranks(b)
    centred = [rank - rank.mean() for rank in ranks]
    rho = _within(_dot(centred[0], centred[1]) / math.sqrt(_dot(centred[0], centred[0]) * _dot(centred[1], centred[1])))
    signs = [np.sign(np.subtract.outer(rank, rank)).ravel() for rank in ranks]
    tau = _within(_dot(signs[0], signs[1]) / math.sqrt(_dot(signs[0], signs[0]) * _dot(signs[1], signs[1])))
    verdict: Verdict | None = None
    if n >= FEWEST_FOR_VERDICT:
        verdict = next((word for bound, word in _VERDICTS if rho >= bound), "low")
    return RankAgreement(n, rho, tau, verdict)


def wilson(successes: int, trials: int) -> Wilson:
    """A share with Wilson's score interval at 95 %.

    Parameters
    ----------
    successes, trials : int

    Returns
    -------
    Wilson
        Share and limits are None without trials.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= trials.

    References
    ----------
    Wilson (1927), doi:10.1080/01621459.1927.10502953.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials.")
    if trials == 0:
        return Wilson(0, 0, None, None, None)
    share, z2 = successes / trials, Z_95 * Z_95
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    # At a share of 0 or 1 one limit is that share exactly; rounding may miss it.
    lower = 0.0 if successes == 0 else centre - half
    upper = 1.0 if successes == trials else centre + half
    return Wilson(successes, trials, share, lower, upper)


def landis_koch(kappa: float) -> str:
    """Landis and Koch's word: ``poor`` below 0, then ``slight``, ``fair``, ``moderate``, ``substantial``, ``almost
    perfect``, each up to and with its bound of 0.2, 0.4, 0.6, 0.8, 1.

    Raises
    ------
    ValueError
        For a value that is not a number of at most 1.
    """
    if not kappa <= 1.0 + 1e-9:
        raise ValueError(f"A kappa is at most 1, got {kappa}.")
    if kappa < 0:
        return "poor"
    return next((word for bound, word in LANDIS_KOCH if kappa <= bound), LANDIS_KOCH[-1][1])


@dataclass(frozen=True, eq=False)
class _UnitSums:
    """Per unit, the columns whose sums every statistic is a function of; statistics take (b, f) rows of sums."""

    table: FloatArray
    complete: BoolArray
    q: int

    @classmethod
    def of(cls, votes: Votes) -> _UnitSums:
        counts = votes.counts.astype(np.float64)
        m = counts.sum(axis=1)
        squares = (counts * counts).sum(axis=1)
        two, one = m >= 2, m >= 1
        complete = two & (m == votes.codes.shape[1])
        pairs = np.where(two, m * (m - 1), 1.0)
        agreeing = np.where(two, (squares - m) / pairs, 0.0)
        modal = np.where(two, counts.max(axis=1, initial=0.0) / np.maximum(m, 1.0), 0.0)
        disagreeing = np.where(two, (m * m - squares) / np.where(two, m - 1, 1.0), 0.0)
        shares = counts / np.maximum(m, 1.0)[:, None]
        scalars = [modal, two, agreeing, one, agreeing * complete, complete, disagreeing]
        columns = np.stack([np.asarray(column, dtype=np.float64) for column in scalars], axis=1)
        table = np.concatenate([columns, shares, counts * complete[:, None], counts * two[:, None]], axis=1)
        return cls(table, complete, votes.n_categories)

    def _shares(self, rows: FloatArray, block: int) -> FloatArray:
        start = 7 + block * self.q
        return rows[:, start : start + self.q]

    def modal_share(self, rows: FloatArray) -> FloatArray:
        return _over(rows[:, 0], rows[:, 1])

    def raw(self, rows: FloatArray) -> FloatArray:
        return _over(rows[:, 2], rows[:, 1])

    def fleiss(self, rows: FloatArray) -> FloatArray:
        totals = self._shares(rows, 1)
        return _corrected(_over(rows[:, 4], rows[:, 5]), _over(totals, totals.sum(axis=1)[:, None]))

    def fleiss_gaps(self, rows: FloatArray) -> FloatArray:
        return _corrected(self.raw(rows), _over(self._shares(rows, 0), rows[:, 3:4]))

    def alpha(self, rows: FloatArray) -> FloatArray:
        totals = self._shares(rows, 2)
        n = totals.sum(axis=1)
        expected = n * n - (totals * totals).sum(axis=1)
        return 1.0 - _over((n - 1) * rows[:, 6], expected)

    def ac1(self, rows: FloatArray) -> FloatArray:
        shares = _over(self._shares(rows, 0), rows[:, 3:4])
        expected = (shares * (1 - shares)).sum(axis=1) / (self.q - 1)
        corrected: FloatArray = (self.raw(rows) - expected) / (1 - expected)
        return corrected


class _Resamples:
    """Weights of clusters, the same for every statistic of a table."""

    def __init__(self, cluster: IntArray, resamples: int, seed: int) -> None:
        if resamples < 0:
            raise ValueError(f"resamples must not be negative, got {resamples}.")
        self.cluster = cluster
        self.n_clusters = int(cluster.max(initial=-1)) + 1
        self.resamples = resamples if self.n_clusters > 1 else 0
        self._seed = seed

    def sums(self, table: FloatArray) -> FloatArray:
        """(resamples, f) sums of the units' columns, samples drawn with replacement."""
        per_cluster = np.stack([np.bincount(self.cluster, column, self.n_clusters) for column in table.T], axis=1)
        rng = np.random.default_rng(self._seed)
        even = np.full(self.n_clusters, 1.0 / max(self.n_clusters, 1))
        chunk = max(1, _CHUNK_CELLS // max(self.n_clusters, 1))
        parts = [np.zeros((0, table.shape[1]))]
        for begin in range(0, self.resamples, chunk):
            drawn = rng.multinomial(self.n_clusters, even, size=min(chunk, self.resamples - begin))
            parts.append(drawn.astype(np.float64) @ per_cluster)
        return np.concatenate(parts)


def _estimate(
    statistic: Callable[[FloatArray], FloatArray],
    table: FloatArray,
    weights: _Resamples,
    votes: Votes,
    units: int,
    without_units: Reason,
    *,
    label: bool,
) -> Estimate:
    value = float(statistic(table.sum(axis=0)[None, :])[0]) if units else math.nan
    if math.isnan(value):
        reason: Reason = "no_variation" if units else without_units
        if not (votes.codes != MISSING).any():
            reason = "no_votes"
        return Estimate(None, reason, None, units, None, None, "undefined", 0, 0)
    word = landis_koch(value) if label else None
    if weights.n_clusters < 2:
        return Estimate(value, None, word, units, None, None, "one_sample", 0, 0)
    values = statistic(weights.sums(table))
    defined = values[~np.isnan(values)]
    undefined = values.size - defined.size
    if defined.size == 0 or undefined > MOST_UNDEFINED * values.size:
        why: IntervalReason | None = "many_undefined_resamples" if values.size else None
        return Estimate(value, None, word, units, None, None, why, values.size, undefined)
    lower, upper = (float(limit) for limit in np.quantile(defined, [0.025, 0.975]))
    return Estimate(value, None, word, units, lower, upper, None, values.size, undefined)


def _cohen(votes: Votes, one: IntArray, other: IntArray, weights: _Resamples) -> Estimate:
    q = votes.n_categories
    shared = (one != MISSING) & (other != MISSING)
    table = np.zeros((one.size, q * q))
    table[np.flatnonzero(shared), one[shared] * q + other[shared]] = 1.0

    def kappa(rows: FloatArray) -> FloatArray:
        total = rows.sum(axis=1)
        square = _over(rows, total[:, None]).reshape(-1, q, q)
        expected = (square.sum(axis=2) * square.sum(axis=1)).sum(axis=1)
        observed: FloatArray = np.einsum("bii->b", square)
        return _chance_corrected(observed, expected)

    return _estimate(kappa, table, weights, votes, int(shared.sum()), "no_shared_units", label=True)


def _corrected(observed: FloatArray, shares: FloatArray) -> FloatArray:
    return _chance_corrected(observed, (shares * shares).sum(axis=1))


def _chance_corrected(observed: FloatArray, expected: FloatArray) -> FloatArray:
    # Agreement expected to be complete: one category alone. Shares of 1 may miss it by rounding.
    left = 1.0 - expected
    corrected: FloatArray = _over(observed - expected, np.where(left > 1e-12, left, 0.0))
    return corrected


def _over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """The quotient, NaN where the denominator is 0."""
    result: FloatArray = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), math.nan)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def _strict_mode(counts: IntArray) -> IntArray:
    highest = counts.max(axis=1, keepdims=True, initial=0)
    alone = ((counts == highest).sum(axis=1) == 1) & (highest[:, 0] > 0)
    found: IntArray = np.where(alone, counts.argmax(axis=1), MISSING)
    return found


def _clusters(votes: Votes) -> IntArray:
    assert votes.cluster is not None  # Filled in on construction.
    return votes.cluster


def _average_ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2)[inverse]
    return ranks


def _dot(x: FloatArray, y: FloatArray) -> float:
    return float(np.einsum("i,i->", x, y))


def _within(correlation: float) -> float:
    return min(1.0, max(-1.0, correlation))
