"""How the candidates of a tournament came to stand where they are: Glicko-2 after each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arena.models import Candidate, Step, Tournament
from arena.selectors.standings import decided_matches, glicko2_by_step
from ratings.engine.intervals import Z_95

# A line of more points says no more, on a screen or as a table.
MOST_STEPS = 60


@dataclass(frozen=True)
class Standing:
    """After one step, in points; the margin is half of the 95 % interval."""

    step: int
    value: float
    margin: float


@dataclass(frozen=True)
class Course:
    """Of one candidate, from the step of its first decided match on."""

    candidate: Candidate
    readings: tuple[Standing, ...]

    @property
    def last(self) -> Standing | None:
        return self.readings[-1] if self.readings else None


@dataclass(frozen=True)
class Progress:
    # The best first; those without a decided match last.
    courses: tuple[Course, ...]
    # Those that are shown: every so many, and the last one.
    steps: tuple[int, ...]
    last_step: int

    @property
    def every(self) -> int:
        return self.steps[1] - self.steps[0] if len(self.steps) > 1 else 1


def progress_of(tournament: Tournament) -> Progress:
    complete = tournament.steps.filter(status=Step.Status.COMPLETE).order_by("-number")
    last = complete.values_list("number", flat=True).first() or 0
    matches, numbers = decided_matches(tournament, last)
    candidates = list(tournament.candidates.order_by("position"))
    # Steps after the last decided match, such as those that a stop withdrew, would only widen the margins.
    last = max(numbers) + 1 if numbers else 0
    every = -(-last // MOST_STEPS)
    shown = sorted({*range(last, 0, -every)}) if last else []
    states = glicko2_by_step(tournament, last)
    at = np.array(numbers, dtype=np.int64)
    courses = []
    for candidate in candidates:
        own = (matches.first == candidate.position) | (matches.second == candidate.position)
        first = int(at[own].min()) + 1 if own.any() else last + 1
        readings = tuple(
            Standing(
                step,
                float(states[step - 1].rating[candidate.position]),
                float(Z_95 * states[step - 1].deviation[candidate.position]),
            )
            for step in shown
            if step >= first
        )
        courses.append(Course(candidate, readings))
    courses.sort(key=lambda course: (course.last is None, -course.last.value if course.last else 0.0))
    return Progress(tuple(courses), tuple(shown), last)
