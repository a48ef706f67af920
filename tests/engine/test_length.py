from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ratings.engine.arrays import FloatArray, IntArray
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import Comparisons
from ratings.engine.covariates import JointLikelihood, minimise
from ratings.engine.length import (
    MOST_WITHOUT_GAMMA,
    LengthControl,
    _Cycles,
    length_control,
    longer_answer,
    normalised_difference,
    own_share,
)
from ratings.engine.scale import logistic
from tests.engine.helpers import quickstart_rounds, shared_json


def published() -> dict[str, object]:
    found: dict[str, object] = shared_json("reference/orq_quickstart.json")["later_rules"]
    return found


def rows(n: int, *found: tuple[int, int, int]) -> Comparisons:
    first, second, outcome = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return Comparisons(n, first, second, outcome)


@pytest.fixture(scope="module")
def quickstart_control() -> LengthControl:
    _, rated, a, b = quickstart_rounds()
    return length_control(rated, a, b)


def test_published_count() -> None:
    _, rated, a, b = quickstart_rounds()
    found = longer_answer(rated, a, b)

    assert [found.longer_won, found.decided] == published()["longer_answer_won"]
    assert found.ties == 2
    assert (found.equal, found.unknown) == (0, 0)
    assert found.share.lower is not None
    assert found.share.lower > 0.5


def test_published_coefficient(quickstart_control: LengthControl) -> None:
    names, _, _, _ = quickstart_rounds()
    adjusted = published()["length_adjusted"]
    assert isinstance(adjusted, dict)

    assert quickstart_control.gamma == pytest.approx(published()["gamma"], abs=1e-4)
    assert quickstart_control.log_likelihood == pytest.approx(published()["log_likelihood"], abs=1e-5)
    # The reference stopped on its own gradient norm: its ratings are good to a few thousandths of a point.
    np.testing.assert_allclose(quickstart_control.rating, [adjusted[name] for name in names], atol=0.02)


def test_plain_ratings_beside_the_adjusted_ones(quickstart_control: LengthControl) -> None:
    names, rated, _, _ = quickstart_rounds()
    gap = dict(zip(names, quickstart_control.gap_points, strict=True))

    np.testing.assert_allclose(quickstart_control.plain_theta, fit(rated.pair_counts()).theta, atol=1e-9)
    assert max(gap, key=lambda name: gap[name]) == "gemini-3.5-flash"
    assert gap["gemini-3.5-flash"] == pytest.approx(1373.655 - 810.62, abs=0.1)


def test_how_61_and_23_of_400_resamples_relate(quickstart_control: LengthControl) -> None:
    """61 is a cut-off on curvature, 23 an exact count within it.

    In 23 resamples one side always wins and no finite gamma exists. In 38 more a finite gamma exists, large and on
    flat ground: the second derivative lies below 0.04 (on the full data it is above 0.1). A cut-off on the curvature
    cannot tell the two apart and counts 61. Over 5 % are without gamma, so that on these 76 rounds the coefficient
    is not identified although it converged, far from 0.
    """
    _, rated, a, b = quickstart_rounds()
    x = normalised_difference(a, b)
    cycles, likelihood = _Cycles.of(rated, x), JointLikelihood.of(rated, x[None, :], "half_win")
    generator = np.random.default_rng(0)
    curvatures = []
    for _ in range(400):
        counts = np.bincount(generator.integers(0, x.size, x.size), minlength=x.size)
        if not cycles.unbounded(counts > 0).any():
            groups = cycles.groups(counts > 0)
            within = counts * (groups[rated.first] == groups[rated.second])
            solution = minimise(likelihood.reweighted(within.astype(float)), np.zeros(9), groups, ridge=0.0)
            curvatures.append(solution.hessian[-1, -1])
    full = likelihood.evaluate(np.append(quickstart_control.theta, quickstart_control.gamma), 0.0)[2][-1, -1]

    assert [400 - len(curvatures) + int((np.array(curvatures) < 0.04).sum()), 400] == published()["separated_resamples"]
    assert quickstart_control.without_gamma == 400 - len(curvatures) == 23
    assert full > 0.1
    assert quickstart_control.status == "too_many_without_gamma"
    assert quickstart_control.upper == math.inf
    # The reference drew other resamples: alike in spirit only.
    assert quickstart_control.lower == pytest.approx(published()["gamma_ci_lower"], rel=0.1)


def simulated_lengths(gamma: float, n_rows: int, seed: int) -> tuple[Comparisons, IntArray, IntArray, FloatArray]:
    rng = np.random.default_rng(seed)
    truth = np.array([0.8, 0.3, 0.0, -0.4, -0.7])
    first = rng.integers(0, 5, n_rows)
    second = (first + rng.integers(1, 5, n_rows)) % 5
    a, b = (rng.integers(200, 2000, n_rows) + 150 * (4 - side) for side in (first, second))
    d = truth[first] - truth[second] + gamma * normalised_difference(a, b)
    outcome = np.where(rng.random(n_rows) < logistic(d), 0, 1)
    return Comparisons(5, first, second, outcome), a, b, truth


