"""Boards per category, only where a category has enough comparisons to say anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ratings.engine.board import Board, rate
from ratings.engine.comparisons import PairCounts
from ratings.engine.likelihood import TieModel

FEWEST_COMPARISONS = 20


@dataclass(frozen=True, eq=False)
class Slice:
    """One category.

    Attributes
    ----------
    category : str
    comparisons : int
        Decided comparisons in it, ties included.
    board : Board or None
        With intervals and open ends; None where the category is too thin to be rated.
    """

    category: str
    comparisons: int
    board: Board | None

    @property
    def too_thin(self) -> bool:
        """Whether it is only listed."""
        return self.board is None


def slice_counts(n_candidates: int, rows: Iterable[tuple[str, int, int, str, int]]) -> dict[str, PairCounts]:
    """Counts of each category.

    Parameters
    ----------
    n_candidates : int
    rows : iterable of ``(category, first, second, outcome, count)``
        As one GROUP BY returns them.

    Returns
    -------
    dict of category to PairCounts
        In the order of first appearance.

    Raises
    ------
    ValueError
        As `PairCounts.from_rows`.
    """
    grouped: dict[str, list[tuple[int, int, str, int]]] = {}
    for category, first, second, outcome, count in rows:
        grouped.setdefault(category, []).append((first, second, outcome, count))
    return {category: PairCounts.from_rows(n_candidates, found) for category, found in grouped.items()}


def slices(
    counts: Mapping[str, PairCounts],
    *,
    minimum: int = FEWEST_COMPARISONS,
    ties: TieModel = "half_win",
    ridge: float | None = None,
    reference: int | None = None,
) -> tuple[Slice, ...]:
    """Rate each category with enough comparisons, each from its own comparisons alone.

    Parameters
    ----------
    counts : mapping of category to PairCounts
    minimum : int
        Decided comparisons a category needs, at least 1.
    ties, ridge, reference
        As in `rate`. Categories are small, so that without a ridge many have no finite optimum; the default falls
        back to a prior there, and the ends stay open.

    Returns
    -------
    tuple of Slice
        In the order given; empty for no categories.

    Raises
    ------
    ValueError
        For a minimum below 1, and as `rate`.
    """
    if minimum < 1:
        raise ValueError(f"minimum must be at least 1, got {minimum}.")
    return tuple(
        Slice(
            category,
            found.total,
            rate(found, ties=ties, ridge=ridge, reference=reference) if found.total >= minimum else None,
        )
        for category, found in counts.items()
    )
