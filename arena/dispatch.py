"""The only place that sends a task, always on commit.

The row is the queue and Celery only wakes it: a message carries an id, and whoever gets it still has to claim
the row. So a lost message costs a few seconds (the reconciler sends again), and a doubled one nothing.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, TypeVar

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from arena import statements
from arena.limits import Traffic, by_tournament, slots
from arena.models import Jury, Provider, Tournament, Trial, Verdict

Kind = Literal["t", "v"]
T = TypeVar("T")
logger = logging.getLogger(__name__)
TASKS: dict[Kind, str] = {"t": "arena.tasks.run_trial_task", "v": "arena.tasks.run_verdict_task"}
MODELS: dict[Kind, type[Trial] | type[Verdict]] = {"t": Trial, "v": Verdict}


@dataclass(frozen=True, order=True)
class Queue:
    """The due calls of a running tournament, or of a rejudge of one."""

    tournament: int
    # The jury that rejudges; 0 for the tournament itself.
    rejudge: int = 0


@dataclass(frozen=True)
class Row:
    kind: Kind
    id: int
    tournament: int

    @property
    def holder(self) -> str:
        return f"{self.tournament}:{self.kind}{self.id}"


class _Door:
    """In an embedded installation only the process with the worker has a broker that anybody listens to.

    A shell or a command beside it just writes rows: the worker's reconciler finds them.
    """

    def __init__(self) -> None:
        self.worker_is_here = False
        # Takes a row to be run in this process, or says no for want of a free thread.
        self.relay: Callable[[Row], bool] | None = None

    @property
    def open(self) -> bool:
        return self.worker_is_here or not settings.EMBEDDED


door = _Door()


def send(task: str, *ids: int) -> None:
    """Send a task once the transaction at hand is committed."""
    if door.open:
        transaction.on_commit(partial(_send_quietly, task, list(ids)), robust=True)


def _send_quietly(task: str, ids: list[int]) -> None:
    try:
        current_app.send_task(task, args=ids)
    except Exception:
        logger.exception("%s could not be sent; the reconciler does what it would have done.", task)


def wake(providers: Iterable[int], *, handed: int = 0) -> None:
    """Fill the free slots of these providers once the transaction at hand is committed.

    `handed` of them were freed by calls of this process, which goes on with the next rows itself: a message for
    each call would cost a quarter of its CPU.
    """
    for provider in sorted(set(providers)):
        transaction.on_commit(partial(_fill_quietly, provider, handed), robust=True)


def _fill_quietly(provider_id: int, handed: int) -> None:
    """An answer that was paid for must not be lost because the next call could not be sent."""
    try:
        fill(provider_id, handed=handed)
    except Exception:
        logger.exception("Provider %s could not be filled; the reconciler will.", provider_id)


@dataclass
class _Turn:
    handed: int
    again: bool = False


class _Turns:
    """One thread of a process fills a provider at a time; the others leave word that there is more to do.

    Without it every completion of a busy provider would run the same queries at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[int, _Turn] = {}

    def begin(self, provider: int, handed: int) -> bool:
        with self._lock:
            turn = self._turns.get(provider)
            if turn is not None:
                turn.again = True
                turn.handed += handed
                return False
            self._turns[provider] = _Turn(handed)
            return True

    def handed(self, provider: int) -> int:
        """How many slots were freed here since this was last asked."""
        with self._lock:
            turn = self._turns[provider]
            turn.handed, handed = 0, turn.handed
            return handed

    def again(self, provider: int) -> bool:
        with self._lock:
            turn = self._turns[provider]
            if turn.again:
                turn.again = False
                return True
            del self._turns[provider]
            return False

    def abandon(self, provider: int) -> None:
        with self._lock:
            self._turns.pop(provider, None)


_turns = _Turns()


def fill(provider_id: int, *, handed: int = 0) -> None:
    """Send due rows of a provider, as many as it has free slots."""
    if not door.open or not _turns.begin(provider_id, handed):
        return
    try:
        while True:
            _fill_once(provider_id, _turns.handed(provider_id))
            if not _turns.again(provider_id):
                return
    except BaseException:
        _turns.abandon(provider_id)
        raise


class _Lately(Generic[T]):
    """A small query whose answer of a moment ago will do: a stale one costs an unclaimed message or a second look."""

    def __init__(self, load: Callable[[int], T], seconds: float = 0.5) -> None:
        self._load, self._seconds = load, seconds
        self._values: dict[int, tuple[float, T]] = {}

    def __call__(self, key: int = 0, *, fresh: bool = False) -> T:
        now = time.monotonic()
        found = self._values.get(key)
        if not fresh and found is not None and now - found[0] < self._seconds:
            return found[1]
        value = self._load(key)
        self._values[key] = (now, value)
        return value