def test_a_planted_preference_is_found_and_priced_out() -> None:
    comparisons, a, b, truth = simulated_lengths(2.0, 6000, 3)
    found = length_control(comparisons, a, b, resamples=60)

    assert found.identified
    assert found.lower < 2.0 < found.upper
    assert found.without_gamma == 0
    assert found.gamma - 2 * found.std_error < 2.0 < found.gamma + 2 * found.std_error
    np.testing.assert_allclose(found.theta, truth, atol=0.15)
    assert np.abs(found.plain_theta - truth).max() > np.abs(found.theta - truth).max()


def test_bootstrap_and_analytic_errors_agree_on_large_data() -> None:
    comparisons, a, b, _ = simulated_lengths(1.0, 2000, 5)
    found = length_control(comparisons, a, b, resamples=500)

    assert (found.upper - found.lower) / (2 * 1.96) == pytest.approx(found.std_error, rel=0.2)


def test_no_preference_is_not_identified() -> None:
    comparisons, a, b, _ = simulated_lengths(0.0, 400, 1)
    found = length_control(comparisons, a, b, resamples=60)

    assert found.status == "interval_includes_zero"
    assert not found.identified
    assert found.lower < 0 < found.upper


def test_unknown_lengths_are_left_out_and_counted() -> None:
    comparisons, a, b, _ = simulated_lengths(1.0, 600, 2)
    holes = a.astype(np.float64)
    holes[:50] = np.nan
    rest = Comparisons(5, comparisons.first[50:], comparisons.second[50:], comparisons.outcome[50:])
    found, expected = (
        length_control(comparisons, holes, b, resamples=40),
        length_control(rest, a[50:], b[50:], resamples=40),
    )

    assert (found.unknown, found.comparisons) == (50, 550)
    assert (found.gamma, found.lower, found.upper) == (expected.gamma, expected.lower, expected.upper)
    assert longer_answer(comparisons, holes, b).unknown == 50


def test_the_seed_decides_the_resamples() -> None:
    comparisons, a, b, _ = simulated_lengths(1.0, 300, 4)
    one, same, other = (length_control(comparisons, a, b, resamples=40, seed=seed) for seed in (1, 1, 2))

    assert (one.lower, one.upper) == (same.lower, same.upper)
    assert (one.lower, one.upper) != (other.lower, other.upper)
    assert one.gamma == other.gamma


def test_counts_are_rows_repeated() -> None:
    single = rows(2, (0, 1, 0), (0, 1, 0), (0, 1, 1), (1, 0, 2))
    grouped = Comparisons(2, np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([0, 1, 2]), np.array([2, 1, 1]))
    spread = length_control(single, [300, 300, 500, 10], [200, 200, 900, 20], resamples=40)
    found = length_control(grouped, [300, 500, 10], [200, 900, 20], resamples=40)

    assert found.comparisons == spread.comparisons == 4
    assert (found.gamma, found.status) == (spread.gamma, spread.status)
    assert longer_answer(grouped, [300, 500, 10], [200, 900, 20]) == longer_answer(
        single, [300, 300, 500, 10], [200, 200, 900, 20]
    )


@pytest.mark.parametrize(
    ("found", "a", "b", "status", "gamma"),
    [
        ([], [], [], "no_comparisons", math.nan),
        ([(0, 1, 0), (0, 1, 1)], [5, 7], [5, 7], "no_difference_in_length", math.nan),
        ([(0, 1, 2), (1, 0, 2)], [5, 7], [5, 7], "no_difference_in_length", math.nan),
        # One pair, the longer answer always won: gamma grows without end.
        ([(0, 1, 0), (0, 1, 1)], [9, 2], [2, 9], "no_finite_gamma", math.inf),
        ([(0, 1, 0), (0, 1, 1)], [2, 9], [9, 2], "no_finite_gamma", -math.inf),
        # Never met again: the strengths explain everything.
        ([(0, 1, 0), (1, 2, 0)], [9, 2], [2, 9], "no_finite_gamma", math.nan),
        # The first is always longer by the same share: not to be told from its strength.
        ([(0, 1, 0), (0, 1, 1)], [9, 18], [3, 6], "no_finite_gamma", math.nan),
    ],
)
def test_degenerate_data(
    found: list[tuple[int, int, int]], a: list[int], b: list[int], status: str, gamma: float
) -> None:
    control = length_control(rows(3, *found), a, b)

    assert control.status == status
    assert control.gamma == pytest.approx(gamma, nan_ok=True)
    assert not control.identified
    assert np.isnan([control.lower, control.upper, *control.theta, *control.gap_points]).all()
    assert control.comparisons == len(found)


def test_ties_of_unequal_answers_hold_gamma_down() -> None:
    # Equal strengths and equal odds whatever the length: gamma is 0, not unknown.
    control = length_control(rows(2, (0, 1, 2), (1, 0, 2), (0, 1, 2)), [9, 9, 4], [3, 3, 8], resamples=40)

    assert control.gamma == pytest.approx(0.0, abs=1e-9)
    assert control.status in ("interval_includes_zero", "too_many_without_gamma")


