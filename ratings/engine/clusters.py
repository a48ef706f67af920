"""Errors that allow for comparisons hanging together.

One prompt feeds many matches and one rater casts many votes, so comparisons are not independent and Fisher
errors are too small. The sandwich takes the spread of the summed scores of whole clusters instead of the
model's word for it: V = H^-1 (sum over clusters of s s') H^-1, with H the Hessian of the penalised objective
and s the gradient of a cluster's comparisons at the optimum (Liang and Zeger 1986, doi:10.1093/biomet/73.1.13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.comparisons import Comparisons, PairCounts, ordered
from ratings.engine.intervals import Z_95, Intervals, bread, intervals_of
from ratings.engine.scale import logistic

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Way = Literal["cluster", "rater", "both"]
# Rows of scores held at once.
_CLUSTERS_AT_ONCE = 16_384
# A covariance whose smallest eigenvalue is below minus this share of its largest is no covariance.
_NEGATIVE = 1e-9


@dataclass(frozen=True, eq=False)
class ClusterCounts:
    """How often each cluster holds each result.

    Attributes
    ----------
    counts : PairCounts
        Of all clusters together.
    cells : (g, 3 p) sparse integer array
        Column ``3 * pair + outcome`` with the pairs of ``counts`` and outcomes by their code, as seen from
        the pair's first candidate.
    labels : (g,) integer array
        Rising. For clusters of both ways a number for the sample times ``base`` plus one for the rater.
    base : int
    """

    counts: PairCounts
    cells: csr_array[Any]
    labels: IntArray
    base: int = 1

    @property
    def n_clusters(self) -> int:
        """Clusters with at least one comparison."""
        return self.labels.size

    @classmethod
    def of(cls, comparisons: Comparisons, way: Way = "cluster") -> ClusterCounts:
        """Count comparisons by cluster.

        Parameters
        ----------
        comparisons : Comparisons
        way : {"cluster", "rater", "both"}
            Which labels make a cluster; with ``both`` it is a pair of them.

        Raises
        ------
        ValueError
            For an unknown way, and where the comparisons have no such labels.
        """
        from scipy.sparse import csr_array

        counts = comparisons.pair_counts()
        labels, code, base = _cluster_codes(comparisons, way)
        low, high, outcome = ordered(comparisons)
        n = counts.n_candidates
        pair = np.searchsorted(counts.first * n + counts.second, low * n + high)
        weight = np.ones(low.size, dtype=np.int64) if comparisons.count is None else comparisons.count
        kept = weight > 0
        cell = (pair * 3 + outcome)[kept]
        shape = (labels.size, 3 * counts.first.size)
        return cls(counts, csr_array((weight[kept], (code[kept], cell)), shape=shape), labels, base)


def robust(fit: BradleyTerryFit, counts: PairCounts) -> Intervals:
    """Sandwich errors with every comparison a cluster of its own.

    Right where comparisons are independent but the tie model is not: ``half_win`` counts a tie as half a win
    and half a loss, which varies less than Fisher's errors assume.

    Parameters
    ----------
    fit : BradleyTerryFit
    counts : PairCounts
        Those fitted.

    Returns
    -------
    Intervals
        With normal quantiles and no small-sample correction.

    Raises
    ------
    ValueError
        If the counts have other candidates than the fit.

    References
    ----------
    Huber (1967), Proceedings of the Fifth Berkeley Symposium 1, 221-233. White (1982), doi:10.2307/1912526.
    """
    _check(fit, counts)
    inverse, free = bread(fit)
    meat = _single_meat(fit, counts)[:free, :free]
    return intervals_of(fit, inverse @ meat @ inverse, Z_95, errors="robust", fallback=inverse)


def cluster_robust(fit: BradleyTerryFit, comparisons: Comparisons | ClusterCounts) -> Intervals:
    """Sandwich errors with samples as clusters, CR1 and t.

    Parameters
    ----------
    fit : BradleyTerryFit
    comparisons : Comparisons or ClusterCounts
        Those fitted, with ``cluster`` labels.

    Returns
    -------
    Intervals
        In each block of candidates with finite differences (a component, or without a prior a strong group)
        the covariance is multiplied by G / (G - 1) and the quantile is that of t with G - 1 degrees, G being
        the clusters with comparisons inside the block. A block with fewer than two clusters says nothing
        about other samples: infinite errors, both ends open. Where the scores of all clusters vanish (each
        cluster holds the same results in perfect balance) there is no spread to go by, and Fisher's error
        stands in.

    Raises
    ------
    ValueError
        If the comparisons have no ``cluster`` labels, or other candidates than the fit.

    References
    ----------
    Cameron and Miller (2015), doi:10.3368/jhr.50.2.317, sections II and VI.
    """
    grouped = comparisons if isinstance(comparisons, ClusterCounts) else ClusterCounts.of(comparisons)
    _check(fit, grouped.counts)
    inverse, free = bread(fit)
    clusters, factor = _per_candidate(fit, grouped)
    full = _scaled(inverse @ _meat(fit, grouped)[:free, :free] @ inverse, factor)
    return intervals_of(fit, full, _t_quantiles(clusters), errors="cluster", fallback=inverse, n_clusters=clusters)


def two_way_robust(fit: BradleyTerryFit, comparisons: Comparisons) -> Intervals:
    """Sandwich errors with samples and raters as clusters at once.

    Parameters
    ----------
    fit : BradleyTerryFit
    comparisons : Comparisons
        Those fitted, with ``cluster`` and ``rater`` labels.

    Returns
    -------
    Intervals
        V = V_sample + V_rater - V_both, each term with its own CR1 factor; t quantiles with the smaller
        number of clusters less one. ``n_clusters`` is that smaller number. Where V is not a covariance (it
        has a negative eigenvalue, which happens with few clusters) V_both is not subtracted: the sum counts
        shared variance twice and so errs towards wide. ``two_way_adjusted`` says that it was so.

    Raises
    ------
    ValueError
        If either kind of label is missing, or the candidates are others than the fit's.

    References
    ----------
    Cameron, Gelbach and Miller (2011), doi:10.1198/jbes.2010.07136. Leaving out the third term: Davezies,
    D'Haultfoeuille and Guyonvarch (2021), doi:10.1214/20-AOS1981.
    """
    inverse, free = bread(fit)
    parts: dict[Way, FloatArray] = {}
    clusters: dict[Way, IntArray] = {}
    for way in ("cluster", "rater", "both"):
        grouped = ClusterCounts.of(comparisons, way)
        _check(fit, grouped.counts)
        clusters[way], factor = _per_candidate(fit, grouped)
        parts[way] = _scaled(inverse @ _meat(fit, grouped)[:free, :free] @ inverse, factor)
    together = parts["cluster"] + parts["rater"]
    full = together - parts["both"]
    eigenvalues = np.linalg.eigvalsh(full) if full.size else np.zeros(1)
    adjusted = bool(eigenvalues[0] < -_NEGATIVE * max(eigenvalues[-1], 0.0) or eigenvalues[-1] <= 0)
    fewest = np.minimum(clusters["cluster"], clusters["rater"])
    return intervals_of(
        fit,
        together if adjusted else full,
        _t_quantiles(fewest),
        errors="two_way",
        fallback=inverse,
        n_clusters=fewest,
        two_way_adjusted=adjusted,
    )


def cell_scores(fit: BradleyTerryFit, counts: PairCounts) -> csr_array[Any]:
    """Gradient of minus the log-likelihood of one comparison, for every pair and outcome.

    Parameters
    ----------
    fit : BradleyTerryFit
    counts : PairCounts

    Returns
    -------
    (3 p, k) sparse array
        Rows as the columns of `ClusterCounts.cells`; columns are the fit's parameters. Zero for pairs without
        a finite difference in the fit.
    """
    from scipy.sparse import csr_array

    n, p = counts.n_candidates, counts.first.size
    slope, eta_slope = _slopes(fit, counts)
    rows = np.arange(3 * p)
    columns = [np.repeat(counts.first, 3), np.repeat(counts.second, 3)]
    values = [slope.ravel(), -slope.ravel()]
    if fit.eta is not None:
        columns.append(np.full(3 * p, n))
        values.append(eta_slope.ravel())
    indices = (np.tile(rows, len(columns)), np.concatenate(columns))
    size = n + (fit.eta is not None)
    return csr_array((np.concatenate(values), indices), shape=(3 * p, size))


def _slopes(fit: BradleyTerryFit, counts: PairCounts) -> tuple[FloatArray, FloatArray]:
    """(p, 3) derivatives by the difference and by eta, outcomes by their code; zero for pairs set apart."""
    theta = np.where(np.isfinite(fit.theta), fit.theta, 0.0)
    d = theta[counts.first] - theta[counts.second]
    by_d, by_eta = np.zeros((d.size, 3)), np.zeros((d.size, 3))
    if fit.eta is None:
        up = logistic(d)
        by_d = np.stack([up - 1, up, up - 0.5], axis=1)
    elif np.isfinite(fit.eta):
        up, down = logistic(d - fit.eta), logistic(-d - fit.eta)
        odds = np.exp(-2 * fit.eta) / -np.expm1(-2 * fit.eta)
        by_d = np.stack([up - 1, 1 - down, up - down], axis=1)
        by_eta = np.stack([1 - up, 1 - down, -(up + down) - 2 * odds], axis=1)
    apart = fit.finite_blocks[counts.first] != fit.finite_blocks[counts.second]
    by_d[apart] = by_eta[apart] = 0.0
    return by_d, by_eta


def _single_meat(fit: BradleyTerryFit, counts: PairCounts) -> FloatArray:
    """Sum of s s' over single comparisons; scores touch two candidates and eta alone."""
    n, first, second = counts.n_candidates, counts.first, counts.second
    slope, eta_slope = _slopes(fit, counts)
    cells = np.stack([counts.wins_first, counts.wins_second, counts.ties], axis=1)
    weight = (cells * slope**2).sum(axis=1)
    size = n + (fit.eta is not None)
    meat = np.zeros((size, size))
    meat[first, second] = meat[second, first] = -weight
    meat[np.arange(n), np.arange(n)] = np.bincount(first, weight, n) + np.bincount(second, weight, n)
    if size > n:
        cross = (cells * slope * eta_slope).sum(axis=1)
        meat[:n, n] = meat[n, :n] = np.bincount(first, cross, n) - np.bincount(second, cross, n)
        meat[n, n] = (cells * eta_slope**2).sum()
    return meat


