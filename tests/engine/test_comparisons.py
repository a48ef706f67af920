from __future__ import annotations

import numpy as np
import pytest

from ratings.engine.comparisons import FIRST, SECOND, TIE, Comparisons, PairCounts, outcome_codes

Row = tuple[int, int, str, int]


def test_both_orders_of_a_pair_are_merged() -> None:
    counts = PairCounts.from_rows(
        3, [(0, 1, FIRST, 4), (1, 0, FIRST, 2), (1, 0, SECOND, 1), (1, 0, TIE, 3), (0, 1, TIE, 5)]
    )

    assert counts.rows() == [(0, 1, FIRST, 5), (0, 1, SECOND, 2), (0, 1, TIE, 8)]


def test_totals_per_candidate() -> None:
    counts = PairCounts.from_rows(4, [(0, 1, FIRST, 4), (2, 0, FIRST, 3), (1, 2, TIE, 2)])

    assert counts.total == 9
    assert counts.games.tolist() == [7, 6, 5, 0]
    assert counts.wins.tolist() == [4, 0, 3, 0]
    assert counts.losses.tolist() == [3, 4, 0, 0]
    assert counts.ties_per_candidate.tolist() == [0, 2, 2, 0]


def test_rows_restore_the_counts() -> None:
    rows = [(0, 2, FIRST, 1), (0, 2, TIE, 2), (1, 2, SECOND, 7)]

    assert PairCounts.from_rows(3, rows).rows() == rows


def test_zero_counts_leave_no_pair() -> None:
    assert PairCounts.from_rows(2, [(0, 1, FIRST, 0)]).first.size == 0


def test_no_rows_are_no_comparisons() -> None:
    counts = PairCounts.from_rows(3, [])

    assert counts.total == 0
    assert counts.games.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 0, FIRST, 1), "Candidate 0 is compared with itself"),
        ((0, 3, FIRST, 1), "candidate 3, outside 0 to 2"),
        ((-1, 1, FIRST, 1), "candidate -1, outside"),
        ((0, 1, FIRST, -1), "Negative count -1"),
        ((0, 1, FIRST, 1.5), "count must hold integers"),
        ((0, 1.0, FIRST, 1), "second must hold integers"),
        ((0, 1, "both_good", 1), "Unknown outcome 'both_good'"),
        ((0, 1, None, 1), "Unknown outcome None"),
        ((0, 1, ["first"], 1), "Unknown outcome"),
    ],
)
def test_bad_rows_are_refused_by_name(row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PairCounts.from_rows(3, [(0, 1, TIE, 1), row])


def test_unknown_outcome_codes_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown outcome code 3"):
        PairCounts.from_codes(2, [0, 0], [1, 1], [2, 3])


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        PairCounts.from_codes(2, [0, 0], [1, 1], [2])


def test_unsorted_or_repeated_pairs_are_refused() -> None:
    one = np.array([1, 1])
    with pytest.raises(ValueError, match="from_rows"):
        PairCounts(2, np.array([0, 0]), one, one, one, one)
    with pytest.raises(ValueError, match="from_rows"):
        PairCounts(2, np.array([1]), np.array([0]), np.array([1]), np.array([1]), np.array([1]))


def test_single_comparisons_add_up_to_counts() -> None:
    comparisons = Comparisons(
        2,
        np.array([0, 1, 1]),
        np.array([1, 0, 0]),
        outcome_codes([FIRST, FIRST, TIE]),
        cluster=np.array([5, 5, 6]),
    )

    assert comparisons.pair_counts().rows() == [(0, 1, FIRST, 1), (0, 1, SECOND, 1), (0, 1, TIE, 1)]


def test_many_candidates_aggregate_like_few() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 40, 500)
    second = (first + rng.integers(1, 40, 500)) % 40
    outcome = rng.integers(0, 3, 500)

    few = PairCounts.from_codes(40, first, second, outcome)
    many = PairCounts.from_codes(5000, first, second, outcome)

    assert many.rows() == few.rows()
    assert many.total == 500
