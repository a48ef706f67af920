"""Cost and speed of the answers behind a board."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from arena.models import CallStatus, Match, Trial
from ratings.dataset.scope import tournaments_of
from ratings.models import Leaderboard

# Cost and duration of an answer.
Figures = tuple[Decimal | None, float | None]
AT_ONCE = 5_000


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
    used = {
        (subjects.get(candidate, candidate), trial)
        for side in ("first", "second")
        for candidate, trial in matches.values_list(side, f"{side}_trial").distinct()
    }
    figures = _of_trials(sorted({trial for _, trial in used if trial is not None}))
    answers: dict[int, list[Figures]] = defaultdict(list)
    for subject, trial in used:
        if trial in figures:
            answers[subject].append(figures[trial])
    return {subject: _figures(found) for subject, found in answers.items()}


def _of_trials(trials: list[int]) -> dict[int, Figures]:
    """By a list of keys: with a million matches a database would look through all of them for each trial."""
    found: dict[int, Figures] = {}
    for start in range(0, len(trials), AT_ONCE):
        rows = Trial.objects.filter(pk__in=trials[start : start + AT_ONCE], status=CallStatus.SUCCEEDED)
        found |= {pk: (cost_usd, ms) for pk, cost_usd, ms in rows.values_list("pk", "cost_usd", "duration_ms")}
    return found


def _figures(answers: list[Figures]) -> AnswerFigures:
    costs = [cost for cost, _ in answers if cost is not None]
    durations = [duration for _, duration in answers if duration is not None]
    return AnswerFigures(
        answers=len(answers),
        priced_answers=len(costs),
        mean_cost_usd=round(sum(costs, Decimal(0)) / len(costs), 8) if costs else None,
        median_latency_ms=statistics.median(durations) if durations else None,
    )
