"""How long the answers were, and how quickly they came: by candidate, over the answers that its matches used."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from arena.models import CallStatus, Candidate, Match, Tournament

FIELDS = ("characters", "output_tokens", "truncated", "ttft_ms", "duration_ms")


@dataclass(frozen=True)
class AnswerLine:
    """None is what was not recorded."""

    candidate: Candidate
    answers: int
    mean_characters: float | None
    mean_tokens: float | None
    cut_off: int
    median_ttft_ms: float | None
    median_duration_ms: float | None


@dataclass(frozen=True)
class _Answer:
    characters: int | None
    tokens: int | None
    cut_off: bool
    ttft_ms: float | None
    duration_ms: float | None


def answer_lines(tournament: Tournament) -> list[AnswerLine]:
    """In the order in which the candidates entered; an answer counts once, however often it was met."""
    found: dict[int, dict[int, _Answer]] = defaultdict(dict)
    matches = Match.objects.filter(tournament=tournament).order_by()
    for side in ("first", "second"):
        trial = f"{side}_trial"
        answered = matches.filter(**{f"{trial}__status": CallStatus.SUCCEEDED})
        rows = answered.values_list(side, trial, *(f"{trial}__{name}" for name in FIELDS)).distinct()
        for candidate, key, *values in rows:
            found[candidate][key] = _Answer(*values)
    return [
        _line(candidate, [found[candidate.pk][key] for key in sorted(found[candidate.pk])])
        for candidate in tournament.candidates.order_by("position")
    ]


def _line(candidate: Candidate, answers: Sequence[_Answer]) -> AnswerLine:
    characters = [one.characters for one in answers if one.characters is not None]
    tokens = [one.tokens for one in answers if one.tokens is not None]
    first_words = [one.ttft_ms for one in answers if one.ttft_ms is not None]
    durations = [one.duration_ms for one in answers if one.duration_ms is not None]
    return AnswerLine(
        candidate=candidate,
        answers=len(answers),
        mean_characters=statistics.fmean(characters) if characters else None,
        mean_tokens=statistics.fmean(tokens) if tokens else None,
        cut_off=sum(one.cut_off for one in answers),
        median_ttft_ms=statistics.median(first_words) if first_words else None,
        median_duration_ms=statistics.median(durations) if durations else None,
    )
