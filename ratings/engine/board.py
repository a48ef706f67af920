"""From comparisons to everything a board prints, in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bootstrap import Bootstrap, bootstrap
from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.clusters import ClusterCounts, cluster_robust, robust, two_way_robust
from ratings.engine.comparisons import Comparisons, PairCounts
from ratings.engine.intervals import Errors, Intervals, fisher
from ratings.engine.likelihood import TieModel
from ratings.engine.ranks import Ranks, rank_order, ranks
from ratings.engine.scale import error_to_display, to_display, win_share


@dataclass(frozen=True, eq=False)
class Board:
    """Ratings on the display scale, with the counts behind them.

    Attributes
    ----------
    rating, std_error, lower, upper : (n,) arrays
        Display points, each component around 1000. NaN for an isolated candidate. A rating is infinite or
        NaN only when a ridge of 0 was asked for on data without a finite optimum.
    open_below, open_above : (n,) bool arrays
        Ends to print as open; the limit there is infinite.
    held_by_prior : (n,) bool array
    isolated : (n,) bool array
        No comparison: print the counts and no rating.
    component : (n,) integer array
        Ratings compare only where equal; one table each.
    win_share : (n,) array
        Expected share of wins against the rest of the component, ties as half.
    games, wins, losses, ties : (n,) integer arrays
    ridge_by_default : bool
        A prior was used because the data alone have no finite optimum; the board says so.
    fit : BradleyTerryFit
    intervals : Intervals
        In log odds; ``errors`` there says where they come from, ``n_clusters`` how many clusters stand behind.
        For a candidate held by the prior, error and limits are Fisher's where those are wider; ``covariance``
        keeps the kind that was asked for, since differences inside a group need no prior.
    resampled : Bootstrap or None
        None where no resamples were asked for.
    ranks : Ranks or None
        Places, tiers, shares of being ahead and the separation of the top two; None without resamples.
    """

    rating: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    open_below: BoolArray
    open_above: BoolArray
    held_by_prior: BoolArray
    isolated: BoolArray
    component: IntArray
    win_share: FloatArray
    games: IntArray
    wins: IntArray
    losses: IntArray
    ties: IntArray
    ridge_by_default: bool
    fit: BradleyTerryFit
    intervals: Intervals
    resampled: Bootstrap | None = None
    ranks: Ranks | None = None

    @property
    def errors(self) -> Errors:
        """Where the errors come from."""
        return self.intervals.errors

    @property
    def ridge(self) -> float:
        """The ridge of the fit."""
        return self.fit.ridge

    def ranking(self) -> IntArray:
        """Rated candidates by component, then falling rating (NaN last), then index."""
        return rank_order(self.fit, self.isolated)


@dataclass(frozen=True, eq=False)
class WithoutRater:
    """A board when its busiest rater is left out.

    Attributes
    ----------
    rater : int
        Label; the lowest of several equally busy ones.
    n_comparisons : int
        What this rater gave.
    share : float
        Of all comparisons.
    board : Board
        Of the others' comparisons, with the same tie model, ridge and errors, without resamples.
    shift_points : (n,) array
        New rating less the old, display points; NaN where either has none.
    ranking_changed, leader_changed : bool
        The order of candidates, or the first of any component, is another.
    """

    rater: int
    n_comparisons: int
    share: float
    board: Board
    shift_points: FloatArray
    ranking_changed: bool
    leader_changed: bool


def rate(
    data: PairCounts | Comparisons,
    *,
    ties: TieModel = "half_win",
    ridge: float | None = None,
    start: ArrayLike | None = None,
    reference: int | None = None,
    errors: Errors | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> Board:
    """Fit, take errors and put everything on the display scale.

    Parameters
    ----------
    data : PairCounts or Comparisons
        `Comparisons` with labels where errors shall allow for clusters.
    ties : {"half_win", "rao_kupper"}
    ridge : float or None
        None takes `default_ridge_for` the data.
    start : array_like, optional
        As in `fit`.
    reference : int, optional
        Candidate pinned at 1000.
    errors : {"fisher", "robust", "cluster", "two_way"}, optional
        When omitted: ``two_way`` with labels of samples and raters, ``cluster`` with those of either (then
        the clusters are the samples, or the raters), else ``fisher``.
    resamples : int
        0 for a board without ranks and separation; 1,000 is usual. Drawn as `bootstrap` does by default.
    seed : int
        Of the resamples.

    Returns
    -------
    Board

    Raises
    ------
    ValueError
        As `fit`; for an unknown kind of errors, or one whose labels are missing; for a negative number of
        resamples.
    """
    if resamples < 0:
        raise ValueError(f"resamples must not be negative, got {resamples}.")
    counts = data if isinstance(data, PairCounts) else data.pair_counts()
    used = default_ridge_for(counts, ties) if ridge is None else ridge
    fitted = fit(counts, ties=ties, ridge=used, start=start, reference=reference)
    kind = _default_errors(data) if errors is None else errors
    intervals = _wider_where_held(fitted, _intervals(fitted, counts, data, kind))
    resampled = bootstrap(fitted, data, n_resamples=resamples, seed=seed) if resamples else None
    isolated = counts.games == 0
    return Board(
        rating=np.where(isolated, np.nan, to_display(fitted.theta)),
        std_error=np.where(isolated, np.nan, error_to_display(intervals.std_error)),
        lower=np.where(isolated, np.nan, to_display(intervals.lower)),
        upper=np.where(isolated, np.nan, to_display(intervals.upper)),
        open_below=intervals.open_below,
        open_above=intervals.open_above,
        held_by_prior=fitted.held_by_prior,
        isolated=isolated,
        component=fitted.components,
        win_share=win_share(fitted.theta, fitted.eta, fitted.components),
        games=counts.games,
        wins=counts.wins,
        losses=counts.losses,
        ties=counts.ties_per_candidate,
        ridge_by_default=ridge is None and used > 0,
        fit=fitted,
        intervals=intervals,
        resampled=resampled,
        ranks=None if resampled is None else ranks(fitted, resampled, counts),
    )


def without_busiest_rater(data: Comparisons, board: Board) -> WithoutRater | None:
    """How a board moves when the rater with most comparisons is left out.

    Parameters
    ----------
    data : Comparisons
        Those of the board, with ``rater`` labels.
    board : Board

    Returns
    -------
    WithoutRater or None
        None where fewer than two raters gave comparisons.

    Raises
    ------
    ValueError
        If there are no rater labels.
    """
    if data.rater is None:
        raise ValueError("The comparisons have no rater labels.")
    weight = np.ones(data.rater.size, dtype=np.int64) if data.count is None else data.count
    raters, code = np.unique(data.rater, return_inverse=True)
    given = np.bincount(code, weight, raters.size)
    if np.count_nonzero(given) < 2:
        return None
    busiest = int(np.argmax(given))
    rest = _rows(data, code != busiest)
    found = board.fit
    other = rate(rest, ties=found.ties, ridge=found.ridge, reference=found.reference, errors=board.errors)
    order, before = other.ranking(), board.ranking()
    return WithoutRater(
        rater=int(raters[busiest]),
        n_comparisons=int(given[busiest]),
        share=float(given[busiest] / given.sum()),
        board=other,
        shift_points=_differences(other.rating, board.rating),
        ranking_changed=order.tolist() != before.tolist(),
        leader_changed=_leaders(other, order) != _leaders(board, before),
    )


def _default_errors(data: PairCounts | Comparisons) -> Errors:
    if isinstance(data, PairCounts) or (data.cluster is None and data.rater is None):
        return "fisher"
    return "cluster" if data.cluster is None or data.rater is None else "two_way"


def _intervals(
    fitted: BradleyTerryFit, counts: PairCounts, data: PairCounts | Comparisons, errors: Errors
) -> Intervals:
    if errors == "fisher":
        return fisher(fitted)
    if errors == "robust":
        return robust(fitted, counts)
    if errors not in ("cluster", "two_way"):
        raise ValueError(f"Unknown errors {errors!r}; expected fisher, robust, cluster or two_way.")
    if isinstance(data, PairCounts):
        raise ValueError(f"Errors of kind {errors} need comparisons with labels, not counts per pair.")
    if errors == "two_way":
        return two_way_robust(fitted, data)
    only_raters = data.cluster is None and data.rater is not None
    return cluster_robust(fitted, ClusterCounts.of(data, "rater" if only_raters else "cluster"))


def _wider_where_held(fitted: BradleyTerryFit, intervals: Intervals) -> Intervals:
    """Fisher's errors for those held by the prior alone, where they are wider.

    A sandwich measures how results vary. Where all of them went one way none do, and an error close to nought
    would say that a strength is known which in truth has no bound but the prior.
    """
    held = fitted.held_by_prior
    if intervals.errors == "fisher" or not held.any():
        return intervals
    plain = fisher(fitted)
    return replace(
        intervals,
        std_error=np.where(held, np.fmax(intervals.std_error, plain.std_error), intervals.std_error),
        lower=np.where(held, np.fmin(intervals.lower, plain.lower), intervals.lower),
        upper=np.where(held, np.fmax(intervals.upper, plain.upper), intervals.upper),
    )


def _rows(data: Comparisons, kept: BoolArray) -> Comparisons:
    names = ("first", "second", "outcome", "count", "cluster", "rater")
    columns = {name: getattr(data, name) for name in names}
    return replace(data, **{name: column[kept] for name, column in columns.items() if column is not None})


def _differences(new: FloatArray, old: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        shift: FloatArray = new - old
    return shift


def _leaders(board: Board, order: IntArray) -> set[int]:
    components, first_seen = np.unique(board.component[order], return_index=True)
    return set(order[first_seen[: components.size]].tolist())
