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

from ratings.engine.arrays import IntArray

FIRST = "first"
SECOND = "second"
TIE = "tie"
OUTCOMES = (FIRST, SECOND, TIE)

# Above this many cells a dense count table costs more memory than sorting the keys costs time.
_DENSE_CELLS = 4_000_000


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
        return np.array([positions[outcome] for outcome in outcomes], dtype=np.int64)
    except (KeyError, TypeError) as error:
        unknown = error.args[0] if isinstance(error, KeyError) else error
        raise ValueError(f"Unknown outcome {unknown!r}; expected one of {', '.join(OUTCOMES)}.") from error


def _integers(name: str, values: ArrayLike) -> IntArray:
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}.")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, not {array.dtype}.")
    return array.astype(np.int64)


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
        Label of the sample (or rater) a row belongs to.

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

    def __post_init__(self) -> None:
        names = ["first", "second", "outcome"]
        names += [name for name in ("count", "cluster") if getattr(self, name) is not None]
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
        return cls.from_comparisons(
            Comparisons(
                n_candidates,
                _integers("first", first),
                _integers("second", second),
                _integers("outcome", outcome),
                None if count is None else _integers("count", count),
            )
        )

    @classmethod
    def from_comparisons(cls, comparisons: Comparisons) -> Self:
        """Aggregate comparisons to one row per unordered pair."""
        n = comparisons.n_candidates
        low = np.minimum(comparisons.first, comparisons.second)
        high = np.maximum(comparisons.first, comparisons.second)
        # Seen from the lower index, a win of the row's first candidate may be a win of the second.
        swapped = (comparisons.first > comparisons.second) & (comparisons.outcome < 2)
        outcome = np.where(swapped, 1 - comparisons.outcome, comparisons.outcome)
        keys, table = _table(low * n + high, outcome, comparisons.count, n)
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


def _table(keys: IntArray, outcome: IntArray, count: IntArray | None, n: int) -> tuple[IntArray, IntArray]:
    # Weights pass through float64, exact up to 2**53 comparisons.
    weights = None if count is None else count.astype(np.float64)
    if n * n * 3 <= max(_DENSE_CELLS, 3 * keys.size):
        cells = np.bincount(keys * 3 + outcome, weights, n * n * 3).reshape(n * n, 3)
        met = np.flatnonzero(cells.any(axis=1))
        return met, cells[met].astype(np.int64)
    unique, inverse = np.unique(keys, return_inverse=True)
    cells = np.bincount(inverse * 3 + outcome, weights, unique.size * 3).reshape(unique.size, 3)
    kept = cells.any(axis=1)
    return unique[kept], cells[kept].astype(np.int64)
