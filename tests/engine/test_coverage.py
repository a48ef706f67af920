"""The simulation of benchmarks/coverage.py, short: enough to see which errors are right where."""

from __future__ import annotations

import pytest

from benchmarks.coverage import Scene, Tally, cover, separable


@pytest.fixture(scope="module")
def clustered_runs() -> dict[str, Tally]:
    return cover(Scene("clustered", "rao_kupper", 1.0), 24, 150, seed=3)


def test_errors_by_sample_hold_the_truth_where_fishers_do_not(clustered_runs: dict[str, Tally]) -> None:
    by_sample, fisher = clustered_runs["CR1 with t"].coverage, clustered_runs["Fisher"].coverage

    assert 0.92 < by_sample < 0.98
    assert fisher < 0.93
    assert by_sample - fisher > 0.03


def test_fishers_errors_hold_the_truth_on_independent_data() -> None:
    found = cover(Scene("independent", "rao_kupper", 0.0), 24, 150, seed=3)

    assert 0.92 < found["Fisher"].coverage < 0.98


def test_the_unbeaten_have_an_open_end_and_nobody_else() -> None:
    found = separable(40, 3)

    assert 0 < found.unbeaten < 40
    assert found.open_analytic == found.unbeaten
    assert found.wrongly_open == 0
    assert found.open_resampled == found.resampled > 0
