from __future__ import annotations

import pytest

from ratings.charts import Scale, Span, interval_chart, nice_step


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
