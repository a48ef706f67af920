"""A paid call from its message to its stored outcome: take the slot, claim, call, settle."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from arena.dispatch import wake
from arena.encryption import UnreadableSecret
from arena.limits import slots
from arena.models import CallStatus, Provider, Trial, Verdict
from arena.services import tournaments
from arena.services.attempts import Attempt, Prepared, call_model
from arena.services.claims import BudgetHeld, BudgetReached, Claim, Row, claim, rows_of
from arena.services.settling import settle
from arena.services.wire import MissingKey, ModelContext, model_context
from arena.services.workers import active_claims
from arena.statements import Payer

logger = logging.getLogger(__name__)
KINDS: dict[type[Any], str] = {Trial: "t", Verdict: "v"}
# How soon a call looks again that the budget had no room for while others hold reservations.
BUDGET_LOOK_SECONDS = 1.0


class Slot:
    """The slot that the dispatcher took for a row. Given back as soon as the answer is in, before it is stored."""

    def __init__(self, row: Row, tournament_id: int, *, just_taken: bool = False) -> None:
        assert row.provider_id is not None
        self.provider_id = row.provider_id
        self.kind = KINDS[type(row)]
        self.holder = f"{tournament_id}:{self.kind}{row.pk}"
        self._released = False
        self._just_taken = just_taken
        self._taken_here = False
        self._token = ""
        # False once the next call was sent already and this row asks for none.
        self.wake_at_end = True

    def take(self) -> bool:
        """Make sure of the slot: the message may have lain in the broker for longer than the slot was kept."""
        provider = self.provider_id
        if self._just_taken or self.holder in slots().held(provider):
            return True
        limit = Provider.objects.values_list("max_concurrency", flat=True).get(pk=provider)
        self._taken_here = bool(slots().acquire(provider, [self.holder], limit=limit, per_minute=None))
        return self._taken_here

    def __enter__(self) -> Slot:
        return self

    def belongs_to(self, token: str) -> None:
        self._token = token
        active_claims.add(token, kind=self.kind, provider_id=self.provider_id, holder=self.holder)

    def leave(self) -> None:
        """The row runs under another message's claim, and the slot is that one's.

        Unless that one gave its slot back with the answer and only stores it: a slot taken since is nobody else's.
        """
        self._released = not self._taken_here

    def release(self) -> None:
        if not self._released:
            self._released = True
            try:
                slots().release(self.provider_id, self.holder)
            except Exception:
                # It ends by itself; an answer that was paid for must not be lost over it.
                logger.exception("The slot %s could not be given back.", self.holder)

    def __exit__(self, *_: object) -> None:
        if self._token:
            active_claims.remove(self._token)
        self.release()


@dataclass(frozen=True)
class Work:
    """What the two kinds of paid call differ in."""

    row: Row
    payer: Payer
    language_model_id: int
    prepare: Callable[[ModelContext], tuple[Prepared, Decimal | None]]
    # From the last attempt, the changes to the row.
    changes: Callable[[Attempt], dict[str, Any]]
    # From an error before any call, the changes to the row.
    unprepared: Callable[[str], dict[str, Any]]


def run_in_slot(work: Work, slot: Slot) -> bool:
    """Claim, call and settle. True where the row was changed, so that what waits for it may go on."""
    try:
        context = model_context(work.language_model_id)
        prepared, worst_case = work.prepare(context)
    except DatabaseError:
        raise
    except Exception as fault:
        return _fail_unprepared(work, slot, fault)
    claimed = _claimed(work, slot, worst_case)
    if claimed is None:
        return False
    attempts = call_model(context, prepared)
    # The answer is in: the next call may leave while this one is stored.
    slot.release()
    wake([slot.provider_id], handed=1)
    changes = work.changes(attempts[-1])
    slot.wake_at_end = changes["status"] == CallStatus.QUEUED
    return settle(claimed, context, attempts, changes)


def _claimed(work: Work, slot: Slot, worst_case: Decimal | None) -> Claim | None:
    try:
        claimed = claim(work.row, payer=work.payer, reserve_usd=worst_case)
    except BudgetHeld:
        later = timezone.now() + dt.timedelta(seconds=BUDGET_LOOK_SECONDS)
        rows_of(work.row).filter(status=CallStatus.QUEUED).update(not_before=later, dispatched_at=None)
        return None
    except BudgetReached as reached:
        tournaments.pause_for_budget(work.payer, str(reached), needed_usd=worst_case)
        return None
    if claimed is not None:
        slot.belongs_to(claimed.token)
    elif _runs_in_this_slot(work):
        slot.leave()
    return claimed


def _runs_in_this_slot(work: Work) -> bool:
    """A trial may run for another tournament that wants it, whose slot is another one."""
    running = rows_of(work.row).filter(status=CallStatus.RUNNING)
    return (running.filter(payer=work.payer) if isinstance(work.row, Trial) else running).exists()


def _fail_unprepared(work: Work, slot: Slot, fault: Exception) -> bool:
    """No call can leave, for a key that is not set, a file that is gone or a fault of ours; the row says which."""
    said = str(fault) if isinstance(fault, (MissingKey, UnreadableSecret, OSError)) else ""
    if not said:
        logger.exception("A call could not be prepared.")
    claimed = _claimed(work, slot, Decimal(0))
    return claimed is not None and settle(
        claimed, None, [], work.unprepared(said or f"internal: {type(fault).__name__}")
    )
