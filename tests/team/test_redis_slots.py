"""Limits on a real Redis, where several workers take slots at once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator

import pytest
import redis
from pytest_django import Settings

from arena.limits import RedisSlots
from tests.team.installation import REDIS, services_are_there
from tests.waiting import until

pytestmark = [
    pytest.mark.team,
    pytest.mark.skipif(not services_are_there(), reason="TEST_DATABASE_URL (PostgreSQL) and TEST_REDIS_URL are unset"),
]
PROVIDER = 7


@pytest.fixture(autouse=True)
def _own_keys(settings: Settings) -> Iterator[None]:
    settings.LIMITS_PREFIX = f"slots-{uuid.uuid4().hex}"
    settings.LEASE_SECONDS = 60
    yield
    with redis.Redis.from_url(REDIS) as store:
        if keys := list(store.scan_iter(f"{settings.LIMITS_PREFIX}:*")):
            store.delete(*keys)


@pytest.fixture
def slots() -> Iterator[RedisSlots]:
    made = RedisSlots(REDIS)
    yield made
    made._redis.close()


def take(slots: RedisSlots, *holders: str, limit: int = 2, per_minute: int | None = None) -> list[str]:
    return slots.acquire(PROVIDER, holders, limit=limit, per_minute=per_minute)


def test_takes_in_order_as_many_as_fit(slots: RedisSlots) -> None:
    assert take(slots, "1:t1", "1:t2", "1:t3") == ["1:t1", "1:t2"]
    assert sorted(slots.held(PROVIDER)) == ["1:t1", "1:t2"]
    assert take(slots, "1:t3") == []
    slots.release(PROVIDER, "1:t1")
    assert take(slots, "1:t3", "1:t4") == ["1:t3"]


def test_a_holder_keeps_its_slot_and_takes_no_second(slots: RedisSlots) -> None:
    take(slots, "1:t1", "1:t2")
    assert take(slots, "1:t2", "1:t3") == []
    assert len(slots.held(PROVIDER)) == 2


def test_providers_do_not_share_slots(slots: RedisSlots) -> None:
    take(slots, "1:t1", "1:t2")
    assert slots.acquire(PROVIDER + 1, ["1:t3"], limit=1, per_minute=None) == ["1:t3"]


def test_a_slot_ends_by_itself_unless_renewed(slots: RedisSlots, settings: Settings) -> None:
    # Long enough to be renewed in time by a process that has to wait for its turn.
    settings.LEASE_SECONDS = 3
    take(slots, "1:t1", "1:t2")
    settings.LEASE_SECONDS = 60
    slots.renew(PROVIDER, ["1:t1"])
    until(lambda: len(slots.held(PROVIDER)) == 1, "one slot has ended")
    assert slots.held(PROVIDER) == ["1:t1"]
    assert take(slots, "1:t3", "1:t4") == ["1:t3"]


def test_renewing_what_was_given_back_takes_nothing(slots: RedisSlots) -> None:
    take(slots, "1:t1")
    slots.release(PROVIDER, "1:t1")
    slots.renew(PROVIDER, ["1:t1"])
    assert slots.held(PROVIDER) == []


def test_a_minute_holds_so_many_starts_however_short_the_calls(slots: RedisSlots) -> None:
    taken = []
    for number in range(6):
        taken += take(slots, f"1:t{number}", limit=50, per_minute=4)
        slots.release(PROVIDER, f"1:t{number}")
    assert taken == ["1:t0", "1:t1", "1:t2", "1:t3"]


def test_the_minute_slides(slots: RedisSlots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.limits.WINDOW_SECONDS", 0.5)
    assert take(slots, "1:t1", "1:t2", limit=50, per_minute=1) == ["1:t1"]
    time.sleep(0.6)
    assert take(slots, "1:t2", limit=50, per_minute=1) == ["1:t2"]


@pytest.mark.parametrize("limit", [1, 3])
def test_two_workers_never_pass_the_limit_together(limit: int) -> None:
    lock, seen, in_flight = threading.Lock(), [0], [0]
    done: list[str] = []

    def work(worker: int) -> None:
        own = RedisSlots(REDIS)
        mine, number, end = 0, 0, time.monotonic() + 60
        while mine < 20 and time.monotonic() < end:
            number += 1
            for holder in take(own, f"1:t{worker}{number:03}a", f"1:t{worker}{number:03}b", limit=limit):
                with lock:
                    in_flight[0] += 1
                    seen[0] = max(seen[0], in_flight[0])
                time.sleep(0.0005)
                with lock:
                    in_flight[0] -= 1
                    done.append(holder)
                own.release(PROVIDER, holder)
                mine += 1
        own._redis.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < seen[0] <= limit
    assert len(done) == len(set(done)) >= 40
    assert RedisSlots(REDIS).held(PROVIDER) == []


def test_traffic_tells_who_has_slots_and_whose_turn_was_last(slots: RedisSlots) -> None:
    take(slots, "3:t1", "1:t2", "2:v3", limit=3)
    slots.release(PROVIDER, "1:t2")
    traffic = slots.traffic(PROVIDER)
    assert sorted(traffic.held) == ["2:v3", "3:t1"]
    assert sorted(traffic.last_turns, key=lambda one: traffic.last_turns[one]) == [3, 1, 2]
    take(slots, "3:t4", "3:t5", limit=3)
    # Only who got a slot had a turn.
    take(slots, "1:t6", limit=3)
    turns = slots.traffic(PROVIDER).last_turns
    assert sorted(turns, key=lambda one: turns[one]) == [1, 2, 3]


def test_a_provider_without_calls_has_no_traffic(slots: RedisSlots) -> None:
    assert slots.traffic(PROVIDER + 1).held == []
    assert slots.traffic(PROVIDER + 1).last_turns == {}
