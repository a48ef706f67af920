from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ratings.engine.bradley_terry import BradleyTerryFit, default_ridge_for, fit
from ratings.engine.comparisons import OUTCOMES, TIE, PairCounts
from ratings.engine.likelihood import TIE_MODELS, TieModel
from tests.engine.helpers import from_cells, simulated

CYCLE = [(0, 1, 6, 3, 1), (1, 2, 5, 4, 2), (2, 0, 3, 4, 0)]
PROPERTY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("ties", TIE_MODELS)
def test_newton_and_lbfgs_agree(ties: TieModel) -> None:
    counts = PairCounts.from_codes(8, *simulated(np.linspace(-1, 1, 8), 3000, 4, eta=0.3))

    quick = fit(counts, ties=ties, ridge=0.01)
    slow = fit(counts, ties=ties, ridge=0.01, method="lbfgs")

    assert quick.converged
    assert slow.converged
    np.testing.assert_allclose(quick.theta, slow.theta, atol=1e-6)
    assert quick.log_likelihood == pytest.approx(slow.log_likelihood, abs=1e-8)
    assert quick.eta == (None if slow.eta is None else pytest.approx(slow.eta, abs=1e-6))


def test_simulated_truth_is_recovered() -> None:
    truth = np.array([1.2, 0.5, 0.1, -0.4, -1.4])
    fitted = fit(PairCounts.from_codes(5, *simulated(truth, 200_000, 1, eta=0.4)), ties="rao_kupper")

    np.testing.assert_allclose(fitted.theta, truth, atol=0.03)
    assert fitted.eta == pytest.approx(0.4, abs=0.01)


def test_two_candidates_have_the_closed_form() -> None:
    fitted = fit(from_cells(2, [(0, 1, 30, 10, 0)]))

    np.testing.assert_allclose(fitted.theta, [math.log(3) / 2, -math.log(3) / 2], atol=1e-10)
    assert fitted.log_likelihood == pytest.approx(30 * math.log(0.75) + 10 * math.log(0.25))


def test_two_candidates_with_ties_have_the_closed_form() -> None:
    # P(first) = 0.5, P(second) = 0.2: d - eta = logit 0.5, -d - eta = logit 0.2.
    fitted = fit(from_cells(2, [(0, 1, 50, 20, 30)]), ties="rao_kupper")

    assert fitted.theta[0] - fitted.theta[1] == pytest.approx(math.log(4) / 2, abs=1e-10)
    assert fitted.eta == pytest.approx(math.log(4) / 2, abs=1e-10)


def test_each_component_sums_to_zero() -> None:
    fitted = fit(from_cells(5, [(0, 2, 8, 3, 1), (1, 3, 9, 2, 0), (3, 4, 4, 2, 0), (4, 1, 3, 5, 0)]))

    assert fitted.components.tolist() == [0, 1, 0, 1, 1]
    assert fitted.theta[[0, 2]].sum() == pytest.approx(0, abs=1e-12)
    assert fitted.theta[[1, 3, 4]].sum() == pytest.approx(0, abs=1e-12)


def test_a_reference_is_pinned_in_its_component_alone() -> None:
    counts = from_cells(4, [(0, 1, 8, 3, 1), (2, 3, 9, 2, 0)])
    free, pinned = fit(counts), fit(counts, reference=1)

    assert pinned.theta[1] == 0
    assert pinned.theta[0] == pytest.approx(free.theta[0] - free.theta[1])
    np.testing.assert_array_equal(pinned.theta[2:], free.theta[2:])


def test_a_warm_start_changes_the_path_and_not_the_optimum() -> None:
    counts = PairCounts.from_codes(8, *simulated(np.linspace(-1, 1, 8), 3000, 4, eta=0.3))
    cold = fit(counts, ties="rao_kupper", ridge=0.01)

    warm = fit(counts, ties="rao_kupper", ridge=0.01, start=cold.parameters)
    far = fit(counts, ties="rao_kupper", ridge=0.01, start=[9, -9, np.inf, np.nan, 3, 0, -20, 20, np.inf])

    assert warm.iterations == 0
    np.testing.assert_allclose(far.theta, cold.theta, atol=1e-10)


def test_too_few_iterations_are_not_convergence() -> None:
    counts = PairCounts.from_codes(8, *simulated(np.linspace(-1, 1, 8), 3000, 4))

    fitted = fit(counts, max_iterations=1)

    assert not fitted.converged
    assert fitted.iterations == 1
    assert fitted.gradient_norm > 1e-12 * 3000


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("n_candidates", [0, 1, 3])
def test_no_comparisons(ties: TieModel, ridge: float, n_candidates: int) -> None:
    fitted = fit(PairCounts.from_rows(n_candidates, []), ties=ties, ridge=ridge)

    assert fitted.converged
    assert fitted.theta.tolist() == [0.0] * n_candidates
    assert fitted.components.tolist() == list(range(n_candidates))
    assert fitted.unbounded_above.all()
    assert fitted.unbounded_below.all()


