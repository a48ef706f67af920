"""Ratings as pure numerics over arrays: NumPy and SciPy, nothing of the web application.

- `comparisons`: outcomes, single comparisons, and their aggregation to counts per pair
- `connectivity`: components, strong groups, and which ends the data leave open
- `likelihood`, `newton`, `batch`: the Bradley-Terry objective with two tie models, its minimisers, many at once
- `bradley_terry`: `fit`, strengths with anchoring and honest degenerate results
- `intervals`, `clusters`: Fisher errors, and sandwich errors by sample and rater
- `bootstrap`, `ranks`: resampled fits; places, tiers, and whether two candidates are told apart
- `length`, `style`, `covariates`: how much of a lead is length or form, fitted together with the strengths
- `slices`, `anomaly`, `agreement`: categories, the screen of sessions, how far raters agree
- `scale`: display points, expected win share
- `board`: `rate`, from comparisons to everything a board prints
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

from ratings.engine.agreement import (
    Agreement,
    Estimate,
    RankAgreement,
    Votes,
    Wilson,
    against_others,
    agreement,
    by_coding,
    cohen,
    landis_koch,
    rank_agreement,
    wilson,
)
from ratings.engine.anomaly import Screening, SessionVotes, screen
from ratings.engine.board import Board, WithoutRater, rate, without_busiest_rater
from ratings.engine.bootstrap import RESAMPLES, Bootstrap, bootstrap
from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.clusters import ClusterCounts, cluster_robust, robust, two_way_robust
from ratings.engine.comparisons import FIRST, OUTCOMES, SECOND, TIE, Comparisons, PairCounts, label_codes, outcome_codes
from ratings.engine.connectivity import Bounds, Connectivity, connectivity
from ratings.engine.draws import seat, step_seed, sub_seed
from ratings.engine.elo import Elo, elo_pass
from ratings.engine.glicko2 import Glicko2, glicko2_periods
from ratings.engine.intervals import Errors, Intervals, difference_std_error, difference_std_errors, fisher
from ratings.engine.length import (
    LengthControl,
    LongerAnswer,
    length_control,
    longer_answer,
    normalised_difference,
    own_share,
)
from ratings.engine.likelihood import TieModel, penalised_objective
from ratings.engine.pairing import Outlook, Planned, pairs, remaining
from ratings.engine.ranks import Ranks, Separation, ranks, separation, sweep_drop
from ratings.engine.scale import error_to_display, from_display, to_display, win_share
from ratings.engine.slices import Slice, slice_counts, slices
from ratings.engine.style import StyleCoefficient, StyleFinding, StyleFit, style_fit

__all__ = [
    "FIRST",
    "OUTCOMES",
    "RESAMPLES",
    "SECOND",
    "TIE",
    "Agreement",
    "Board",
    "Bootstrap",
    "Bounds",
    "BradleyTerryFit",
    "ClusterCounts",
    "Comparisons",
    "Connectivity",
    "Elo",
    "Errors",
    "Estimate",
    "Glicko2",
    "Intervals",
    "LengthControl",
    "LongerAnswer",
    "Outlook",
    "PairCounts",
    "Planned",
    "RankAgreement",
    "Ranks",
    "Screening",
    "Separation",
    "SessionVotes",
    "Slice",
    "StyleCoefficient",
    "StyleFinding",
    "StyleFit",
    "TieModel",
    "Votes",
    "Wilson",
    "WithoutRater",
    "against_others",
    "agreement",
    "bootstrap",
    "by_coding",
    "cluster_robust",
    "cohen",
    "connectivity",
    "default_ridge_for",
    "difference_std_error",
    "difference_std_errors",
    "elo_pass",
    "error_to_display",
    "fisher",
    "fit",
    "from_display",
    "glicko2_periods",
    "label_codes",
    "landis_koch",
    "length_control",
    "longer_answer",
    "normalised_difference",
    "outcome_codes",
    "own_share",
    "pairs",
    "penalised_objective",
    "rank_agreement",
    "ranks",
    "rate",
    "remaining",
    "robust",
    "screen",
    "seat",
    "separation",
    "slice_counts",
    "slices",
    "step_seed",
    "style_fit",
    "sub_seed",
    "sweep_drop",
    "to_display",
    "two_way_robust",
    "wilson",
    "win_share",
    "without_busiest_rater",
]
