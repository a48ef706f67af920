"""Decisions one by one, with what their two answers look like. Only the style pass reads this much."""

from __future__ import annotations

from dataclasses import dataclass

from arena.judging.protocol import Protocol, seat_plan
from ratings.dataset.evidence import Evidence
from ratings.dataset.scope import decisions_of, juries_of
from ratings.models import Leaderboard


@dataclass(frozen=True)
class StyleRow:
    first: int
    second: int
    outcome: str
    # 1 where the first sat in seat A, -1 where the second did, 0 where both orders were judged.
    position: int
    first_characters: int | None
    second_characters: int | None
    first_tokens: int | None
    second_tokens: int | None
    first_density: float | None
    second_density: float | None


def style_rows(board: Leaderboard, evidence: Evidence) -> list[StyleRow]:
    juries = {
        jury.pk: (Protocol.from_json(jury.protocol), jury.tournament.seed)
        for jury in juries_of(board).select_related("tournament")
    }
    measures = [
        f"match__{side}_trial__{name}"
        for name in ("characters", "output_tokens", "markdown_density")
        for side in ("first", "second")
    ]
    decisions = decisions_of(board, list(juries)).order_by("id")
    columns = ("jury", "match__sequence", "match__first_trial", "match__second_trial", "match__first", "match__second")
    rows: dict[tuple[int, ...], StyleRow] = {}
    for number, (jury, sequence, one, other, first, second, outcome, *values) in enumerate(
        decisions.values_list(*columns, "outcome", *measures).iterator(chunk_size=5000)
    ):
        protocol, seed = juries[jury]
        orders = seat_plan(protocol, seed=seed, sequence=sequence)
        position = 0 if len(orders) > 1 else (1 if orders[0] else -1)
        subjects = evidence.subjects.get(first, first), evidence.subjects.get(second, second)
        if subjects[0] == subjects[1]:
            continue
        # On a wide board the latest decision on the same two answers counts.
        key = (min(one, other), max(one, other)) if board.is_wide else (number,)
        rows[key] = StyleRow(*subjects, outcome, position, *values)
    return list(rows.values())
