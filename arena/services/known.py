"""Rows that calls read again and again and that do not change while a tournament runs, kept in the process.

A call costs milliseconds of CPU, and joining the same protocol, judge and sample for each of thousands would
be most of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet

from arena.judging.protocol import Protocol
from arena.models import Candidate, Judge, Jury, LanguageModel, Sample, Tournament

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST_KEPT = 2000


class Kept(Generic[K, V]):
    """A bounded cache; what may change carries an age after which it is read anew."""

    def __init__(self, load: Callable[[K], V], *, seconds: float | None = None) -> None:
        self._load, self._seconds = load, seconds
        self._values: dict[K, tuple[float, V]] = {}

    def __call__(self, key: K) -> V:
        now = time.monotonic()
        found = self._values.get(key)
        if found is not None and (self._seconds is None or now - found[0] < self._seconds):
            return found[1]
        value = self._load(key)
        if len(self._values) >= MOST_KEPT:
            self._values.clear()
        self._values[key] = (now, value)
        return value

    def forget(self, key: K | None = None) -> None:
        if key is None:
            self._values.clear()
        else:
            self._values.pop(key, None)


@dataclass(frozen=True)
class Panel:
    """A jury, which is settled when its tournament, or the rejudge, is created."""

    jury: Jury
    protocol: Protocol
    judges: tuple[Judge, ...]

    @property
    def rejudge_id(self) -> int | None:
        """None for the tournament's own jury, whose verdicts name none."""
        return None if self.jury.primary else self.jury.pk

    @property
    def primary(self) -> list[Judge]:
        return [judge for judge in self.judges if not judge.replacement]

    @property
    def replacements(self) -> list[Judge]:
        return [judge for judge in self.judges if judge.replacement]

    def judge(self, judge_id: int) -> Judge:
        return next(judge for judge in self.judges if judge.pk == judge_id)


def _read_panel(jury: Jury) -> Panel:
    return Panel(jury, Protocol.from_json(jury.protocol), tuple(jury.judges.select_related("language_model")))


def _read_payers_model(key: tuple[int, int]) -> int:
    tournament_id, language_model_id = key
    fingerprint, provider_id = LanguageModel.objects.values_list("fingerprint", "provider_id").get(pk=language_model_id)
    own = Candidate.objects.filter(
        tournament=tournament_id, language_model__fingerprint=fingerprint, language_model__provider=provider_id
    )
    found: int | None = own.values_list("language_model_id", flat=True).first()
    return found or language_model_id


def _samples() -> QuerySet[Sample]:
    return Sample.objects.only("pk", "messages", "reference", "criteria", "input_hash")


protocol_of: Kept[int, Protocol] = Kept(
    lambda jury_id: Protocol.from_json(Jury.objects.values_list("protocol", flat=True).get(pk=jury_id))
)
judge_model_of: Kept[int, int] = Kept(
    lambda judge_id: Judge.objects.values_list("language_model_id", flat=True).get(pk=judge_id)
)
candidate_model_of: Kept[int, str] = Kept(
    lambda pk: str(Candidate.objects.values_list("snapshot", flat=True).get(pk=pk)["model_id"])
)
# A trial is bound to the version of the model that first asked for it. A later one with the same fingerprint asks the
# very same thing, but may be priced otherwise: the tournament that pays, pays by the version it chose and planned with.
payers_model_of: Kept[tuple[int, int], int] = Kept(_read_payers_model)
panel_of: Kept[int, Panel] = Kept(
    lambda tournament_id: _read_panel(Jury.objects.get(tournament=tournament_id, primary=True))
)
rejudge_panel_of: Kept[int, Panel] = Kept(lambda jury_id: _read_panel(Jury.objects.get(pk=jury_id)))
sample_of: Kept[int, Sample] = Kept(lambda sample_id: _samples().get(pk=sample_id))
# Seed and team never change; a budget may, and a claim checks what matters of it in its own UPDATE.
tournament_of: Kept[int, Tournament] = Kept(lambda pk: Tournament.objects.get(pk=pk), seconds=2.0)
rejudge_of: Kept[int, Jury] = Kept(lambda pk: Jury.objects.get(pk=pk), seconds=2.0)


def forget_payer(payer: Tournament | Jury) -> None:
    """Its budget changed since this process last looked."""
    (tournament_of if isinstance(payer, Tournament) else rejudge_of).forget(payer.pk)


def forget() -> None:
    every: tuple[Kept[Any, Any], ...] = (
        protocol_of,
        judge_model_of,
        candidate_model_of,
        payers_model_of,
        panel_of,
        rejudge_panel_of,
        sample_of,
        tournament_of,
        rejudge_of,
    )
    for kept in every:
        kept.forget()
