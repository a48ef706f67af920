from __future__ import annotations

import math

import numpy as np
import pytest

from ratings.engine.bootstrap import bootstrap
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import PairCounts
from ratings.engine.likelihood import TieModel
from ratings.engine.ranks import Ranks, ranks, separation, sweep_drop
from ratings.engine.scale import error_to_display
from tests.engine.helpers import from_cells, quickstart, shared_json, simulated


def ranked(counts: PairCounts, *, ties: TieModel = "half_win", ridge: float = 0.01, n_resamples: int = 500) -> Ranks:
    fitted = fit(counts, ties=ties, ridge=ridge)
    return ranks(fitted, bootstrap(fitted, counts, n_resamples=n_resamples, seed=3), counts)


def test_clear_differences_make_tiers_of_one() -> None:
    found = ranked(PairCounts.from_codes(4, *simulated(np.array([-2.0, 2.0, 0.7, -0.7]), 4000, 1)))

    assert found.order.tolist() == [1, 2, 3, 0]
    assert found.rank.tolist() == found.rank_from.tolist() == found.rank_to.tolist() == [4, 1, 2, 3]
    assert found.rank_lower.tolist() == found.rank_upper.tolist() == [4, 1, 2, 3]
    assert found.tier.tolist() == [4, 1, 2, 3]
    assert found.first_share.tolist() == [0, 1, 0, 0]
    assert found.ahead_share[1, 2] == 1
    assert found.ahead_share[2, 1] == 0
    assert math.isnan(found.ahead_share[1, 1])
    assert found.top_two[0].separated
    assert found.top_two[0].lower_points > 0


def test_equal_candidates_share_a_tier_and_nothing_is_called_a_tie() -> None:
    found = ranked(PairCounts.from_codes(4, *simulated(np.array([0.0, 0.02, -2.0, 0.01]), 1500, 2)))

    assert sorted(found.tier[[0, 1, 3]].tolist()) == [1, 1, 1]
    assert (found.tier_from[0], found.tier_to[0]) == (1, 3)
    assert (found.rank_from[0], found.rank_to[0]) == (1, 3)
    assert (found.tier[2], found.rank_lower[2], found.rank_upper[2]) == (2, 4, 4)
    assert found.first_share.sum() == pytest.approx(1)
    assert (found.first_share[[0, 1, 3]] > 0.02).all()
    top = found.top_two[0]
    assert not top.separated
    assert top.lower_points < 0 < top.gap_points < top.upper_points
    assert 0.5 < top.ahead_share < 0.975


def test_inside_a_tier_no_pair_is_separated() -> None:
    counts = PairCounts.from_codes(12, *simulated(np.linspace(-0.8, 0.8, 12), 4000, 3, eta=0.3))
    found = ranked(counts, ties="rao_kupper")

    for tier in range(1, found.tier.max() + 1):
        members = np.flatnonzero(found.tier == tier)
        assert not found.separated[np.ix_(members, members)].any()
        above = np.flatnonzero(found.tier == tier - 1)
        if above.size:
            assert found.separated[np.ix_(above, members)].any()
    assert (found.rank_from <= found.rank).all()
    assert (found.rank <= found.rank_to).all()
    shares = found.ahead_share + found.ahead_share.T
    np.testing.assert_allclose(shares[~np.eye(12, dtype=bool)], 1)


def test_separation_is_the_share_of_resamples_and_not_of_overlapping_bars() -> None:
    # Both candidates' own bars are wide, since the third is hardly compared; their difference is not.
    counts = from_cells(3, [(0, 1, 600, 400, 0), (1, 2, 4, 5, 0)])
    fitted = fit(counts)
    resampled = bootstrap(fitted, counts)
    found = separation(fitted, resampled, counts, 0, 1)

    assert resampled.lower[0] < resampled.upper[1]
    assert found.separated
    assert found.ahead_share == 1
    assert found.gap_points == pytest.approx(float(error_to_display(math.log(1.5))))
    expected = error_to_display(1.96 / math.sqrt(1000 * 0.24))
    assert found.upper_points - found.lower_points == pytest.approx(float(2 * expected), rel=0.1)
    reverse = separation(fitted, resampled, counts, 1, 0)
    assert (reverse.lower_points, reverse.upper_points) == pytest.approx((-found.upper_points, -found.lower_points))
    assert not reverse.separated
    assert reverse.ahead_share == 0


