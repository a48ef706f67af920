"""How many calls are in flight at each provider, across threads and, over Redis, across workers.

A slot belongs to a holder (the row of the call) and ends by itself when its lease runs out, so that a killed
worker gives its slots back. Holders are named `<tournament>:<kind><row>`, which lets the dispatcher share a
provider fairly between tournaments.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Protocol, cast

from django.conf import settings

WINDOW_SECONDS = 60.0
# How long it is remembered when a tournament last took a slot. Longer than any pause between two turns.
TURN_SECONDS = 3600.0


@dataclass(frozen=True)
class Traffic:
    """Who has slots of a provider, and when each tournament last took one: the greater, the later."""

    held: list[str]
    last_turns: Mapping[int, float] = field(default_factory=dict)


class Slots(Protocol):
    def acquire(self, provider: int, holders: Sequence[str], *, limit: int, per_minute: int | None) -> list[str]:
        """Take slots for as many holders as fit, in order; say for which. Who has one already is not among them."""

    def renew(self, provider: int, holders: Sequence[str]) -> None: ...

    def release(self, provider: int, holder: str) -> None: ...

    def held(self, provider: int) -> list[str]: ...

    def traffic(self, provider: int) -> Traffic:
        """What a fair choice of the next calls hangs on, in one round trip."""
        ...


def tournament_of(holder: str) -> int:
    return int(holder.partition(":")[0])


def by_tournament(holders: Sequence[str]) -> Counter[int]:
    return Counter(map(tournament_of, holders))


class LocalSlots:
    """For one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, dict[str, float]] = defaultdict(dict)
        self._sent: dict[int, deque[float]] = defaultdict(deque)
        self._turns: dict[int, dict[int, float]] = defaultdict(dict)
        self._turn = count(1)

    def acquire(self, provider: int, holders: Sequence[str], *, limit: int, per_minute: int | None) -> list[str]:
        now = time.monotonic()
        with self._lock:
            held = self._without_expired(provider, now)
            sent = self._sent[provider]
            while sent and sent[0] <= now - WINDOW_SECONDS:
                sent.popleft()
            taken = []
            for holder in holders:
                if holder in held or len(held) >= limit or (per_minute is not None and len(sent) >= per_minute):
                    continue
                if per_minute is not None:
                    sent.append(now)
                held[holder] = now + settings.LEASE_SECONDS
                self._turns[provider][tournament_of(holder)] = next(self._turn)
                taken.append(holder)
            return taken

    def renew(self, provider: int, holders: Sequence[str]) -> None:
        until = time.monotonic() + settings.LEASE_SECONDS
        with self._lock:
            held = self._held[provider]
            held.update({holder: until for holder in holders if holder in held})

    def release(self, provider: int, holder: str) -> None:
        with self._lock:
            self._held[provider].pop(holder, None)

    def held(self, provider: int) -> list[str]:
        with self._lock:
            return list(self._without_expired(provider, time.monotonic()))

    def traffic(self, provider: int) -> Traffic:
        with self._lock:
            held = list(self._without_expired(provider, time.monotonic()))
            return Traffic(held, dict(self._turns[provider]))

    def _without_expired(self, provider: int, now: float) -> dict[str, float]:
        held = self._held[provider]
        for holder in [holder for holder, until in held.items() if until <= now]:
            del held[holder]
        return held


# One round trip decides for a whole batch, so two workers cannot both see the last free slot.
# The clock is Redis's own, since workers on several machines share the set.
ACQUIRE = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[4]))
local limit, lease, per_minute = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local count, sent = redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2])
local taken = {}
for i = 6, #ARGV do
  local known = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if not known and count < limit and (per_minute < 0 or sent < per_minute) then
    count = count + 1
    if per_minute >= 0 then
      sent = sent + 1
      redis.call('ZADD', KEYS[2], now, ARGV[i] .. '@' .. now)
    end
    redis.call('ZADD', KEYS[1], now + lease, ARGV[i])
    -- Within one batch the later one counts as later.
    redis.call('ZADD', KEYS[3], now + i / 1000000, string.match(ARGV[i], '^[^:]*'))
    taken[#taken + 1] = ARGV[i]
  end
end
redis.call('EXPIRE', KEYS[1], lease * 4)
redis.call('EXPIRE', KEYS[2], 120)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[5]))
redis.call('EXPIRE', KEYS[3], tonumber(ARGV[5]))
return taken
"""
RENEW = """
local clock = redis.call('TIME')
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 'XX', clock[1] + tonumber(ARGV[1]), ARGV[i])
end
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[1]) * 4)
"""
HELD = """
local clock = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. clock[1], '+inf')
"""
TRAFFIC = """
local clock = redis.call('TIME')
local held = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. clock[1], '+inf')
return {held, redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')}
"""


class RedisSlots:
    """For workers on any number of machines."""

    def __init__(self, url: str) -> None:
        import redis

        self._redis: Any = redis.Redis.from_url(url, decode_responses=True)
        self._acquire = self._redis.register_script(ACQUIRE)
        self._renew = self._redis.register_script(RENEW)
        self._held = self._redis.register_script(HELD)
        self._traffic = self._redis.register_script(TRAFFIC)

    @staticmethod
    def _key(provider: int) -> str:
        return f"{settings.LIMITS_PREFIX}:slots:{provider}"

    def acquire(self, provider: int, holders: Sequence[str], *, limit: int, per_minute: int | None) -> list[str]:
        keys = [self._key(provider), f"{self._key(provider)}:sent", f"{self._key(provider)}:turns"]
        window = -1 if per_minute is None else per_minute
        args: list[str | int | float] = [
            limit,
            settings.LEASE_SECONDS,
            window,
            WINDOW_SECONDS,
            TURN_SECONDS,
            *holders,
        ]
        return cast(list[str], self._acquire(keys=keys, args=args))

    def renew(self, provider: int, holders: Sequence[str]) -> None:
        if holders:
            self._renew(keys=[self._key(provider)], args=[settings.LEASE_SECONDS, *holders])

    def release(self, provider: int, holder: str) -> None:
        self._redis.zrem(self._key(provider), holder)

    def held(self, provider: int) -> list[str]:
        return cast(list[str], self._held(keys=[self._key(provider)], args=[]))

    def traffic(self, provider: int) -> Traffic:
        held, turns = self._traffic(keys=[self._key(provider), f"{self._key(provider)}:turns"], args=[])
        pairs = zip(turns[::2], turns[1::2], strict=True)
        return Traffic(held, {int(tournament): float(turn) for tournament, turn in pairs})


@lru_cache(maxsize=1)
def slots() -> Slots:
    return LocalSlots() if settings.EMBEDDED else RedisSlots(settings.CACHE_URL)
