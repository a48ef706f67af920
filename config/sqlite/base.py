"""SQLite with a queue for writers.

SQLite lets one writer in at a time and makes the others sleep and try again, up to 100 ms a try. With dozens
of worker threads most of their time would go into sleeping past each other. Here the threads of a process wait
for a lock instead and wake in the moment it is free; other processes are still kept apart by SQLite itself.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base

_writer = threading.RLock()
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class CursorWrapper(base.SQLiteCursorWrapper):
    tiltyard_connection: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.tiltyard_connection.in_atomic_block or not query.lstrip().startswith(WRITES):
            return super().execute(query, params)
        with _writer:
            return super().execute(query, params)

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is None:
            return _converted(query)
        return str(super().convert_query(query, param_names=param_names))


@lru_cache(maxsize=500)
def _converted(query: str) -> str:
    """SQLite's own place holders; the few statements of every call are not searched for them each time."""
    converted: str = base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
    return converted


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._writing = False

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = self.connection.cursor(factory=CursorWrapper)
        cursor.tiltyard_connection = self
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        _writer.acquire()
        self._writing = True
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._done_writing()
            raise

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]
        finally:
            self._done_writing()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._done_writing()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._done_writing()

    def _done_writing(self) -> None:
        if self._writing:
            self._writing = False
            _writer.release()
