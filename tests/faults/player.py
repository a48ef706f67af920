"""Run by the fault tests in processes of their own: `setup` and `work` on one data folder.

`setup URL MATCHES [PAIRING]` makes a world that calls the endpoint at URL and starts a tournament; `work` runs the
embedded worker until nothing is left to do, and prints what the run came to as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import django

# Of the worker's pool and of its relay: no more than twice this hold a row, so a kill loses as many calls at most.
THREADS = 6


def setup(base_url: str, matches: str, pairing: str = "round_robin") -> None:
    from django.core.management import call_command

    from arena.services import tournaments
    from tests.arena.arena_world import make_arena_world

    call_command("migrate", verbosity=0)
    world = make_arena_world(base_url, samples=8, limit=THREADS)
    candidates = ["lancer-large", "squire-1", "lancer-small"]
    if pairing != "round_robin":
        # The endpoint of the test never answers for the fourth.
        candidates.append("page-mini")
    tournament = world.create(
        max_matches=int(matches),
        candidates=candidates,
        judges=["magistrate-1", "usher-2", "scrivener-4"],
        pairing=pairing,
    )
    tournaments.start_tournament(tournament=tournament)


def work() -> None:
    from arena.embedded import EmbeddedWorker
    from arena.models import Tournament

    with EmbeddedWorker(threads=THREADS):
        while Tournament.objects.filter(status=Tournament.Status.RUNNING).exists():
            time.sleep(0.05)
    tell()


def tell() -> None:
    print(json.dumps(report(), default=str))


def report() -> dict[str, Any]:
    from arena.models import Call, Tournament
    from tests.arena.arena_world import decisions_of, seats_of, tally
    from tests.arena.played import schedule_of

    tournament = Tournament.objects.get()
    return {
        "status": tournament.status,
        "tally": tally(tournament),
        "decisions": decisions_of(tournament),
        "schedule": schedule_of(tournament),
        "benched": list(tournament.candidates.filter(benched=True).values_list("full_id", flat=True)),
        "seats": seats_of(tournament),
        "ratings": ratings_of(tournament),
        "calls_ok": Call.objects.filter(status=Call.Status.OK).count(),
        "calls_lost": Call.objects.filter(status=Call.Status.LOST).count(),
        "verdicts": tournament.verdicts.count(),
        "trials": tournament.trial_requests.count(),
    }


def ratings_of(tournament: Any) -> list[float]:
    from arena.models import Decision
    from ratings.engine.board import rate
    from ratings.engine.comparisons import PairCounts

    decided = Decision.objects.rated().filter(match__tournament=tournament)
    rows = decided.values_list("match__first__position", "match__second__position", "outcome")
    counts = PairCounts.from_rows(tournament.candidates.count(), [(*row, 1) for row in rows])
    return [round(float(rating), 6) for rating in rate(counts).rating]


if __name__ == "__main__":
    django.setup()
    {"setup": setup, "work": work}[sys.argv[1]](*sys.argv[2:])
