"""Boards as their charts show them: places from `ratings.charts`, words beside them."""

from __future__ import annotations

from dataclasses import dataclass

from ratings import charts
from ratings.selectors import wording
from ratings.selectors.board import BoardView
from ratings.selectors.parts import Offer, offers_of
from ratings.selectors.rows import Row


@dataclass(frozen=True)
class DrawnTable:
    number: int
    rows: list[tuple[Row, charts.Bar | None]]
    chart: charts.IntervalChart
    # Places on the axis and what stands there.
    labels: list[tuple[str, str]]
    shows_length: bool


def drawn_tables(view: BoardView) -> list[DrawnTable]:
    drawn = []
    for table in view.tables:
        spans = [charts.Span(row.rating, row.lower, row.upper) for row in table.rows]
        chart = charts.interval_chart(spans)
        labels = [(tick.at, wording.number(tick.value)) for tick in chart.ticks]
        rows = list(zip(table.rows, chart.bars, strict=True))
        drawn.append(DrawnTable(table.number, rows, chart, labels, table.shows_length))
    return drawn


@dataclass(frozen=True)
class DrawnScatter:
    chart: charts.Scatter
    levels: list[tuple[str, str]]
    ticks: list[tuple[str, str]]
    points: list[tuple[Offer, charts.Mark | None]]

    @property
    def drawn(self) -> int:
        return sum(mark is not None for _, mark in self.points)


def drawn_scatter(rows: list[Row], measure: str) -> DrawnScatter:
    offers = offers_of(rows, measure)
    chart = charts.scatter(
        [(offer.value, charts.Span(offer.row.rating, offer.row.lower, offer.row.upper)) for offer in offers],
        [offer.efficient for offer in offers],
    )
    said = wording.price_tick if measure == "mean_cost_usd" else wording.seconds_tick
    return DrawnScatter(
        chart,
        [(level.y, wording.number(level.value)) for level in chart.levels],
        [(tick.at, said(tick.value)) for tick in chart.ticks],
        list(zip(offers, chart.marks, strict=True)),
    )
