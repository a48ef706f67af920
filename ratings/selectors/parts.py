"""What the pages beside a board show: pairs, history, cost and speed, categories. All out of stored runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext

from ratings.engine import from_display, win_share
from ratings.models import Leaderboard, Rating, RatingRun
from ratings.selectors import wording
from ratings.selectors.rows import Row

MOST_POINTS = 100


@dataclass(frozen=True)
class Meeting:
    """How one subject fared against another."""

    wins: int = 0
    ties: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def share(self) -> float | None:
        """Of points, a tie being half of one. None where they never met."""
        return (self.wins + self.ties / 2) / self.games if self.games else None

    @property
    def share_text(self) -> str:
        return "" if self.share is None else wording.percent(self.share)

    @property
    def step(self) -> int | None:
        """A step of the heatmap, 0 (lost all) to 10 (won all)."""
        return None if self.share is None else round(10 * self.share)

    @property
    def text(self) -> str:
        if not self.games:
            return gettext("never met")
        return gettext("{wins} won, {ties} tied, {losses} lost").format(
            wins=wording.number(self.wins), ties=wording.number(self.ties), losses=wording.number(self.losses)
        )


Meetings = dict[tuple[int, int], Meeting]


def meetings_of(run: RatingRun) -> Meetings:
    """Both ways, by subject ids. Read from the run: counting a million rows would take longer than the page may."""
    found: dict[tuple[int, int], list[int]] = {}
    for first, second, outcome, count in run.triples:
        for key, place in (
            ((first, second), {"first": 0, "tie": 1, "second": 2}[outcome]),
            ((second, first), {"first": 2, "tie": 1, "second": 0}[outcome]),
        ):
            found.setdefault(key, [0, 0, 0])[place] += count
    return {key: Meeting(*counts) for key, counts in found.items()}


@dataclass(frozen=True)
class Matrix:
    rows: list[tuple[Row, list[Meeting | None]]]

    @property
    def columns(self) -> list[Row]:
        return [row for row, _ in self.rows]


def matrix_of(rows: Sequence[Row], run: RatingRun) -> Matrix:
    meetings = meetings_of(run)
    played = [row for row in rows if row.stored.games]
    return Matrix(
        [
            (
                row,
                [
                    None if row is other else meetings.get((row.subject_id, other.subject_id), Meeting())
                    for other in played
                ],
            )
            for row in played
        ]
    )


@dataclass(frozen=True)
class Comparison:
    """One subject seen from another."""

    one: Row
    other: Row
    meeting: Meeting
    comparable: bool
    points: float | None
    lower: float | None
    upper: float | None
    # Share of resamples in which `one` was ahead.
    ahead: float | None
    expected: float | None

    @property
    def points_text(self) -> str:
        if not self.comparable:
            return gettext("not comparable")
        return gettext("no number") if self.points is None else wording.signed(self.points)

    @property
    def interval_text(self) -> str:
        if not self.comparable:
            return ""
        return wording.limits(self.lower, self.upper)

    @property
    def ahead_text(self) -> str:
        return "–" if self.ahead is None else wording.resampled(self.ahead)

    @property
    def expected_text(self) -> str:
        return "–" if self.expected is None else wording.percent(self.expected)

    @property
    def sentence(self) -> str:
        names = {"one": self.one.label, "other": self.other.label}
        if not self.comparable:
            return gettext("{one} and {other} cannot be compared: no chain of matches connects them.").format(**names)
        if self.ahead is not None:
            if self.ahead < 0.5:
                names = {"one": self.other.label, "other": self.one.label}
            share = wording.resampled(max(self.ahead, 1 - self.ahead))
            return gettext("{one} is ahead of {other} in {share} of resamples.").format(share=share, **names)
        if self.points is None:
            return gettext("No result bounds the distance between {one} and {other}.").format(**names)
        if self.points < 0:
            names = {"one": self.other.label, "other": self.one.label}
        return gettext("{one} is {points} points ahead of {other}.").format(
            points=wording.number(abs(self.points)), **names
        )


def comparisons_of(rows: Sequence[Row], run: RatingRun, one: Row) -> list[Comparison]:
    """One against everybody else, in rank order."""
    meetings = meetings_of(run)
    return [_comparison(run, one, other, meetings) for other in rows if other is not one and other.stored.games]


def _comparison(run: RatingRun, one: Row, other: Row, meetings: Meetings) -> Comparison:
    ids = one.subject_id, other.subject_id
    meeting = meetings.get(ids, Meeting())
    comparable = one.stored.component_id is not None and one.stored.component_id == other.stored.component_id
    points = lower = upper = expected = None
    if comparable and one.rating is not None and other.rating is not None:
        points = one.rating - other.rating
        std_error = std_error_between(run, *ids)
        if one.stored.group_id == other.stored.group_id:
            between = _between_first_two(run, *ids)
            if between is not None:
                lower, upper = between
            elif std_error is not None:
                lower, upper = points - run.quantile * std_error, points + run.quantile * std_error
            if not run.eta_unbounded:
                theta = from_display([points, 0.0])
                expected = float(win_share(theta, run.eta, np.zeros(2, dtype=np.int64))[0])
    ahead = share_ahead(run, *ids) if comparable else None
    return Comparison(one, other, meeting, comparable, points, lower, upper, ahead, expected)


def _between_first_two(run: RatingRun, one: int, other: int) -> tuple[float | None, float | None] | None:
    """The limits that the verdict tells of the first two, so that no page contradicts it. None for another pair."""
    found = run.separation
    if found is None or {one, other} != {found["leader"], found["runner_up"]}:
        return None
    lower, upper = found["lower"], found["upper"]
    if one == found["leader"]:
        return lower, upper
    return None if upper is None else -upper, None if lower is None else -lower


def std_error_between(run: RatingRun, one: int, other: int) -> float | None:
    for part in run.covariance or []:
        ids = part["candidates"]
        if one in ids and other in ids:
            i, j = sorted((ids.index(one), ids.index(other)))
            upper = part["upper"]
            entries = upper[i][0], upper[j][0], upper[i][j - i]
            if any(entry is None for entry in entries):
                return None
            return math.sqrt(max(0.0, entries[0] + entries[1] - 2 * entries[2]))
    return None


def share_ahead(run: RatingRun, one: int, other: int) -> float | None:
    for part in run.ahead or []:
        ids = part["candidates"]
        if one in ids and other in ids:
            i, j = ids.index(one), ids.index(other)
            # Row by row, right of the diagonal.
            share = part["upper"][min(i, j)][max(i, j) - min(i, j) - 1]
            if share is None:
                return None
            return float(share if i < j else 1 - share)
    return None


@dataclass(frozen=True)
class History:
    """One point a fit, oldest first. A line per subject of the newest run; None where it had no rating then."""

    runs: list[RatingRun]
    lines: list[tuple[Row, list[Rating | None]]]


def history_of(board: Leaderboard, rows: Sequence[Row]) -> History:
    runs = list(
        RatingRun.objects.filter(leaderboard=board)
        .published()
        .only("id", "public_id", "computed_at", "comparisons", "step_number", "leaderboard", "mode")[:MOST_POINTS]
    )[::-1]
    points: dict[tuple[int, object], Rating] = {}
    fields = (
        "run_id",
        "candidate_id",
        "lineage",
        "rating",
        "rating_std_error",
        "ci_lower",
        "ci_upper",
        "games",
        "rank",
    )
    for rating in Rating.objects.filter(run__in=runs).only(*fields):
        points[rating.run_id, rating.lineage if board.is_wide else rating.candidate_id] = rating
    lines = []
    for row in rows:
        key = row.stored.lineage if board.is_wide else row.stored.candidate_id
        lines.append((row, [points.get((run.pk, key)) for run in runs]))
    return History(runs, lines)


@dataclass(frozen=True)
class Slice:
    """A category: ratings of its own from 20 decided matches on, otherwise its count."""

    category: str
    comparisons: int
    rated: bool
    # By subject id.
    ratings: dict[int, dict[str, Any]]

    @property
    def name(self) -> str:
        return self.category or gettext("without a category")

    def cell(self, row: Row) -> tuple[str, str]:
        rating = self.ratings.get(row.subject_id)
        if rating is None:
            return "–", ""
        return wording.cell(rating["rating"], rating["ci_lower"], rating["ci_upper"], games=rating["games"])

    def leader(self, rows: Sequence[Row]) -> Row | None:
        ranked = [row for row in rows if self.ratings.get(row.subject_id, {}).get("rank") == 1]
        return ranked[0] if ranked else None


def slices_of(run: RatingRun) -> list[Slice]:
    return [
        Slice(
            found["category"],
            found["comparisons"],
            bool(found["ratings"]),
            {rating["subject"]: rating for rating in found["ratings"]},
        )
        for found in run.slices or []
    ]


@dataclass(frozen=True)
class Offer:
    """A row on its price and its speed, and whether nobody is better at no greater one."""

    row: Row
    value: float | None
    efficient: bool


def offers_of(rows: Sequence[Row], measure: str) -> list[Offer]:
    """By `mean_cost_usd` or `median_latency_ms`: who is on the frontier of rating against it."""
    known = [
        (float(value), row.rating)
        for row in rows
        if (value := getattr(row.stored, measure)) is not None and row.rating is not None
    ]
    offers = []
    for row in rows:
        stored = getattr(row.stored, measure)
        value = None if stored is None else float(stored)
        efficient = (
            value is not None
            and row.rating is not None
            and not any(
                (cost <= value and rating >= row.rating) and (cost < value or rating > row.rating)
                for cost, rating in known
            )
        )
        offers.append(Offer(row, value, efficient))
    return offers
