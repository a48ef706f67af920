"""The next call of a worker process in a thread of its own: a finished call hands its slot on without a message.

Celery starts what has no predecessor here; the rest would pay for a message each, which is a quarter of what a
call costs. A row is claimed all the same, and one that is lost with its process is queued again like any other.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import close_old_connections

from arena.dispatch import Row, door
from arena.services.trials import run_trial
from arena.services.verdicts import run_verdict

logger = logging.getLogger(__name__)
RUN = {"t": run_trial, "v": run_verdict}


class Relay:
    def __init__(self, threads: int) -> None:
        self._process = os.getpid()
        self._free = threading.Semaphore(threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tiltyard-call")

    def start(self) -> None:
        door.relay = self.take

    def close(self) -> None:
        """No further call is begun here; those in flight go on."""
        door.relay = None

    def join(self) -> None:
        self._pool.shutdown(wait=True)

    def take(self, row: Row) -> bool:
        # A forked child has the pool without its threads.
        if os.getpid() != self._process or not self._free.acquire(blocking=False):
            return False
        try:
            self._pool.submit(self._run, row)
        except RuntimeError:
            # It was shut down in between.
            self._free.release()
            return False
        return True

    def _run(self, row: Row) -> None:
        try:
            RUN[row.kind](row.id, row.tournament, slot_just_taken=True)
        except Exception:
            logger.exception("A call ended with an error of ours; the reconciler sends its row again.")
        finally:
            # What a Celery task's end does: a pooled connection goes back, one that broke is dropped.
            close_old_connections()
            self._free.release()