@pytest.mark.parametrize(("wins", "established"), [(1, False), (5, False), (6, True), (30, True)])
def test_a_sweep_needs_six_wins(wins: int, established: bool) -> None:
    """Every resample has the winner ahead, however few wins there are."""
    counts = from_cells(2, [(0, 1, wins, 0, 0)])
    found = ranked(counts)

    assert found.ahead_share[0, 1] == 1
    assert bool(found.separated[0, 1]) is established
    assert found.top_two[0].separated is established
    fitted = fit(counts, ridge=0.01)
    assert separation(fitted, bootstrap(fitted, counts), counts, 0, 1).separated is established
    assert found.top_two[0].lower_points == math.inf
    assert sweep_drop(counts, 0, 1) == pytest.approx(wins * math.log(2), abs=0.01)
    assert found.tier.tolist() == ([1, 2] if established else [1, 1])


def test_a_win_and_ties_separate_nobody_although_the_tie_model_lets_them_run_apart() -> None:
    found = ranked(from_cells(2, [(0, 1, 3, 0, 9)]), ties="rao_kupper")

    assert not found.separated.any()
    assert found.tier.tolist() == [1, 1]


def test_components_have_places_of_their_own() -> None:
    found = ranked(from_cells(6, [(0, 2, 10, 80, 0), (1, 3, 90, 10, 0), (3, 4, 30, 30, 5)]), n_resamples=200)

    assert found.order.tolist()[:2] == [2, 0]
    assert found.rank[[2, 0]].tolist() == [1, 2]
    assert found.rank[1] == 1
    assert found.rank[5] == found.tier[5] == found.rank_lower[5] == 0
    assert math.isnan(found.first_share[5])
    assert math.isnan(found.ahead_share[0, 1])
    assert [(top.leader, top.runner_up) for top in found.top_two][1] == (2, 0)
    assert found.top_two[0].leader == 1
    assert found.first_share[[0, 2]].sum() == pytest.approx(1)


def test_what_a_resample_leaves_open_widens_the_places() -> None:
    # 2 won its only comparison, against the weakest: a third of the resamples do not hold it.
    found = ranked(from_cells(3, [(0, 1, 12, 5, 0), (1, 2, 0, 1, 0)]))

    assert (found.rank_lower[2], found.rank_upper[2]) == (1, 3)
    assert not found.separated[2].any()
    assert 0 < found.first_share[0] < 1


def test_ranks_of_nobody_and_of_one() -> None:
    for n in (0, 1, 3):
        found = ranked(from_cells(n, []), n_resamples=10)
        assert found.order.size == 0
        assert found.rank.tolist() == [0] * n
        assert found.top_two == ()


def test_mismatched_and_impossible_requests_are_refused() -> None:
    counts, other = from_cells(2, [(0, 1, 3, 2, 0)]), from_cells(3, [(0, 1, 3, 2, 0)])
    fitted = fit(counts)
    resampled = bootstrap(fitted, counts, n_resamples=10)

    with pytest.raises(ValueError, match="The fit has 2 candidates"):
        ranks(fitted, resampled, other)
    with pytest.raises(ValueError, match="no difference to itself"):
        separation(fitted, resampled, counts, 1, 1)


def test_the_quickstarts_top_two_are_not_separated() -> None:
    published = shared_json("reference/orq_quickstart.json")["later_rules"]["top_two"]
    names, counts = quickstart()
    found = ranked(counts, ridge=0, n_resamples=1000)
    top = found.top_two[0]

    assert (names[top.leader], names[top.runner_up]) == (published["leader"], published["runner_up"])
    assert top.separated is published["separated"] is False
    # Published values come from 50 sweeps, not from optima: the share agrees in spirit, the open end is cut off.
    assert top.ahead_share == pytest.approx(published["ahead_share"], abs=0.08)
    assert top.lower_points == pytest.approx(published["difference_ci"][0], abs=80)
    assert top.upper_points == math.inf
    assert found.tier[top.leader] == found.tier[top.runner_up] == 1
