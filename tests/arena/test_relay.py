"""The relay: a slot that a finished call gives back goes to the next call of the same process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from arena import dispatch, relay
from arena.dispatch import Row, door
from arena.limits import slots
from arena.models import Trial
from tests.arena.arena_world import make_arena_world
from tests.arena.call_world import NOWHERE, started, trials_of
from tests.arena.test_dispatch import Broker, open_door, the_provider

ROW = Row("t", 1, 1)


class Runner:
    """Stands for a call: says what it was asked to run and ends when it is told to."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int, bool]] = []
        self.begun, self.may_end = threading.Semaphore(0), threading.Event()

    def __call__(self, row_id: int, tournament_id: int, *, slot_just_taken: bool) -> None:
        self.ran.append((row_id, tournament_id, slot_just_taken))
        self.begun.release()
        assert self.may_end.wait(10)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    runner = Runner()
    monkeypatch.setattr(relay, "RUN", {"t": runner, "v": runner})
    # Its threads have no database here.
    monkeypatch.setattr(relay, "close_old_connections", lambda: None)
    yield runner
    runner.may_end.set()
    door.relay = None


def test_it_takes_as_many_rows_as_it_has_threads(runner: Runner) -> None:
    one = relay.Relay(2)
    one.start()
    assert door.relay is not None
    assert [door.relay(ROW) for _ in range(3)] == [True, True, False]
    assert all(runner.begun.acquire(timeout=10) for _ in range(2))
    runner.may_end.set()
    one.close()
    one.join()
    assert runner.ran == [(1, 1, True)] * 2
    assert door.relay is None
    assert one.take(ROW) is False


def test_an_error_is_told_and_gives_the_thread_back(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(relay, "RUN", {"t": fails, "v": fails})
    one = relay.Relay(1)
    assert one.take(ROW)
    one.join()
    assert "an error of ours" in caplog.text
    assert one._free.acquire(blocking=False)


def test_a_forked_child_leaves_its_parents_threads_alone(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    one = relay.Relay(1)
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert one.take(ROW) is False
    monkeypatch.undo()
    one.join()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("fresh_process")
def test_a_finished_call_refills_its_own_slot_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = started(make_arena_world(NOWHERE, limit=4))
    broker, taken = open_door(monkeypatch, Broker()), list[Row]()

    def take(row: Row) -> bool:
        taken.append(row)
        return len(taken) == 1

    monkeypatch.setattr(door, "relay", take)
    provider, trials = the_provider(tournament), trials_of(tournament)
    dispatch.fill(provider, handed=1)
    assert [row.id for row in taken] == [trials[0].pk]
    assert broker.messages == []
    assert len(slots().held(provider)) == 1
    # No thread is free: the next goes by message like any other, and what is woken without a slot in hand too.
    dispatch.fill(provider, handed=1)
    assert [args[0] for _, args in broker.messages] == [trials[1].pk]
    dispatch.fill(provider)
    assert [args[0] for _, args in broker.messages] == [trial.pk for trial in trials[1:4]]
    assert len(taken) == 2
    assert Trial.objects.exclude(dispatched_at=None).count() == 4
