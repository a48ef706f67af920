from __future__ import annotations

from collections.abc import Sequence


class TournamentError(Exception):
    """Lists everything that stands in the way, not only the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = list(problems)
