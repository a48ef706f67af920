"""Run by the team tests: makes a world, starts its tournament, waits for its end, prints what it came to as JSON.

Under embedded settings it does the work itself. Under those of a team it leaves it to the workers.
"""

from __future__ import annotations

import sys
import time

import django


def wait(seconds: float) -> None:
    from arena.models import Tournament

    end = time.monotonic() + seconds
    while Tournament.objects.filter(status=Tournament.Status.RUNNING).exists() and time.monotonic() < end:
        time.sleep(0.2)


def main(base_url: str, matches: str) -> None:
    django.setup()
    from django.conf import settings

    from tests.faults import player

    player.setup(base_url, matches)
    sys.stdout.write("started\n")
    sys.stdout.flush()
    if settings.EMBEDDED:
        player.work()
    else:
        wait(180)
        player.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
