"""`make test`: the suite on SQLite, then what touches the database on PostgreSQL.

What is missing on the machine (PostgreSQL, Redis, Chromium) is skipped and named at the end. With
REQUIRE_SERVICES=1, as in CI, it is a failure instead.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
POSTGRES = os.environ.get("TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/tiltyard")
REDIS = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/9")


def listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 0), timeout=1):
            return True
    except OSError:
        return False


def postgres_answers() -> bool:
    if not listens(POSTGRES):
        return False
    import psycopg

    try:
        with psycopg.connect(POSTGRES.rpartition("/")[0] + "/postgres", connect_timeout=3):
            return True
    except psycopg.OperationalError as error:
        print(f"PostgreSQL is there but does not let us in: {error}")
        return False


def pytest(title: str, *arguments: str, **environment: str) -> bool:
    print(f"\n== {title}", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *arguments, "tests"]
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
    print(f"== {title}: {time.monotonic() - started:.0f} s", flush=True)
    return result.returncode == 0


def main() -> int:
    slow = "--slow" in sys.argv
    chromium = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")).exists()
    postgres, redis = postgres_answers(), listens(REDIS)
    missing = [
        name for name, there in (("PostgreSQL", postgres), ("Redis", redis), ("Chromium", chromium)) if not there
    ]
    if missing and os.environ.get("REQUIRE_SERVICES") == "1":
        print(f"REQUIRE_SERVICES=1, and these are missing: {', '.join(missing)}")
        return 1
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Dozens of processes are started, and each would compile Django and all the rest again: two seconds of CPU.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if slow:
        return 0 if pytest("slow checks", "-m", "slow") else 1
    # Each process takes a part of the modules and keeps to it, so that what a module shares is made once.
    spread = ["-n", os.environ.get("TEST_PROCESSES", "auto"), "--dist", "worksteal"]
    marks = "not slow and not team" + ("" if chromium else " and not browser")
    passed = pytest("SQLite", *spread, "-m", marks)
    if postgres:
        # A second database tells nothing new of what asks for none.
        marks = "not slow and not browser" + ("" if redis else " and not team")
        services = {"TEST_DATABASE_URL": POSTGRES, "TEST_REDIS_URL": REDIS}
        passed &= pytest("PostgreSQL", *spread, "--database-only", "-m", marks, **services)
    for name in missing:
        print(f"Skipped: the tests that need {name}, which is not on this machine.")
    print("All passed." if passed else "Some tests failed.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