def _meat(fit: BradleyTerryFit, grouped: ClusterCounts) -> FloatArray:
    scores = cell_scores(fit, grouped.counts)
    meat = np.zeros((scores.shape[1], scores.shape[1]))
    for begin in range(0, grouped.n_clusters, _CLUSTERS_AT_ONCE):
        part = (grouped.cells[begin : begin + _CLUSTERS_AT_ONCE] @ scores).toarray()
        meat += part.T @ part
    return meat


def _per_candidate(fit: BradleyTerryFit, grouped: ClusterCounts) -> tuple[IntArray, FloatArray]:
    """(n,) clusters with comparisons inside each candidate's block, and the square root of CR1's factor."""
    counts, blocks = grouped.counts, fit.finite_blocks
    block_of_pair = np.where(
        blocks[counts.first] == blocks[counts.second], blocks[counts.first], int(blocks.max(initial=-1)) + 1
    )
    cluster, cell = grouped.cells.nonzero()
    met = np.unique(cluster.astype(np.int64) * (blocks.size + 1) + block_of_pair[cell // 3])
    n_clusters = np.bincount(met % (blocks.size + 1), minlength=blocks.size + 1)[blocks]
    factor = np.sqrt(n_clusters / np.maximum(n_clusters - 1, 1))
    return n_clusters.astype(np.int64), factor


def _scaled(covariance: FloatArray, factor: FloatArray) -> FloatArray:
    scale = np.ones(covariance.shape[0])
    scale[: factor.size] = factor
    # Eta is shared by all blocks; it takes the largest.
    scale[factor.size :] = factor.max(initial=1.0)
    return covariance * scale[:, None] * scale[None, :]


def _t_quantiles(n_clusters: IntArray) -> FloatArray:
    from scipy.special import stdtrit

    enough: BoolArray = n_clusters > 1
    quantiles = np.full(n_clusters.size, np.inf)
    quantiles[enough] = stdtrit(n_clusters[enough] - 1.0, 0.975)
    return quantiles


def _cluster_codes(comparisons: Comparisons, way: Way) -> tuple[IntArray, IntArray, int]:
    """Labels of the clusters that hold comparisons, rising; the cluster of each row; the base of joined labels."""
    if way not in ("cluster", "rater", "both"):
        raise ValueError(f"Unknown way {way!r}; expected cluster, rater or both.")
    columns = []
    for name in ("cluster", "rater") if way == "both" else (way,):
        column: IntArray | None = getattr(comparisons, name)
        if column is None:
            raise ValueError(f"The comparisons have no {name} labels.")
        columns.append(column)
    joined, base = columns[0], 1
    if len(columns) == 2:
        labels, other = _codes(columns[1])
        base = max(labels.size, 1)
        joined = _codes(columns[0])[1] * base + other
    if comparisons.count is not None:
        # A row that never occurred makes no cluster.
        known = np.unique(joined[comparisons.count > 0])
        return known, np.minimum(np.searchsorted(known, joined), max(known.size - 1, 0)), base
    return *_codes(joined), base


def _codes(labels: IntArray) -> tuple[IntArray, IntArray]:
    if labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size + 1000:
        # Without sorting, where the labels are dense.
        seen = np.zeros(int(labels.max()) + 1, dtype=np.bool_)
        seen[labels] = True
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[labels]
    known, codes = np.unique(labels, return_inverse=True)
    return known, codes.reshape(labels.shape)


def _check(fit: BradleyTerryFit, counts: PairCounts) -> None:
    if counts.n_candidates != fit.theta.size:
        raise ValueError(f"The fit has {fit.theta.size} candidates, the comparisons {counts.n_candidates}.")
