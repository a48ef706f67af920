"""The worker inside the web or command process: a Celery worker on a memory broker, its heart, the reconciler.

Only one process works on a data folder: the lock file says who. Any other process that writes rows (a shell, a
command beside a running server) leaves them to that worker, whose reconciler finds them.
"""

from __future__ import annotations

import fcntl
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from celery import current_app
from django.conf import settings
from django.db import close_old_connections, connection

from arena.dispatch import door
from arena.relay import Relay
from arena.services import reconcile, workers

logger = logging.getLogger(__name__)
DROP_EXPIRED_SECONDS = 3600


class AlreadyRunning(Exception):
    """Another process works on this data folder."""


class Every(threading.Thread):
    """Calls something again and again; what goes wrong once is logged and tried again."""

    def __init__(self, name: str, seconds: float, action: Callable[[], object]) -> None:
        super().__init__(name=name, daemon=True)
        self._seconds, self._action, self._stopped = seconds, action, threading.Event()

    def run(self) -> None:
        while True:
            try:
                close_old_connections()
                self._action()
            except Exception:
                logger.exception("%s failed; it runs again in %s s.", self.name, self._seconds)
            if self._stopped.wait(self._seconds):
                connection.close()
                return

    def stop(self) -> None:
        self._stopped.set()


class EmbeddedWorker:
    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads or settings.WORKER_THREADS
        self._lock: IO[str] | None = None
        self._controller: Any = None
        self._relay = Relay(self._threads)
        self._helpers: list[Any] = []

    def start(self) -> None:
        self._take_lock(Path(settings.DATA_DIR) / "worker.lock")
        workers.register(embedded=True)
        # What an earlier process sent went down with its broker.
        reconcile.forget_messages()
        door.worker_is_here = True
        self._relay.start()
        self._controller = current_app.WorkController(
            pool="threads",
            concurrency=self._threads,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )
        controller = threading.Thread(target=self._controller.start, name="tiltyard-worker", daemon=True)
        heart = workers.Heart()
        clock = Every("tiltyard-reconciler", settings.RECONCILE_SECONDS, reconcile.reconcile)
        boards = Every("tiltyard-boards", settings.REFIT_INTERVAL_SECONDS, self._ask_for_refits)
        broom = Every("tiltyard-broom", DROP_EXPIRED_SECONDS, reconcile.drop_expired)
        self._helpers = [heart, clock, boards, broom]
        for thread in (controller, *self._helpers):
            thread.start()

    def stop(self) -> None:
        # Calls in flight come to their end and send nothing on; the next start finds what waits.
        door.worker_is_here = False
        self._relay.close()
        for helper in self._helpers:
            helper.stop()
        if self._controller is not None:
            self._controller.stop()
        self._relay.join()
        workers.forget()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> EmbeddedWorker:
        self.start()
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: object, _trace: TracebackType | None) -> None:
        self.stop()

    def _take_lock(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise AlreadyRunning(f"Another process already works on {path.parent}.") from error
        self._lock = lock

    @staticmethod
    def _ask_for_refits() -> None:
        current_app.send_task("ratings.tasks.refit_due_boards_task")
