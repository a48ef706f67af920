"""Ranks out of a fit: who is ahead of whom, and which places that leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ratings.engine import Board, PairCounts, difference_std_errors, error_to_display, sweep_drop
from ratings.engine.arrays import BoolArray, FloatArray
from ratings.engine.intervals import Z_95
from ratings.engine.ranks import SWEEP_DROP, SWEEPS_UP_TO


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
    # From resamples alone.
    rank_lower: dict[int, int] = field(default_factory=dict)
    rank_upper: dict[int, int] = field(default_factory=dict)
    first_share: dict[int, float] = field(default_factory=dict)
    tier: dict[int, int] = field(default_factory=dict)


def places_of(board: Board, counts: PairCounts) -> Places:
    grouped: dict[int, list[int]] = {}
    for index in board.ranking().tolist():
        grouped.setdefault(int(board.component[index]), []).append(index)
    components = sorted(grouped.values(), key=lambda group: (-len(group), -int(board.games[group].sum()), min(group)))
    places = Places(components, {}, {}, {}, {}, {}, {})
    std_error = error_to_display(difference_std_errors(board.intervals))
    for number, group in enumerate(components):
        ahead = _separated(board, counts, group, std_error[np.ix_(group, group)])
        for position, index in enumerate(group):
            places.component[index] = number
            places.rank[index] = position + 1
            places.rank_from[index] = 1 + int(ahead[:, position].sum())
            places.rank_to[index] = len(group) - int(ahead[position].sum())
            if board.ranks is not None:
                places.rank_lower[index] = int(board.ranks.rank_lower[index])
                places.rank_upper[index] = int(board.ranks.rank_upper[index])
                places.first_share[index] = float(board.ranks.first_share[index])
                places.tier[index] = int(board.ranks.tier[index])
            if position + 1 < len(group):
                places.next_std_error[index] = known(std_error[index, group[position + 1]])
                places.ahead_of_next[index] = bool(ahead[position, position + 1])
    return places


def _separated(board: Board, counts: PairCounts, group: list[int], std_error: FloatArray) -> BoolArray:
    """Whether row is ahead of column, in rank order of the group."""
    inside = np.ix_(group, group)
    if board.ranks is not None:
        found: BoolArray = board.ranks.separated[inside]
        return found
    # Without resamples: the 95 % interval of the difference lies above nought.
    rating = board.rating[group]
    with np.errstate(invalid="ignore"):
        difference = rating[:, None] - rating[None, :]
        ahead: BoolArray = difference - quantile_of(board) * std_error > 0
    # Where all results between two groups went one way the difference has no maximum, and its error at the
    # prior's is far too wide: somebody unbeaten in fifty matches would pass for level with everybody.
    strong = board.fit.groups[group]
    apart = np.argwhere((strong[:, None] != strong[None, :]) & np.triu(np.ones_like(ahead), 1))
    if 0 < len(apart) <= SWEEPS_UP_TO:
        for row, column in apart.tolist():
            if difference[row, column] > 0:
                ahead[row, column] = sweep_drop(counts, group[row], group[column]) > SWEEP_DROP
    return ahead


def quantile_of(board: Board) -> float:
    """Standard errors from a difference to its limits; the widest of the board, where they differ at all."""
    finite = board.intervals.quantile[np.isfinite(board.intervals.quantile)]
    return float(finite.max()) if finite.size else Z_95
