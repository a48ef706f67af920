"""Two juries of one tournament side by side: how alike they rank, and which decisions differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from arena.models import Decision, Jury, Match
from ratings.engine.agreement import RankAgreement, rank_agreement
from ratings.selectors.board import BoardView, board_of, existing_board


@dataclass(frozen=True)
class Changed:
    match: Match
    # What each jury decided: the label of the winner, a tie, or inconclusive.
    one: str
    other: str


@dataclass(frozen=True)
class Comparison:
    one: BoardView
    other: BoardView
    # Of the ratings; None where one of the two has none.
    ranks: RankAgreement | None
    both: int
    changed: QuerySet[Match]
    n_changed: int

    @property
    def same(self) -> int:
        return self.both - self.n_changed


def comparison_of(one: Jury, other: Jury, ties: str | None = None) -> Comparison:
    own, others = (board_of(existing_board(jury.tournament, jury, ties)) for jury in (one, other))
    outcomes = {
        name: Subquery(Decision.objects.current().filter(jury=jury, match=OuterRef("pk")).values("outcome")[:1])
        for name, jury in (("outcome_one", one), ("outcome_other", other))
    }
    matches = Match.objects.filter(tournament=one.tournament_id).annotate(**outcomes)
    both = matches.filter(**{f"{name}__isnull": False for name in outcomes})
    alike: dict[str, Any] = {"outcome_one": F("outcome_other")}
    changed = both.exclude(**alike).order_by("sequence")
    return Comparison(
        own,
        others,
        _ranks(own, others),
        both.count(),
        changed.select_related("sample", "first", "second"),
        changed.count(),
    )


def _ranks(one: BoardView, other: BoardView) -> RankAgreement | None:
    """Over the candidates that both rate. Ratings of separate groups do not compare, so there is no ranking then."""
    if not one.tables or not other.tables or len(one.tables) > 1 or len(other.tables) > 1:
        return None
    rated = [{row.subject_id: row.rating for row in view.rows} for view in (one, other)]
    keys = sorted(rated[0].keys() & rated[1].keys())
    values = [[_number(side[key]) for key in keys] for side in rated]
    return rank_agreement(values[0], values[1])


def _number(value: float | None) -> float:
    return math.nan if value is None else value
