from __future__ import annotations

import csv
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratings.engine.arrays import FloatArray
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import Comparisons
from ratings.engine.scale import POINTS_PER_LOG_ODDS
from ratings.engine.style import FEATURES, STYLE_RIDGE, StyleCoefficient, StyleFit, style_fit
from tests.engine.helpers import shared_file, shared_json, simulated

SIDES = ("tokens", "md", "ttft", "dur")


def by_name(fitted: StyleFit) -> dict[str, float]:
    return {found.feature: found.value for found in fitted.coefficients}


def differences(first: dict[str, FloatArray], second: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Features of rows shown with ``first`` on the left."""
    found = {feature: first[side] - second[side] for feature, side in zip(FEATURES[1:], SIDES, strict=True)}
    return {"position": np.ones(first["tokens"].size), **found}


def small() -> tuple[dict[str, Any], Comparisons, dict[str, FloatArray]]:
    found = shared_json("reference/omniarena_reference.json")["style_small"]
    names = found["columns"].split(",")
    table = [dict(zip(names, row, strict=True)) for row in found["rows"] if row[2] != "skip"]
    sides = [
        {side: np.array([row[f"{seat}_{side}"] for row in table], dtype=np.float64) for side in SIDES} for seat in "ab"
    ]
    return found, rows_of(found["models"], table, "a_id", "b_id"), differences(*sides)


def rows_of(models: list[str], table: list[dict[str, Any]], a: str, b: str) -> Comparisons:
    outcome = [{"left": 0, "right": 1}.get(row["vote"], 2) for row in table]
    first, second = (np.array([models.index(row[side]) for row in table]) for side in (a, b))
    return Comparisons(len(models), first, second, np.array(outcome, dtype=np.int64))


def assert_reproduced(fitted: StyleFit, found: dict[str, Any], atol: float) -> None:
    assert fitted.problem is None
    assert by_name(fitted) == pytest.approx(found["coefficients"], abs=atol)
    np.testing.assert_allclose(fitted.strengths.theta, found["ratings"], atol=2e-5)
    assert fitted.strengths.eta == pytest.approx(found["eta"], abs=2e-5)
    np.testing.assert_allclose([one.scale for one in fitted.coefficients], found["feature_scale"], rtol=1e-12)
    np.testing.assert_allclose(fitted.intervals.std_error, found["stderr"], atol=2e-6)
    assert -fitted.strengths.objective >= found["penalised_loglik"] - 1e-9
    assert -fitted.strengths.objective == pytest.approx(found["penalised_loglik"], abs=1e-6)


def test_published_small_case_where_unknown_is_taken_as_zero() -> None:
    """The reference takes a missing time to first token as 0; with zeros put in, all values are its own.

    Its coefficients come from L-BFGS-B, stopped on a function tolerance: the exact optimum is within 2e-5 of them
    and its objective never worse.
    """
    found, rows, features = small()
    as_zero = {name: np.nan_to_num(values) for name, values in features.items()}
    # The reference subtracts after putting 0 in for the side that is missing.
    table = [dict(zip(found["columns"].split(","), row, strict=True)) for row in found["rows"] if row[2] != "skip"]
    as_zero["latency_ttft"] = np.array([float((row["a_ttft"] or 0) - (row["b_ttft"] or 0)) for row in table])

    assert_reproduced(style_fit(rows, as_zero), found, 2e-5)


def test_the_same_case_with_unknown_left_out_and_counted() -> None:
    found, rows, features = small()
    fitted = style_fit(rows, features)
    unknown = int(np.isnan(features["latency_ttft"]).sum())

    assert unknown > 0
    assert fitted.rows_missing == fitted.missing["latency_ttft"] == unknown
    assert fitted.comparisons == rows.first.size - unknown
    assert fitted.missing["verbosity"] == 0
    assert by_name(fitted)["latency_ttft"] != pytest.approx(found["coefficients"]["latency_ttft"], abs=1e-3)


def test_published_large_case() -> None:
    found = shared_json("reference/omniarena_reference.json")["style_50x100k"]
    with np.load(shared_file(f"reference/{found['file']}")) as data:
        columns = {name: data[name].astype(np.float64) for name in data}
    names = {"tokens": "tokens", "md": "markdown", "ttft": "ttft", "dur": "duration"}
    sides = [{side: columns[f"{name}_{seat}"] for side, name in names.items()} for seat in "ab"]
    codes = (columns[name].astype(np.int64) for name in ("a", "b", "outcome"))

    assert_reproduced(style_fit(Comparisons(50, *codes), differences(*sides)), found, 2e-5)


def test_published_demo_case() -> None:
    found = shared_json("reference/omniarena_reference.json")["style_demo_240"]
    with shared_file(f"reference/{found['file']}").open(encoding="utf-8") as file:
        table = [row for row in csv.DictReader(file) if row["vote"] != "skip"]
    sides = [{side: np.array([float(row[f"{seat}_{side}"] or 0) for row in table]) for side in SIDES} for seat in "ab"]
    fitted = style_fit(rows_of(found["models"], table, "model_a", "model_b"), differences(*sides))

    assert fitted.comparisons == found["n_votes"]
    assert_reproduced(fitted, found, 2e-5)


def style_votes() -> tuple[dict[str, Any], Comparisons, dict[str, FloatArray]]:
    results = shared_json("reference/arena_rank_reference.json")["results"]["d_style_50x100k"]
    with np.load(shared_file("reference/votes/d_style_50x100k.npz")) as data:
        features = {str(name): column for name, column in zip(data["feature_names"], data["features"].T, strict=True)}
        # Its fourth outcome, both bad, is a tie.
        codes = data["model_a"], data["model_b"], np.minimum(data["winner"], 2)
        return results, Comparisons(50, *(column.astype(np.int64) for column in codes)), features


def test_exact_optimum_with_half_wins_and_no_prior() -> None:
    """The other reference counts ties as half, uses no prior and gives coefficients per unit of its own features.

    Those features are already divided by their standard deviation, so ours come out with a scale of 1.
    """
    results, rows, features = style_votes()
    exact = results["exact_newton_style"]
    fitted = style_fit(rows, features, ties="half_win", ridge=0.0)
    order = [int(name[-3:]) for name in exact["competitors"]]

    assert fitted.problem is None
    assert [one.scale for one in fitted.coefficients] == pytest.approx([1.0] * 4)
    assert list(by_name(fitted).values()) == pytest.approx(exact["coeffs"], abs=1e-10)
    assert [one.std_error for one in fitted.coefficients] == pytest.approx(exact["coeff_fisher_se"], abs=1e-10)
    points = 1000 + POINTS_PER_LOG_ODDS * fitted.strengths.theta[order]
    np.testing.assert_allclose(points, exact["ratings"], atol=1e-6)
    np.testing.assert_allclose(POINTS_PER_LOG_ODDS * fitted.intervals.std_error[order], exact["fisher_se"], atol=1e-6)


def test_the_default_prior_keeps_style_control_where_a_stronger_one_undoes_it() -> None:
    """Arena-rank's default penalty leaves 0.049 of a true 0.35; ours, in another tie model, keeps the truth inside."""
    results, rows, features = style_votes()
    fitted = style_fit(rows, features)

    assert abs(results["arena_rank.style"]["coeffs"][0] - 0.35) > 0.3
    for truth, found in zip(results["exact_newton_style"]["beta_true"], fitted.coefficients, strict=True):
        assert abs(found.value - truth) < 2.5 * found.std_error
    # The set was drawn with a tie parameter of 0.35, which half wins have no place for.
    assert fitted.strengths.eta is not None


def planted(seed: int, n_rows: int = 4000) -> tuple[Comparisons, dict[str, FloatArray], FloatArray]:
    """Equal candidates, of which each is wordier than the next; raters like words and the left seat."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, n_rows)
    second = (first + rng.integers(1, 4, n_rows)) % 4
    words = rng.normal(400, 100, (2, n_rows)) + 60 * (3 - np.stack([first, second]))
    verbosity = words[0] - words[1]
    seat = rng.choice([-1.0, 1.0], n_rows)
    d = 0.004 * verbosity + 0.2 * seat
    draws = rng.random(n_rows)
    outcome = np.where(draws < 1 / (1 + np.exp(0.3 - d)), 0, np.where(draws > 1 / (1 + np.exp(-0.3 - d)), 1, 2))
    return Comparisons(4, first, second, outcome), {"position": seat, "verbosity": verbosity}, np.zeros(4)


def test_a_planted_advantage_of_length_shrinks() -> None:
    rows, features, truth = planted(1)
    fitted = style_fit(rows, features)
    found = {one.feature: one for one in fitted.findings()}

    assert np.abs(fitted.plain.theta - truth).max() > 0.3
    assert np.abs(fitted.strengths.theta - truth).max() < 0.12
    assert fitted.gap_points[0] > 40
    assert found["verbosity"].direction == found["position"].direction == "higher"
    truths = {"verbosity": 0.004 * found["verbosity"].step, "position": 0.2}
    for name, true_value in truths.items():
        assert found[name].lower < true_value * POINTS_PER_LOG_ODDS < found[name].upper
    assert found["verbosity"].points_for(2 * found["verbosity"].step) == pytest.approx(2 * found["verbosity"].points)
    assert found["position"].step == 1.0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), order=st.permutations(range(4)))
def test_swapping_and_relabelling_change_nothing(seed: int, order: list[int]) -> None:
    rows, features, _ = planted(seed, 80)
    rng = np.random.default_rng(seed)
    # A third was judged in both orders.
    features["position"][rng.random(80) < 0.3] = 0.0
    label, swapped = np.array(order), rng.random(80) < 0.5
    first, second = label[rows.first], label[rows.second]
    won = np.where(swapped & (rows.outcome < 2), 1 - rows.outcome, rows.outcome)
    other = Comparisons(4, np.where(swapped, second, first), np.where(swapped, first, second), won)
    one = style_fit(rows, features)
    two = style_fit(other, {name: np.where(swapped, -values, values) for name, values in features.items()})

    assert by_name(two) == pytest.approx(by_name(one), abs=1e-8)
    assert [found.scale for found in two.coefficients] == pytest.approx([found.scale for found in one.coefficients])
    np.testing.assert_allclose(two.strengths.theta[label], one.strengths.theta, atol=1e-8)
    np.testing.assert_allclose(two.intervals.std_error[label], one.intervals.std_error, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), factor=st.floats(1e-6, 1e6))
def test_the_unit_of_a_feature_does_not_matter(seed: int, factor: float) -> None:
    rows, features, _ = planted(seed, 80)
    one = style_fit(rows, features)
    two = style_fit(rows, {**features, "verbosity": features["verbosity"] * factor})

    assert by_name(two) == pytest.approx(by_name(one), abs=1e-9)
    assert two.findings()[1].points_for(100 * factor) == pytest.approx(one.findings()[1].points_for(100))


def test_grouped_rows_are_rows_repeated() -> None:
    rows, features, _ = planted(3, 50)
    count = np.arange(50) % 4
    single = Comparisons(4, *(np.repeat(column, count) for column in (rows.first, rows.second, rows.outcome)))
    grouped = Comparisons(4, rows.first, rows.second, rows.outcome, count)
    one = style_fit(grouped, features)
    two = style_fit(single, {name: np.repeat(values, count) for name, values in features.items()})

    assert by_name(one) == pytest.approx(by_name(two), abs=1e-9)
    assert one.comparisons == two.comparisons == count.sum()


def test_a_feature_nobody_knows_is_left_out_instead_of_the_rows() -> None:
    rows, features, _ = planted(3, 200)
    seen = np.full(200, np.nan)
    seen[:10] = 5.0
    fitted = style_fit(rows, {**features, "latency_ttft": seen})

    assert fitted.left_out == {"latency_ttft": "missing"}
    assert fitted.missing["latency_ttft"] == 190
    assert (fitted.comparisons, fitted.rows_missing) == (200, 0)
    assert list(by_name(fitted)) == ["position", "verbosity"]
    kept = style_fit(rows, {**features, "latency_ttft": np.r_[np.arange(10.0), seen[10:]]}, most_missing=1.0)
    assert (kept.comparisons, kept.rows_missing, kept.left_out) == (10, 190, {})


def test_a_feature_that_does_not_vary_is_left_out() -> None:
    rows, features, _ = planted(3, 200)
    # As seated, the left answer is always longer by the same: that is the seat, not the length.
    same = {"verbosity": 0.1 * features["position"], "formatting": np.zeros(200)}
    fitted = style_fit(rows, {**same, "position": features["position"]})

    assert fitted.left_out == {"verbosity": "no_variation", "formatting": "no_variation"}
    nothing = style_fit(rows, {"position": np.zeros(200)})
    assert nothing.problem == "no_feature"
    np.testing.assert_array_equal(nothing.strengths.theta, fit(rows.pair_counts(), ties="rao_kupper", ridge=0.05).theta)


def test_no_comparisons() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    for features in ({}, {"verbosity": np.zeros(0)}):
        fitted = style_fit(Comparisons(3, nothing, nothing, nothing), features)

        assert fitted.problem == "no_comparisons"
        assert fitted.coefficients == ()
        assert fitted.left_out == {}
        assert fitted.intervals.open_above.all()


def test_every_value_unknown_leaves_the_feature_out() -> None:
    rows, _, _ = planted(3, 20)
    fitted = style_fit(rows, {"verbosity": np.full(20, np.nan)})

    assert fitted.problem == "no_feature"
    assert fitted.left_out == {"verbosity": "missing"}
    assert fitted.comparisons == 20


def test_all_ties_say_nothing_on_style() -> None:
    rows = Comparisons(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([2, 2, 2]))
    fitted = style_fit(rows, {"verbosity": [1.0, -2.0, 3.0]})

    assert fitted.problem == "all_ties"
    assert fitted.coefficients == ()
    assert fitted.strengths.theta.tolist() == [0.0, 0.0, 0.0]
    assert fitted.intervals.open_above.all()


def test_separation_is_told_without_a_prior_and_held_with_one() -> None:
    # The wordier answer always won.
    rows = Comparisons(2, np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1]))
    features = {"verbosity": [3.0, 2.0, -1.0, -4.0]}

    assert style_fit(rows, features, ties="half_win", ridge=0.0).problem == "no_finite_optimum"
    held = style_fit(rows, features, ties="half_win")
    assert held.problem is None
    assert held.findings()[0].direction == "unclear"


def test_length_that_only_names_the_candidate_is_unclear() -> None:
    # Every answer of a candidate has one length, so length and strength cannot be told apart.
    first, second, outcome = simulated(np.array([0.6, 0.0, -0.6]), 900, 2, eta=0.2)
    lengths = np.array([900.0, 500.0, 100.0])
    rows = Comparisons(3, first, second, outcome)
    features = {"verbosity": lengths[first] - lengths[second]}

    assert style_fit(rows, features, ridge=0.0).problem == "no_finite_optimum"
    found = style_fit(rows, features).findings()[0]
    assert found.direction == "unclear"
    assert found.upper - found.lower > 400


def test_an_isolated_candidate_has_the_priors_error_and_open_ends() -> None:
    rows, features, _ = planted(3, 100)
    fitted = style_fit(Comparisons(5, rows.first, rows.second, rows.outcome), features)

    assert fitted.strengths.theta[4] == 0.0
    assert fitted.intervals.std_error[4] == pytest.approx(STYLE_RIDGE**-0.5)
    assert fitted.intervals.open_below[4]
    assert fitted.intervals.open_above[4]
    for shown in (fitted.rating, fitted.rating_std_error, fitted.ci_lower, fitted.ci_upper):
        assert np.isnan(shown).tolist() == [False, False, False, False, True]
    assert fitted.rating[:4].mean() == pytest.approx(1000)
    half = 1.959963984540054 * fitted.rating_std_error[:4]
    np.testing.assert_allclose(fitted.ci_upper[:4] - fitted.rating[:4], half)
    np.testing.assert_allclose(fitted.rating[:4] - fitted.ci_lower[:4], half)


def test_findings_follow_the_interval() -> None:
    found = [StyleCoefficient("verbosity", value, 0.1, 50.0).finding() for value in (0.3, -0.3, 0.1)]

    assert [one.direction for one in found] == ["higher", "lower", "unclear"]
    assert found[0].points == pytest.approx(0.3 * 400 / math.log(10))
    assert found[0].lower == pytest.approx((0.3 - 0.1 * 1.959963984540054) * 400 / math.log(10))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"verbosity": [1.0]}, "verbosity has shape"),
        ({"formatting": [1.0, np.inf]}, "formatting holds an infinite"),
        ({"position": [1.0, 0.5]}, "position must be"),
        ({"position": [1.0, np.nan]}, "position must be"),
    ],
)
def test_bad_features_are_refused(features: dict[str, list[float]], message: str) -> None:
    rows = Comparisons(2, np.array([0, 1]), np.array([1, 0]), np.array([0, 0]))
    with pytest.raises(ValueError, match=message):
        style_fit(rows, features)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"most_missing": 1.5}, "most_missing"), ({"ridge": -1.0}, "ridge"), ({"ties": "x"}, "tie")],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    rows = Comparisons(2, np.array([0, 1]), np.array([1, 0]), np.array([0, 0]))
    with pytest.raises(ValueError, match=message):
        style_fit(rows, {"verbosity": [1.0, 2.0]}, **options)


def test_without_ties_eta_rests_on_its_floor() -> None:
    rows, features, _ = planted(5, 300)
    decisive = rows.outcome < 2
    without = Comparisons(4, rows.first[decisive], rows.second[decisive], rows.outcome[decisive])
    kept = {name: values[decisive] for name, values in features.items()}
    fitted, half_win = style_fit(without, kept), style_fit(without, kept, ties="half_win")

    assert fitted.problem is None
    assert fitted.strengths.eta == pytest.approx(1e-4)
    assert not fitted.strengths.eta_free
    assert by_name(fitted) == pytest.approx(by_name(half_win), abs=1e-3)
    np.testing.assert_allclose(fitted.intervals.std_error, half_win.intervals.std_error, rtol=1e-3)
