"""Who is ahead of whom, how surely, and which places that leaves open.

Everything here comes from differences inside resamples, never from overlapping bars: two intervals may overlap
although the difference of the two candidates is established.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bootstrap import Bootstrap
from ratings.engine.bradley_terry import BradleyTerryFit
from ratings.engine.bradley_terry import fit as fit_counts
from ratings.engine.comparisons import PairCounts
from ratings.engine.scale import error_to_display

# Differences below this (in log odds) are what a fit's tolerance leaves, not an order.
LEVEL = 1e-6
SWEEP_RIDGE = 1e-4
# The drop of log-likelihood that six wins out of six against an equal make: the shortest sweep with p < 0.05.
SWEEP_DROP = 6 * math.log(2) - 0.01
# Pairs for which a likelihood ratio is taken, a fit each; beyond, they count as not separated.
SWEEPS_UP_TO = 500
_NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Separation:
    """Whether two candidates are told apart.

    Attributes
    ----------
    leader, runner_up : int
    gap_points : float
        Difference of the two ratings in the fit, display points; infinite or NaN where it has no value.
    lower_points, upper_points : float
        95 % percentile interval of the difference over resamples; infinite at an open end.
    ahead_share : float
        Share of resamples in which ``leader`` was ahead; one that does not settle the order counts half.
    separated : bool
        The interval lies above 0. Where the results between the two, also through others, all went one way,
        resamples cannot show otherwise; there they must also make a likelihood ratio as large as six wins
        out of six do.
    """

    leader: int
    runner_up: int
    gap_points: float
    lower_points: float
    upper_points: float
    ahead_share: float
    separated: bool


@dataclass(frozen=True, eq=False)
class Ranks:
    """Places of candidates, per component.

    Attributes
    ----------
    order : (m,) integer array
        Rated candidates by component, then falling rating (NaN last), then index.
    rank : (n,) integer array
        Place in the own component by the ratings, from 1; 0 for a candidate without comparisons.
    rank_lower, rank_upper : (n,) integer arrays
        95 % interval of the place over resamples. A resample that leaves a place open counts with its best
        for the lower and its worst for the upper limit.
    first_share : (n,) array
        Share of resamples in which the candidate was first; shared equally where several may be.
    ahead_share : (n, n) array
        Share of resamples in which row was ahead of column, undecided ones half. NaN on the diagonal and
        between components.
    separated : (n, n) bool array
        Row is ahead of column as in `Separation`.
    rank_from, rank_to : (n,) integer arrays
        Places that the separated pairs leave open: one more than those established to be ahead, up to all
        but those established to be behind.
    tier : (n,) integer array
        From 1 in each component; 0 without comparisons. Down the order a candidate joins the tier above
        while it is separated from none of its members, so that inside a tier no order is established.
        Neighbours in two tiers need not be separated: ``separated`` tells.
    tier_from, tier_to : (n,) integer arrays
        First and last place of the own tier.
    top_two : tuple of Separation
        First and second of each component that has two, largest component first.
    """

    order: IntArray
    rank: IntArray
    rank_lower: IntArray
    rank_upper: IntArray
    first_share: FloatArray
    ahead_share: FloatArray
    separated: BoolArray
    rank_from: IntArray
    rank_to: IntArray
    tier: IntArray
    tier_from: IntArray
    tier_to: IntArray
    top_two: tuple[Separation, ...]


def rank_order(fit: BradleyTerryFit, isolated: BoolArray) -> IntArray:
    """Rated candidates by component, then falling strength (NaN last), then index."""
    rated = np.flatnonzero(~isolated)
    falling = np.where(np.isnan(fit.theta[rated]), np.inf, -fit.theta[rated])
    order: IntArray = rated[np.lexsort((rated, falling, fit.components[rated]))]
    return order


def ranks(fit: BradleyTerryFit, resampled: Bootstrap, counts: PairCounts) -> Ranks:
    """Places, their uncertainty, and tiers.

    Parameters
    ----------
    fit : BradleyTerryFit
    resampled : Bootstrap
        Of the same fit.
    counts : PairCounts
        Those fitted.

    Returns
    -------
    Ranks

    Raises
    ------
    ValueError
        If the three are of different candidates.
    """
    n = fit.theta.size
    if resampled.theta.shape[1] != n or counts.n_candidates != n:
        raise ValueError(
            f"The fit has {n} candidates, the resamples {resampled.theta.shape[1]}, the counts {counts.n_candidates}."
        )
    isolated = counts.games == 0
    order = rank_order(fit, isolated)
    tally = _tally(resampled, isolated)
    separated = _proven(tally.never_behind(resampled.tail), fit, counts)
    places = _places(order, fit.components, separated)
    best = np.sort(tally.best, axis=0)
    worst = np.sort(tally.worst, axis=0)
    rank_lower = np.where(isolated, 0, best[resampled.tail])
    rank_upper = np.where(isolated, 0, worst[resampled.n_resamples - 1 - resampled.tail])
    firsts = _first_shares(tally.best, fit.components, isolated)
    tops = _top_twos(order, fit, resampled, counts, separated)
    return Ranks(
        order=order,
        rank_lower=rank_lower,
        rank_upper=rank_upper,
        first_share=firsts,
        ahead_share=tally.ahead_share(),
        separated=separated,
        top_two=tops,
        **places,
    )


def separation(
    fit: BradleyTerryFit, resampled: Bootstrap, counts: PairCounts, leader: int, runner_up: int
) -> Separation:
    """Whether one candidate is ahead of another, from the difference inside each resample.

    Parameters
    ----------
    fit : BradleyTerryFit
    resampled : Bootstrap
    counts : PairCounts
    leader, runner_up : int
        Two candidates of one component.

    Returns
    -------
    Separation

    Raises
    ------
    ValueError
        For candidates of two components, or one candidate twice.
    """
    if leader == runner_up:
        raise ValueError(f"Candidate {leader} has no difference to itself.")
    low, _ = resampled.difference(leader, runner_up)
    established = int((low <= LEVEL).sum()) <= resampled.tail
    if established and _one_way(fit, counts)[leader, runner_up]:
        established = sweep_drop(counts, leader, runner_up) > SWEEP_DROP
    return _separation(fit, resampled, leader, runner_up, separated=established)


def sweep_drop(counts: PairCounts, leader: int, runner_up: int) -> float:
    """How much likelihood is lost if two candidates are held level.

    Parameters
    ----------
    counts : PairCounts
    leader, runner_up : int

    Returns
    -------
    float
        Drop of the log-likelihood, ties as half wins, from its maximum. For pairs whose difference has no
        finite optimum this still has a value, where a standard error would be the prior's.
    """
    free = fit_counts(counts, ridge=SWEEP_RIDGE).log_likelihood
    return free - _log_likelihood_if_level(counts, leader, runner_up)


@dataclass(frozen=True, eq=False)
class _Tally:
    best: IntArray
    worst: IntArray
    ahead: IntArray
    same: BoolArray
    n_resamples: int

    def never_behind(self, tail: int) -> BoolArray:
        """(n, n) all but the tail of the resamples have row ahead of column."""
        return np.asarray(self.same & (self.n_resamples - self.ahead <= tail), dtype=np.bool_)

    def ahead_share(self) -> FloatArray:
        undecided = self.n_resamples - self.ahead - self.ahead.T
        share = (self.ahead + undecided / 2) / self.n_resamples
        return np.where(self.same, share, np.nan)


def _tally(resampled: Bootstrap, isolated: BoolArray) -> _Tally:
    """Count orders over resamples, some at a time."""
    size, n = resampled.theta.shape
    same = np.equal.outer(resampled.components, resampled.components)
    same &= ~isolated[:, None] & ~isolated[None, :]
    np.fill_diagonal(same, val=False)
    ahead = np.zeros((n, n), dtype=np.int64)
    best, worst = np.ones((size, n), dtype=np.int64), np.ones((size, n), dtype=np.int64)
    width = max(1, _NUMBERS_AT_ONCE // max(n * n, 1))
    for begin in range(0, size, width):
        levels = resampled.levels[begin : begin + width]
        over = (levels[:, :, None] - levels[:, None, :] > LEVEL) & same
        within = np.flatnonzero((resampled.unbounded >= begin) & (resampled.unbounded < begin + width))
        if within.size:
            rises = resampled.rises[within]
            falls = rises.transpose(0, 2, 1)
            where = resampled.unbounded[within] - begin
            over[where] = (np.where(rises | falls, rises & ~falls, over[where])) & same
        ahead += over.sum(axis=0)
        best[begin : begin + width] += over.sum(axis=1)
        worst[begin : begin + width] += same.sum(axis=1) - over.sum(axis=2)
    return _Tally(best, worst, ahead, same, size)


def _one_way(fit: BradleyTerryFit, counts: PairCounts) -> BoolArray:
    """(n, n) pairs whose difference the data leave without an upper or lower bound."""
    apart = np.not_equal.outer(fit.groups, fit.groups)
    if fit.bounds.eta:
        from ratings.engine.connectivity import eta_direction

        direction = eta_direction(counts)
        if direction is not None:
            apart |= (direction > 0) | (direction.T > 0)
    return np.asarray(apart, dtype=np.bool_)


def _proven(ahead: BoolArray, fit: BradleyTerryFit, counts: PairCounts) -> BoolArray:
    """Without the pairs that are apart in all the data by too few results to say so."""
    pairs = np.argwhere(ahead & _one_way(fit, counts))
    if not len(pairs):
        return ahead
    proven = ahead.copy()
    proven[pairs[:, 0], pairs[:, 1]] = False
    if len(pairs) <= SWEEPS_UP_TO:
        free = fit_counts(counts, ridge=SWEEP_RIDGE).log_likelihood
        for row, column in pairs.tolist():
            proven[row, column] = free - _log_likelihood_if_level(counts, row, column) > SWEEP_DROP
    return proven


def _log_likelihood_if_level(counts: PairCounts, one: int, other: int) -> float:
    # A mass of ties between the two holds them level.
    mass = 10_000 * max(counts.total, 1)
    pairs = np.tile(np.arange(counts.first.size), 3)
    held = PairCounts.from_codes(
        counts.n_candidates,
        np.append(counts.first[pairs], one),
        np.append(counts.second[pairs], other),
        np.append(np.repeat([0, 1, 2], counts.first.size), 2),
        np.concatenate([counts.wins_first, counts.wins_second, counts.ties, [mass]]),
    )
    return fit_counts(held, ridge=SWEEP_RIDGE).log_likelihood + mass * math.log(2)


def _places(order: IntArray, components: IntArray, separated: BoolArray) -> dict[str, IntArray]:
    n = components.size
    names = ("rank", "rank_from", "rank_to", "tier", "tier_from", "tier_to")
    found: dict[str, IntArray] = {name: np.zeros(n, dtype=np.int64) for name in names}
    for component in np.unique(components[order]):
        group = order[components[order] == component]
        found["rank"][group] = np.arange(1, group.size + 1)
        inside = separated[np.ix_(group, group)]
        found["rank_from"][group] = 1 + inside.sum(axis=0)
        found["rank_to"][group] = group.size - inside.sum(axis=1)
        begin = 0
        tier = 1
        for position in range(1, group.size + 1):
            if position < group.size and not inside[begin:position, position].any():
                continue
            members = group[begin:position]
            found["tier"][members], found["tier_from"][members] = tier, begin + 1
            found["tier_to"][members] = position
            begin, tier = position, tier + 1
    return found


def _first_shares(best: IntArray, components: IntArray, isolated: BoolArray) -> FloatArray:
    first = (best == 1) & ~isolated
    shares = np.zeros(components.size)
    for component in np.unique(components[~isolated]):
        inside = (components == component) & ~isolated
        possible = first[:, inside]
        shares[inside] = (possible / np.maximum(possible.sum(axis=1, keepdims=True), 1)).mean(axis=0)
    return np.where(isolated, np.nan, shares)


def _top_twos(
    order: IntArray, fit: BradleyTerryFit, resampled: Bootstrap, counts: PairCounts, separated: BoolArray
) -> tuple[Separation, ...]:
    groups = [order[fit.components[order] == component] for component in np.unique(fit.components[order])]
    groups = [group for group in groups if group.size > 1]
    groups.sort(key=lambda group: (-group.size, -int(counts.games[group].sum()), int(group.min())))
    return tuple(
        _separation(fit, resampled, int(group[0]), int(group[1]), separated=bool(separated[group[0], group[1]]))
        for group in groups
    )


def _separation(
    fit: BradleyTerryFit, resampled: Bootstrap, leader: int, runner_up: int, *, separated: bool
) -> Separation:
    low, high = resampled.difference(leader, runner_up)
    ahead, behind = float((low > LEVEL).mean()), float((high < -LEVEL).mean())
    lower = float(np.sort(low)[resampled.tail])
    upper = float(np.sort(high)[resampled.n_resamples - 1 - resampled.tail])
    with np.errstate(invalid="ignore"):
        gap = float(fit.theta[leader] - fit.theta[runner_up])
    return Separation(
        leader=leader,
        runner_up=runner_up,
        gap_points=float(error_to_display(gap)),
        lower_points=float(error_to_display(lower)),
        upper_points=float(error_to_display(upper)),
        ahead_share=ahead + (1 - ahead - behind) / 2,
        separated=separated,
    )
