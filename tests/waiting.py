from __future__ import annotations

import time
from collections.abc import Callable


def until(reached: Callable[[], bool], what: str, *, seconds: float = 60, pause: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s still not: {what}")
        time.sleep(pause)
