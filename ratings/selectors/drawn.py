"""Boards as their charts show them: places from `ratings.charts`, words beside them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ratings import charts
from ratings.selectors import wording
from ratings.selectors.board import BoardView
from ratings.selectors.parts import Offer, offers_of
from ratings.selectors.rows import Row


@dataclass(frozen=True)
class DrawnTier:
    """Candidates between whom no order is established, with the bars of their intervals."""

    # Empty where it stands alone, or where nothing is known of tiers.
    title: str
    rows: list[tuple[Row, SafeString]]


@dataclass(frozen=True)
class DrawnTable:
    number: int
    tiers: list[DrawnTier]
    # Places on the axis and what stands there.
    labels: list[tuple[str, str]]
    shows_length: bool
    shows_style: bool

    @property
    def columns(self) -> int:
        return 8 + self.shows_length + self.shows_style


def drawn_tables(view: BoardView) -> list[DrawnTable]:
    drawn = []
    for table in view.tables:
        spans = [charts.Span(row.rating, row.lower, row.upper) for row in table.rows]
        chart = charts.interval_chart(spans)
        labels = [(tick.at, wording.number(tick.value)) for tick in chart.ticks]
        bars = {row.subject_id: bar for row, bar in zip(table.rows, _bars(chart), strict=True)}
        tiers = [DrawnTier(tier.title, [(row, bars[row.subject_id]) for row in tier.rows]) for tier in table.tiers]
        drawn.append(DrawnTable(table.number, tiers, labels, table.shows_length, table.shows_style))
    return drawn


# An arrow at each end that is open.
OPEN_LEFT = SafeString(
    '<svg x="0" y="12" width="1" height="1" overflow="visible"><path class="interval-open" d="M2 -6 L-4 0 L2 6"/></svg>'
)
OPEN_RIGHT = SafeString(
    '<svg x="100%" y="12" width="1" height="1" overflow="visible">'
    '<path class="interval-open" d="M-2 -6 L4 0 L-2 6"/></svg>'
)


def _bars(chart: charts.IntervalChart) -> list[SafeString]:
    """What stands inside the drawing of each row. A template that looped over ticks in each row took most of a page's
    time."""
    line = '<line class="interval-axis" x1="{}" x2="{}" y1="0" y2="24"/>'
    grid = format_html_join("", line, ((tick.at, tick.at) for tick in chart.ticks))
    return [grid if bar is None else _bar(bar, grid) for bar in chart.bars]


def _bar(bar: charts.Bar, grid: SafeString) -> SafeString:
    return format_html(
        '{}<line class="interval-bar" x1="{}" x2="{}" y1="12" y2="12"/>{}{}'
        '<line class="interval-point" x1="{}" x2="{}" y1="12" y2="12"/>',
        grid,
        bar.start,
        bar.end,
        OPEN_LEFT if bar.open_left else "",
        OPEN_RIGHT if bar.open_right else "",
        bar.point,
        bar.point,
    )


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
