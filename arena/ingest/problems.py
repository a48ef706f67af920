from __future__ import annotations

from collections.abc import Callable

from arena.ingest.types import Problem, Severity

# How a reader says that something is wrong: (field path or None, sentence).
Report = Callable[[str | None, str], None]


def clip(value: object, width: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: width + 1])
    return text if len(text) <= width else text[: width - 1] + "…"


class ProblemLog:
    """Counts every problem and stores the first ones of each severity, so that memory stays bounded
    and a flood of warnings cannot hide an error."""

    def __init__(self, file: str, stored: int) -> None:
        self.file = file
        self.first_refusal: Problem | None = None
        self.error_count = 0
        self.warning_count = 0
        self._stored = stored
        self._kept: dict[Severity, list[tuple[int, Problem]]] = {"error": [], "warning": []}

    def add(self, problem: Problem) -> None:
        order = self.error_count + self.warning_count
        if problem.severity == "error":
            self.error_count += 1
        else:
            self.warning_count += 1
        kept = self._kept[problem.severity]
        if len(kept) < self._stored:
            kept.append((order, problem))

    def error(self, message: str, *, line: int | None = None, field: str | None = None, file: str = "") -> None:
        self.add(Problem(file or self.file, line, field, message, "error"))

    def warn(self, message: str, *, line: int | None = None, field: str | None = None, file: str = "") -> None:
        self.add(Problem(file or self.file, line, field, message, "warning"))

    def refuse(self, message: str, *, line: int | None = None, file: str = "") -> None:
        """An error after which nothing of the upload may be imported."""
        problem = Problem(file or self.file, line, None, message, "error")
        self.first_refusal = self.first_refusal or problem
        self.add(problem)

    @property
    def refused(self) -> bool:
        return self.first_refusal is not None

    def first_error(self) -> Problem | None:
        errors = self._kept["error"]
        return errors[0][1] if errors else None

    def problems(self) -> tuple[Problem, ...]:
        errors, warnings = self._kept["error"], self._kept["warning"]
        room = max(0, self._stored - len(errors))
        return tuple(problem for _, problem in sorted(errors + warnings[:room], key=lambda pair: pair[0]))
