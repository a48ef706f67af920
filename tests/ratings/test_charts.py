from __future__ import annotations

import pytest

from ratings.charts import Reading, Scale, Span, interval_chart, nice_step, progress_chart, scatter


@pytest.mark.parametrize(
    ("span", "wanted", "step"), [(400, 4, 100), (401, 4, 200), (0.9, 3, 0.5), (1, 4, 0.5), (9000, 5, 2000), (0, 4, 1)]
)
def test_steps_are_round(span: float, wanted: int, step: float) -> None:
    assert nice_step(span, wanted) == pytest.approx(step)


def test_a_scale_holds_all_values_between_ticks() -> None:
    scale = Scale.around([812.0, 1190.0])
    assert scale.ticks == (800, 900, 1000, 1100, 1200)
    assert (scale.share(800), scale.share(1000), scale.share(1200)) == (0, 0.5, 1)


def test_a_single_value_has_a_scale_too() -> None:
    scale = Scale.around([1000.0])
    assert scale.low < 1000 < scale.high


def test_bars_share_one_axis() -> None:
    chart = interval_chart([Span(1100, 1000, 1200), Span(900, 800, 1000)])
    first, second = chart.bars
    assert first is not None
    assert second is not None
    assert first.start == second.end
    assert [tick.value for tick in chart.ticks] == [800, 900, 1000, 1100, 1200]
    assert (first.end, second.start) == ("95.00%", "5.00%")


def test_open_ends_run_to_the_edge() -> None:
    chart = interval_chart([Span(1100, 1000, None), Span(900, None, 1000), Span(1000, None, None)])
    ends = [(bar.start, bar.end, bar.open_left, bar.open_right) for bar in chart.bars if bar]
    assert [end[2:] for end in ends] == [(False, True), (True, False), (True, True)]
    assert (ends[0][1], ends[1][0]) == ("100.00%", "0.00%")


def test_without_a_number_there_is_no_bar() -> None:
    assert interval_chart([Span(None, None, None)]).bars == [None]
    assert interval_chart([Span(None, None, None), Span(1000, 900, 1100)]).bars[0] is None
    assert interval_chart([]).ticks == []


# Lines over steps -----------------------------------------------------------------------------------------------
def test_numbers_of_a_scatter_do_not_cover_each_other() -> None:
    points = [(price, Span(1000 + 400 * price, None, None)) for price in (0.100, 0.101, 0.102, 0.5, 1.0)]
    chart = scatter(points, [False, False, True, False, True])
    assert [mark is not None and mark.numbered for mark in chart.marks] == [False, False, True, True, True]
    assert not chart.all_numbered
    assert scatter(points[2:], [True] * 3).all_numbered


def places(points: str) -> list[tuple[float, float]]:
    pairs = (point.split(",") for point in points.split())
    return [(float(across), float(down)) for across, down in pairs]


def test_lines_run_from_the_first_step_to_the_last_on_one_scale() -> None:
    up = [Reading(1, 1500, 300), Reading(2, 1600, 100), Reading(3, 1700, 50)]
    late = [Reading(2, 1400, 200), Reading(3, 1300, 50)]
    chart = progress_chart([up, late, []], last_step=3)
    assert [curve.series for curve in chart.curves] == [1, 2]
    first, second = (places(curve.line) for curve in chart.curves)
    assert [across for across, _ in first] == [0, 50, 100]
    assert [across for across, _ in second] == [50, 100]
    # Higher ratings are further up, and all of them inside the plot.
    assert first[0][1] > first[1][1] > first[2][1]
    assert all(0 <= down <= 100 for _, down in (*first, *second))
    assert [tick.value for tick in chart.steps] == [1, 2, 3]
    assert chart.values[0].value <= 1250
    assert chart.values[-1].value >= 1750
    assert chart.values[0].at == "100.00%"


def test_a_band_goes_up_on_one_side_and_back_on_the_other() -> None:
    chart = progress_chart([[Reading(1, 1500, 100), Reading(2, 1500, 50)]], last_step=2)
    left_up, right_up, right_down, left_down = places(chart.curves[0].band)
    assert (left_up[0], right_up[0], right_down[0], left_down[0]) == (0, 100, 100, 0)
    assert left_up[1] < right_up[1] < 50 < right_down[1] < left_down[1]


def test_only_the_first_few_have_bands() -> None:
    chart = progress_chart([[Reading(1, 1500 + n, 10)] for n in range(6)], last_step=1)
    assert [bool(curve.band) for curve in chart.curves] == [True, True, True, False, False, False]
    assert {curve.end[0] for curve in chart.curves} == {"50.00"}


def test_many_steps_have_few_labels() -> None:
    chart = progress_chart([[Reading(step, 1500, 10) for step in range(1, 301)]], last_step=300)
    assert 4 <= len(chart.steps) <= 10
    assert chart.steps[0].value == 1


def test_nothing_read_is_nothing_drawn() -> None:
    assert progress_chart([[], []], last_step=0) == progress_chart([], last_step=0)
    assert progress_chart([], last_step=0).curves == []
