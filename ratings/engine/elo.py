"""Elo: one number per candidate, moved by each match in turn.

Order matters, so a caller passes matches by their number and never in the order in which they ended; then the
same matches give the same ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ratings.engine.arrays import FloatArray, IntArray
from ratings.engine.comparisons import Comparisons

START = 1500.0
SCALE = 400.0
# Games so far, and the step that a match then takes.
K_NEW, K_SETTLING, K_SETTLED = 32.0, 16.0, 10.0
SETTLING_FROM, SETTLED_FROM = 10, 30
_SCORES = (1.0, 0.0, 0.5)


@dataclass(frozen=True, eq=False)
class Elo:
    """Where a pass has come to.

    Attributes
    ----------
    rating : (n,) float64 array
        Elo points; 400 are expected odds of ten to one.
    games : (n,) int64 array
        Matches so far, which decide the size of the next step.
    """

    rating: FloatArray
    games: IntArray

    @classmethod
    def start(cls, n_candidates: int) -> Elo:
        """Everybody at 1500, without games."""
        return cls(np.full(n_candidates, START), np.zeros(n_candidates, dtype=np.int64))


def k_factor(games: int) -> float:
    """The most that a match can move a candidate of so many games: 32 under 10, 16 under 30, then 10."""
    if games < SETTLING_FROM:
        return K_NEW
    return K_SETTLING if games < SETTLED_FROM else K_SETTLED


def expected_score(own: float, opponent: float) -> float:
    """Expected share of the points of a match, ties as half: ``1 / (1 + 10**((opponent - own) / 400))``."""
    return float(1.0 / (1.0 + np.power(10.0, min((opponent - own) / SCALE, 300.0))))


def elo_pass(matches: Comparisons, *, start: Elo | None = None) -> Elo:
    """Fold matches into ratings, one after the other.

    Parameters
    ----------
    matches : Comparisons
        In the order they count in. A row with a count is that many matches in a row; clusters are not used.
    start : Elo, optional
        What an earlier pass came to; everybody at 1500 when omitted.

    Returns
    -------
    Elo

    Raises
    ------
    ValueError
        When ``start`` is of another number of candidates.

    Notes
    -----
    Each match moves the two by ``K (score - expected)``, each with the K of its own games (`k_factor`). While
    both have the same K the sum of ratings stays.

    References
    ----------
    Elo, A. E. (1978). The rating of chessplayers, past and present.
    """
    n = matches.n_candidates
    state = start or Elo.start(n)
    if state.rating.shape != (n,) or state.games.shape != (n,):
        raise ValueError(f"start holds {state.rating.size} candidates, and the matches {n}.")
    # Each match reads what the one before has written, so this is a loop over plain floats: arrays of one
    # element would cost ten times as much.
    ratings, games = state.rating.tolist(), state.games.tolist()
    rows = (matches.first, matches.second, matches.outcome)
    first, second, outcome = rows if matches.count is None else (np.repeat(row, matches.count) for row in rows)
    most = SETTLED_FROM
    steps = [k_factor(played) for played in range(most + 1)]
    base = 10.0 ** (1.0 / SCALE)
    scores = _SCORES
    for one, other, code in zip(first.tolist(), second.tolist(), outcome.tolist(), strict=True):
        at_one, at_other = ratings[one], ratings[other]
        gap = at_other - at_one
        surprise = scores[code] - (1.0 / (1.0 + base**gap) if gap < 120_000.0 else 0.0)
        played, other_played = games[one], games[other]
        ratings[one] = at_one + (steps[played] if played < most else K_SETTLED) * surprise
        ratings[other] = at_other - (steps[other_played] if other_played < most else K_SETTLED) * surprise
        games[one] = played + 1
        games[other] = other_played + 1
    return Elo(np.array(ratings, dtype=np.float64), np.array(games, dtype=np.int64))
