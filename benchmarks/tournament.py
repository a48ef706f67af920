"""How close a tournament comes to the time that its calls must take: calls x latency / limit.

    python benchmarks/tournament.py --limits 5 32 --short
    python benchmarks/tournament.py --limits 64 --long --processes 1 2

Limits below 64 run embedded (SQLite, the worker inside), 64 and above as a team installation (Celery processes,
PostgreSQL, Redis). Databases and folders are made for each case and removed after it.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
POSTGRES = os.environ.get("BENCH_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379/8")
# Sizes: prompts and matches. Four candidates meet in six pairs, so 120 prompts hold 720 different matches.
SHORT, LONG = (50, 100), (120, 700)
GOALS = {5: 1.10, 32: 1.15, 64: 1.30}
TEAM_FROM = 64


@dataclass(frozen=True)
class Case:
    limit: int
    size: str
    orders: int
    processes: int
    threads: int
    latency_ms: float
    endpoint: str

    @property
    def team(self) -> bool:
        return self.limit >= TEAM_FROM

    @property
    def mode(self) -> str:
        return f"team, {self.processes} x {self.threads} threads" if self.team else "embedded"


class Processes:
    """Started for one case and ended with it."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._environment, self._log = environment, (folder / "log").open("w+")
        self._running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._running.append(process)
        return process

    def run(self, *arguments: str) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate()
        if process.returncode:
            self._log.seek(0)
            raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}:\n{self._log.read()[-4000:]}")
        return output

    def close(self) -> None:
        for process in reversed(self._running):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._log.close()


@contextmanager
def team_services() -> Iterator[str]:
    """A database of its own and an empty Redis database."""
    import psycopg
    import redis

    name = f"tiltyard_bench_{os.getpid()}"
    base = POSTGRES.rpartition("/")[0]
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
        redis.Redis.from_url(REDIS).flushdb()
        try:
            yield f"{base}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            redis.Redis.from_url(REDIS).flushdb()


def environment_of(case: Case, folder: Path, database_url: str) -> dict[str, str]:
    from cryptography.fernet import Fernet

    outside = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "WORKER_THREADS"}}
    shared = {
        **outside,
        "TILTYARD_DATA_DIR": str(folder),
        "SECRET_KEY": secrets.token_urlsafe(50),
        "TILTYARD_FIELD_KEYS": Fernet.generate_key().decode(),
        "ALLOW_PRIVATE_ENDPOINTS": "1",
        "LOG_LEVEL": "WARNING",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if not case.team:
        return {**shared, "DJANGO_SETTINGS_MODULE": "config.settings.embedded"}
    return {
        **shared,
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        "DATABASE_URL": database_url,
        "CACHE_URL": REDIS,
        "CELERY_BROKER_URL": REDIS,
        "WORKER_THREADS": str(case.threads),
    }


def start_endpoint(case: Case, processes: Processes) -> str:
    latency = str(case.latency_ms)
    if case.endpoint == "lean":
        endpoint = processes.start("-m", "benchmarks.endpoint", "--latency-ms", latency)
    else:
        demo = ("-m", "arena.llm.demo", "--port", "0", "--latency-ms", latency, "--fixed", "--no-faults")
        endpoint = processes.start(*demo)
    assert endpoint.stdout is not None
    line = endpoint.stdout.readline()
    return f"http://127.0.0.1:{int(line)}/v1" if case.endpoint == "lean" else line.split()[3]


def start_workers(case: Case, processes: Processes, folder: Path) -> list[int]:
    celery = ("-m", "celery", "-A", "config")
    options = ("--pool", "threads", "--concurrency", str(case.threads), "--loglevel", "WARNING")
    workers = [
        processes.start(*celery, "worker", *options, "--hostname", f"bench{number}@localhost")
        for number in range(case.processes)
    ]
    processes.start(*celery, "beat", "--schedule", str(folder / "beat"), "--pidfile", "", "--loglevel", "WARNING")
    return [worker.pid for worker in workers]


def measure(case: Case) -> dict[str, Any]:
    samples, matches = SHORT if case.size == "short" else LONG
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tiltyard-bench-")))
        database_url = stack.enter_context(team_services()) if case.team else ""
        processes = Processes(environment_of(case, folder, database_url), folder)
        stack.callback(processes.close)
        url = start_endpoint(case, processes)
        sizes = {"limit": case.limit, "samples": samples, "matches": matches, "orders": case.orders}
        arguments = [text for name, value in sizes.items() for text in (f"--{name}", str(value))]
        processes.run("-m", "benchmarks.player", "setup", "--url", url, *arguments)
        pids = start_workers(case, processes, folder) if case.team else []
        output = processes.run("-m", "benchmarks.player", "play", "--pids", *map(str, pids))
        figures: dict[str, Any] = json.loads(output.splitlines()[-1])
        if case.endpoint == "lean":
            with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=5) as reply:
                seen = json.load(reply)
            figures |= {"peak_in_flight": seen["peak_in_flight"], "endpoint_cpu_s": seen["cpu_s"]}
    floor = figures["calls"] * case.latency_ms / 1000 / case.limit
    return {
        **asdict(case),
        "mode": case.mode,
        **figures,
        "floor_s": floor,
        "ratio": figures["wall_s"] / floor,
        "calls_ratio": figures["calls_wall_s"] / floor,
        "cpu_ms_per_call": figures["cpu_s"] * 1000 / figures["calls"],
        "goal": GOALS.get(case.limit),
    }


