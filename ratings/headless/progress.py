"""A bar where somebody watches, plain lines where the output goes into a file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TextIO

from django.db.models import Count, Sum

from arena.models import Call, Match, Tournament
from arena.selectors.tournaments import to_come

BAR = 28
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True, slots=True)
class Standing:
    total: int
    decided: int
    inconclusive: int
    void: int
    calls: int
    # The sum of what is known, and how many calls it lacks.
    cost_usd: Decimal
    unpriced: int

    @property
    def resolved(self) -> int:
        return self.decided + self.inconclusive + self.void

    def told(self) -> str:
        parts = [f"{self.resolved} of {self.total} matches"]
        parts += [
            f"{count} {name}" for count, name in ((self.inconclusive, "inconclusive"), (self.void, "void")) if count
        ]
        cost = "cost unknown" if self.unpriced and not self.cost_usd else f"${self.cost_usd:.4f}"
        if self.unpriced and self.cost_usd:
            cost += f" and {self.unpriced} calls of unknown cost"
        return ", ".join([*parts, f"{self.calls} calls", cost])


def standing_of(tournament: Tournament) -> Standing:
    counts: dict[str, int] = dict(
        Match.objects.filter(tournament=tournament).order_by().values_list("status").annotate(count=Count("pk"))
    )
    paid = Call.objects.filter(tournament=tournament, rejudge=None).aggregate(
        calls=Count("pk"), priced=Count("cost_usd"), cost=Sum("cost_usd")
    )
    return Standing(
        total=sum(counts.values()) + to_come(tournament, counts),
        decided=counts.get(Match.Status.DECIDED, 0),
        inconclusive=counts.get(Match.Status.INCONCLUSIVE, 0),
        void=counts.get(Match.Status.VOID, 0) + counts.get(Match.Status.WITHDRAWN, 0),
        calls=paid["calls"],
        cost_usd=paid["cost"] or Decimal(0),
        unpriced=paid["calls"] - paid["priced"],
    )


class Progress:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._in_terminal = out.isatty()
        self._width = 0
        self._told: Standing | None = None
        self._told_at = 0.0

    def show(self, standing: Standing) -> None:
        if self._in_terminal:
            self._bar(standing)
        elif self._is_time(standing):
            self._line(standing)

    def say(self, sentence: str) -> None:
        """A line of its own, with the bar drawn again below it."""
        self._wipe()
        self._out.write(f"{sentence}\n")
        self._out.flush()

    def end(self, standing: Standing) -> None:
        if self._in_terminal:
            self._bar(standing)
            self._out.write("\n")
            self._out.flush()
            self._width = 0
        elif standing != self._told:
            self._line(standing)

    def _is_time(self, standing: Standing) -> bool:
        if self._told is None:
            return True
        return standing != self._told and time.monotonic() - self._told_at >= SECONDS_BETWEEN_LINES

    def _line(self, standing: Standing) -> None:
        self._told, self._told_at = standing, time.monotonic()
        self._out.write(f"{standing.told()}\n")
        self._out.flush()

    def _bar(self, standing: Standing) -> None:
        filled = BAR * standing.resolved // max(standing.total, 1)
        text = f"[{'#' * filled}{'.' * (BAR - filled)}] {standing.told()}"
        self._out.write("\r" + text.ljust(self._width))
        self._out.flush()
        self._width = len(text)

    def _wipe(self) -> None:
        if self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._width = 0
