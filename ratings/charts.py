"""Geometry of charts. Places are percentages of the width, so a bar fits whatever column it is drawn in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


def nice_step(span: float, wanted: int) -> float:
    """A step of 1, 2 or 5 times a power of ten that cuts the span into about `wanted` parts."""
    if not (math.isfinite(span) and span > 0):
        return 1.0
    raw = span / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` over the width, with a margin at both sides."""

    low: float
    high: float
    ticks: tuple[float, ...]
    margin: float = 0.0

    @classmethod
    def around(cls, values: Sequence[float], *, wanted: int = 4, margin: float = 0.0) -> Scale:
        """The smallest scale from tick to tick that holds all values."""
        low, high = min(values), max(values)
        if high - low < 1e-9:
            low, high = low - 50, high + 50
        step = nice_step(high - low, wanted)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = tuple(step * position for position in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks, margin)

    def share(self, value: float) -> float:
        inside = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.margin + inside * (1 - 2 * self.margin)

    def at(self, value: float) -> str:
        return percentage(self.share(value))


def percentage(share: float) -> str:
    """For an SVG attribute, whatever the language of the page."""
    return f"{100 * share:.2f}%"


@dataclass(frozen=True)
class Span:
    """A value with its interval; an end of None is open."""

    value: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Bar:
    start: str
    end: str
    width: str
    point: str
    open_left: bool
    open_right: bool


@dataclass(frozen=True)
class Tick:
    at: str
    value: float


@dataclass(frozen=True)
class IntervalChart:
    ticks: list[Tick]
    # One for each span, None where there is no value to draw.
    bars: list[Bar | None]


def interval_chart(spans: Sequence[Span], *, wanted: int = 4) -> IntervalChart:
    """Bars of intervals on one axis. Open ends run to the edge of the plot."""
    drawn = [end for span in spans if span.value is not None for end in (span.lower, span.value, span.upper)]
    values = [value for value in drawn if value is not None]
    if not values:
        return IntervalChart([], [None for _ in spans])
    scale = Scale.around(values, wanted=wanted, margin=0.05)
    ticks = [Tick(scale.at(value), value) for value in scale.ticks]
    return IntervalChart(ticks, [_bar(span, scale) for span in spans])


def _bar(span: Span, scale: Scale) -> Bar | None:
    if span.value is None:
        return None
    start = 0.0 if span.lower is None else scale.share(span.lower)
    end = 1.0 if span.upper is None else scale.share(span.upper)
    return Bar(
        start=percentage(start),
        end=percentage(end),
        width=percentage(end - start),
        point=scale.at(span.value),
        open_left=span.lower is None,
        open_right=span.upper is None,
    )


# The plots below are stretched to the width of the page: x runs over this many units, y is in pixels.
PLOT_WIDTH = 1000
TOP, BOTTOM = 16, 8


@dataclass(frozen=True)
class Level:
    """A line of the grid."""

    y: str
    value: float


@dataclass(frozen=True)
class Line:
    path: str
    # Closed; empty where no interval is known.
    band: str
    # Single points, which a path would not show.
    dots: list[tuple[str, str]]


@dataclass(frozen=True)
class LineChart:
    height: int
    levels: list[Level]
    lines: list[Line]
    # Place of each column, as a share of the width.
    columns: list[str]


def line_chart(series: Sequence[Sequence[Span]], *, height: int = 320) -> LineChart:
    """Values over columns at equal distances, with bands. A column without a value leaves a gap."""
    drawn = [
        end
        for spans in series
        for span in spans
        if span.value is not None
        for end in (span.lower, span.value, span.upper)
    ]
    values = [value for value in drawn if value is not None]
    if not values:
        return LineChart(height, [], [Line("", "", []) for _ in series], [])
    scale = Scale.around(values, wanted=5)
    length = max(len(spans) for spans in series)
    # Room on the left for the figures of the grid.
    xs = [0.5] if length == 1 else [0.11 + 0.88 * place / (length - 1) for place in range(length)]
    levels = [Level(f"{_height(scale, tick, height):.1f}", tick) for tick in scale.ticks]
    lines = [_line(spans, xs, scale, height) for spans in series]
    return LineChart(height, levels, lines, [percentage(x) for x in xs])


