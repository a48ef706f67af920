"""Ratings as pure numerics over arrays: NumPy and SciPy, nothing of the web application.

- `comparisons`: outcomes, single comparisons, and their aggregation to counts per pair
- `connectivity`: components, strong groups, and which ends the data leave open
- `likelihood`: the Bradley-Terry objective with two tie models, gradient and Hessian
- `newton`: its minimisers
- `bradley_terry`: `fit`, strengths with anchoring and honest degenerate results
- `intervals`: Fisher errors and intervals per component, the error of a difference
- `scale`: display points, expected win share
- `board`: `rate`, counts to everything a board prints
- `elo`, `glicko2`: ratings as folds over matches in turn, and over periods
- `pairing`: which pairs meet on which samples: round robin, random, and two that follow results
- `draws`: draws by hash of a seed, seats

>>> from ratings.engine import FIRST, TIE, PairCounts, rate
>>> board = rate(PairCounts.from_rows(2, [(0, 1, FIRST, 6), (1, 0, FIRST, 3), (0, 1, TIE, 1)]))
>>> [round(float(points), 1) for points in board.rating]
[1053.8, 946.2]

SciPy's heavier modules are imported inside the functions that need them, so importing this package costs
little more than NumPy. On small shared machines set OPENBLAS_NUM_THREADS=1: the matrices are small, and
waking BLAS threads for them costs more than they save.
"""

from ratings.engine.board import Board, rate
from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.comparisons import FIRST, OUTCOMES, SECOND, TIE, Comparisons, PairCounts, outcome_codes
from ratings.engine.connectivity import Bounds, Connectivity, connectivity
from ratings.engine.draws import seat, step_seed, sub_seed
from ratings.engine.elo import Elo, elo
from ratings.engine.glicko2 import Glicko2, glicko2
from ratings.engine.intervals import Intervals, difference_std_error, fisher
from ratings.engine.likelihood import TieModel, penalised_objective
from ratings.engine.pairing import Outlook, Planned, pairs, remaining
from ratings.engine.scale import error_to_display, from_display, to_display, win_share

__all__ = [
    "FIRST",
    "OUTCOMES",
    "SECOND",
    "TIE",
    "Board",
    "Bounds",
    "BradleyTerryFit",
    "Comparisons",
    "Connectivity",
    "Elo",
    "Glicko2",
    "Intervals",
    "Outlook",
    "PairCounts",
    "Planned",
    "TieModel",
    "connectivity",
    "default_ridge_for",
    "difference_std_error",
    "elo",
    "error_to_display",
    "fisher",
    "fit",
    "from_display",
    "glicko2",
    "outcome_codes",
    "pairs",
    "penalised_objective",
    "rate",
    "remaining",
    "seat",
    "step_seed",
    "sub_seed",
    "to_display",
    "win_share",
]
