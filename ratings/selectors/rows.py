"""A line of a board as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from arena.models import Candidate, LanguageModel
from ratings.models import Rating
from ratings.selectors import wording


def family_of(snapshot: dict[str, Any]) -> str:
    return str(snapshot.get("family") or "").strip().casefold()


@dataclass(frozen=True)
class Row:
    """A candidate of a board. `rating` is None where the data support no number."""

    subject: Candidate | LanguageModel
    stored: Rating
    # Where another subject of the board has the same label or full id.
    label_shared: bool = False
    full_id_shared: bool = False

    @property
    def label(self) -> str:
        return self.full_id if self.label_shared else self.subject.label

    @property
    def full_id(self) -> str:
        if self.full_id_shared and isinstance(self.subject, LanguageModel):
            return f"{self.subject.full_id} ({self.subject.fingerprint[:6]})"
        return self.subject.full_id

    @property
    def subject_id(self) -> int:
        """As triples and rosters name it."""
        return self.subject.pk

    @property
    def model_id(self) -> str:
        """As it entered, whatever the live settings have become."""
        if isinstance(self.subject, Candidate):
            return str(self.subject.snapshot.get("model_id", ""))
        return self.subject.model_id

    @property
    def family(self) -> str:
        if isinstance(self.subject, Candidate):
            return family_of(self.subject.snapshot)
        return self.subject.family.strip().casefold()

    @property
    def benched(self) -> bool:
        return isinstance(self.subject, Candidate) and self.subject.benched

    @property
    def rating(self) -> float | None:
        return self.stored.rating

    @property
    def lower(self) -> float | None:
        return self.stored.ci_lower

    @property
    def upper(self) -> float | None:
        return self.stored.ci_upper

    @property
    def places(self) -> str:
        """Places that the intervals of the differences leave open, such as "1 to 3"."""
        first, last = self.stored.rank_from, self.stored.rank_to
        if first is None or last is None:
            return "–"
        if first == last:
            return str(first)
        return gettext("{first} to {last}").format(first=first, last=last)

    @property
    def first_text(self) -> str:
        """How often it came first in the resamples, where that is not plain from its place."""
        share = self.stored.first_share
        if share is None or share < 0.005 or self.places == "1":
            return ""
        return gettext("first in {share}").format(share=wording.resampled(share))

    @property
    def length_text(self) -> str:
        adjusted = self.stored.length_adjusted
        return "–" if adjusted is None else wording.number(adjusted)

    @property
    def rating_text(self) -> str:
        return gettext("no number") if self.rating is None else wording.number(self.rating)

    @property
    def interval_text(self) -> str:
        return gettext("open") if self.rating is None else wording.limits(self.lower, self.upper)

    @property
    def rating_note(self) -> str:
        """Where nothing but the prior keeps the number where it is."""
        open_end = self.rating is not None and (self.lower is None or self.upper is None)
        return gettext("held by the prior") if open_end and self.stored.held_by_prior else ""

    @property
    def win_share_text(self) -> str:
        return "–" if self.stored.win_share is None else wording.percent(self.stored.win_share)

    @property
    def cost_text(self) -> str:
        cost = self.stored.mean_cost_usd
        return gettext("unknown") if cost is None else wording.dollars(cost)

    @property
    def cost_note(self) -> str:
        """Said where the cost of some answers is not known."""
        priced, answers = self.stored.priced_answers, self.stored.answers
        if not 0 < priced < answers:
            return ""
        return gettext("known for {priced} of {answers} answers").format(
            priced=wording.number(priced), answers=wording.number(answers)
        )

    @property
    def latency_text(self) -> str:
        latency_ms = self.stored.median_latency_ms
        return gettext("unknown") if latency_ms is None else wording.seconds(latency_ms)


@dataclass(frozen=True)
class Table:
    """One connected component: within it ratings compare."""

    number: int
    rows: list[Row]

    @property
    def shows_length(self) -> bool:
        return any(row.stored.length_adjusted is not None for row in self.rows)

    @property
    def tier(self) -> list[Row]:
        """Those for whom the first place is open."""
        return [row for row in self.rows if row.stored.rank_from == 1]