def _read_limits(provider_id: int) -> tuple[int, int | None] | None:
    rows = Provider.objects.filter(pk=provider_id).values_list("max_concurrency", "requests_per_minute")
    return rows.first()


def _read_running(_: int) -> list[Queue]:
    tournaments = Tournament.objects.filter(status=Tournament.Status.RUNNING).values_list("pk", flat=True)
    rejudges = Jury.objects.filter(primary=False, status=Jury.Status.RUNNING).values_list("tournament", "pk")
    return [*(Queue(pk) for pk in tournaments), *(Queue(tournament, pk) for tournament, pk in rejudges)]


_limits_of = _Lately(_read_limits)
_running = _Lately(_read_running)


def _fill_once(provider_id: int, handed: int, *, fresh: bool = False) -> None:
    limits = _limits_of(provider_id, fresh=fresh)
    if limits is None:
        return
    limit, per_minute = limits
    traffic = slots().traffic(provider_id)
    # Who gave slots back refills those; the others' are theirs to refill, in their own process.
    free = min(limit - len(traffic.held), handed or limit)
    if free <= 0:
        return
    rows = _due_rows(provider_id, free, traffic, _running(fresh=fresh))
    if not rows:
        if not fresh:
            _fill_once(provider_id, handed, fresh=True)
        return
    taken = set(slots().acquire(provider_id, [row.holder for row in rows], limit=limit, per_minute=per_minute))
    chosen = [row for row in rows if row.holder in taken]
    try:
        for kind, model in MODELS.items():
            ids = [row.id for row in chosen if row.kind == kind]
            if ids:
                statements.mark_dispatched(model, ids, timezone.now())
        for row in chosen:
            if handed > 0 and door.relay is not None and door.relay(row):
                handed -= 1
            else:
                current_app.send_task(TASKS[row.kind], args=[row.id, row.tournament])
            taken.discard(row.holder)
    except BaseException:
        # Slots of what was not sent would be blocked until they end by themselves.
        for holder in taken:
            slots().release(provider_id, holder)
        raise


def _due_rows(provider_id: int, wanted: int, traffic: Traffic, queues: list[Queue]) -> list[Row]:
    """Due rows in fair turns: the fewest calls in flight go first, and of equals who has waited for longest.

    Without the second rule the slot of a finished call would go back to the tournament it came from wherever
    there are more tournaments than slots. The rejudges of a tournament come after it and take its turns.
    """
    running = list(queues)
    in_flight = by_tournament(traffic.held)
    last_turns = dict(traffic.last_turns)
    latest = max(last_turns.values(), default=0.0)
    taken_already = set(traffic.held)
    found: dict[Queue, list[Row]] = {}
    # Several tournaments may want the same trial, which needs one slot.
    seen: set[tuple[Kind, int]] = set()
    rows: list[Row] = []
    while len(rows) < wanted and running:
        queue = min(running, key=lambda one: (in_flight[one.tournament], last_turns.get(one.tournament, 0.0), one))
        if queue not in found:
            found[queue] = _untaken(provider_id, queue, wanted, taken_already, seen)
        row = next((row for row in found[queue] if (row.kind, row.id) not in seen), None)
        if row is None:
            running.remove(queue)
            continue
        seen.add((row.kind, row.id))
        rows.append(row)
        in_flight[queue.tournament] += 1
        latest += 1
        last_turns[queue.tournament] = latest
    return rows


def _untaken(provider_id: int, queue: Queue, wanted: int, taken: set[str], seen: set[tuple[Kind, int]]) -> list[Row]:
    """Due rows without those that hold a slot (sent again while the first message still lies there) or are chosen."""
    for most in (wanted, wanted + len(taken) + len(seen)):
        found = _due_of_queue(provider_id, queue, most)
        free = [row for row in found if row.holder not in taken and (row.kind, row.id) not in seen]
        if len(found) < most or len(free) >= wanted:
            break
    return free


def _due_of_queue(provider_id: int, queue: Queue, wanted: int) -> list[Row]:
    now = timezone.now()
    resend_before = now - dt.timedelta(seconds=settings.RESEND_SECONDS)
    rows: list[Row] = []
    # Verdicts first: they bring matches to an end and let boards grow.
    kinds: tuple[Kind, ...] = ("v",) if queue.rejudge else ("v", "t")
    for kind in kinds:
        if len(rows) < wanted:
            ids = statements.due(
                MODELS[kind],
                provider_id=provider_id,
                tournament_id=queue.tournament,
                rejudge_id=queue.rejudge,
                now=now,
                resend_before=resend_before,
                limit=wanted - len(rows),
            )
            rows += [Row(kind, pk, queue.tournament) for pk in ids]
    return rows
