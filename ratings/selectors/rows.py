"""A line of a board as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
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
        """The interval of its rank, such as "1 to 3".

        That of the resamples. Without them the places that the differences leave open; so also where these leave
        one alone, and where all results between two groups went one way, which resamples cannot but repeat.
        """
        stored = self.stored
        first, last = stored.rank_lower, stored.rank_upper
        if first is None or last is None or stored.held_by_prior or stored.rank_from == stored.rank_to:
            first, last = stored.rank_from, stored.rank_to
        if first is None or last is None:
            return "–"
        return str(first) if first == last else gettext("{first} to {last}").format(first=first, last=last)

    @property
    def leads(self) -> bool:
        """Established to be ahead of everybody else."""
        return self.stored.rank_from == self.stored.rank_to == 1

    @property
    def first_text(self) -> str:
        """How often it came first in the resamples, where that is not plain from its place."""
        share = self.stored.first_share
        if share is None or share < 0.01 or self.leads:
            return ""
        return gettext("first in {share}").format(share=wording.resampled(share))

    @property
    def length_text(self) -> str:
        adjusted = self.stored.length_adjusted
        return "–" if adjusted is None else wording.number(adjusted)

    @property
    def style_text(self) -> str:
        controlled = self.stored.style_controlled_rating
        return "–" if controlled is None else wording.number(controlled)

    @property
    def style_note(self) -> str:
        stored = self.stored
        if stored.style_controlled_rating is None:
            return ""
        return wording.limits(stored.style_controlled_ci_lower, stored.style_controlled_ci_upper)

    @cached_property
    def rating_text(self) -> str:
        return gettext("no number") if self.rating is None else wording.number(self.rating)

    @cached_property
    def interval_text(self) -> str:
        return gettext("open") if self.rating is None else wording.limits(self.lower, self.upper)

    @property
    def rating_note(self) -> str:
        """Where nothing but the prior keeps the number where it is."""
        open_end = self.rating is not None and (self.lower is None or self.upper is None)
        return gettext("held by the prior") if open_end and self.stored.held_by_prior else ""

    @property
    def games_text(self) -> str:
        return wording.number(self.stored.games)

    @property
    def record_text(self) -> str:
        return gettext("{wins} won, {ties} tied, {losses} lost").format(
            wins=wording.number(self.stored.wins),
            ties=wording.number(self.stored.ties),
            losses=wording.number(self.stored.losses),
        )

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
class Tier:
    """Neighbours in rank of whom none is established to be ahead of another."""

    # First and last place of the component.
    first: int
    last: int
    rows: list[Row]

    @property
    def title(self) -> str:
        """Said of several alone: never that they are equal, for nothing establishes that either."""
        if self.first == self.last:
            return ""
        return gettext("{first} to {last}: order not established").format(
            first=wording.number(self.first), last=wording.number(self.last)
        )


@dataclass(frozen=True)
class Table:
    """One connected component: within it ratings compare."""

    number: int
    rows: list[Row]

    @property
    def shows_length(self) -> bool:
        return any(row.stored.length_adjusted is not None for row in self.rows)

    @property
    def shows_style(self) -> bool:
        # Beside the length-adjusted rating there is no room; CSV and JSON have both.
        return not self.shows_length and any(row.stored.style_controlled_rating is not None for row in self.rows)

    @property
    def tiers(self) -> list[Tier]:
        """One of each row where no resamples told tiers: then the places of each row have to do."""
        found: list[Tier] = []
        begin = 1
        for _, members in groupby(enumerate(self.rows), lambda item: item[1].stored.tier or -item[0]):
            rows = [row for _, row in members]
            found.append(Tier(begin, begin + len(rows) - 1, rows))
            begin += len(rows)
        return found
