"""A board and its runs as plain data."""

from __future__ import annotations

from typing import Any

from ratings.models import RatingRun
from ratings.selectors import BoardView, Row, ratings_of, title_of

# What a spreadsheet would take for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def record(row: Row) -> dict[str, Any]:
    stored = row.stored
    cost = stored.mean_cost_usd
    return {
        "group": None if stored.component_id is None else stored.component_id + 1,
        "rank": stored.rank,
        "rank_from": stored.rank_from,
        "rank_to": stored.rank_to,
        "full_id": row.full_id,
        "label": row.label,
        "rating": stored.rating,
        "std_error": stored.rating_std_error,
        "ci_lower": stored.ci_lower,
        "ci_upper": stored.ci_upper,
        "open_below": stored.rating is not None and stored.ci_lower is None,
        "open_above": stored.rating is not None and stored.ci_upper is None,
        "win_share": stored.win_share,
        "games": stored.games,
        "wins": stored.wins,
        "losses": stored.losses,
        "ties": stored.ties,
        # Digits as text: money does not go through binary fractions.
        "mean_cost_usd": None if cost is None else f"{cost:f}",
        "answers": stored.answers,
        "answers_of_known_cost": stored.priced_answers,
        "median_latency_ms": stored.median_latency_ms,
        "rank_lower": stored.rank_lower,
        "rank_upper": stored.rank_upper,
        "first_share": stored.first_share,
        "tier": stored.tier,
        "length_adjusted": stored.length_adjusted,
        "style_controlled_rating": stored.style_controlled_rating,
        "style_controlled_ci_lower": stored.style_controlled_ci_lower,
        "style_controlled_ci_upper": stored.style_controlled_ci_upper,
    }


def document(view: BoardView) -> dict[str, Any]:
    gap = view.verdict.gap
    board = view.leaderboard
    return {
        "board_id": board.public_id,
        "title": title_of(board),
        "scope": board.scope,
        "tournament_id": None if board.tournament is None else board.tournament.public_id,
        "category": board.category or None,
        "source": board.source,
        "tie_model": board.ties,
        "verdict": view.verdict.plain,
        "caveats": view.verdict.caveats,
        "lead": None
        if gap is None
        else {"points": gap.points, "ci_lower": gap.lower, "ci_upper": gap.upper, "separated": gap.separated},
        "run": None if view.run is None else about(view.run),
        "not_rated": {
            "inconclusive": view.marks.inconclusive,
            "void": view.marks.void,
            "forced_ties": view.marks.forced_ties,
        },
        "candidates": [record(row) for row in view.rows],
        "sources": None if view.run is None else view.run.sources,
        "screening": None if view.run is None else view.run.screening,
    }


def about(run: RatingRun) -> dict[str, Any]:
    return {
        "id": run.public_id,
        "computed_at": run.computed_at.isoformat(),
        "cutoff_at": None if run.cutoff_at is None else run.cutoff_at.isoformat(),
        "mode": run.mode,
        "errors": run.errors,
        "seed": run.seed,
        "resamples": run.resamples,
        "drift": run.drift,
        "step": run.step_number,
        "tie_model": run.ties,
        "ridge": run.ridge,
        "ridge_by_default": run.ridge_by_default,
        "comparisons": run.comparisons,
        "samples": run.samples,
        "tournaments": run.tournaments,
        "repeated": run.repeated,
        "votes": run.votes,
        "raters": run.raters,
        "screened_sessions": run.screened_sessions,
        "evidence_hash": run.evidence_hash,
        "converged": run.converged,
        "iterations": run.iterations,
        "gradient_norm": run.gradient_norm,
        "duration_ms": run.duration_ms,
    }


def evidence(run: RatingRun) -> dict[str, Any]:
    return {
        **about(run),
        "settings": run.settings,
        "roster": [{"id": candidate_id, "full_id": full_id} for candidate_id, full_id in run.roster],
        "triples": [
            {"first": first, "second": second, "outcome": outcome, "count": count}
            for first, second, outcome, count in run.triples
        ],
        "vector": run.vector,
        "eta": run.eta,
        "eta_unbounded": run.eta_unbounded,
        "covariance": run.covariance,
        "sources": run.sources,
        "screening": run.screening,
        "ratings": [
            {"candidate": row.stored.candidate_id or row.stored.language_model_id, **record(row)}
            for row in ratings_of(run)
        ],
    }