def test_open_ends_stay_open_in_the_adjusted_column() -> None:
    control = length_control(
        rows(4, (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0), (2, 0, 0)), [9, 4, 3, 6, 8], [3, 9, 8, 3, 8], resamples=40
    )

    assert np.isfinite(control.gamma)
    assert control.theta[2] == control.plain_theta[2] == math.inf
    assert control.theta[:2].sum() == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(control.gap_points[2])


def test_a_share_without_comparisons_is_unknown() -> None:
    found = longer_answer(rows(2, (0, 1, 0), (0, 1, 2)), [5, 5], [5, 9])

    assert (found.decided, found.equal, found.ties) == (0, 1, 1)
    assert found.share.share is None


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [([1.0], [1.0, 2.0], "shape"), ([1.0, -1.0], [1.0, 2.0], "0 or more"), ([1.0, np.inf], [1.0, 2.0], "0 or more")],
)
def test_bad_lengths_are_refused(a: list[float], b: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        longer_answer(rows(2, (0, 1, 0), (0, 1, 1)), a, b)
    with pytest.raises(ValueError, match=message):
        length_control(rows(2, (0, 1, 0), (0, 1, 1)), a, b)


def test_few_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match="At least 40"):
        length_control(rows(2, (0, 1, 0)), [1], [2], resamples=39)


def test_two_empty_answers_differ_by_nothing() -> None:
    assert normalised_difference([0, 3, 0], [0, 1, 5]).tolist() == [0.0, 0.5, -1.0]


def unbounded_by_linear_programming(comparisons: Comparisons, x: FloatArray) -> list[bool]:
    """Whether gamma may rise, or fall, while no margin falls."""
    n = comparisons.n_candidates
    design = np.zeros((x.size, n + 1))
    index = np.arange(x.size)
    design[index, comparisons.first] += 1
    design[index, comparisons.second] -= 1
    design[:, n] = x
    wins = np.where((comparisons.outcome == 1)[:, None], -design, design)
    oriented = np.concatenate([wins, -wins[comparisons.outcome == 2]])
    limits = [(None, None)] * n + [(-1, 1)]
    ends = []
    for sign in (1.0, -1.0):
        goal = np.zeros(n + 1)
        goal[n] = -sign
        ends.append(linprog(goal, A_ub=-oriented, b_ub=np.zeros(len(oriented)), bounds=limits).fun < -1e-7)
    return ends


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2), st.integers(-3, 3)), min_size=1, max_size=14
    )
)
def test_cycles_decide_as_linear_programming_does(found: list[tuple[int, int, int, int]]) -> None:
    first = np.array([row[0] for row in found])
    comparisons = Comparisons(4, first, (first + [row[1] for row in found]) % 4, np.array([row[2] for row in found]))
    x = np.array([row[3] / 4 for row in found])
    cycles = _Cycles.of(comparisons, x)

    assert cycles.unbounded(np.ones(x.size, dtype=bool)).tolist() == unbounded_by_linear_programming(comparisons, x)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**16), order=st.permutations(range(5)))
def test_relabelling_and_swapping_change_nothing(seed: int, order: list[int]) -> None:
    comparisons, a, b, _ = simulated_lengths(1.0, 60, seed)
    label = np.array(order)
    swapped = np.random.default_rng(seed).random(60) < 0.5
    first, second = label[comparisons.first], label[comparisons.second]
    other = Comparisons(
        5,
        np.where(swapped, second, first),
        np.where(swapped, first, second),
        np.where(swapped, 1 - comparisons.outcome, comparisons.outcome),
    )
    one = length_control(comparisons, a, b, resamples=40)
    two = length_control(other, np.where(swapped, b, a), np.where(swapped, a, b), resamples=40)

    assert (two.status, two.without_gamma) == (one.status, one.without_gamma)
    assert two.gamma == pytest.approx(one.gamma, abs=1e-7, nan_ok=True)
    np.testing.assert_allclose(two.theta[label], one.theta, atol=1e-6)
    assert one.without_gamma <= MOST_WITHOUT_GAMMA * 40 or one.status != "identified"


def test_own_share_tells_what_candidates_do_not() -> None:
    first, second = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    rows = Comparisons(3, first, second, np.zeros(4, dtype=np.int64))
    lengths = np.array([300.0, 200.0, 100.0])
    assert own_share(rows, lengths[first] - lengths[second]) == pytest.approx(0, abs=1e-12)
    # All the way round a cycle: no value for each candidate explains any of it.
    round_robin = Comparisons(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.zeros(3, dtype=np.int64))
    assert own_share(round_robin, [1.0, 1.0, 1.0]) == pytest.approx(1)
    assert math.isnan(own_share(rows, np.zeros(4)))
    doubled = Comparisons(3, first, second, np.zeros(4, dtype=np.int64), np.array([1, 3, 1, 2]))
    spread = Comparisons(
        3, np.repeat(first, [1, 3, 1, 2]), np.repeat(second, [1, 3, 1, 2]), np.zeros(7, dtype=np.int64)
    )
    x = np.array([1.0, -2.0, 0.5, 3.0])
    assert own_share(doubled, x) == pytest.approx(own_share(spread, np.repeat(x, [1, 3, 1, 2])))