def test_one_vote_is_open_outwards() -> None:
    counts = from_cells(2, [(0, 1, 1, 0, 0)])

    for ties in TIE_MODELS:
        fitted = fit(counts, ties=ties, ridge=0.01)
        assert fitted.converged
        assert fitted.theta[0] > 1
        assert fitted.unbounded_above.tolist() == [True, False]
        assert fitted.unbounded_below.tolist() == [False, True]
        assert fit(counts, ties=ties).theta.tolist() == [math.inf, -math.inf]


def test_no_ties_rest_eta_on_its_floor() -> None:
    fitted = fit(from_cells(3, [(0, 1, 30, 10, 0), (0, 2, 35, 5, 0), (1, 2, 24, 16, 0)]), ties="rao_kupper")

    assert fitted.converged
    assert fitted.eta == 1e-4
    assert not fitted.eta_free
    assert not fitted.eta_unbounded


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_all_ties_are_equal_with_eta_unbounded(ridge: float) -> None:
    fitted = fit(from_cells(3, [(0, 1, 0, 0, 10), (1, 2, 0, 0, 4)]), ties="rao_kupper", ridge=ridge)

    assert fitted.converged
    assert fitted.theta.tolist() == [0, 0, 0]
    assert fitted.eta == math.inf
    assert fitted.eta_unbounded
    assert fitted.unbounded_above.all()
    assert fitted.unbounded_below.all()


def test_all_ties_as_half_wins_are_equal_and_bounded() -> None:
    fitted = fit(from_cells(3, [(0, 1, 0, 0, 10), (1, 2, 0, 0, 4)]))

    np.testing.assert_allclose(fitted.theta, 0, atol=1e-12)
    assert not fitted.unbounded_above.any()
    assert not fitted.held_by_prior.any()


def test_wins_one_way_and_ties_have_no_finite_optimum_although_ties_connect_them() -> None:
    counts = from_cells(2, [(0, 1, 1, 0, 5)])

    alone = fit(counts, ties="rao_kupper")
    held = fit(counts, ties="rao_kupper", ridge=0.01)

    assert alone.theta.tolist() == [math.inf, -math.inf]
    assert math.isnan(alone.log_likelihood)
    assert held.converged
    assert np.isfinite(held.theta).all()
    assert held.eta_unbounded
    assert held.unbounded_above.tolist() == [True, False]
    assert held.held_by_prior.all()
    # The likelihood still rises along the direction in which both run away.
    further = fit(counts, ties="rao_kupper", ridge=1e-6)
    assert further.theta[0] > held.theta[0] + 1
    assert further.log_likelihood > held.log_likelihood
    assert default_ridge_for(counts, "rao_kupper") == 0.01
    assert default_ridge_for(counts, "half_win") == 0


def test_more_wins_than_ties_in_a_cycle_bound_eta() -> None:
    counts = from_cells(3, [(0, 1, 4, 0, 0), (1, 2, 4, 0, 0), (2, 0, 1, 0, 2)])
    fitted = fit(counts, ties="rao_kupper")

    assert fitted.converged
    assert not fitted.eta_unbounded
    assert np.isfinite(fitted.theta).all()


def test_separation_marks_the_unbeaten_and_keeps_the_rest_finite() -> None:
    counts = from_cells(4, [(0, 1, 9, 0, 0), (0, 2, 9, 0, 0), (1, 2, 6, 3, 1), (2, 3, 5, 0, 0)])

    for ties in TIE_MODELS:
        fitted = fit(counts, ties=ties)
        assert fitted.converged
        assert fitted.theta[0] == math.inf
        assert fitted.theta[3] == -math.inf
        assert fitted.unbounded_above.tolist() == [True, False, False, False]
        assert fitted.unbounded_below.tolist() == [False, False, False, True]
        assert fitted.held_by_prior.all()
        alone = fit(from_cells(2, [(0, 1, 6, 3, 1)]), ties=ties)
        np.testing.assert_allclose(fitted.theta[1:3], alone.theta, atol=1e-10)
        assert fitted.log_likelihood == pytest.approx(alone.log_likelihood)


def test_core_differences_are_the_limit_of_a_vanishing_ridge() -> None:
    counts = from_cells(4, [(0, 1, 9, 0, 0), (0, 2, 3, 0, 0), (1, 2, 6, 3, 1), (2, 3, 5, 0, 0)])
    limit, near = fit(counts), fit(counts, ridge=1e-9)

    assert near.converged
    assert limit.theta[1] - limit.theta[2] == pytest.approx(near.theta[1] - near.theta[2], abs=1e-5)


def test_a_chain_of_single_candidates_has_no_core() -> None:
    fitted = fit(from_cells(3, [(0, 1, 4, 0, 0), (1, 2, 4, 0, 0)]))

    assert fitted.theta[0] == math.inf
    assert math.isnan(fitted.theta[1])
    assert fitted.theta[2] == -math.inf


