"""kill -9 in the middle: after a restart every match is decided as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings, Faults
from tests.faults.player import THREADS
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
MATCHES = 12
LIMIT = THREADS
# The pool's threads and the relay's: with calls in flight and answers being stored.
MOST_HELD = 2 * THREADS


@pytest.fixture
def endpoint() -> Iterator[DemoServer]:
    with serve_in_thread(settings=DemoSettings.quiet(60)) as server:
        yield server


class Player:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        outside = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "SECRET_KEY"}}
        outside.pop("TILTYARD_FIELD_KEYS", None)
        self.environment = {
            **outside,
            "DJANGO_SETTINGS_MODULE": "config.settings.embedded",
            "TILTYARD_DATA_DIR": str(folder),
            "LOG_LEVEL": "ERROR",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.faults.player", *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)

    def run(self, *arguments: str) -> str:
        process = self.start(*arguments)
        try:
            output, _ = process.communicate(timeout=240)
        finally:
            # Nothing of a test that failed or was interrupted goes on by itself.
            process.kill()
        assert process.returncode == 0
        return output

    def work(self) -> dict[str, Any]:
        """To the end; what the tournament came to."""
        result: dict[str, Any] = json.loads(self.run("work"))
        return result


def calls(server: DemoServer) -> int:
    return int(str(server.stats()["total_calls"]))


def kill_after(player: Player, server: DemoServer, count: int) -> None:
    process = player.start("work")
    try:
        until(lambda: calls(server) >= count, f"{count} calls have been made", seconds=120, pause=0.005)
        assert process.poll() is None, "the work was done before it could be killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(tmp_path: Path, endpoint: DemoServer) -> None:
    calm, killed = Player(tmp_path / "calm"), Player(tmp_path / "killed")
    calm.run("setup", endpoint.base_url, str(MATCHES))
    shutil.copytree(calm.folder, killed.folder)
    undisturbed = calm.work()

    endpoint.reset()
    # Once while answers are generated and once while judges sit.
    kill_after(killed, endpoint, 10)
    kill_after(killed, endpoint, 50)
    disturbed = killed.work()

    assert disturbed["status"] == "finished"
    for figure in ("tally", "decisions", "seats", "ratings", "verdicts", "trials"):
        assert disturbed[figure] == undisturbed[figure], figure
    # One stored answer per row, whatever was called again.
    assert disturbed["calls_ok"] == undisturbed["calls_ok"]
    paid_twice = calls(endpoint) - disturbed["calls_ok"] - refused(endpoint)
    assert 0 <= paid_twice <= 2 * MOST_HELD
    assert disturbed["calls_lost"] <= 2 * MOST_HELD


def test_a_killed_worker_plans_and_benches_as_if_nothing_had_happened(tmp_path: Path) -> None:
    faults = Faults(always_fail=frozenset({"page-mini"}), always_fail_status=400)
    with serve_in_thread(settings=DemoSettings.quiet(60).with_faults(faults)) as server:
        calm, killed = Player(tmp_path / "calm"), Player(tmp_path / "killed")
        calm.run("setup", server.base_url, str(MATCHES), "glicko2")
        undisturbed = calm.work()
        server.reset()
        killed.run("setup", server.base_url, str(MATCHES), "glicko2")
        for count in (8, 25, 50):
            kill_after(killed, server, count)
        disturbed = killed.work()
    assert disturbed["status"] == "finished"
    assert undisturbed["benched"] == ["demo/page-mini"]
    for figure in ("schedule", "decisions", "seats", "ratings", "benched"):
        assert disturbed[figure] == undisturbed[figure], figure


def refused(server: DemoServer) -> int:
    statuses = server.stats()["statuses"]
    assert isinstance(statuses, dict)
    return sum(count for status, count in statuses.items() if status != "200")