COLUMNS: list[tuple[str, str, str]] = [
    ("limit", "limit", "{}"),
    ("mode", "mode", "{}"),
    ("size", "run", "{}"),
    ("orders", "orders", "{}"),
    ("calls", "calls", "{}"),
    ("failed_calls", "failed", "{}"),
    ("floor_s", "floor s", "{:.2f}"),
    ("wall_s", "wall s", "{:.2f}"),
    ("ratio", "ratio", "{:.3f}"),
    ("calls_ratio", "of calls", "{:.3f}"),
    ("goal", "goal", "{}"),
    ("cpu_ms_per_call", "CPU ms/call", "{:.2f}"),
    ("call_ms", "call ms", "{:.1f}"),
    ("memory_mb", "memory MB", "{:.0f}"),
    ("peak_in_flight", "peak in flight", "{}"),
    ("load", "load before", "{:.2f}"),
    ("machine_busy", "machine busy", "{:.0%}"),
]


def line(result: dict[str, Any]) -> str:
    cells = [form.format(result[key]) if result.get(key) is not None else "-" for key, _, form in COLUMNS]
    return f"| {' | '.join(cells)} |"


def cases(options: argparse.Namespace) -> list[Case]:
    sizes = [size for size in ("short", "long") if getattr(options, size)] or ["short", "long"]
    found = []
    for limit in options.limits:
        for size in sizes:
            for orders in options.orders or ([1, 2] if size == "short" else [2]):
                for processes in options.processes if limit >= TEAM_FROM else [1]:
                    # A few more threads than calls: one stores an answer while another waits for the next.
                    threads = options.threads or (limit + limit // 4) // processes
                    found.append(Case(limit, size, orders, processes, threads, options.latency_ms, options.endpoint))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, nargs="+", default=[5, 32, 64], help="calls in flight")
    parser.add_argument("--short", action="store_true", help="50 prompts, 100 matches")
    parser.add_argument("--long", action="store_true", help="120 prompts, 700 matches: over 4,000 calls")
    parser.add_argument("--orders", type=int, nargs="+", choices=[1, 2], help="seat orders; long runs take both")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="workers of a team installation")
    parser.add_argument("--threads", type=int, help="of each of these workers")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--endpoint", choices=["lean", "demo"], default="lean")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    # Ended from outside, it still ends its processes and drops its database.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"| {' | '.join(title for _, title, _ in COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    results = []
    for case in cases(options):
        results.append(measure(case))
        print(line(results[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({"at": time.time(), "results": results}, indent=1))
    return 0 if all(result["status"] == "finished" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
