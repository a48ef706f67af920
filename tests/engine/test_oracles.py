"""Independent libraries on one small set of counts. Their values are kept here, so that they need not be installed.

`uv sync --group oracle` installs them; then the same values are asked of them again.
"""

from __future__ import annotations

import numpy as np
import pytest

from ratings.engine.arrays import FloatArray
from ratings.engine.board import rate
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import Comparisons, PairCounts
from ratings.engine.intervals import fisher
from ratings.engine.scale import to_display
from tests.engine.helpers import from_cells

COUNTS = from_cells(4, [(0, 1, 30, 14, 6), (0, 2, 25, 9, 3), (0, 3, 40, 8, 2), (1, 2, 21, 19, 9), (2, 3, 18, 12, 5)])
# choix 0.4.1: ilsr_pairwise_dense on wins with half ties, mean nought.
CHOIX = [0.7661894666, 0.0100621203, -0.1556727344, -0.6205788525]
# statsmodels 0.15.0: binomial GLM of the share won, the last candidate at nought.
STATSMODELS = ([1.3867683191, 0.6306409727, 0.4649061181], [0.276266772, 0.3237455181, 0.2743644627])
# arena-rank 0.1.1: sandwich, ratings and half widths in points around 1000.
ARENA_RANK = ([1133.10074, 1001.74797, 972.95688, 892.19441], [46.96994, 53.08348, 45.24255, 61.24038])
quiet = pytest.mark.filterwarnings("ignore")


def shares() -> tuple[FloatArray, FloatArray, FloatArray]:
    rows = np.arange(COUNTS.first.size)
    design = np.zeros((rows.size, 4))
    design[rows, COUNTS.first], design[rows, COUNTS.second] = 1.0, -1.0
    games = COUNTS.games_per_pair.astype(np.float64)
    return design[:, :3], (COUNTS.wins_first + COUNTS.ties / 2) / games, games


def single() -> Comparisons:
    rows = COUNTS.rows()
    codes = {"first": 0, "second": 1, "tie": 2}
    repeated = [(i, j, codes[outcome]) for i, j, outcome, count in rows for _ in range(count)]
    first, second, outcome = (np.array(column) for column in zip(*repeated, strict=True))
    return Comparisons(4, first, second, outcome)


def test_strengths_are_choix_strengths() -> None:
    np.testing.assert_allclose(fit(COUNTS).theta, CHOIX, atol=1e-7)


@quiet
def test_choix_still_says_so() -> None:
    choix = pytest.importorskip("choix")
    wins = np.zeros((4, 4))
    wins[COUNTS.first, COUNTS.second] = COUNTS.wins_first + COUNTS.ties / 2
    wins[COUNTS.second, COUNTS.first] = COUNTS.wins_second + COUNTS.ties / 2

    np.testing.assert_allclose(choix.ilsr_pairwise_dense(wins, tol=1e-12), CHOIX, atol=1e-7)


def test_pinned_strengths_and_errors_are_those_of_a_binomial_model() -> None:
    fitted = fit(COUNTS, reference=3)

    np.testing.assert_allclose(fitted.theta[:3], STATSMODELS[0], atol=1e-7)
    np.testing.assert_allclose(fisher(fitted).std_error[:3], STATSMODELS[1], atol=1e-7)


@quiet
def test_statsmodels_still_says_so() -> None:
    api = pytest.importorskip("statsmodels.api")
    design, share, games = shares()
    found = api.GLM(share, design, family=api.families.Binomial(), var_weights=games).fit(tol=1e-14)

    np.testing.assert_allclose(found.params, STATSMODELS[0], atol=1e-7)
    np.testing.assert_allclose(found.bse, STATSMODELS[1], atol=1e-7)


def test_robust_errors_are_arena_ranks() -> None:
    board = rate(single(), errors="robust")

    # It stops where the gradient of the mean is 1e-9 and adds a little to the Hessian.
    np.testing.assert_allclose(board.rating, ARENA_RANK[0], atol=0.01)
    np.testing.assert_allclose((board.upper - board.lower) / 2, ARENA_RANK[1], rtol=0.02)


@quiet
def test_arena_rank_still_says_so() -> None:
    models = pytest.importorskip("arena_rank.models.bradley_terry")
    data = pytest.importorskip("arena_rank.utils.data_utils")
    pandas = pytest.importorskip("pandas")
    rows = single()
    names = np.array(["a", "b", "c", "d"], dtype=object)
    winner = np.array(["model_a", "model_b", "tie"], dtype=object)[rows.outcome]
    frame = pandas.DataFrame({"model_a": names[rows.first], "model_b": names[rows.second], "winner": winner})
    dataset = data.PairDataset.from_pandas(frame)
    found = models.BradleyTerry(n_competitors=4).compute_ratings_and_cis(dataset)

    np.testing.assert_allclose(found["ratings"], ARENA_RANK[0], atol=0.01)
    half = (np.asarray(found["rating_upper"]) - np.asarray(found["rating_lower"])) / 2
    np.testing.assert_allclose(half, ARENA_RANK[1], rtol=1e-3)


@quiet
def test_evalica_agrees_without_a_fixture_of_its_own() -> None:
    evalica = pytest.importorskip("evalica")
    rows = single()
    winners = [(evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)[code] for code in rows.outcome.tolist()]
    found = evalica.bradley_terry(
        rows.first.tolist(), rows.second.tolist(), winners, tolerance=1e-14, limit=100_000
    ).scores.sort_index()
    strengths = np.log(np.asarray(found, dtype=np.float64))

    np.testing.assert_allclose(strengths - strengths.mean(), CHOIX, atol=1e-6)
    assert PairCounts.from_comparisons(rows).total == COUNTS.total
    np.testing.assert_allclose(to_display(np.array(CHOIX)).mean(), 1000)
