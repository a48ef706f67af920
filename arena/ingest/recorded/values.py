"""Typed reads of one JSON object; what is wrong goes to the log with file, line and field."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from arena.ingest.problems import ProblemLog, clip

MAX_NAME = 200
MAX_COUNT = 2**31 - 1
MAX_MILLISECONDS = 1e10
MAX_USD = 100_000
MAX_SEED = 2**63 - 1
MISSING = object()


class Values:
    """One object of a file. `at` is where it stands in the file, such as `judge_votes[2]`."""

    def __init__(self, value: Any, log: ProblemLog, *, file: str, line: int | None = None, at: str = "") -> None:
        self._log, self.file, self.line, self._at = log, file, line, at
        self.raw: dict[str, Any] = {}
        if isinstance(value, dict):
            self.raw = value
        else:
            self.error(None, "must be an object")

    def error(self, field: str | None, message: str) -> None:
        where = ".".join(part for part in (self._at, field) if part)
        self._log.error(message, file=self.file, line=self.line, field=where or None)

    def warn(self, field: str | None, message: str) -> None:
        where = ".".join(part for part in (self._at, field) if part)
        self._log.warn(message, file=self.file, line=self.line, field=where or None)

    def of(self, key: str) -> Values:
        """A nested object; a missing one is an error and reads as empty."""
        return self.child(self.raw.get(key), key)

    def child(self, value: Any, field: str) -> Values:
        at = ".".join(part for part in (self._at, field) if part)
        return Values(value, self._log, file=self.file, line=self.line, at=at)

    def items(self, key: str) -> list[Any]:
        value = self.raw.get(key, MISSING)
        if isinstance(value, list):
            return value
        self.error(key, "is missing" if value is MISSING else "must be a list")
        return []

    def names(self, key: str) -> list[str]:
        found = self.items(key)
        good = [self._name(value, f"{key}[{i}]") for i, value in enumerate(found)]
        return [name for name in good if name]

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.raw.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.error(key, "must be text")
        elif required:
            self.error(key, "is missing")
        return ""

    def name(self, key: str) -> str:
        if self.raw.get(key) is None:
            self.error(key, "is missing")
            return ""
        return self._name(self.raw[key], key)

    def _name(self, value: Any, field: str) -> str:
        if isinstance(value, str) and 0 < len(value.strip()) <= MAX_NAME and value.isprintable():
            return value.strip()
        self.error(field, f"must be 1 to {MAX_NAME} printable characters")
        return ""

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.raw.get(key)
        if isinstance(value, str) and value in choices:
            return value
        self.error(key, f"is {clip(value, 40)!r}; it must be one of {', '.join(choices)}")
        return ""

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.raw.get(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.error(key, "must be true or false")
        return default

    def count(self, key: str, *, most: int = MAX_COUNT) -> int | None:
        value = self.raw.get(key)
        if value is None:
            return None
        # Some writers store whole numbers as 12.0.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value
        self.error(key, f"must be a whole number from 0 to {most:,}")
        return None

    def milliseconds(self, key: str) -> float | None:
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_MILLISECONDS:
            return float(value)
        self.error(key, "must be a number of milliseconds, 0 or more")
        return None

    def usd(self, key: str) -> Decimal | None:
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_USD:
            return Decimal(repr(value))
        self.error(key, f"must be a number of dollars from 0 to {MAX_USD:,}")
        return None

    def moment(self, key: str) -> dt.datetime | None:
        """Seconds since 1970, or a date and time in ISO 8601; without a zone it is taken as UTC."""
        value = self.raw.get(key)
        if value is None:
            return None
        try:
            if isinstance(value, str):
                found = dt.datetime.fromisoformat(value)
                found = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                found = dt.datetime.fromtimestamp(value, tz=dt.UTC)
            else:
                raise ValueError
            # Databases and pages know no others.
            if not 1970 <= found.astimezone(dt.UTC).year <= 2200:
                raise ValueError
        except (ValueError, OverflowError, OSError):
            self.error(key, "must be a date and time")
            return None
        return found
