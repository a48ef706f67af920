"""One fit of a board: from counts to the rows that are stored."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
from django.conf import settings
from django.utils import timezone

from ratings import dataset
from ratings.engine import (
    RESAMPLES,
    Board,
    Comparisons,
    PairCounts,
    TieModel,
    default_ridge_for,
    error_to_display,
    rate,
    to_display,
)
from ratings.engine.intervals import Errors as EngineErrors
from ratings.engine.slices import slice_counts, slices
from ratings.models import Leaderboard, Rating, RatingRun, StyleCoefficient
from ratings.services import people
from ratings.services.places import Places, known, places_of, quantile_of
from ratings.services.style_pass import style_pass

Errors = Leaderboard.Errors
COVARIANCE_UP_TO = 60
# Beyond these a board has Fisher's or the samples' errors alone: a thousand fits would take longer than they tell.
RESAMPLED_UP_TO = 200_000
CANDIDATES_RESAMPLED_UP_TO = 120
# Part of the evidence: a change of the method is a reason to fit again.
ENGINE_ERRORS: dict[str, EngineErrors] = {
    Errors.SAMPLE: "cluster",
    Errors.FISHER: "fisher",
    Errors.TWO_WAY: "two_way",
}
METHOD = {"confidence": 0.95, "anchor": "mean", "version": 2}


@dataclass(frozen=True)
class Start:
    """Where a fit begins. The run before gives a vector where its roster was the same."""

    vector: list[float | None] | None
    # Runs written before this one.
    number: int
    full: bool


@dataclass(frozen=True)
class Fitted:
    run: RatingRun
    ratings: list[Rating]
    coefficients: list[StyleCoefficient] = field(default_factory=list)


def method_of(board: Leaderboard, evidence: dataset.Evidence) -> dict[str, Any]:
    method = {
        **METHOD,
        "ties": board.ties,
        "ridge": board.ridge,
        "fallback_ridge": settings.RATING_RIDGE,
        "errors": board.errors,
        "category": board.category,
        "source": board.source,
    }
    if evidence.screened is not None:
        method |= {
            "anomaly_filter": evidence.screened.on,
            "volume_excludes": settings.ANOMALY_VOLUME_EXCLUDES,
            "drop_both_bad": board.drop_both_bad,
        }
    return method


def _seed_of(board: Leaderboard) -> int:
    return int.from_bytes(hashlib.sha256(board.key.encode()).digest()[:6], "big")


def fitted(
    board: Leaderboard, evidence: dataset.Evidence, method: dict[str, Any], start: Start, *, style: bool = False
) -> Fitted:
    counts = evidence.pair_counts()
    ties = cast("TieModel", board.ties)
    begin = time.perf_counter()
    # Wider boards gather whatever was played, and people's votes are few at first: a weak prior stands by always.
    always = board.is_wide or board.has_votes
    by_default = board.ridge is None and not always and default_ridge_for(counts, ties) > 0
    ridge = board.ridge
    if ridge is None:
        ridge = settings.RATING_RIDGE if by_default or always else 0.0
    warm = None if start.vector is None else _vector(start.vector)
    data, resamples, errors = _method_for(board, evidence, counts)
    result = rate(
        data,
        ties=ties,
        ridge=ridge,
        start=None if start.full else warm,
        errors=ENGINE_ERRORS[errors],
        resamples=resamples,
        seed=_seed_of(board),
    )
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
        resamples=resamples,
        errors=errors,
        quantile=quantile_of(result),
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
    run.ahead = _ahead(result, places.components, evidence.subject_ids)
    run.separation = _separation(result, evidence.subject_ids)
    run.slices = _slices(board, evidence)
    if evidence.screened is not None:
        people.describe(run, board, evidence, data, result)
    ratings = _ratings(run, board, evidence, result, places)
    coefficients = _styled(run, board, evidence, ratings) if style and counts.total else []
    return Fitted(run, ratings, coefficients)


def _method_for(
    board: Leaderboard, evidence: dataset.Evidence, counts: PairCounts
) -> tuple[PairCounts | Comparisons, int, str]:
    """What to fit on, resamples, and whose errors: by sample wherever the samples could be read apart."""
    comparisons = None if board.errors == Errors.FISHER else evidence.comparisons()
    errors = Errors.FISHER if comparisons is None else Errors.SAMPLE
    if comparisons is not None and comparisons.rater is not None:
        # With a single rater there is no spread between raters to go by; the board says so.
        if board.errors == Errors.SAMPLE or evidence.raters < 2:
            comparisons = replace(comparisons, rater=None)
        else:
            errors = Errors.TWO_WAY
    small = counts.total <= RESAMPLED_UP_TO and len(evidence.roster) <= CANDIDATES_RESAMPLED_UP_TO
    return counts if comparisons is None else comparisons, RESAMPLES if small and counts.total else 0, errors


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


def _ahead(board: Board, components: Iterable[list[int]], subject_ids: list[int]) -> list[Any] | None:
    if board.ranks is None or len(subject_ids) > COVARIANCE_UP_TO:
        return None
    share = board.ranks.ahead_share
    return [
        {
            "candidates": [subject_ids[index] for index in group],
            # Row by row, right of the diagonal.
            "upper": [[known(share[i, j]) for j in group[position + 1 :]] for position, i in enumerate(group)],
        }
        for group in components
    ]


def _separation(board: Board, subject_ids: list[int]) -> dict[str, Any] | None:
    """Of the first two of the largest component. A limit is null at an open end."""
    if board.ranks is None or not board.ranks.top_two:
        return None
    top = board.ranks.top_two[0]
    return {
        "leader": subject_ids[top.leader],
        "runner_up": subject_ids[top.runner_up],
        "points": known(top.gap_points),
        "lower": known(top.lower_points),
        "upper": known(top.upper_points),
        "ahead": top.ahead_share,
        "separated": top.separated,
    }


def _slices(board: Leaderboard, evidence: dataset.Evidence) -> list[dict[str, Any]] | None:
    """Each category by itself, most comparisons first; null where the comparisons could not be read apart."""
    by_sample = evidence.by_sample
    if by_sample is None or board.category:
        return None
    index = evidence.index
    rows: list[tuple[str, int, int, str, int]] = [
        (evidence.categories.get(sample, ""), index[first], index[second], outcome, count)
        for first, second, outcome, sample, count in by_sample
    ]
    grouped = slice_counts(len(index), rows)
    if len(grouped) < 2:
        return []
    ordered = dict(sorted(grouped.items(), key=lambda item: (-item[1].total, item[0])))
    found = slices(ordered, ties=cast("TieModel", board.ties), ridge=board.ridge)
    return [
        {
            "category": one.category,
            "comparisons": one.comparisons,
            "ratings": [] if one.board is None or not one.board.fit.converged else _of_slice(one.board, evidence),
        }
        for one in found
    ]


def _of_slice(board: Board, evidence: dataset.Evidence) -> list[dict[str, Any]]:
    groups: dict[int, list[int]] = {}
    for position in board.ranking().tolist():
        groups.setdefault(int(board.component[position]), []).append(position)
    largest = max(groups.values(), key=len)
    return [
        {
            "subject": evidence.subject_ids[position],
            # Places of the largest group; others do not compare with it.
            "rank": largest.index(position) + 1 if position in largest else None,
            "rating": known(board.rating[position]),
            "std_error": known(board.std_error[position]),
            "ci_lower": known(board.lower[position]),
            "ci_upper": known(board.upper[position]),
            "games": int(board.games[position]),
        }
        for group in groups.values()
        for position in group
    ]


def _styled(
    run: RatingRun, board: Leaderboard, evidence: dataset.Evidence, ratings: list[Rating]
) -> list[StyleCoefficient]:
    """Put what length and style do into the run and its ratings."""
    found = style_pass(board, evidence, seed=run.seed)
    run.length, run.style = found.length, found.style
    for position, rating in enumerate(ratings):
        if found.length_adjusted is not None and rating.games:
            rating.length_adjusted = known(found.length_adjusted[position])
        if found.controlled is not None and rating.games:
            strengths, intervals = found.controlled.strengths, found.controlled.intervals
            rating.style_controlled_rating = known(to_display(strengths.theta[position]).item())
            rating.style_controlled_std_error = known(error_to_display(intervals.std_error[position]).item())
            rating.style_controlled_ci_lower = known(to_display(intervals.lower[position]).item())
            rating.style_controlled_ci_upper = known(to_display(intervals.upper[position]).item())
    if found.controlled is None:
        return []
    return [
        StyleCoefficient(
            run=run,
            feature=one.feature,
            value=error_to_display(one.value).item(),
            std_error=error_to_display(one.std_error).item(),
        )
        for one in found.controlled.coefficients
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


def _open(board: Board, index: int, side: str) -> bool:
    ends = [board, *([board.resampled] if board.resampled is not None else [])]
    return any(bool(getattr(one, f"open_{side}")[index]) for one in ends)


def _rating(run: RatingRun, index: int, board: Board, places: Places, figures: dataset.AnswerFigures) -> Rating:
    return Rating(
        run=run,
        rating=known(board.rating[index]),
        rating_std_error=known(board.std_error[index]),
        # An end is open as well where too many resamples leave it without a bound.
        ci_lower=None if _open(board, index, "below") else known(board.lower[index]),
        ci_upper=None if _open(board, index, "above") else known(board.upper[index]),
        component_id=places.component.get(index),
        group_id=int(board.fit.groups[index]) if index in places.component else None,
        rank=places.rank.get(index),
        rank_from=places.rank_from.get(index),
        rank_to=places.rank_to.get(index),
        rank_lower=places.rank_lower.get(index),
        rank_upper=places.rank_upper.get(index),
        first_share=places.first_share.get(index),
        tier=places.tier.get(index),
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