def _height(scale: Scale, value: float, height: int) -> float:
    return TOP + (1 - scale.share(value)) * (height - TOP - BOTTOM)


def _line(spans: Sequence[Span], xs: Sequence[float], scale: Scale, height: int) -> Line:
    path, band, dots = [], [], []
    for run in _stretches(spans):
        points = [(PLOT_WIDTH * xs[at], _height(scale, value, height)) for at, value, _, _ in run]
        path.append("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points))
        # An open end runs to the edge of the plot.
        over = [
            (PLOT_WIDTH * xs[at], TOP if upper is None else _height(scale, upper, height)) for at, _, _, upper in run
        ]
        under = [
            (PLOT_WIDTH * xs[at], height - BOTTOM if lower is None else _height(scale, lower, height))
            for at, _, lower, _ in run
        ]
        if len(run) > 1:
            band.append("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in [*over, *reversed(under)]) + " Z")
        dots += [(percentage(xs[at]), f"{_height(scale, value, height):.1f}") for at, value, _, _ in run]
    return Line(" ".join(path), " ".join(band), dots)


def _stretches(spans: Sequence[Span]) -> list[list[tuple[int, float, float | None, float | None]]]:
    found: list[list[tuple[int, float, float | None, float | None]]] = [[]]
    for at, span in enumerate(spans):
        if span.value is None:
            found.append([])
        else:
            found[-1].append((at, span.value, span.lower, span.upper))
    return [run for run in found if run]


@dataclass(frozen=True)
class Mark:
    x: str
    y: str
    # Where its interval ends; None at an open end, which runs to the edge.
    top: str
    bottom: str
    # A name to the right of it would leave the plot.
    to_the_left: bool
    # Whether its number has room; otherwise it is a dot, and the table names it.
    numbered: bool = True


@dataclass(frozen=True)
class Scatter:
    height: int
    levels: list[Level]
    ticks: list[Tick]
    # None where a point has no place.
    marks: list[Mark | None]
    frontier: str
    logarithmic: bool

    @property
    def all_numbered(self) -> bool:
        return all(mark.numbered for mark in self.marks if mark is not None)


# A number takes a circle of 18 pixels; across, plots are about as wide in pixels as in units.
ROOM_ACROSS, ROOM_DOWN = 20, 17


def scatter(points: Sequence[tuple[float | None, Span]], frontier: Sequence[bool], *, height: int = 340) -> Scatter:
    """Ratings against a price. The axis is logarithmic where prices lie more than a factor of 20 apart."""
    placed = [(x, span) for x, span in points if x is not None and span.value is not None]
    if not placed:
        return Scatter(height, [], [], [None for _ in points], "", logarithmic=False)
    prices = [x for x, _ in placed]
    logarithmic = min(prices) > 0 and max(prices) > 20 * min(prices)
    ends = [end for _, span in placed for end in (span.lower, span.value, span.upper) if end is not None]
    scale = Scale.around(ends, wanted=5)
    axis, ticks = _price_axis(prices, logarithmic=logarithmic)
    marks: list[Mark | None] = []
    stairs: list[tuple[float, float]] = []
    for (x, span), best in zip(points, frontier, strict=True):
        if x is None or span.value is None:
            marks.append(None)
            continue
        share, y = axis(x), _height(scale, span.value, height)
        top = TOP if span.upper is None else _height(scale, span.upper, height)
        bottom = height - BOTTOM if span.lower is None else _height(scale, span.lower, height)
        marks.append(Mark(percentage(share), f"{y:.1f}", f"{top:.1f}", f"{bottom:.1f}", share > 0.7))
        if best:
            stairs.append((PLOT_WIDTH * share, y))
    levels = [Level(f"{_height(scale, tick, height):.1f}", tick) for tick in scale.ticks]
    return Scatter(height, levels, ticks, _thinned(marks, frontier), _stairs(stairs), logarithmic)


def _thinned(marks: list[Mark | None], frontier: Sequence[bool]) -> list[Mark | None]:
    """Numbers where there is room for them: those on the frontier first, then in the order given."""
    taken: list[tuple[float, float]] = []
    thinned = list(marks)
    for place in sorted(range(len(marks)), key=lambda place: (not frontier[place], place)):
        mark = marks[place]
        if mark is None:
            continue
        x, y = PLOT_WIDTH / 100 * float(mark.x.rstrip("%")), float(mark.y)
        if any(abs(x - other) < ROOM_ACROSS and abs(y - level) < ROOM_DOWN for other, level in taken):
            thinned[place] = replace(mark, numbered=False)
        else:
            taken.append((x, y))
    return thinned


def _price_axis(prices: Sequence[float], *, logarithmic: bool) -> tuple[Callable[[float], float], list[Tick]]:
    if not logarithmic:
        scale = Scale.around([0.0, *prices], wanted=4, margin=0.08)
        return scale.share, [Tick(scale.at(tick), tick) for tick in scale.ticks]
    low, high = math.log10(min(prices)), math.log10(max(prices))
    scale = Scale(low, high, (), 0.1)
    powers = range(math.floor(low), math.ceil(high) + 1)
    factors = (1, 2, 5) if high - low < 2 else (1,)
    values = [factor * 10.0**power for power in powers for factor in factors]
    ticks = [Tick(scale.at(math.log10(value)), value) for value in values if low <= math.log10(value) <= high]
    return lambda price: scale.share(math.log10(price)), ticks


def _stairs(points: Sequence[tuple[float, float]]) -> str:
    """From the cheapest to the best: each step right before it goes up."""
    if len(points) < 2:
        return ""
    ordered = sorted(points)
    path = f"M{ordered[0][0]:.1f} {ordered[0][1]:.1f}"
    for x, y in ordered[1:]:
        path += f" H{x:.1f} V{y:.1f}"
    return path


# Lines over steps -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Reading:
    """A value with its margin after one step."""

    step: int
    value: float
    margin: float


@dataclass(frozen=True)
class Curve:
    """In units of a plot of 100 by 100, which is stretched to whatever place there is."""

    # Which of the series, from 1, in the order given.
    series: int
    line: str
    # Empty where it is not drawn.
    band: str
    # A place on its own: the last reading, which is the only one after a single step.
    end: tuple[str, str]


@dataclass(frozen=True)
class ProgressChart:
    curves: list[Curve]
    # Places as percentages from the left and from the top.
    steps: list[Tick]
    values: list[Tick]


MOST_BANDS = 3


def progress_chart(series: Sequence[Sequence[Reading]], *, last_step: int) -> ProgressChart:
    """A line for each series over steps, with a band for the first few; series without a reading have none.

    The scale holds all values and the last margins: early margins are so wide that they would flatten the
    lines, and are cut at the edge of the plot.
    """
    readings = [reading for line in series for reading in line]
    if not readings:
        return ProgressChart([], [], [])
    ends = [line[-1] for line in series[:MOST_BANDS] if line]
    bounds = [bound for end in ends for bound in (end.value - end.margin, end.value + end.margin)]
    scale = Scale.around([*(reading.value for reading in readings), *bounds], wanted=4)
    curves = [_curve(number, line, scale, last_step) for number, line in enumerate(series, start=1) if line]
    step = max(1, round(nice_step(last_step - 1, 5)))
    shown = [1, *range(step, last_step + 1, step)] if step > 1 else list(range(1, last_step + 1))
    steps = [Tick(f"{_across(number, last_step):.2f}%", number) for number in shown]
    return ProgressChart(curves, steps, [Tick(percentage(1 - scale.share(value)), value) for value in scale.ticks])


def _across(step: int, last_step: int) -> float:
    return 50.0 if last_step <= 1 else 100.0 * (step - 1) / (last_step - 1)


def _curve(number: int, line: Sequence[Reading], scale: Scale, last_step: int) -> Curve:
    def point(reading: Reading, value: float) -> str:
        # Beyond the plot it may run on; the plot cuts it.
        down = 100 * (1 - (value - scale.low) / (scale.high - scale.low))
        return f"{_across(reading.step, last_step):.2f},{down:.2f}"

    upper = [point(reading, reading.value + reading.margin) for reading in line]
    lower = [point(reading, reading.value - reading.margin) for reading in reversed(line)]
    last = point(line[-1], line[-1].value).split(",")
    return Curve(
        series=number,
        line=" ".join(point(reading, reading.value) for reading in line),
        band=" ".join([*upper, *lower]) if number <= MOST_BANDS else "",
        end=(last[0], last[1]),
    )
