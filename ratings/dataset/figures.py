"""Cost and speed of the answers behind a board."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from arena.models import CallStatus, Candidate, Match, Trial, TrialRequest
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
    tournaments = set(tournaments_of(board).values_list("pk", flat=True))
    requests = TrialRequest.objects.filter(tournament__in=tournaments).order_by()
    # What a tournament asked for is what its matches use, and far fewer rows. Imports ask for nothing.
    asked = set() if board.category else set(requests.values_list("tournament", flat=True).distinct())
    used, figures = _requested(asked)
    others = _of_matches(board, tournaments - asked)
    figures |= _of_trials(sorted({trial for _, trial in others} - figures.keys()))
    used = {(subjects.get(candidate, candidate), trial) for candidate, trial in used | others}
    answers: dict[int, list[Figures]] = defaultdict(list)
    for subject, trial in used:
        if trial in figures:
            answers[subject].append(figures[trial])
    return {subject: _figures(found) for subject, found in answers.items()}


# Candidate and trial.
Used = set[tuple[int, int]]


def _requested(tournaments: set[int]) -> tuple[Used, dict[int, Figures]]:
    """Who was asked what, with the figures of the answers that came."""
    # A later version may be asked the same thing as an earlier one, and share its answers: the fingerprint tells.
    candidates: dict[tuple[int, str], int] = {}
    rows = Candidate.objects.filter(tournament__in=tournaments).values_list("pk", "tournament", "snapshot")
    for candidate, tournament, snapshot in rows:
        candidates[tournament, snapshot.get("fingerprint", "")] = candidate
    requests = TrialRequest.objects.filter(tournament__in=tournaments).order_by()
    columns = ("tournament", "trial", "trial__fingerprint", "trial__status", "trial__cost_usd", "trial__duration_ms")
    used: Used = set()
    figures: dict[int, Figures] = {}
    for tournament, trial, fingerprint, status, cost_usd, duration_ms in requests.values_list(*columns):
        asked = candidates.get((tournament, fingerprint))
        if asked is not None:
            used.add((asked, trial))
            if status == CallStatus.SUCCEEDED:
                figures[trial] = (cost_usd, duration_ms)
    return used, figures


def _of_matches(board: Leaderboard, tournaments: set[int]) -> Used:
    matches = Match.objects.filter(tournament__in=tournaments).order_by()
    if board.category:
        matches = matches.filter(sample__category=board.category)
    return {
        (candidate, trial)
        for side in ("first", "second")
        for candidate, trial in matches.values_list(side, f"{side}_trial").distinct()
        if trial is not None
    }


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
