"""Slots within one process: who gets one, for how long, and how many a minute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from arena.limits import WINDOW_SECONDS, LocalSlots, by_tournament

ONE, OTHER, THIRD = "1:t1", "1:t2", "2:v3"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Clock:
    clock = Clock()
    settings.LEASE_SECONDS = 30
    monkeypatch.setattr("arena.limits.time", SimpleNamespace(monotonic=clock))
    return clock


def test_only_newly_taken_slots_are_named(clock: Clock) -> None:
    slots = LocalSlots()
    assert slots.acquire(7, [ONE, OTHER], limit=3, per_minute=None) == [ONE, OTHER]
    assert slots.acquire(7, [ONE, THIRD, OTHER], limit=3, per_minute=None) == [THIRD]
    assert slots.acquire(7, [ONE], limit=3, per_minute=None) == []
    assert slots.held(7) == [ONE, OTHER, THIRD]


def test_asking_again_for_a_slot_does_not_keep_it_longer(clock: Clock) -> None:
    slots = LocalSlots()
    slots.acquire(7, [ONE], limit=1, per_minute=None)
    clock.now_s += 20
    slots.acquire(7, [ONE], limit=1, per_minute=None)
    clock.now_s += 11
    assert slots.held(7) == []


def test_the_limit_is_each_providers_own(clock: Clock) -> None:
    slots = LocalSlots()
    assert slots.acquire(7, [ONE, OTHER, THIRD], limit=2, per_minute=None) == [ONE, OTHER]
    assert slots.acquire(8, [THIRD], limit=1, per_minute=None) == [THIRD]
    slots.release(7, ONE)
    assert slots.acquire(7, [THIRD], limit=2, per_minute=None) == [THIRD]


def test_a_slot_ends_with_its_lease_unless_it_is_renewed(clock: Clock) -> None:
    slots = LocalSlots()
    slots.acquire(7, [ONE, OTHER], limit=2, per_minute=None)
    clock.now_s += 29
    slots.renew(7, [OTHER, THIRD])
    clock.now_s += 2
    # Renewing gives nobody a slot who had none.
    assert slots.held(7) == [OTHER]
    assert slots.acquire(7, [ONE, THIRD], limit=2, per_minute=None) == [ONE]


def test_the_window_of_a_minute_counts_what_was_sent(clock: Clock) -> None:
    slots = LocalSlots()
    assert slots.acquire(7, [ONE, OTHER, THIRD], limit=9, per_minute=2) == [ONE, OTHER]
    slots.release(7, ONE)
    assert slots.acquire(7, [THIRD], limit=9, per_minute=2) == []
    # Who has a slot and asks again is no second call.
    clock.now_s += WINDOW_SECONDS
    slots.acquire(7, [OTHER, THIRD], limit=9, per_minute=2)
    assert slots.acquire(7, [OTHER], limit=9, per_minute=2) == []
    assert slots.acquire(7, [ONE], limit=9, per_minute=2) == []
    clock.now_s += WINDOW_SECONDS
    assert slots.acquire(7, [ONE], limit=9, per_minute=2) == [ONE]


def test_holders_are_counted_by_tournament() -> None:
    assert by_tournament([ONE, OTHER, THIRD]) == {1: 2, 2: 1}
