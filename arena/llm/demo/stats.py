"""What the endpoint has seen, readable from any thread."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

Purpose = Literal["answer", "verdict"]

# Enough for any run on one machine; beyond it the oldest requests count as new again.
MOST_REMEMBERED = 500_000


class Stats:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections = 0
        self._in_flight = 0
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self._calls: Counter[tuple[str, Purpose]] = Counter()
            self._statuses: Counter[int] = Counter()
            self._attempts: dict[str, int] = {}
            self._served: dict[str, int] = {}
            self._completed: dict[str, int] = {}
            self._peak_in_flight = self._in_flight
            self._connections_opened = 0

    def connected(self) -> None:
        with self._lock:
            self._connections += 1
            self._connections_opened += 1

    def disconnected(self) -> None:
        with self._lock:
            self._connections -= 1

    def arrived(self, model_id: str, purpose: Purpose, key: str) -> int:
        """The number of this attempt, from 1."""
        with self._lock:
            self._calls[model_id, purpose] += 1
            return _count(self._attempts, key)

    def served(self, key: str) -> int:
        """How often this request was given an answer, this time included."""
        with self._lock:
            return _count(self._served, key)

    def started(self) -> None:
        with self._lock:
            self._in_flight += 1
            self._peak_in_flight = max(self._peak_in_flight, self._in_flight)

    def ended(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def answered(self, status: int, completed_key: str | None) -> None:
        with self._lock:
            self._statuses[status] += 1
            if completed_key is not None:
                _count(self._completed, completed_key)

    def snapshot(self) -> dict[str, object]:
        with self._lock:
            calls: dict[str, dict[str, int]] = {}
            for (model_id, purpose), count in sorted(self._calls.items()):
                calls.setdefault(model_id, {})[purpose] = count
            return {
                "calls": calls,
                "total_calls": self._calls.total(),
                "statuses": {str(status): count for status, count in sorted(self._statuses.items())},
                "completions": sum(self._completed.values()),
                "repeated_completions": sum(count - 1 for count in self._completed.values()),
                "in_flight": self._in_flight,
                "peak_in_flight": self._peak_in_flight,
                "connections": self._connections,
                "connections_opened": self._connections_opened,
            }


def _count(counts: dict[str, int], key: str) -> int:
    counts[key] = counts.get(key, 0) + 1
    if len(counts) > MOST_REMEMBERED:
        del counts[next(iter(counts))]
    return counts[key]
