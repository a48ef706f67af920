"""Cost and speed of the answers behind a board."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Q

from arena.models import CallStatus, Match, Trial
from ratings.dataset.scope import tournaments_of
from ratings.models import Leaderboard


@dataclass(frozen=True)
class AnswerFigures:
    answers: int = 0
    priced_answers: int = 0
    mean_cost_usd: Decimal | None = None
    median_latency_ms: float | None = None


def answer_figures(board: Leaderboard, subjects: dict[int, int]) -> dict[int, AnswerFigures]:
    """Cost and speed of the answers that the matches used, by subject; an answer counts once, however often met."""
    matches = Match.objects.filter(tournament__in=tournaments_of(board)).order_by()
    if board.category:
        matches = matches.filter(sample__category=board.category)
    sides = [matches.values_list(side, f"{side}_trial").distinct() for side in ("first", "second")]
    used = Q(pk__in=matches.values("first_trial")) | Q(pk__in=matches.values("second_trial"))
    figures = {
        trial: (cost_usd, duration_ms)
        for trial, cost_usd, duration_ms in Trial.objects.filter(used, status=CallStatus.SUCCEEDED).values_list(
            "pk", "cost_usd", "duration_ms"
        )
    }
    answers: dict[int, dict[int, tuple[Decimal | None, float | None]]] = defaultdict(dict)
    for side in sides:
        for candidate, trial in side:
            if trial in figures:
                answers[subjects.get(candidate, candidate)][trial] = figures[trial]
    return {subject: _figures(list(found.values())) for subject, found in answers.items()}


def _figures(answers: list[tuple[Decimal | None, float | None]]) -> AnswerFigures:
    costs = [cost for cost, _ in answers if cost is not None]
    durations = [duration for _, duration in answers if duration is not None]
    return AnswerFigures(
        answers=len(answers),
        priced_answers=len(costs),
        mean_cost_usd=round(sum(costs, Decimal(0)) / len(costs), 8) if costs else None,
        median_latency_ms=statistics.median(durations) if durations else None,
    )
