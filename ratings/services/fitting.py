"""One fit of a board: from counts to the rows that are stored."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
from django.conf import settings
from django.utils import timezone

from ratings import dataset
from ratings.engine import Board, TieModel, default_ridge_for, error_to_display, rate
from ratings.models import Leaderboard, Rating, RatingRun, StyleCoefficient
from ratings.services.places import Places, known, places_of

COVARIANCE_UP_TO = 60
# Part of the evidence: a change of the method is a reason to fit again.
METHOD = {"confidence": 0.95, "anchor": "mean", "version": 2}


@dataclass(frozen=True)
class Start:
    """Where a fit begins. The run before gives a vector where its roster was the same."""

    vector: list[float | None] | None
    full: bool


@dataclass(frozen=True)
class Fitted:
    run: RatingRun
    ratings: list[Rating]
    coefficients: list[StyleCoefficient] = field(default_factory=list)


def method_of(board: Leaderboard) -> dict[str, Any]:
    return {
        **METHOD,
        "ties": board.ties,
        "ridge": board.ridge,
        "fallback_ridge": settings.RATING_RIDGE,
        "errors": board.errors,
        "category": board.category,
        "source": board.source,
    }


def _seed_of(board: Leaderboard) -> int:
    return int.from_bytes(hashlib.sha256(board.key.encode()).digest()[:6], "big")


def fitted(
    board: Leaderboard, evidence: dataset.Evidence, method: dict[str, Any], start: Start, *, style: bool = False
) -> Fitted:
    counts = evidence.pair_counts()
    ties = cast("TieModel", board.ties)
    begin = time.perf_counter()
    by_default = board.ridge is None and not board.is_wide and default_ridge_for(counts, ties) > 0
    ridge = board.ridge
    if ridge is None:
        # Wider boards gather whatever was played, so a weak prior stands by always.
        ridge = settings.RATING_RIDGE if by_default or board.is_wide else 0.0
    warm = None if start.vector is None else _vector(start.vector)
    result = rate(counts, ties=ties, ridge=ridge, start=None if start.full else warm)
    drift = None
    if start.full and warm is not None:
        drift = _drift(result, rate(counts, ties=ties, ridge=ridge, start=warm))
    duration_ms = (time.perf_counter() - begin) * 1000
    places = places_of(result, counts)
    order = [subject for component in places.components for subject in component]
    leader_id = evidence.roster[order[0]][0] if order else None
    run = RatingRun(
        leaderboard=board,
        computed_at=timezone.now(),
        cutoff_at=evidence.cutoff_at,
        mode=RatingRun.Mode.FULL if start.full else RatingRun.Mode.INCREMENTAL,
        seed=_seed_of(board),
        errors=Leaderboard.Errors.FISHER,
        drift=drift,
        step_number=None if board.tournament_id is None else dataset.last_step_of(board.tournament_id),
        ties=board.ties,
        ridge=ridge,
        ridge_by_default=by_default,
        settings=method,
        triples=evidence.triples,
        roster=evidence.roster,
        vector=[known(value) for value in result.fit.parameters],
        eta=known(result.fit.eta),
        eta_unbounded=result.fit.eta_unbounded,
        comparisons=counts.total,
        samples=evidence.samples,
        tournaments=evidence.tournaments,
        repeated=evidence.repeated,
        leader_id=None if board.is_wide else leader_id,
        leader_label=dict(evidence.roster).get(leader_id, "") if leader_id is not None else "",
        covariance=_covariances(result, places.components, evidence.subject_ids),
        iterations=result.fit.iterations,
        gradient_norm=result.fit.gradient_norm,
        converged=result.fit.converged,
        duration_ms=duration_ms,
    )
    return Fitted(run, _ratings(run, board, evidence, result, places))


def _vector(stored: list[float | None]) -> list[float]:
    """Where a value was not finite the fit begins at its own."""
    return [np.nan if value is None else value for value in stored]


def _drift(cold: Board, warm: Board) -> float | None:
    """The largest difference between the two, in standard errors of the cold one."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(cold.rating - warm.rating) / cold.std_error
    finite = apart[np.isfinite(apart)]
    return float(finite.max()) if finite.size else None


def _covariances(board: Board, components: Iterable[list[int]], subject_ids: list[int]) -> list[Any] | None:
    if len(subject_ids) > COVARIANCE_UP_TO:
        return None
    points = error_to_display(1.0) ** 2 * board.intervals.covariance
    return [
        {
            "candidates": [subject_ids[index] for index in group],
            # Row by row from the diagonal on.
            "upper": [[known(points[i, j]) for j in group[position:]] for position, i in enumerate(group)],
        }
        for group in components
    ]


def _ratings(
    run: RatingRun, board: Leaderboard, evidence: dataset.Evidence, result: Board, places: Places
) -> list[Rating]:
    figures = dataset.answer_figures(board, evidence.subjects)
    rows = []
    for index, subject in enumerate(evidence.subject_ids):
        row = _rating(run, index, result, places, figures.get(subject, dataset.AnswerFigures()))
        if board.is_wide:
            row.language_model_id, row.lineage = subject, evidence.lineages[subject]
        else:
            row.candidate_id = subject
        rows.append(row)
    return rows


def _rating(run: RatingRun, index: int, board: Board, places: Places, figures: dataset.AnswerFigures) -> Rating:
    return Rating(
        run=run,
        rating=known(board.rating[index]),
        rating_std_error=known(board.std_error[index]),
        ci_lower=known(board.lower[index]),
        ci_upper=known(board.upper[index]),
        component_id=places.component.get(index),
        group_id=int(board.fit.groups[index]) if index in places.component else None,
        rank=places.rank.get(index),
        rank_from=places.rank_from.get(index),
        rank_to=places.rank_to.get(index),
        next_std_error=places.next_std_error.get(index),
        ahead_of_next=places.ahead_of_next.get(index),
        win_share=known(board.win_share[index]),
        held_by_prior=bool(board.held_by_prior[index]),
        games=int(board.games[index]),
        wins=int(board.wins[index]),
        losses=int(board.losses[index]),
        ties=int(board.ties[index]),
        **asdict(figures),
    )
