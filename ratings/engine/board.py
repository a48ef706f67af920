"""From pair counts to everything a board prints, in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.comparisons import PairCounts
from ratings.engine.intervals import Intervals, fisher
from ratings.engine.likelihood import TieModel
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
        In log odds.
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

    @property
    def ridge(self) -> float:
        """The ridge of the fit."""
        return self.fit.ridge

    def ranking(self) -> IntArray:
        """Rated candidates by component, then falling rating (NaN last), then index."""
        rated = np.flatnonzero(~self.isolated)
        falling = np.where(np.isnan(self.rating[rated]), np.inf, -self.rating[rated])
        order: IntArray = rated[np.lexsort((rated, falling, self.component[rated]))]
        return order


def rate(
    counts: PairCounts,
    *,
    ties: TieModel = "half_win",
    ridge: float | None = None,
    start: ArrayLike | None = None,
    reference: int | None = None,
) -> Board:
    """Fit, take Fisher errors and put everything on the display scale.

    Parameters
    ----------
    counts : PairCounts
    ties : {"half_win", "rao_kupper"}
    ridge : float or None
        None takes `default_ridge_for` the data.
    start : array_like, optional
        As in `fit`.
    reference : int, optional
        Candidate pinned at 1000.

    Returns
    -------
    Board

    Raises
    ------
    ValueError
        As `fit`.
    """
    used = default_ridge_for(counts, ties) if ridge is None else ridge
    fitted = fit(counts, ties=ties, ridge=used, start=start, reference=reference)
    errors = fisher(fitted)
    isolated = counts.games == 0
    return Board(
        rating=np.where(isolated, np.nan, to_display(fitted.theta)),
        std_error=np.where(isolated, np.nan, error_to_display(errors.std_error)),
        lower=np.where(isolated, np.nan, to_display(errors.lower)),
        upper=np.where(isolated, np.nan, to_display(errors.upper)),
        open_below=errors.open_below,
        open_above=errors.open_above,
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
        intervals=errors,
    )
