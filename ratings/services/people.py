"""What a run keeps of the people behind it: sources apart, the screen, and the board without its busiest rater."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from annotation.models import Rater
from arena.models import User
from ratings import dataset
from ratings.engine import Board, Comparisons, PairCounts, TieModel, rate, without_busiest_rater
from ratings.models import Leaderboard, RatingRun
from ratings.services.places import known


def describe(
    run: RatingRun,
    board: Leaderboard,
    evidence: dataset.Evidence,
    data: PairCounts | Comparisons,
    result: Board,
) -> None:
    screened = evidence.screened
    assert screened is not None
    run.votes = evidence.votes
    run.raters = evidence.raters
    run.screened_sessions = len(screened.left_out)
    run.screening = screened.to_json()
    if isinstance(data, Comparisons) and data.rater is not None:
        run.without_busiest = _without_busiest(evidence, data, result)
    if board.has_decisions:
        run.sources = _sources(run, evidence)


def _without_busiest(evidence: dataset.Evidence, data: Comparisons, result: Board) -> dict[str, Any] | None:
    assert data.rater is not None
    found = without_busiest_rater(data, result)
    # Decisions are raters of their own, with negative numbers; one of them may be as busy as anybody.
    if found is None or found.rater < 0:
        return None
    return {
        "rater": _name(found.rater),
        "comparisons": found.n_comparisons,
        "share": found.share,
        "leader_changed": found.leader_changed,
        "ranking_changed": found.ranking_changed,
        "shifts": [
            {"subject": subject, "points": known(points)}
            for subject, points in zip(evidence.subject_ids, found.shift_points.tolist(), strict=True)
        ],
    }


def _name(key: int) -> str:
    """Of the person behind a number of `ratings.dataset.votes.person_key`: as the campaign's page calls them."""
    number, is_guest = divmod(key, 2)
    person = (Rater if is_guest else User).objects.filter(pk=number).first()
    return "" if person is None else str(person)


def _sources(run: RatingRun, evidence: dataset.Evidence) -> dict[str, Any]:
    """Juries and people, each rated by itself as the mix is."""
    votes = {tuple(row[:3]): row[3] for row in evidence.vote_triples}
    decided = [(*row[:3], row[3] - votes.get(tuple(row[:3]), 0)) for row in evidence.triples]
    parts = {"jury": [row for row in decided if row[3]], "human": evidence.vote_triples}
    return {name: _alone(run, evidence, triples) for name, triples in parts.items()}


def _alone(run: RatingRun, evidence: dataset.Evidence, triples: list[dataset.Triple]) -> dict[str, Any]:
    found = rate(evidence.counts_of(triples), ties=cast("TieModel", run.ties), ridge=run.ridge)
    ratings = []
    for position, subject in enumerate(evidence.subject_ids):
        open_ends = found.open_below[position], found.open_above[position]
        ratings.append(
            {
                "subject": subject,
                "rating": known(found.rating[position]),
                "ci_lower": None if open_ends[0] else known(found.lower[position]),
                "ci_upper": None if open_ends[1] else known(found.upper[position]),
                "games": int(found.games[position]),
                "wins": int(found.wins[position]),
                "losses": int(found.losses[position]),
                "ties": int(found.ties[position]),
                "component": int(found.component[position]),
            }
        )
    converged = bool(found.fit.converged and np.isfinite(found.fit.gradient_norm))
    return {
        "comparisons": sum(row[3] for row in triples),
        "triples": triples,
        "converged": converged,
        "ratings": ratings,
    }
