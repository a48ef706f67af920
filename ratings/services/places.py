"""Ranks out of a fit: who is ahead of whom, and which places that leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ratings.engine import Board, PairCounts, error_to_display, fit
from ratings.engine.arrays import BoolArray, FloatArray
from ratings.engine.intervals import Z_95

# Pairs for which a likelihood ratio is taken, a fit each; beyond, they count as not separated.
SWEEPS_UP_TO = 2_000
SWEEP_RIDGE = 1e-4
# The drop of log-likelihood that six wins out of six against an equal make: the shortest sweep with p < 0.05.
SIX_STRAIGHT_WINS = 6 * math.log(2) - 0.01


def known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


@dataclass(frozen=True)
class Places:
    # Indexes in rank order, the largest component first.
    components: list[list[int]]
    component: dict[int, int]
    rank: dict[int, int]
    rank_from: dict[int, int]
    rank_to: dict[int, int]
    next_std_error: dict[int, float | None]
    ahead_of_next: dict[int, bool]


def places_of(board: Board, counts: PairCounts) -> Places:
    grouped: dict[int, list[int]] = {}
    for index in board.ranking().tolist():
        grouped.setdefault(int(board.component[index]), []).append(index)
    components = sorted(grouped.values(), key=lambda group: (-len(group), -int(board.games[group].sum()), min(group)))
    places = Places(components, {}, {}, {}, {}, {}, {})
    std_error = _difference_errors(board)
    for number, group in enumerate(components):
        ahead = _separated(board, counts, group, std_error[np.ix_(group, group)])
        for position, index in enumerate(group):
            places.component[index] = number
            places.rank[index] = position + 1
            places.rank_from[index] = 1 + int(ahead[:, position].sum())
            places.rank_to[index] = len(group) - int(ahead[position].sum())
            if position + 1 < len(group):
                places.next_std_error[index] = known(std_error[index, group[position + 1]])
                places.ahead_of_next[index] = bool(ahead[position, position + 1])
    return places


def _difference_errors(board: Board) -> FloatArray:
    """Standard errors of all differences, in display points; NaN where one is not known."""
    covariance = board.intervals.covariance
    variances = np.diag(covariance)
    with np.errstate(invalid="ignore"):
        spread = variances[:, None] + variances[None, :] - 2 * covariance
    errors: FloatArray = error_to_display(np.sqrt(np.maximum(spread, 0.0)))
    return errors


def _separated(board: Board, counts: PairCounts, group: list[int], std_error: FloatArray) -> BoolArray:
    """Whether row is ahead of column: the 95 % interval of the difference lies above nought."""
    rating = board.rating[group]
    with np.errstate(invalid="ignore"):
        difference = rating[:, None] - rating[None, :]
        ahead: BoolArray = difference - Z_95 * std_error > 0
    # Where all results between two groups went one way the difference has no maximum, and its error at the
    # prior's is far too wide: somebody unbeaten in fifty matches would pass for level with everybody.
    strong = board.fit.groups[group]
    apart = np.argwhere((strong[:, None] != strong[None, :]) & np.triu(np.ones_like(ahead), 1))
    if 0 < len(apart) <= SWEEPS_UP_TO:
        free = fit(counts, ridge=SWEEP_RIDGE).log_likelihood
        for row, column in apart.tolist():
            if difference[row, column] > 0:
                drop = free - _log_likelihood_if_level(counts, group[row], group[column])
                ahead[row, column] = drop > SIX_STRAIGHT_WINS
    return ahead


def _log_likelihood_if_level(counts: PairCounts, one: int, other: int) -> float:
    """Of the results if the two were equally strong: a mass of ties between them holds them level."""
    mass = 10_000 * counts.total
    held = PairCounts.from_rows(counts.n_candidates, [*counts.rows(), (one, other, "tie", mass)])
    return fit(held, ridge=SWEEP_RIDGE).log_likelihood + mass * math.log(2)
