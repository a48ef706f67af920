from __future__ import annotations

import numpy as np
import pytest

from ratings.engine.comparisons import FIRST, SECOND, TIE, Comparisons, PairCounts, label_codes, outcome_codes

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


def test_labels_become_codes() -> None:
    labels, (first, second) = label_codes(["b", "a", "b"], np.array(["c", "b", "a"]))

    assert labels == ("a", "b", "c")
    assert first.tolist() == [1, 0, 1]
    assert second.tolist() == [2, 1, 0]
    kept, (column,) = label_codes(["b", "a"], labels=["b", "a", "unused"])
    assert kept == ("b", "a", "unused")
    assert column.tolist() == [0, 1]
    with pytest.raises(ValueError, match="Unknown label 'c'"):
        label_codes(["c"], labels=["a"])
    with pytest.raises(ValueError, match="given twice"):
        label_codes(["a"], labels=["a", "a"])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("n_candidates", [5, 3000])
def test_dense_and_sorted_counting_agree(dtype: type, n_candidates: int) -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 5, 400).astype(dtype)
    second = ((first + rng.integers(1, 5, 400)) % 5).astype(dtype)
    outcome = rng.integers(0, 3, 400).astype(dtype)
    count = rng.integers(0, 4, 400)
    tally: dict[tuple[int, int, str], int] = {}
    for i, j, code, times in zip(first.tolist(), second.tolist(), outcome.tolist(), count.tolist(), strict=True):
        name = (FIRST, SECOND, TIE)[code]
        if i > j:
            i, j, name = j, i, {FIRST: SECOND, SECOND: FIRST, TIE: TIE}[name]
        tally[i, j, name] = tally.get((i, j, name), 0) + times

    counts = PairCounts.from_codes(n_candidates, first, second, outcome, count)
    assert list(counts.rows()) == sorted((*key, times) for key, times in tally.items() if times)


@pytest.mark.parametrize("n_candidates", [3, 3000])
def test_bad_columns_are_named_whatever_the_way_of_counting(n_candidates: int) -> None:
    for columns, message in [
        (([0], [0], [0]), "compared with itself"),
        (([0], [n_candidates], [0]), "second holds candidate"),
        (([-1], [1], [0]), "first holds candidate -1"),
        (([0], [1], [3]), "Unknown outcome code 3"),
        (([0], [1], [0], [-2]), "Negative count -2"),
        (([0, 1], [1], [0]), "differ in length"),
    ]:
        with pytest.raises(ValueError, match=message):
            PairCounts.from_codes(n_candidates, *columns)
