"""Many tournaments on one provider, simulated: its limit holds, and each gets its turn.

The clock, the rows and the calls are made up; choosing, slots and the handing on of a finished call's slot are real.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from arena import dispatch
from arena.dispatch import Kind, Queue, Row
from arena.limits import LocalSlots, by_tournament, tournament_of

PROVIDER = 7
TWENTY = list(range(1, 21))


class Provider:
    """Runs what it is sent for as long as `seconds` says, and hands each slot on as a worker does."""

    def __init__(self, limit: int, tournaments: list[int], seconds: Callable[[int], float]) -> None:
        self.limit, self.tournaments, self.seconds = limit, tournaments, seconds
        self.slots = LocalSlots()
        self.now_s = 0.0
        self.flying: list[tuple[float, int, str]] = []
        self.done: Counter[int] = Counter()
        self.most: Counter[int] = Counter()
        self._order = itertools.count()
        self._rows: dict[int, Iterator[int]] = {}

    def due(self, _provider: int, queue: Queue, wanted: int) -> list[Row]:
        """As many as are asked for, each once."""
        rows = self._rows.setdefault(queue.tournament, itertools.count(queue.tournament * 1_000_000))
        kind: Kind = "t"
        return [Row(kind, next(rows), queue.tournament) for _ in range(wanted)]

    def take(self, row: Row) -> bool:
        ends = self.now_s + self.seconds(row.tournament)
        heapq.heappush(self.flying, (ends, next(self._order), row.holder))
        assert len(self.flying) <= self.limit
        for tournament, n in by_tournament(self.slots.held(PROVIDER)).items():
            self.most[tournament] = max(self.most[tournament], n)
        return True

    def send(self, _task: str, *, args: list[int]) -> None:
        self.take(Row("t", args[0], args[1]))

    def play(self, calls: int) -> None:
        if not self.flying:
            dispatch.fill(PROVIDER)
        for _ in range(calls):
            self.now_s, _n, holder = heapq.heappop(self.flying)
            self.slots.release(PROVIDER, holder)
            self.done[tournament_of(holder)] += 1
            dispatch.fill(PROVIDER, handed=1)
            assert len(self.flying) == self.limit

    def spread(self) -> float:
        counts = [self.done[tournament] for tournament in self.tournaments]
        return max(counts) / max(min(counts), 1)


@pytest.fixture
def provider_of(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Callable[..., Provider]:
    settings.LEASE_SECONDS = 3600

    def make(limit: int, tournaments: list[int], seconds: Callable[[int], float] = lambda _: 1.0) -> Provider:
        made = Provider(limit, tournaments, seconds)
        monkeypatch.setattr(dispatch, "slots", lambda: made.slots)
        monkeypatch.setattr(dispatch, "_limits_of", lambda _, fresh=False: (limit, None))
        monkeypatch.setattr(dispatch, "_running", lambda fresh=False: [Queue(one) for one in made.tournaments])
        monkeypatch.setattr(dispatch, "_due_of_queue", made.due)
        monkeypatch.setattr("arena.dispatch.statements.mark_dispatched", lambda *_: None)
        monkeypatch.setattr("arena.dispatch.current_app.send_task", made.send)
        monkeypatch.setattr(dispatch.door, "worker_is_here", True)
        monkeypatch.setattr(dispatch.door, "relay", made.take)
        return made

    return make


@pytest.mark.parametrize("limit", [1, 3, 8, 20, 32, 64])
def test_twenty_tournaments_share_a_provider(provider_of: Callable[..., Provider], limit: int) -> None:
    draw = random.Random(limit)
    provider = provider_of(limit, TWENTY, lambda _: draw.uniform(0.1, 2.0))
    provider.play(2_000)
    assert sum(provider.done.values()) == 2_000
    # Where everybody has exactly one slot, only the draw of the durations is left.
    assert provider.spread() < 1.3
    # And none ever had more slots at once than its share, rounded up.
    assert max(provider.most.values()) <= -(-limit // len(TWENTY))


def test_one_that_joins_late_gets_its_share_and_no_more(provider_of: Callable[..., Provider]) -> None:
    draw = random.Random(1)
    provider = provider_of(6, TWENTY[:19], lambda _: draw.uniform(0.1, 2.0))
    provider.play(1_000)
    provider.done.clear()
    provider.tournaments.append(20)
    provider.play(1_000)
    assert provider.spread() < 1.2


def test_slow_calls_keep_nobody_from_its_slots(provider_of: Callable[..., Provider]) -> None:
    # One in four has a model that takes ten times as long; it holds its share of slots and no more.
    provider = provider_of(20, TWENTY, lambda tournament: 10.0 if tournament % 4 == 0 else 1.0)
    provider.play(3_000)
    quick = [provider.done[one] for one in TWENTY if one % 4]
    slow = [provider.done[one] for one in TWENTY if one % 4 == 0]
    assert max(quick) <= 1.1 * min(quick)
    assert max(slow) <= 1.1 * min(slow)
    assert set(provider.most.values()) <= {1, 2}


def test_a_trial_that_several_want_takes_one_slot(
    provider_of: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_of(4, [1, 2])
    shared: dict[int, list[Row]] = {one: [Row("t", trial, one) for trial in (10, 11, 12)] for one in (1, 2)}
    monkeypatch.setattr(dispatch, "_due_of_queue", lambda _, queue, wanted: shared[queue.tournament][:wanted])
    dispatch.fill(PROVIDER)
    assert sorted(provider.slots.held(PROVIDER)) == ["1:t10", "1:t12", "2:t11"]


def test_a_rejudge_takes_the_turns_of_its_tournament_and_comes_after_it(
    provider_of: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_of(6, [1, 2])
    due: dict[Queue, list[Row]] = {
        Queue(1): [Row("t", 10, 1)],
        Queue(1, 7): [Row("v", judged, 1) for judged in (70, 71, 72, 73)],
        Queue(2): [Row("t", trial, 2) for trial in (20, 21, 22, 23)],
    }
    monkeypatch.setattr(dispatch, "_running", lambda fresh=False: list(due))
    monkeypatch.setattr(dispatch, "_due_of_queue", lambda _, queue, wanted: due[queue][:wanted])
    dispatch.fill(PROVIDER)
    # Three slots for either, whoever of the first one's queues takes them.
    assert sorted(provider.slots.held(PROVIDER)) == ["1:t10", "1:v70", "1:v71", "2:t20", "2:t21", "2:t22"]
