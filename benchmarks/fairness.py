"""Whether twenty tournaments on one provider keep its limit and get equal shares of it.

    .venv/bin/python -m benchmarks.fairness
    .venv/bin/python -m benchmarks.fairness --limits 8 --seconds 30

Limits below 64 run embedded, 64 and above as a team installation, as in benchmarks/tournament.py. Left out where
PostgreSQL or Redis are not there.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.tournament import (
    POSTGRES,
    REDIS,
    TEAM_FROM,
    Case,
    Processes,
    environment_of,
    start_endpoint,
    start_workers,
    team_services,
)

GOAL = 1.5
COLUMNS = (
    ("limit", "{}"),
    ("mode", "{}"),
    ("tournaments", "{}"),
    ("calls", "{}"),
    ("failed", "{}"),
    ("fewest", "{}"),
    ("most", "{}"),
    ("ratio", "{:.2f}"),
    ("peak_in_flight", "{}"),
)


def services_are_there() -> bool:
    import psycopg
    import redis

    try:
        psycopg.connect(POSTGRES, connect_timeout=2).close()
        redis.Redis.from_url(REDIS, socket_connect_timeout=2).ping()
    except (psycopg.OperationalError, redis.ConnectionError) as error:
        print(f"No team installation: {error}", file=sys.stderr)
        return False
    return True


def measure(case: Case, tournaments: int, seconds: float) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tiltyard-bench-")))
        database_url = stack.enter_context(team_services()) if case.team else ""
        processes = Processes(environment_of(case, folder, database_url), folder)
        stack.callback(processes.close)
        url = start_endpoint(case, processes)
        sizes = ("--limit", str(case.limit), "--tournaments", str(tournaments))
        processes.run("-m", "benchmarks.crowd", "setup", "--url", url, *sizes)
        pids = start_workers(case, processes, folder) if case.team else []
        window = ("--seconds", str(seconds), "--pids", *map(str, pids))
        output = processes.run("-m", "benchmarks.crowd", "play", *window)
        figures: dict[str, Any] = json.loads(output.splitlines()[-1])
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=5) as reply:
            figures["peak_in_flight"] = json.load(reply)["peak_in_flight"]
    counts: list[int] = figures["completed"]
    return {
        "limit": case.limit,
        "mode": case.mode,
        "tournaments": tournaments,
        "calls": sum(counts),
        "fewest": min(counts),
        "most": max(counts),
        "ratio": max(counts) / max(min(counts), 1),
        **figures,
    }


def is_met(result: dict[str, Any]) -> bool:
    return bool(result["ratio"] <= GOAL and result["peak_in_flight"] <= result["limit"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, nargs="+", default=[8, 32, 64], help="calls in flight")
    parser.add_argument("--tournaments", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long calls are counted")
    parser.add_argument("--processes", type=int, default=2, help="workers of a team installation")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    # Ended from outside, it still ends its processes and drops its database.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"| {' | '.join(name for name, _ in COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    results = []
    for limit in options.limits:
        if limit >= TEAM_FROM and not services_are_there():
            continue
        processes = options.processes if limit >= TEAM_FROM else 1
        threads = (limit + limit // 4) // processes
        case = Case(limit, "long", 2, processes, threads, options.latency_ms, "lean")
        results.append(measure(case, options.tournaments, options.seconds))
        print(f"| {' | '.join(form.format(results[-1][name]) for name, form in COLUMNS)} |", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({"at": time.time(), "results": results}, indent=1))
    return 0 if all(map(is_met, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
