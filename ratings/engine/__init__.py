"""Ratings as pure numerics over arrays: NumPy and SciPy, nothing of the web application.

- `comparisons`: outcomes, single comparisons, and their aggregation to counts per pair.
- `connectivity`: components, strong groups, and which ends the data leave open.
- `likelihood`, `newton`, `batch`: the Bradley-Terry objective with two tie models, its minimisers, many at once.
- `bradley_terry`: `fit`, strengths with anchoring and honest degenerate results.
- `intervals`, `clusters`: Fisher errors, and sandwich errors by sample and rater.
- `bootstrap`, `ranks`: resampled fits; places, tiers, and whether two candidates are told apart.
- `scale`: display points, expected win share.
- `board`: `rate`, from comparisons to everything a board prints.
- `pairing`, `draws`: which pairs meet on which samples, by hash of a seed.

>>> from ratings.engine import FIRST, TIE, PairCounts, rate
>>> board = rate(PairCounts.from_rows(2, [(0, 1, FIRST, 6), (1, 0, FIRST, 3), (0, 1, TIE, 1)]))
>>> [round(float(points), 1) for points in board.rating]
[1053.8, 946.2]

SciPy's heavier modules are imported inside the functions that need them, so importing this package costs
little more than NumPy. On small shared machines set OPENBLAS_NUM_THREADS=1: the matrices are small, and
waking BLAS threads for them costs more than they save.
"""

from ratings.engine.board import Board, WithoutRater, rate, without_busiest_rater
from ratings.engine.bootstrap import RESAMPLES, Bootstrap, bootstrap
from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.clusters import ClusterCounts, cluster_robust, robust, two_way_robust
from ratings.engine.comparisons import (
    FIRST,
    OUTCOMES,
    SECOND,
    TIE,
    Comparisons,
    PairCounts,
    label_codes,
    outcome_codes,
)
from ratings.engine.connectivity import Bounds, Connectivity, connectivity
from ratings.engine.draws import seat, sub_seed
from ratings.engine.intervals import Errors, Intervals, difference_std_error, difference_std_errors, fisher
from ratings.engine.likelihood import TieModel, penalised_objective
from ratings.engine.pairing import Outlook, Planned, pairs, remaining
from ratings.engine.ranks import Ranks, Separation, ranks, separation, sweep_drop
from ratings.engine.scale import error_to_display, from_display, to_display, win_share

__all__ = [
    "FIRST",
    "OUTCOMES",
    "RESAMPLES",
    "SECOND",
    "TIE",
    "Board",
    "Bootstrap",
    "Bounds",
    "BradleyTerryFit",
    "ClusterCounts",
    "Comparisons",
    "Connectivity",
    "Errors",
    "Intervals",
    "Outlook",
    "PairCounts",
    "Planned",
    "Ranks",
    "Separation",
    "TieModel",
    "WithoutRater",
    "bootstrap",
    "cluster_robust",
    "connectivity",
    "default_ridge_for",
    "difference_std_error",
    "difference_std_errors",
    "error_to_display",
    "fisher",
    "fit",
    "from_display",
    "label_codes",
    "outcome_codes",
    "pairs",
    "penalised_objective",
    "ranks",
    "rate",
    "remaining",
    "robust",
    "seat",
    "separation",
    "sub_seed",
    "sweep_drop",
    "to_display",
    "two_way_robust",
    "win_share",
    "without_busiest_rater",
]
