from __future__ import annotations

import numpy as np
import pytest

from ratings.engine.arrays import FloatArray
from ratings.engine.likelihood import TIE_MODELS, TieModel, penalised_objective
from tests.engine.helpers import from_cells, shared_json

COUNTS = from_cells(4, [(0, 1, 7, 3, 2), (1, 2, 4, 4, 0), (0, 2, 1, 0, 3), (2, 3, 5, 6, 1)])


def point(ties: TieModel) -> FloatArray:
    return np.array([0.7, -0.2, 0.4, -1.1] + [0.35] * (ties == "rao_kupper"))


def central(ties: TieModel, ridge: float, part: int, step: float = 1e-6) -> FloatArray:
    at = point(ties)
    columns = []
    for k in range(at.size):
        shift = np.zeros(at.size)
        shift[k] = step
        high = penalised_objective(COUNTS, at + shift, ties=ties, ridge=ridge)[part]
        low = penalised_objective(COUNTS, at - shift, ties=ties, ridge=ridge)[part]
        columns.append((np.asarray(high) - np.asarray(low)) / (2 * step))
    return np.array(columns)


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_gradient_matches_finite_differences(ties: TieModel, ridge: float) -> None:
    _, gradient, _ = penalised_objective(COUNTS, point(ties), ties=ties, ridge=ridge)

    np.testing.assert_allclose(gradient, central(ties, ridge, 0), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("ties", TIE_MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_hessian_matches_finite_differences(ties: TieModel, ridge: float) -> None:
    _, _, hessian = penalised_objective(COUNTS, point(ties), ties=ties, ridge=ridge)

    np.testing.assert_allclose(hessian, central(ties, ridge, 1), rtol=1e-7, atol=1e-7)


def test_value_is_the_sum_of_log_probabilities() -> None:
    *theta, eta = point("rao_kupper")
    expected = 0.0
    for i, j, wins, losses, ties in zip(
        COUNTS.first, COUNTS.second, COUNTS.wins_first, COUNTS.wins_second, COUNTS.ties, strict=True
    ):
        d = theta[i] - theta[j]
        win, loss = 1 / (1 + np.exp(eta - d)), 1 / (1 + np.exp(eta + d))
        expected -= wins * np.log(win) + losses * np.log(loss) + ties * np.log(1 - win - loss)

    value, _, _ = penalised_objective(COUNTS, point("rao_kupper"), ties="rao_kupper")

    assert value == pytest.approx(expected, rel=1e-12)


def test_extreme_strengths_stay_finite() -> None:
    for eta in (1e-4, 1.0, 800.0):
        parts = penalised_objective(COUNTS, np.array([900.0, -900.0, 0.0, 0.0, eta]), ties="rao_kupper")
        assert all(np.isfinite(part).all() for part in parts)


def test_published_value_and_gradient_at_a_point() -> None:
    reference = shared_json("reference/omniarena_reference.json")
    spot = reference["objective_spot"]
    case = reference["bt"][spot["case"]]
    counts = from_cells(case["n_models"], case["pairs"])

    value, gradient, _ = penalised_objective(counts, np.array(spot["params"]), ties="rao_kupper", ridge=spot["ridge"])

    assert value == pytest.approx(spot["value"], rel=1e-12)
    np.testing.assert_allclose(gradient, spot["gradient"], rtol=1e-9, atol=1e-9)


def test_wrong_number_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected 5 parameters"):
        penalised_objective(COUNTS, np.zeros(4), ties="rao_kupper")
