"""Worker and beat as the containers run them, on PostgreSQL and Redis, against a slow endpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings
from tests.faults.test_kill import LIMIT, Player, calls, refused
from tests.team.installation import ROOT, Installation, services_are_there, stop
from tests.waiting import until

pytestmark = [
    pytest.mark.team,
    pytest.mark.skipif(not services_are_there(), reason="TEST_DATABASE_URL (PostgreSQL) and TEST_REDIS_URL are unset"),
]
MATCHES = 8
THREADS = 8
SAME = ("tally", "decisions", "seats", "ratings", "verdicts", "trials", "calls_ok")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[DemoServer]:
    with serve_in_thread(settings=DemoSettings.quiet(60)) as server:
        yield server


@pytest.fixture(scope="module")
def embedded(endpoint: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the same tournament comes to in one process, without PostgreSQL and Redis."""
    player = Player(tmp_path_factory.mktemp("embedded"))
    command = [sys.executable, "-m", "tests.team.player", endpoint.base_url, str(MATCHES)]
    done = subprocess.run(
        command, cwd=ROOT, env=player.environment, stdout=subprocess.PIPE, text=True, check=True, timeout=240
    )
    return {**json.loads(done.stdout.splitlines()[-1]), "repeated": figure(endpoint, "repeated_completions")}


def figure(server: DemoServer, name: str) -> int:
    return int(str(server.stats()[name]))


def beats(team: Installation) -> list[tuple[Any, ...]]:
    return team.query("SELECT id, beat_at FROM arena_worker")


def test_a_team_installation_comes_to_the_same_as_an_embedded_one(
    tmp_path: Path, endpoint: DemoServer, embedded: dict[str, Any]
) -> None:
    endpoint.reset()
    with Installation(tmp_path, WORKER_BEAT_SECONDS="2") as team:
        player = team.play(endpoint.base_url, MATCHES)
        assert player.stdout is not None
        assert player.stdout.readline() == "started\n"
        worker, _ = team.start("worker"), team.start("beat")
        result = team.report_of(player)

        assert result["status"] == "finished"
        for name in SAME:
            assert result[name] == embedded[name], name
        assert result["calls_lost"] == 0
        assert calls(endpoint) == result["calls_ok"] + refused(endpoint)
        assert figure(endpoint, "repeated_completions") == embedded["repeated"]
        assert 1 < figure(endpoint, "peak_in_flight") <= LIMIT

        worker_goes_on_after_the_database_was_gone(team)
        assert stop(worker) == 0
        assert beats(team) == []


def worker_goes_on_after_the_database_was_gone(team: Installation) -> None:
    """Its connections break, as in a restart: it is soon heard of again, under the same id."""
    team.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    [(worker_id, beat_at)] = beats(team)
    until(lambda: beats(team)[0][1] > beat_at, "the worker beats again", pause=0.2)
    assert beats(team)[0][0] == worker_id


def test_a_killed_worker_is_replaced_by_another(tmp_path: Path, endpoint: DemoServer, embedded: dict[str, Any]) -> None:
    endpoint.reset()
    # Quick, and yet long enough that a worker on a busy machine is not taken for dead between two beats.
    quick = {"LEASE_SECONDS": "10", "LEASE_RENEW_SECONDS": "1", "WORKER_BEAT_SECONDS": "1", "WORKER_DEAD_SECONDS": "9"}
    with Installation(tmp_path, RESEND_SECONDS="3", WORKER_THREADS=str(THREADS), **quick) as team:
        # All at once: worker and beat have to wait for a database that has no tables yet.
        player, worker, _ = team.play(endpoint.base_url, MATCHES), team.start("worker"), team.start("beat")
        until(lambda: calls(endpoint) >= 30, "thirty calls have been made")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        assert team.query("SELECT status FROM arena_tournament") == [("running",)]
        team.start("worker")
        result = team.report_of(player)

    for name in SAME:
        assert result[name] == embedded[name], name
    # Only what its threads held when it died may have been paid for twice: on the wire, or answered and not yet
    # stored (the slot is given back in between).
    assert 0 <= calls(endpoint) - result["calls_ok"] - refused(endpoint) <= 2 * THREADS
    assert result["calls_lost"] <= 2 * THREADS
    assert figure(endpoint, "peak_in_flight") <= LIMIT
