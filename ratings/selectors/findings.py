"""What length and style have to do with the order, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ratings.models import RatingRun
from ratings.selectors.rows import Row


def findings_of(run: RatingRun, rows: Sequence[Row]) -> list[str]:
    return []
