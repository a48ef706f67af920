"""Comparisons of two candidates, and their aggregation to counts per pair.

Candidates are integers from 0 to ``n_candidates - 1``. An outcome is one of the strings ``first``,
``second`` and ``tie``; inside arrays it is its position in ``OUTCOMES``. An unknown outcome raises:
counting it as a tie would move ratings silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratings.engine.arrays import FloatArray, IntArray

FIRST = "first"
SECOND = "second"
TIE = "tie"
OUTCOMES = (FIRST, SECOND, TIE)

# Above this many cells a dense count table costs more memory than sorting the keys costs time.
_DENSE_CELLS = 4_000_000
# Keys of so many rows stay in the cache of a core until they are counted.
_ROWS_AT_ONCE = 1 << 17


def outcome_codes(outcomes: Iterable[str]) -> IntArray:
    """Positions in ``OUTCOMES`` of a sequence of outcome strings.

    Parameters
    ----------
    outcomes : iterable of str, length m

    Returns
    -------
    (m,) int64 array
        0 for ``first``, 1 for ``second``, 2 for ``tie``.

    Raises
    ------
    ValueError
        If an outcome is none of the three; the message names it.
    """
    positions = {outcome: code for code, outcome in enumerate(OUTCOMES)}
    try:
        return np.fromiter(map(positions.__getitem__, _plain(outcomes)), dtype=np.int64)
    except (KeyError, TypeError) as error:
        unknown = error.args[0] if isinstance(error, KeyError) else error
        raise ValueError(f"Unknown outcome {unknown!r}; expected one of {', '.join(OUTCOMES)}.") from error


def label_codes(
    *columns: Iterable[str], labels: Iterable[str] | None = None
) -> tuple[tuple[str, ...], tuple[IntArray, ...]]:
    """Integer codes of string columns that share their labels.

    Parameters
    ----------
    *columns : iterables of str
        Lists or object arrays are quickest; dictionaries do the work, nothing is sorted but the labels.
    labels : iterable of str, optional
        All labels in the order of their codes. When omitted: those that occur, sorted.

    Returns
    -------
    labels : tuple of str
    codes : tuple of int64 arrays
        One for each column, of its length.

    Raises
    ------
    ValueError
        For a label that is not among those given, or given twice.
    """
    held = [_plain(column) for column in columns]
    if labels is None:
        seen = _Numbered()
        codes = [np.fromiter(map(seen.__getitem__, column), np.int64, len(column)) for column in held]
        found = tuple(seen)
        order = sorted(range(len(found)), key=found.__getitem__)
        place = np.empty(len(found), dtype=np.int64)
        place[order] = np.arange(len(found))
        return tuple(found[number] for number in order), tuple(place[column] for column in codes)
    known = tuple(labels)
    positions = {label: code for code, label in enumerate(known)}
    if len(positions) < len(known):
        raise ValueError("A label is given twice.")
    try:
        codes = [np.fromiter(map(positions.__getitem__, column), np.int64, len(column)) for column in held]
    except (KeyError, TypeError) as error:
        raise ValueError(f"Unknown label {error.args[0]!r}.") from error
    return known, tuple(codes)


class _Numbered(dict[str, int]):
    """Numbers labels in the order in which they are asked for."""

    def __missing__(self, label: str) -> int:
        self[label] = number = len(self)
        return number


def _plain(values: Iterable[Any]) -> list[Any]:
    # A list is read twice as fast as an object array, and a fixed-width array makes its strings only once.
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return values if isinstance(values, list) else list(values)


def _integers(name: str, values: ArrayLike) -> IntArray:
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}.")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, not {array.dtype}.")
    return array.astype(np.int64, copy=False)


def _checked_candidates(n_candidates: int, first: IntArray, second: IntArray) -> None:
    if n_candidates < 0:
        raise ValueError(f"n_candidates must not be negative, got {n_candidates}.")
    for name, values in (("first", first), ("second", second)):
        if values.size and (values.min() < 0 or values.max() >= n_candidates):
            worst = values.min() if values.min() < 0 else values.max()
            raise ValueError(f"{name} holds candidate {worst}, outside 0 to {n_candidates - 1}.")
    same = first == second
    if same.any():
        raise ValueError(f"Candidate {first[same][0]} is compared with itself.")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Single comparisons, or rows of equal ones, as finer methods need them.

    Parameters
    ----------
    n_candidates : int
    first, second : (m,) integer arrays
        The two candidates of each row, in any order, never equal.
    outcome : (m,) integer array
        Positions in ``OUTCOMES``.
    count : (m,) integer array, optional
        How often the row occurred; one each when omitted.
    cluster : (m,) integer array, optional
        Label of the sample a row belongs to; any integers.
    rater : (m,) integer array, optional
        Label of who judged, where that is a second way in which rows hang together.

    Notes
    -----
    Columns that are int64 arrays already are kept, not copied: do not change them afterwards.

    Raises
    ------
    ValueError
        For unequal lengths, values that are not integers, candidates out of range or equal, unknown outcome
        codes and negative counts.
    """

    n_candidates: int
    first: IntArray
    second: IntArray
    outcome: IntArray
    count: IntArray | None = None
    cluster: IntArray | None = None
    rater: IntArray | None = None

    def __post_init__(self) -> None:
        names = ["first", "second", "outcome"]
        names += [name for name in ("count", "cluster", "rater") if getattr(self, name) is not None]
        for name in names:
            object.__setattr__(self, name, _integers(name, getattr(self, name)))
        sizes = {name: getattr(self, name).size for name in names}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"Columns differ in length: {sizes}.")
        _checked_candidates(self.n_candidates, self.first, self.second)
        known = (self.outcome >= 0) & (self.outcome < len(OUTCOMES))
        if not known.all():
            raise ValueError(f"Unknown outcome code {self.outcome[~known][0]}; expected 0, 1 or 2.")
        if self.count is not None and (self.count < 0).any():
            raise ValueError(f"Negative count {self.count.min()}.")

    @classmethod
    def from_rows(cls, n_candidates: int, rows: Iterable[tuple[int, int, str, int]]) -> Self:
        """Comparisons from ``(first, second, outcome, count)`` rows, outcomes as strings.

        Raises
        ------
        ValueError
            As the class, and for an outcome that is not one of ``OUTCOMES``.
        """
        columns = list(zip(*rows, strict=True))
        if not columns:
            empty = np.zeros(0, dtype=np.int64)
            return cls(n_candidates, empty, empty, empty, empty)
        first, second, outcome, count = columns
        return cls(
            n_candidates,
            _integers("first", first),
            _integers("second", second),
            outcome_codes(outcome),
            _integers("count", count),
        )

    def pair_counts(self) -> PairCounts:
        """Aggregate to one row per unordered pair."""
        return PairCounts.from_comparisons(self)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Wins and ties of every pair of candidates that met.

    Everything a fit over aggregated data needs, whatever the number of comparisons behind it.

    Parameters
    ----------
    n_candidates : int
    first, second : (p,) integer arrays
        Pairs with ``first < second``, each pair once, sorted.
    wins_first, wins_second, ties : (p,) integer arrays
        How often ``first`` won, ``second`` won, and neither did. Not all zero in a row.

    Notes
    -----
    Build it with `from_rows`, `from_codes` or `from_comparisons`, which merge (i, j) with (j, i) and drop
    empty pairs.
    """

    n_candidates: int
    first: IntArray
    second: IntArray
    wins_first: IntArray
    wins_second: IntArray
    ties: IntArray

    def __post_init__(self) -> None:
        names = ("first", "second", "wins_first", "wins_second", "ties")
        for name in names:
            object.__setattr__(self, name, _integers(name, getattr(self, name)))
        if len({getattr(self, name).size for name in names}) > 1:
            raise ValueError("The columns of PairCounts differ in length.")
        _checked_candidates(self.n_candidates, self.first, self.second)
        key = self.first * self.n_candidates + self.second
        if (self.first > self.second).any() or (np.diff(key) <= 0).any():
            raise ValueError("Pairs must have first < second, be sorted and occur once: use from_rows.")
        if self.first.size and min(self.wins_first.min(), self.wins_second.min(), self.ties.min()) < 0:
            raise ValueError("Counts must not be negative.")
        if (self.games_per_pair == 0).any():
            raise ValueError("A pair without comparisons does not belong in PairCounts.")

    @classmethod
    def from_rows(cls, n_candidates: int, rows: Iterable[tuple[int, int, str, int]]) -> Self:
        """Counts from ``(first, second, outcome, count)`` rows, as one GROUP BY returns them.

        Parameters
        ----------
        n_candidates : int
        rows : iterable of (int, int, str, int)
            In any order; pairs may come in both orders and more than once. Counts are integers, not negative.

        Raises
        ------
        ValueError
            For a candidate out of range or compared with itself, an unknown outcome (named in the message),
            and a count that is negative or not an integer.
        """
        return cls.from_comparisons(Comparisons.from_rows(n_candidates, rows))

    @classmethod
    def from_codes(
        cls,
        n_candidates: int,
        first: ArrayLike,
        second: ArrayLike,
        outcome: ArrayLike,
        count: ArrayLike | None = None,
    ) -> Self:
        """Counts from integer columns; ``outcome`` holds positions in ``OUTCOMES``.

        Raises
        ------
        ValueError
            As `Comparisons`.
        """
        columns = {"first": first, "second": second, "outcome": outcome}
        if count is not None:
            columns["count"] = count
        arrays = {name: _integers(name, values) for name, values in columns.items()}
        cells = _cells(n_candidates, **arrays)
        if cells is None:
            # Too many candidates for a dense table, or something is wrong, and there it is said what.
            return cls.from_comparisons(Comparisons(n_candidates, **arrays))
        return cls(n_candidates, *_folded(cells))

    @classmethod
    def from_comparisons(cls, comparisons: Comparisons) -> Self:
        """Aggregate comparisons to one row per unordered pair."""
        n = comparisons.n_candidates
        cells = _cells(n, comparisons.first, comparisons.second, comparisons.outcome, comparisons.count)
        if cells is not None:
            return cls(n, *_folded(cells))
        low, high, outcome = ordered(comparisons)
        keys, table = _table(low * n + high, outcome, comparisons.count)
        return cls(n, keys // max(n, 1), keys % max(n, 1), table[:, 0], table[:, 1], table[:, 2])

    @cached_property
    def games_per_pair(self) -> IntArray:
        """(p,) comparisons of each pair."""
        return self.wins_first + self.wins_second + self.ties

    @cached_property
    def total(self) -> int:
        """All comparisons."""
        return int(self.games_per_pair.sum())

    @cached_property
    def games(self) -> IntArray:
        """(n,) comparisons each candidate took part in."""
        return self._per_candidate(self.games_per_pair, self.games_per_pair)

    @cached_property
    def wins(self) -> IntArray:
        """(n,) comparisons each candidate won."""
        return self._per_candidate(self.wins_first, self.wins_second)

    @cached_property
    def losses(self) -> IntArray:
        """(n,) comparisons each candidate lost."""
        return self._per_candidate(self.wins_second, self.wins_first)

    @cached_property
    def ties_per_candidate(self) -> IntArray:
        """(n,) comparisons each candidate tied."""
        return self._per_candidate(self.ties, self.ties)

    def _per_candidate(self, of_first: IntArray, of_second: IntArray) -> IntArray:
        n = self.n_candidates
        counts = np.bincount(self.first, of_first, n) + np.bincount(self.second, of_second, n)
        return counts.astype(np.int64)

    def rows(self) -> Sequence[tuple[int, int, str, int]]:
        """Sorted ``(first, second, outcome, count)`` rows, none empty; `from_rows` restores this."""
        columns = zip(OUTCOMES, (self.wins_first, self.wins_second, self.ties), strict=True)
        found = [
            (int(i), int(j), outcome, int(count))
            for outcome, counts in columns
            for i, j, count in zip(self.first, self.second, counts, strict=True)
            if count
        ]
        return sorted(found)


def ordered(comparisons: Comparisons) -> tuple[IntArray, IntArray, IntArray]:
    """Lower candidate, higher candidate, and outcome seen from the lower: (m,) arrays."""
    low = np.minimum(comparisons.first, comparisons.second)
    high = np.maximum(comparisons.first, comparisons.second)
    # Seen from the lower index, a win of the row's first candidate may be a win of the second.
    swapped = (comparisons.first > comparisons.second) & (comparisons.outcome < 2)
    return low, high, np.where(swapped, 1 - comparisons.outcome, comparisons.outcome)


def _cells(
    n: int, first: IntArray, second: IntArray, outcome: IntArray, count: IntArray | None = None
) -> FloatArray | None:
    """(n, n, 3) counts by first, second and outcome; None where they would not fit or the columns are bad."""
    columns = [first, second, outcome] + ([] if count is None else [count])
    size = first.size
    if n * n * 3 > max(_DENSE_CELLS, 3 * size) or size == 0 or any(column.size != size for column in columns):
        return None
    limits = [(first, n), (second, n), (outcome, len(OUTCOMES))]
    if any(column.min() < 0 or column.max() >= limit for column, limit in limits):
        return None
    if count is not None and count.min() < 0:
        return None
    cells = np.zeros(n * n * 3)
    for begin in range(0, size, _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        key = first[part] * n
        key += second[part]
        key *= 3
        key += outcome[part]
        # Weights pass through float64, exact up to 2**53 comparisons.
        cells += np.bincount(key, None if count is None else count[part], n * n * 3)
    table: FloatArray = cells.reshape(n, n, 3)
    if np.einsum("iik->", table):
        return None
    return table


def _folded(cells: FloatArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Pairs with the lower candidate first, and their wins and ties."""
    wins = cells[:, :, 0] + cells[:, :, 1].T
    ties = cells[:, :, 2] + cells[:, :, 2].T
    first, second = np.nonzero(np.triu(wins + wins.T + ties, 1))
    columns = (first, second, wins[first, second], wins[second, first], ties[first, second])
    first, second, wins_first, wins_second, tied = (column.astype(np.int64) for column in columns)
    return first, second, wins_first, wins_second, tied


def _table(keys: IntArray, outcome: IntArray, count: IntArray | None) -> tuple[IntArray, IntArray]:
    weights = None if count is None else count.astype(np.float64)
    unique, inverse = np.unique(keys, return_inverse=True)
    cells = np.bincount(inverse * 3 + outcome, weights, unique.size * 3).reshape(unique.size, 3)
    kept = cells.any(axis=1)
    return unique[kept], cells[kept].astype(np.int64)
