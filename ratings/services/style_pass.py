"""Length and style: what they have to do with the order. Read decision by decision, so not at every refit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from ratings import dataset
from ratings.engine import Comparisons, TieModel, outcome_codes, to_display
from ratings.engine.arrays import FloatArray
from ratings.engine.length import length_control, longer_answer, normalised_difference, own_share
from ratings.engine.style import StyleFit, style_fit
from ratings.models import Leaderboard
from ratings.services.places import known

# Beyond this many comparisons only a command that asks for it reads them one by one.
STYLE_UP_TO = 20_000
# With less of a feature's differences to itself, it cannot be told from the candidates.
LEAST_OWN_SHARE = 0.2


@dataclass(frozen=True)
class StylePass:
    length: dict[str, Any]
    style: dict[str, Any]
    # By position in the roster; None where nothing is identified.
    length_adjusted: FloatArray | None
    controlled: StyleFit | None


def style_pass(board: Leaderboard, evidence: dataset.Evidence, *, seed: int) -> StylePass:
    rows = dataset.style_rows(board, evidence)
    index = evidence.index
    comparisons = Comparisons(
        len(index),
        np.array([index[row.first] for row in rows], dtype=np.int64),
        np.array([index[row.second] for row in rows], dtype=np.int64),
        outcome_codes(row.outcome for row in rows),
    )
    characters = [_column(rows, name) for name in ("first_characters", "second_characters")]
    counted = longer_answer(comparisons, *characters)
    control = length_control(comparisons, *characters, seed=seed)
    # Not in the engine, whose figures are those of its source: with candidates that always write at the same length
    # an effect is found sharply, and is as well the candidates' own.
    own = own_share(comparisons, normalised_difference(*characters))
    confounded = control.identified and own < LEAST_OWN_SHARE
    length = {
        "longer_won": counted.longer_won,
        "decided": counted.decided,
        "share": known(counted.share.share),
        "share_lower": known(counted.share.lower),
        "share_upper": known(counted.share.upper),
        "equal": counted.equal,
        "unknown": counted.unknown,
        "status": "confounded" if confounded else control.status,
        "own_share": known(own),
        "gamma": known(control.gamma),
        "gamma_lower": known(control.lower),
        "gamma_upper": known(control.upper),
        "resamples": control.resamples,
        "without_gamma": control.without_gamma,
    }
    features = {name: x for name, x in _features(rows).items() if not own_share(comparisons, x) < LEAST_OWN_SHARE}
    fitted = style_fit(comparisons, features, ties=cast("TieModel", board.ties))
    style = {
        "problem": fitted.problem,
        "left_out": dict(fitted.left_out),
        "comparisons": fitted.comparisons,
        "rows_missing": fitted.rows_missing,
        "findings": [asdict(finding) for finding in fitted.findings()] if fitted.problem is None else [],
    }
    return StylePass(
        length,
        style,
        to_display(control.theta) if control.identified and not confounded else None,
        fitted if fitted.problem is None else None,
    )


def _column(rows: list[dataset.StyleRow], name: str) -> FloatArray:
    return np.array([math.nan if getattr(row, name) is None else getattr(row, name) for row in rows], dtype=np.float64)


def _features(rows: list[dataset.StyleRow]) -> dict[str, FloatArray]:
    """First minus second. Judges see no stream, so how fast an answer came is none of them."""
    return {
        "position": np.array([row.position for row in rows], dtype=np.float64),
        "verbosity": _column(rows, "first_tokens") - _column(rows, "second_tokens"),
        "formatting": _column(rows, "first_density") - _column(rows, "second_density"),
    }
