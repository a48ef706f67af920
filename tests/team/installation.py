"""A team installation of its own: a database, a part of Redis, and the processes that the containers run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import redis
from cryptography.fernet import Fernet
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
DATABASE = os.environ.get("TEST_DATABASE_URL", "")
REDIS = os.environ.get("TEST_REDIS_URL", "")
# Where the interpreter lives, so that `python`, `celery` and `gunicorn` of the entrypoint are found there.
PROGRAMS = str(Path(sys.executable).parent)
# Of the machine that runs the tests; an installation must not see them.
OUTSIDE = {"DATABASE_URL", "SECRET_KEY", "TILTYARD_FIELD_KEYS", "TILTYARD_DATA_DIR", "WORKER_THREADS"}


def services_are_there() -> bool:
    return DATABASE.startswith(("postgres://", "postgresql://")) and bool(REDIS)


class Installation:
    def __init__(self, folder: Path, **environment: str) -> None:
        self.name = f"tiltyard_{uuid.uuid4().hex[:16]}"
        self.url = f"{DATABASE.rpartition('/')[0]}/{self.name}"
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        folder.mkdir(parents=True, exist_ok=True)
        outside = {name: value for name, value in os.environ.items() if name not in OUTSIDE}
        self.environment = {
            **outside,
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            "SECRET_KEY": uuid.uuid4().hex + uuid.uuid4().hex,
            "TILTYARD_FIELD_KEYS": Fernet.generate_key().decode(),
            "TILTYARD_DATA_DIR": str(folder),
            "DATABASE_URL": self.url,
            "CELERY_BROKER_URL": REDIS,
            "CACHE_URL": REDIS,
            "LIMITS_PREFIX": self.name,
            "ALLOW_PRIVATE_ENDPOINTS": "1",
            "SECURE_SSL_REDIRECT": "0",
            "BEAT_SCHEDULE": str(folder / "beat-schedule"),
            "RECONCILE_SECONDS": "1",
            "WORKER_THREADS": "16",
            "LOG_LEVEL": "WARNING",
            **environment,
        }

    def __enter__(self) -> Self:
        self._administer("CREATE DATABASE {}")
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: object, _trace: TracebackType | None) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._administer("DROP DATABASE {} WITH (FORCE)")
        with redis.Redis.from_url(REDIS) as store:
            # The cache writes its prefix in front, the broker and the limits do too.
            if keys := list(store.scan_iter(f"*{self.name}*")):
                store.delete(*keys)

    def _administer(self, statement: str) -> None:
        with psycopg.connect(f"{DATABASE.rpartition('/')[0]}/postgres", autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(self.name)))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def play(self, base_url: str, matches: int) -> subprocess.Popen[str]:
        """Makes a world and starts its tournament; `report_of` gives what it came to."""
        command = [sys.executable, "-m", "tests.team.player", base_url, str(matches)]
        process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def report_of(self, player: subprocess.Popen[str]) -> dict[str, Any]:
        output, _ = player.communicate(timeout=240)
        assert player.returncode == 0, self.logs()
        result: dict[str, Any] = json.loads(output.splitlines()[-1])
        return result

    def start(self, role: str) -> subprocess.Popen[str]:
        """What a container of this role runs. It replaces the shell, so a signal reaches the program itself."""
        log = (self.folder / f"{role}-{len(self.processes)}.log").open("w")
        with log:
            process = subprocess.Popen(
                ["sh", "docker/entrypoint.sh", role],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.processes.append(process)
        return process

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=60)
