"""Decisions and votes one by one, with what their two answers look like. Only the style pass reads this much."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.models import Side
from arena.judging.protocol import Protocol, seat_plan
from ratings.dataset.evidence import Evidence
from ratings.dataset.scope import decisions_of, juries_of
from ratings.dataset.votes import votes_of
from ratings.models import Leaderboard


@dataclass(frozen=True)
class StyleRow:
    first: int
    second: int
    outcome: str
    # 1 where the first sat in seat A or on the left, -1 where the second did, 0 where both orders were judged.
    position: int
    first_characters: int | None
    second_characters: int | None
    first_tokens: int | None
    second_tokens: int | None
    first_density: float | None
    second_density: float | None


MEASURES = tuple(
    f"match__{side}_trial__{name}"
    for name in ("characters", "output_tokens", "markdown_density")
    for side in ("first", "second")
)


def style_rows(board: Leaderboard, evidence: Evidence) -> list[StyleRow]:
    rows = _decided(board, evidence) if board.has_decisions else []
    return [*rows, *(_voted(board, evidence) if board.has_votes else [])]


def _voted(board: Leaderboard, evidence: Evidence) -> list[StyleRow]:
    left_out = evidence.screened.left_out if evidence.screened is not None else frozenset()
    votes = votes_of(board).exclude(rater__in=left_out).order_by("pk")
    columns = ("assignment__left", "match__first", "match__second", "outcome")
    found = []
    for left, first, second, outcome, *values in votes.values_list(*columns, *MEASURES).iterator(chunk_size=5000):
        subjects = evidence.subjects.get(first, first), evidence.subjects.get(second, second)
        if subjects[0] != subjects[1]:
            # The left of the screen is read first, as seat A is.
            found.append(StyleRow(*subjects, outcome, 1 if left == Side.FIRST else -1, *values))
    return found


def _decided(board: Leaderboard, evidence: Evidence) -> list[StyleRow]:
    juries = {
        jury.pk: (Protocol.from_json(jury.protocol), jury.tournament.seed)
        for jury in juries_of(board).select_related("tournament")
    }
    decisions = decisions_of(board, list(juries)).order_by("id")
    columns = ("jury", "match__sequence", "match__first_trial", "match__second_trial", "match__first", "match__second")
    rows: dict[tuple[int, ...], StyleRow] = {}
    for number, (jury, sequence, one, other, first, second, outcome, *values) in enumerate(
        decisions.values_list(*columns, "outcome", *MEASURES).iterator(chunk_size=5000)
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
