"""Resampled fits, and which of their ends the resample leaves open.

In a resample of few comparisons somebody is often unbeaten, and no finite optimum exists. A small prior would
then make up the end of the interval: its length would depend on the prior alone. So every resample is tested
exactly (strong groups of its win graph; with fitted ties also the direction along which eta runs away), and
what it leaves open enters as an infinite value. An end of an interval is open when more than 2.5 % of the
resamples leave it open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.batch import Batch, solve
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.clusters import ClusterCounts
from ratings.engine.comparisons import Comparisons, PairCounts
from ratings.engine.connectivity import eta_direction
from ratings.engine.draws import generator
from ratings.engine.intervals import bread
from ratings.engine.newton import same_block

RESAMPLES = 1_000
TAIL = 0.025
By = Literal["comparison", "cluster", "rater", "both"]
# Numbers held at once per array: some hundred resamples of a small board, a few of a large one.
_NUMBERS_AT_ONCE = 400_000
_WEIGHTS_AT_ONCE = 4_000_000
_POISSON_FROM = 2_000


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Strengths in every resample.

    Attributes
    ----------
    theta : (b, n) array
        Anchored log-strengths. ``inf`` or ``-inf`` where the resample leaves the candidate unbounded on that
        side of its component's core, NaN where on both. The core of a resample without a finite optimum is
        put at the level that its members have in the fit of all the data.
    levels : (b, n) array
        Finite log-strengths; two of them compare in a resample only where ``rises`` is False both ways.
    unbounded : (f,) integer array
        Resamples without a finite optimum.
    rises : (f, n, n) bool array
        Whether the strength of row less that of column has no upper bound in such a resample.
    components : (n,) integer array
    open_above, open_below : (n,) bool arrays
        All the data, or more than 2.5 % of the resamples, leave the candidate unbounded on that side.
    not_converged : int
        Resamples whose fit did not converge; they count as open on all sides.
    by : {"comparison", "cluster", "rater", "both"}
        What was drawn with replacement.
    seed : int
    """

    theta: FloatArray
    levels: FloatArray
    unbounded: IntArray
    rises: BoolArray
    components: IntArray
    open_above: BoolArray
    open_below: BoolArray
    not_converged: int
    by: By
    seed: int

    @property
    def n_resamples(self) -> int:
        """Resamples drawn."""
        return int(self.theta.shape[0])

    @property
    def tail(self) -> int:
        """Resamples that may lie beyond one end of a 95 % interval."""
        return int(TAIL * self.n_resamples)

    @property
    def lower(self) -> FloatArray:
        """(n,) lower 95 % percentile limits in log odds; ``-inf`` at an open end."""
        below = np.sort(np.where(np.isnan(self.theta), -np.inf, self.theta), axis=0)[self.tail]
        return np.where(self.open_below, -np.inf, below)

    @property
    def upper(self) -> FloatArray:
        """(n,) upper 95 % percentile limits in log odds; ``inf`` at an open end."""
        above = np.sort(np.where(np.isnan(self.theta), np.inf, self.theta), axis=0)[self.n_resamples - 1 - self.tail]
        return np.where(self.open_above, np.inf, above)

    @property
    def std_error(self) -> FloatArray:
        """(n,) standard deviation over resamples in log odds; infinite where an end is open.

        Resamples that leave the candidate unbounded are left out where they are too few to open an end.
        """
        finite = np.isfinite(self.theta)
        count = np.maximum(finite.sum(axis=0), 1)
        values = np.where(finite, self.theta, 0.0)
        spread = np.where(finite, values - values.sum(axis=0) / count, 0.0)
        error = np.sqrt((spread**2).sum(axis=0) / np.maximum(count - 1, 1))
        return np.where(self.open_above | self.open_below, np.inf, error)

    def difference(self, candidate: int, other: int) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest difference of two strengths that each resample allows.

        Parameters
        ----------
        candidate, other : int
            Of one component.

        Returns
        -------
        low, high : (b,) arrays
            Equal where the resample settles the difference, which may be infinite; ``-inf`` and ``inf`` where
            it says nothing.

        Raises
        ------
        ValueError
            For candidates of two components.
        """
        if self.components[candidate] != self.components[other]:
            raise ValueError(f"Candidates {candidate} and {other} were never compared, not even through others.")
        low = self.levels[:, candidate] - self.levels[:, other]
        high = low.copy()
        up, down = self.rises[:, candidate, other], self.rises[:, other, candidate]
        low[self.unbounded[up]] = np.inf
        high[self.unbounded[down]] = -np.inf
        low[self.unbounded[down]] = -np.inf
        high[self.unbounded[up]] = np.inf
        return low, high


def bootstrap(
    fit: BradleyTerryFit,
    data: PairCounts | Comparisons | ClusterCounts,
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    by: By | None = None,
) -> Bootstrap:
    """Fit resamples of the data, with the tie model, prior and anchor of a fit.

    Parameters
    ----------
    fit : BradleyTerryFit
        Of all the data.
    data : PairCounts, Comparisons or ClusterCounts
    n_resamples : int
    seed : int
        Same seed and data, same resamples, whatever the machine.
    by : {"comparison", "cluster", "rater", "both"}, optional
        What is drawn with replacement. ``comparison``: single comparisons, a multinomial over the counts;
        ``cluster`` and ``rater``: whole clusters; ``both``: samples and raters independently, a comparison
        occurring as often as the product says (Owen 2007, doi:10.1214/07-AOAS122). When omitted, whatever
        the data have labels for.

    Returns
    -------
    Bootstrap

    Raises
    ------
    ValueError
        If ``n_resamples`` is not positive, the labels asked for are missing, or the data have other
        candidates than the fit.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 6 and 13.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be positive, got {n_resamples}.")
    counts, way, source = _source(data, by, seed)
    n = counts.n_candidates
    if n != fit.theta.size:
        raise ValueError(f"The fit has {fit.theta.size} candidates, the data {n}.")
    worker = _Resampler(fit, counts)
    width = max(1, min(n_resamples, _NUMBERS_AT_ONCE // max(counts.first.size, 1), _WEIGHTS_AT_ONCE // source.width))
    parts: list[_Part] = []
    for begin in range(0, n_resamples, width):
        draws = source.draw(min(width, n_resamples - begin))
        parts.append(worker.fit(draws, begin))
    theta = np.concatenate([part.theta for part in parts])
    allowed = int(TAIL * n_resamples)
    nowhere = np.isnan(theta)
    return Bootstrap(
        theta=theta,
        levels=np.concatenate([part.levels for part in parts]),
        unbounded=np.concatenate([part.unbounded for part in parts]),
        rises=np.concatenate([part.rises for part in parts]),
        components=fit.components,
        open_above=fit.bounds.above | (((theta == np.inf) | nowhere).sum(axis=0) > allowed),
        open_below=fit.bounds.below | (((theta == -np.inf) | nowhere).sum(axis=0) > allowed),
        not_converged=sum(part.not_converged for part in parts),
        by=way,
        seed=seed,
    )


class _Multinomial:
    """Single comparisons drawn with replacement."""

    def __init__(self, counts: PairCounts, rng: np.random.Generator) -> None:
        cells = np.stack([counts.wins_first, counts.wins_second, counts.ties], axis=1).ravel()
        self._held = np.flatnonzero(cells)
        self._size = cells.size
        self._total = counts.total
        self._share = cells[self._held] / max(self._total, 1)
        self._rng = rng
        self.width = max(1, self._held.size)

    def draw(self, n_resamples: int) -> FloatArray:
        draws = np.zeros((self._size, n_resamples))
        if not self._held.size:
            return draws
        if self._total < _POISSON_FROM:
            draws[self._held] = self._rng.multinomial(self._total, self._share, n_resamples).T
            return draws
        drawn = self._poisson(n_resamples)
        draws[self._held] = drawn
        return draws

    def _poisson(self, n_resamples: int) -> IntArray:
        """The same multinomial, from Poisson counts, which take a third of the time.

        Given their sum M, Poisson counts are multinomial with M trials. A sum above the total is drawn anew,
        which leaves that true; N - M single comparisons make up the rest.
        """
        mean = self._total - 2 * np.sqrt(self._total)
        rates = (self._share * mean)[:, None]
        drawn = self._rng.poisson(rates, (self._held.size, n_resamples))
        while (over := np.flatnonzero(drawn.sum(axis=0) > self._total)).size:
            drawn[:, over] = self._rng.poisson(rates, (self._held.size, over.size))
        missing = self._total - drawn.sum(axis=0)
        cumulated = np.cumsum(self._share)
        cell = np.searchsorted(cumulated, self._rng.random(int(missing.sum())) * cumulated[-1], side="right")
        column = np.repeat(np.arange(n_resamples), missing)
        rest = np.bincount(np.minimum(cell, self._held.size - 1) * n_resamples + column, minlength=drawn.size)
        together: IntArray = drawn + rest.reshape(drawn.shape)
        return together


class _Clusters:
    """Whole clusters drawn with replacement; with two ways, each on its own."""

    def __init__(self, cells: Any, ways: list[tuple[IntArray, int]], rngs: list[np.random.Generator]) -> None:
        self._cells = cells.T.tocsr().astype(np.float64)
        self._ways = list(zip(ways, rngs, strict=True))
        self.width = max(1, cells.shape[0], *(size for _, size in ways))

    def draw(self, n_resamples: int) -> FloatArray:
        weights = np.ones((self._cells.shape[1], n_resamples))
        for (code, size), rng in self._ways:
            for column in range(n_resamples):
                drawn = np.bincount(rng.integers(0, size, size), minlength=size) if size else np.zeros(0)
                weights[:, column] *= drawn[code]
        return np.asarray(self._cells @ weights, dtype=np.float64)


def _source(
    data: PairCounts | Comparisons | ClusterCounts, by: By | None, seed: int
) -> tuple[PairCounts, By, _Multinomial | _Clusters]:
    if isinstance(data, ClusterCounts):
        every = np.arange(data.n_clusters)
        clusters = _Clusters(data.cells, [(every, every.size)], [generator(seed, "bootstrap cluster")])
        return data.counts, "cluster", clusters
    if isinstance(data, Comparisons) and by is None:
        has_cluster, has_rater = data.cluster is not None, data.rater is not None
        by = "both" if has_cluster and has_rater else "cluster" if has_cluster else "rater" if has_rater else None
    if by is None or by == "comparison":
        counts = data if isinstance(data, PairCounts) else data.pair_counts()
        return counts, "comparison", _Multinomial(counts, generator(seed, "bootstrap"))
    if isinstance(data, PairCounts):
        raise ValueError(f"Pair counts have no {by} labels.")
    grouped = ClusterCounts.of(data, by)
    if by == "both":
        ways = [_positions(grouped.labels // grouped.base), _positions(grouped.labels % grouped.base)]
    else:
        ways = [(np.arange(grouped.n_clusters), grouped.n_clusters)]
    rngs = [generator(seed, f"bootstrap {name}") for name in ("cluster", "rater")[: len(ways)]]
    return grouped.counts, by, _Clusters(grouped.cells, ways, rngs)


def _positions(labels: IntArray) -> tuple[IntArray, int]:
    known, codes = np.unique(labels, return_inverse=True)
    return codes.reshape(labels.shape), known.size


@dataclass(frozen=True, eq=False)
class _Part:
    theta: FloatArray
    levels: FloatArray
    unbounded: IntArray
    rises: BoolArray
    not_converged: int


class _Resampler:
    """Fits columns of drawn counts."""

    def __init__(self, fit: BradleyTerryFit, counts: PairCounts) -> None:
        self._fit, self._counts = fit, counts
        self._n = counts.n_candidates
        self._same = same_block(fit.components)
        finite = np.isfinite(fit.theta)
        self._start = np.where(finite, fit.theta, 0.0)
        self._inverse: FloatArray | None = None
        if fit.eta is not None:
            self._start = np.append(self._start, fit.eta if np.isfinite(fit.eta) else 1.0)
        if fit.ridge > 0 and fit.reference is not None:
            # The prior holds strengths towards nought, not towards the pinned candidate.
            self._start[: self._n] -= _component_means(self._start[: self._n], fit.components)
        if (fit.ridge > 0 or fit.connectivity.strongly_connected) and fit.eta != np.inf:
            inverse, size = bread(fit)
            self._inverse = np.zeros((self._start.size, self._start.size))
            self._inverse[:size, :size] = inverse
        _, self._representatives = np.unique(fit.components, return_index=True)

    def fit(self, draws: FloatArray, begin: int) -> _Part:
        won, lost, tied = (draws[outcome::3] for outcome in range(3))
        beat = self._edges(won, lost, tied)
        failing = np.flatnonzero(~self._one_group(beat))
        reach = _closure(beat[failing])
        running = self._running_eta(won, lost, tied)
        failing, reach = self._joined(failing, reach, np.array(sorted(running), dtype=np.int64))
        mutual = reach & reach.transpose(0, 2, 1)
        levels, converged = self._levels(won, lost, tied, failing, mutual, running)
        rises = self._same & ~reach.transpose(0, 2, 1)
        above, below = self._open_ends(reach, mutual)
        for position, column in enumerate(failing.tolist()):
            if column in running:
                self._run_away(running[column], rises[position], above[position], below[position])
        lost_ones = np.flatnonzero(~converged)
        if lost_ones.size:
            failing, rises, above, below = self._unknown(failing, rises, above, below, lost_ones)
        theta = self._anchored(levels, failing, above, below)
        return _Part(theta, levels, failing + begin, rises, int(lost_ones.size))

    def _edges(self, won: FloatArray, lost: FloatArray, tied: FloatArray) -> BoolArray:
        first, second = self._counts.first, self._counts.second
        beat = np.zeros((won.shape[1], self._n, self._n), dtype=np.bool_)
        drawn = tied > 0
        beat[:, first, second] = ((won > 0) | drawn).T
        beat[:, second, first] = ((lost > 0) | drawn).T
        return beat

    def _one_group(self, beat: BoolArray) -> BoolArray:
        """(b,) whether every component of the data is still strongly connected."""
        return self._all_reached(beat) & self._all_reached(beat.transpose(0, 2, 1))

    def _all_reached(self, beat: BoolArray) -> BoolArray:
        reached = np.zeros(beat.shape[:2], dtype=np.bool_)
        reached[:, self._representatives] = True
        frontier = reached
        while frontier.any():
            frontier = (frontier[:, :, None] & beat).any(axis=1) & ~reached
            reached = reached | frontier
        return np.asarray(reached.all(axis=1), dtype=np.bool_)

    def _running_eta(self, won: FloatArray, lost: FloatArray, tied: FloatArray) -> dict[int, FloatArray]:
        """Resamples in which eta has no upper bound, and how far strengths rise with it."""
        if self._fit.eta is None:
            return {}
        suspects = np.flatnonzero((tied > 0).any(axis=0) & ~((won > 0) & (lost > 0)).any(axis=0))
        running = {}
        for column in suspects.tolist():
            columns = [drawn[:, column].astype(np.int64) for drawn in (won, lost, tied)]
            met = np.flatnonzero(sum(columns))
            first, second = self._counts.first[met], self._counts.second[met]
            drawn = PairCounts(self._n, first, second, *(column[met] for column in columns))
            direction = eta_direction(drawn)
            if direction is not None:
                running[column] = direction
        return running

    def _joined(self, failing: IntArray, reach: BoolArray, running: IntArray) -> tuple[IntArray, BoolArray]:
        more = np.setdiff1d(running, failing)
        if not more.size:
            return failing, reach
        whole = np.broadcast_to(self._same, (more.size, self._n, self._n))
        joined = np.concatenate([failing, more])
        order = np.argsort(joined)
        return joined[order], np.concatenate([reach, whole])[order]

    def _levels(
        self,
        won: FloatArray,
        lost: FloatArray,
        tied: FloatArray,
        failing: IntArray,
        mutual: BoolArray,
        running: dict[int, FloatArray],
    ) -> tuple[FloatArray, BoolArray]:
        fit, n = self._fit, self._n
        size = won.shape[1]
        up, down = won, lost
        if fit.eta is None:
            up, down, tied = won + tied / 2, lost + tied / 2, np.zeros_like(tied)
        batch = Batch(n, self._counts.first, self._counts.second, up, down, tied, fit.ties, fit.ridge)
        levels, converged = np.zeros((size, n)), np.ones(size, dtype=np.bool_)
        # Without a prior, or with nothing but ties, there is nothing to fit while eta runs away.
        idle = {column for column in running if fit.ridge == 0 or not (won[:, column] + lost[:, column]).any()}
        # Nothing at all was drawn, as happens with few samples and raters at once.
        idle |= set(np.flatnonzero(~(won + lost + tied).any(axis=0)).tolist())
        whole = np.setdiff1d(np.arange(size), failing)
        if whole.size:
            part = batch if whole.size == size else batch.columns(whole)
            found, converged[whole] = solve(part, self._start, self._inverse, self._same)
            levels[whole] = found[:n].T
        open_ones = np.array([i for i, column in enumerate(failing.tolist()) if column not in idle], dtype=np.int64)
        if open_ones.size:
            part = batch.columns(failing[open_ones])
            together = np.broadcast_to(self._same, (open_ones.size, n, n))
            if fit.ridge == 0:
                # As the single fit without an optimum: only results within strong groups have one.
                together = mutual[open_ones]
                within = together[:, part.first, part.second].T
                up, down, tied = part.up * within, part.down * within, part.tied * within
                part = Batch(n, part.first, part.second, up, down, tied, fit.ties, 0.0)
            found, converged[failing[open_ones]] = solve(part, self._start, None, together)
            levels[failing[open_ones]] = found[:n].T
        return levels, converged

    def _open_ends(self, reach: BoolArray, mutual: BoolArray) -> tuple[BoolArray, BoolArray]:
        """(f, n) unbounded above and below against the core of the component, as `connectivity.bounds`."""
        above, below = np.zeros(reach.shape[:2], dtype=np.bool_), np.zeros(reach.shape[:2], dtype=np.bool_)
        rows = np.arange(reach.shape[0])
        sizes = mutual.sum(axis=2)
        crossing = reach & ~mutual
        won: BoolArray = np.asarray(crossing.any(axis=2), dtype=np.bool_)
        beaten: BoolArray = np.asarray(crossing.any(axis=1), dtype=np.bool_)
        reference = self._fit.reference
        for component in range(self._fit.connectivity.n_components):
            inside = np.flatnonzero(self._fit.components == component)
            if reference is not None and reference in inside:
                member = np.full(rows.size, reference)
                single = np.ones(rows.size, dtype=np.bool_)
            else:
                largest = sizes[:, inside].max(axis=1, initial=0)
                in_largest = sizes[:, inside] == largest[:, None]
                single = in_largest.sum(axis=1) == largest
                member = inside[in_largest.argmax(axis=1)]
            core = mutual[rows, member][:, inside]
            over = ~core & ~reach[rows, member][:, inside]
            under = ~core & ~reach.transpose(0, 2, 1)[rows, member][:, inside]
            # Without one largest group: open towards whom one beat or lost to, both ways if nobody.
            apart = ~(won[:, inside] | beaten[:, inside])
            above[:, inside] = np.where(single[:, None], over, won[:, inside] | apart)
            below[:, inside] = np.where(single[:, None], under, beaten[:, inside] | apart)
        return above, below

    def _run_away(self, direction: FloatArray, rises: BoolArray, above: BoolArray, below: BoolArray) -> None:
        """Open, in place, what rises together with eta."""
        gains = (direction > 0) & self._same
        rises |= gains.T
        above |= gains.any(axis=0)
        below |= gains.any(axis=1)
        if self._fit.ridge == 0:
            # The limits of the other differences are not computed: they count as unknown.
            rises |= self._same & ~np.eye(self._n, dtype=np.bool_) & ~rises & ~rises.T
            settled = ~(above | below)
            above |= settled
            below |= settled

    def _unknown(
        self, failing: IntArray, rises: BoolArray, above: BoolArray, below: BoolArray, lost: IntArray
    ) -> tuple[IntArray, BoolArray, BoolArray, BoolArray]:
        kept = ~np.isin(failing, lost)
        free = self._same & ~np.eye(self._n, dtype=np.bool_)
        everything = np.ones((lost.size, self._n), dtype=np.bool_)
        joined: IntArray = np.concatenate([failing[kept], lost])
        order = np.argsort(joined)
        parts = [
            np.concatenate([rises[kept], np.broadcast_to(free, (lost.size, self._n, self._n))])[order],
            np.concatenate([above[kept], everything])[order],
            np.concatenate([below[kept], everything])[order],
        ]
        return joined[order], parts[0], parts[1], parts[2]

    def _anchored(self, levels: FloatArray, failing: IntArray, above: BoolArray, below: BoolArray) -> FloatArray:
        fit = self._fit
        theta = np.empty_like(levels)
        finite = np.ones(levels.shape, dtype=np.bool_)
        finite[failing] = ~(above | below)
        known = np.isfinite(fit.theta)
        usual = np.where(known, fit.theta, 0.0)
        for component in range(fit.connectivity.n_components):
            inside = np.flatnonzero(fit.components == component)
            if fit.reference is not None and fit.reference in inside:
                theta[:, inside] = levels[:, inside] - levels[:, [fit.reference]]
                continue
            # Over all of a component this mean is nought in the fit.
            common = finite[:, inside] & known[inside]
            count = common.sum(axis=1)
            shift = np.where(common, levels[:, inside] - usual[inside], 0.0).sum(axis=1) / np.maximum(count, 1)
            theta[:, inside] = levels[:, inside] - shift[:, None]
        ends = np.where(above & below, np.nan, np.where(above, np.inf, -np.inf))
        theta[failing] = np.where(above | below, ends, theta[failing])
        return theta


def _component_means(theta: FloatArray, components: IntArray) -> FloatArray:
    means: FloatArray = (np.bincount(components, theta) / np.maximum(np.bincount(components), 1))[components]
    return means


def _closure(beat: BoolArray) -> BoolArray:
    """(f, n, n) who reaches whom, everybody themselves included."""
    reach = beat | np.eye(beat.shape[1], dtype=np.bool_)
    while True:
        steps = reach.astype(np.float32)
        further = (steps @ steps) > 0
        if (further == reach).all():
            return np.asarray(reach, dtype=np.bool_)
        reach = further
