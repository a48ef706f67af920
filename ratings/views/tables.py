"""Every table of a board as rows of plain values, for CSV and JSON."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from typing import Any

from ratings.models import Leaderboard, RatingRun
from ratings.selectors import (
    BoardView,
    comparisons_of,
    history_of,
    matrix_of,
    offers_of,
    runs_of,
    slices_of,
)
from ratings.views import downloads

Record = dict[str, Any]
TableMaker = Callable[[Leaderboard, BoardView, RatingRun], list[Record]]


def _ratings(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    return [downloads.record(row) for row in view.rows]


def _head_to_head(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    """A line for each ordered pair that met."""
    matrix = matrix_of(view.rows, run)
    return [
        {
            "full_id": row.full_id,
            "opponent": other.full_id,
            "matches": meeting.games,
            "wins": meeting.wins,
            "ties": meeting.ties,
            "losses": meeting.losses,
            "share": meeting.share,
        }
        for row, meetings in matrix.rows
        for other, meeting in zip(matrix.columns, meetings, strict=True)
        if meeting is not None and meeting.games
    ]


def _comparisons(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    return [
        {
            "full_id": found.one.full_id,
            "opponent": found.other.full_id,
            "comparable": found.comparable,
            "points": found.points,
            "ci_lower": found.lower,
            "ci_upper": found.upper,
            "ahead_in_resamples": found.ahead,
            "expected_share": found.expected,
            "matches": found.meeting.games,
        }
        for row in view.rows
        if row.stored.games
        for found in comparisons_of(view.rows, run, row)
    ]


def _over_time(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    history = history_of(board, view.rows)
    return [
        {
            "computed_at": at.computed_at.isoformat(),
            "run": at.public_id,
            "comparisons": at.comparisons,
            "full_id": row.full_id,
            "rating": None if rating is None else rating.rating,
            "std_error": None if rating is None else rating.rating_std_error,
            "ci_lower": None if rating is None else rating.ci_lower,
            "ci_upper": None if rating is None else rating.ci_upper,
            "games": None if rating is None else rating.games,
        }
        for row, ratings in history.lines
        for at, rating in zip(history.runs, ratings, strict=True)
    ]


def _cost(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    cheap = offers_of(view.rows, "mean_cost_usd")
    quick = offers_of(view.rows, "median_latency_ms")
    return [
        {
            "full_id": one.row.full_id,
            "rating": one.row.rating,
            "mean_cost_usd": None if one.value is None else f"{one.row.stored.mean_cost_usd:f}",
            "efficient_on_cost": one.efficient,
            "median_latency_ms": two.value,
            "efficient_on_latency": two.efficient,
        }
        for one, two in zip(cheap, quick, strict=True)
    ]


def _categories(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    names = {row.subject_id: row.full_id for row in view.rows}
    records: list[Record] = []
    for found in slices_of(run):
        head = {"category": found.category, "category_matches": found.comparisons, "rated": found.rated}
        blank = dict.fromkeys(("full_id", "rank", "rating", "std_error", "ci_lower", "ci_upper", "games"))
        if not found.rated:
            records.append(head | blank)
        records += [
            head | blank | {key: rating.get(key) for key in blank} | {"full_id": names.get(subject)}
            for subject, rating in found.ratings.items()
        ]
    return records


def _runs(board: Leaderboard, view: BoardView, run: RatingRun) -> list[Record]:
    return [downloads.about(one) | {"leader": one.leader_label or None} for one in runs_of(board)]


MAKERS: dict[str, TableMaker] = {
    "ratings": _ratings,
    "head-to-head": _head_to_head,
    "comparisons": _comparisons,
    "over-time": _over_time,
    "cost": _cost,
    "categories": _categories,
    "runs": _runs,
}


class _Echo:
    def write(self, text: str) -> str:
        return text


def csv_lines(records: list[Record]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    columns = list(records[0]) if records else []
    # Spreadsheets take a file without this mark for one in the system's own encoding.
    yield "\ufeff" + writer.writerow(columns)
    for record in records:
        yield writer.writerow([downloads.safe_cell(record[column]) for column in columns])