def test_a_group_beside_the_core_is_open_on_both_sides() -> None:
    # 3 beat 4 and never met the core 0, 1, 2 except through 4.
    counts = from_cells(5, [*CYCLE, (0, 4, 5, 0, 0), (3, 4, 5, 0, 0)])
    fitted = fit(counts, ridge=0.01)

    assert fitted.unbounded_above.tolist() == [False, False, False, True, False]
    assert fitted.unbounded_below.tolist() == [False, False, False, True, True]


def test_a_pinned_reference_makes_its_group_the_core() -> None:
    counts = from_cells(4, [(0, 1, 9, 0, 0), (0, 2, 9, 0, 0), (1, 2, 6, 3, 1), (2, 3, 5, 0, 0)])
    fitted = fit(counts, reference=0)

    assert fitted.theta.tolist() == [0, -math.inf, -math.inf, -math.inf]


def test_the_default_ridge_is_none_while_the_data_allow_it() -> None:
    assert default_ridge_for(from_cells(3, CYCLE)) == 0
    assert default_ridge_for(from_cells(5, [*CYCLE, (3, 4, 1, 1, 0)])) == 0
    assert default_ridge_for(from_cells(4, CYCLE)) == 0  # A candidate without games needs no prior.
    assert default_ridge_for(from_cells(4, [*CYCLE, (0, 3, 2, 0, 0)])) == 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ties": "davidson"}, "Unknown tie model 'davidson'"),
        ({"method": "sgd"}, "Unknown method"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"ridge": math.nan}, "ridge must be"),
        ({"reference": 3}, "outside 0 to 2"),
        ({"start": [0.0]}, "start must have"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(from_cells(3, CYCLE), **arguments)  # type: ignore[arg-type]


Cells = list[tuple[int, int, str, int]]
cells = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(OUTCOMES), st.integers(1, 6)).filter(
        lambda row: row[0] != row[1]
    ),
    max_size=15,
)
settled = st.sampled_from([(ties, ridge) for ties in TIE_MODELS for ridge in (0.0, 0.01)])


def same(one: BradleyTerryFit, other: BradleyTerryFit, order: list[int]) -> None:
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(other.theta[order], one.theta, atol=1e-6)
    np.testing.assert_array_equal(other.unbounded_above[order], one.unbounded_above)
    np.testing.assert_array_equal(other.unbounded_below[order], one.unbounded_below)
    np.testing.assert_array_equal(other.held_by_prior[order], one.held_by_prior)
    assert other.eta == (None if one.eta is None else pytest.approx(one.eta, abs=1e-6))


@PROPERTY
@given(rows=cells, order=st.permutations(range(5)), setting=settled)
def test_relabelling_permutes_the_result(rows: Cells, order: list[int], setting: tuple[TieModel, float]) -> None:
    ties, ridge = setting
    renamed = [(order[i], order[j], outcome, count) for i, j, outcome, count in rows]

    same(
        fit(PairCounts.from_rows(5, rows), ties=ties, ridge=ridge),
        fit(PairCounts.from_rows(5, renamed), ties=ties, ridge=ridge),
        list(order),
    )


@PROPERTY
@given(rows=cells, setting=settled)
def test_swapping_seats_changes_nothing(rows: Cells, setting: tuple[TieModel, float]) -> None:
    ties, ridge = setting
    opposite = {"first": "second", "second": "first", "tie": "tie"}
    swapped = [(j, i, opposite[outcome], count) for i, j, outcome, count in rows]

    same(
        fit(PairCounts.from_rows(5, rows), ties=ties, ridge=ridge),
        fit(PairCounts.from_rows(5, swapped), ties=ties, ridge=ridge),
        [0, 1, 2, 3, 4],
    )


@PROPERTY
@given(rows=cells, pair=st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] != p[1]))
def test_a_tie_as_half_a_win_moves_both_towards_each_other(rows: Cells, pair: tuple[int, int]) -> None:
    i, j = pair
    before = fit(PairCounts.from_rows(5, rows), ridge=0.05).theta
    after = fit(PairCounts.from_rows(5, [*rows, (i, j, TIE, 1)]), ridge=0.05).theta

    assert abs(after[i] - after[j]) <= abs(before[i] - before[j]) + 1e-9


@PROPERTY
@given(rows=cells)
def test_open_ends_are_where_a_weaker_prior_lets_strengths_run(rows: Cells) -> None:
    counts = PairCounts.from_rows(5, rows)
    strong, weak = fit(counts, ridge=1e-4), fit(counts, ridge=1e-8)
    spread = np.abs(weak.theta - strong.theta)

    assert strong.converged
    assert weak.converged
    assert (spread[~strong.held_by_prior] < 0.1).all()
    for component in set(strong.components[strong.held_by_prior & (counts.games > 0)].tolist()):
        assert spread[strong.components == component].max() > 1
