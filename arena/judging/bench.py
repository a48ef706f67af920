"""Who sits out: a candidate whose answers keep failing must not use up the schedule.

A candidate is benched by its third failed answer in a row, in the order of the matches' numbers and not in the
order in which calls ended. So a match may be judged as soon as it is *certain* that neither side is benched
before it, and the same answers bench the same candidates at any concurrency.

- An answer that serves several matches of a step counts once in it.
- An input that a model takes none of, or that is too long for it, counts while the model has not answered
  anything yet; later it says something of the sample alone.
- A benched candidate is asked for one answer a step. When that of step n succeeds, it is back with step n + 2:
  step n + 1 is under way by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

IN_A_ROW = 3
STEPS_UNTIL_BACK = 2


class Seen(Enum):
    """What has become of an answer."""

    ANSWERED = auto()
    FAILED = auto()
    # The input does not suit the model; no other attempt would change that.
    UNSUITED = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class Side:
    candidate: int
    trial: int | None
    seen: Seen


@dataclass(frozen=True, slots=True)
class Row:
    """A planned match."""

    sequence: int
    step: int
    sides: tuple[Side, Side]
    withdrawn: bool = False


@dataclass(slots=True)
class Standing:
    """Of one candidate, after some matches."""

    failed_in_row: int = 0
    has_answered: bool = False
    # The match by which it was benched; None while it plays.
    benched_after: int | None = None
    back_in_step: int | None = None
    # Answers of the row that are not there yet, and the match from which on it is therefore not certain
    # whether it is benched.
    open_in_row: int = 0
    unsure_after: int | None = None

    @property
    def is_benched(self) -> bool:
        return self.benched_after is not None

    @property
    def is_unsure(self) -> bool:
        return self.unsure_after is not None

    def plays_in(self, step: int) -> bool:
        return not self.is_benched or (self.back_in_step is not None and step >= self.back_in_step)

    def enter(self, step: int) -> None:
        """Come back, where the step is the one to come back with."""
        if self.is_benched and self.plays_in(step):
            self.benched_after = self.back_in_step = None
            self.failed_in_row = self.open_in_row = 0

    def take(self, seen: Seen, sequence: int) -> None:
        if self.is_benched or self.is_unsure or (seen is Seen.UNSUITED and self.has_answered):
            return
        if seen is Seen.ANSWERED:
            self.has_answered = True
            self.failed_in_row = self.open_in_row = 0
            return
        self.failed_in_row += 1
        self.open_in_row += seen is Seen.OPEN
        if self.failed_in_row == IN_A_ROW:
            if self.open_in_row:
                self.unsure_after = sequence
            else:
                self.benched_after = sequence

    def probed(self, seen: Seen, step: int) -> None:
        """Told of the answer that it was asked for in a step, once the step is complete."""
        if self.is_benched and self.back_in_step is None and seen is Seen.ANSWERED:
            self.back_in_step = step + STEPS_UNTIL_BACK


@dataclass(frozen=True, slots=True)
class Review:
    """What a fold over matches comes to."""

    standings: dict[int, Standing]
    # Numbers of the matches that a benched side is planned in.
    to_withdraw: list[int]
    # And of those of which it is not certain yet whether a side is benched by then.
    unsure: list[int]


def review(before: Mapping[int, Standing], rows: Iterable[Row]) -> Review:
    """Fold matches, in the order of their numbers, into how every candidate stands after them."""
    standings = {candidate: replace(standing) for candidate, standing in before.items()}
    to_withdraw: list[int] = []
    unsure: list[int] = []
    step: int | None = None
    counted: set[tuple[int, int]] = set()
    for row in rows:
        if row.step != step:
            step = row.step
            counted = set()
            for standing in standings.values():
                standing.enter(step)
        if row.withdrawn:
            continue
        sides = [(side, standings[side.candidate]) for side in row.sides]
        if any(standing.is_benched for _, standing in sides):
            to_withdraw.append(row.sequence)
            continue
        # Where one side may be benched, the match may be withdrawn, and then counts for neither.
        certain = not any(standing.is_unsure for _, standing in sides)
        if not certain:
            unsure.append(row.sequence)
        for side, standing in sides:
            if side.trial is not None and (side.candidate, side.trial) in counted:
                continue
            if side.trial is not None:
                counted.add((side.candidate, side.trial))
            standing.take(side.seen if certain else Seen.OPEN, row.sequence)
    return Review(standings, to_withdraw, unsure)
