"""The task protocol, shared by trials and verdicts: claim by one conditional UPDATE, settle under the same token.

A claim reserves the call's worst case against the budget of the tournament that pays. Settling releases it
and books what the call cost. The reservation of a call whose worker died is never released, since the
provider may have charged for it: so spend can not pass the budget, whatever is killed.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from arena import statements
from arena.dispatch import wake
from arena.encryption import UnreadableSecret
from arena.judging.skips import Retry
from arena.limits import slots
from arena.llm.pricing import cost_usd
from arena.models import Call, CallStatus, Provider, Tournament, Trial, Verdict
from arena.models.calls import PaidCallQuerySet
from arena.services import known
from arena.services.attempts import Attempt, Prepared, call_model
from arena.services.wire import MissingKey, ModelContext, model_context, money
from arena.services.workers import active_claims, present

Row = Trial | Verdict
KINDS: dict[type[Any], str] = {Trial: "t", Verdict: "v"}


class BudgetReached(Exception):
    """The next call's worst case does not fit what is left of the budget."""


@dataclass(frozen=True)
class Claim:
    row: Row
    token: str
    payer: Tournament
    reserved_usd: Decimal | None

    @property
    def purpose(self) -> str:
        return Call.Purpose.TRIAL if isinstance(self.row, Trial) else Call.Purpose.VERDICT


class Slot:
    """The slot that the dispatcher took for a row. Given back as soon as the answer is in, before it is stored."""

    def __init__(self, row: Row, tournament_id: int) -> None:
        assert row.provider_id is not None
        self.provider_id = row.provider_id
        self.kind = KINDS[type(row)]
        self.row_id = row.pk
        self.holder = f"{tournament_id}:{self.kind}{row.pk}"
        self._released = False
        # False once the next call was sent already and this row asks for none.
        self.wake_at_end = True

    def take(self) -> bool:
        """Make sure of the slot: the message may have lain in the broker for longer than the slot was kept."""
        provider = self.provider_id
        if self.holder in slots().held(provider):
            return True
        limit = Provider.objects.values_list("max_concurrency", flat=True).get(pk=provider)
        return bool(slots().acquire(provider, [self.holder], limit=limit, per_minute=None))

    def __enter__(self) -> Slot:
        active_claims.add(self.kind, self.row_id, provider_id=self.provider_id, holder=self.holder)
        return self

    def release(self) -> None:
        if not self._released:
            self._released = True
            slots().release(self.provider_id, self.holder)

    def __exit__(self, *_: object) -> None:
        active_claims.remove(self.kind, self.row_id)
        self.release()


def _rows(row: Row) -> PaidCallQuerySet[Any]:
    return type(row).objects.filter(pk=row.pk)


def claim(row: Row, *, payer: Tournament, reserve_usd: Decimal | None) -> Claim | None:
    """RUNNING under a fresh token, or None where somebody else was first or the tournament does not run."""
    now = timezone.now()
    token = secrets.token_hex(16)
    if payer.budget_usd is None:
        reserve_usd = None
    # Without a budget one UPDATE is the whole claim.
    with transaction.atomic() if payer.budget_usd is not None else nullcontext():
        if payer.budget_usd is not None:
            _reserve(payer, reserve_usd)
        claimed = statements.claim(
            row,
            token=token,
            worker=present(),
            now=now,
            lease_until=now + dt.timedelta(seconds=settings.LEASE_SECONDS),
            payer=payer,
            reserved_usd=reserve_usd,
        )
        if not claimed:
            if payer.budget_usd is not None:
                transaction.set_rollback(True)
            known.tournament_of.forget(payer.pk)
            return None
    return Claim(row, token, payer, reserve_usd)


def _reserve(payer: Tournament, amount: Decimal | None) -> None:
    if amount is None:
        raise BudgetReached("The worst case of the next call is not known: a price or an answer limit is missing.")
    reserved = Tournament.objects.filter(
        Q(budget_usd__gte=F("spent_usd") + F("reserved_usd") + amount), pk=payer.pk
    ).update(reserved_usd=F("reserved_usd") + amount)
    if not reserved:
        raise BudgetReached(f"The next call may cost ${amount:.6f}, and the budget has less than that left.")


def free_lost(row: Row, now: dt.datetime) -> bool:
    """Queue a row again whose worker is gone, and note the call: it may have been paid for.

    Its reservation stays with the payer, and settling a late answer under the old claim still releases it.
    """
    payer = row.payer if isinstance(row, Trial) else row.tournament
    language_model_id = row.language_model_id if isinstance(row, Trial) else row.ballot.judge.language_model_id
    with transaction.atomic():
        freed = (
            _rows(row)
            .lost(now)
            .filter(claim_token=row.claim_token)
            .update(status=CallStatus.QUEUED, claim_token="", lease_until=None, reserved_usd=None, dispatched_at=None)
        )
        if freed:
            began = (row.lease_until or now) - dt.timedelta(seconds=settings.LEASE_SECONDS)
            Call.objects.create(
                team_id=row.team_id if isinstance(row, Trial) else row.tournament.team_id,
                tournament=payer,
                provider_id=row.provider_id,
                language_model_id=language_model_id,
                purpose=Call.Purpose.TRIAL if isinstance(row, Trial) else Call.Purpose.VERDICT,
                status=Call.Status.LOST,
                error="The worker died during the call; whether it was charged is not known.",
                started_at=min(began, now),
                ended_at=now,
                **_subject(row),
            )
    return bool(freed)


def _subject(row: Row) -> dict[str, Any]:
    return {"trial": row} if isinstance(row, Trial) else {"verdict": row}


def settle(claimed: Claim, context: ModelContext | None, attempts: list[Attempt], changes: dict[str, Any]) -> bool:
    """Store what came back. False where the claim was no longer its own: then only the calls are kept."""
    if context is not None and attempts[-1].completion is not None:
        # What the answer itself cost; retries and refusals before it are on the books as calls of their own.
        changes = {**changes, "cost_usd": _bill(attempts[-1], context)[0]}
    with transaction.atomic():
        own = statements.settle(
            claimed.row,
            token=claimed.token,
            changes={"claim_token": "", "lease_until": None, "reserved_usd": None, "dispatched_at": None, **changes},
        )
        calls = [_call(claimed, context, attempt, late=not own) for attempt in attempts if context is not None]
        for call in calls:
            statements.insert_call(call)
        if claimed.reserved_usd is not None:
            _book(claimed, calls)
    return own


def back_to_queue(retry: Retry, row: Row) -> dict[str, Any]:
    """The changes that send a row back, to be settled like any other outcome."""
    counter = {"waits": row.waits + 1} if retry.is_wait else {"failures": row.failures + 1}
    not_before = timezone.now() + dt.timedelta(seconds=retry.delay_s)
    return {"status": CallStatus.QUEUED, "not_before": not_before, **counter}


def _book(claimed: Claim, calls: list[Call]) -> None:
    assert claimed.reserved_usd is not None
    known = sum((call.cost_usd for call in calls if call.cost_usd is not None), Decimal(0))
    # What is not known may have cost all that was held for it.
    spent = known if all(call.cost_usd is not None for call in calls) else max(known, claimed.reserved_usd)
    Tournament.objects.filter(pk=claimed.payer.pk).update(
        reserved_usd=F("reserved_usd") - claimed.reserved_usd, spent_usd=F("spent_usd") + spent
    )


def _bill(attempt: Attempt, context: ModelContext) -> tuple[Decimal | None, str]:
    error = attempt.error
    if error is not None and error.http_status is not None and error.http_status >= 400 and not error.partial_text:
        return Decimal(0), f"refused with HTTP {error.http_status}"
    cost = cost_usd(attempt.usage, context.price)
    if cost is None:
        return None, ""
    reported = attempt.usage.cost_usd is not None
    return money(cost), "reported by the provider" if reported or context.price is None else context.price.source


def _call(claimed: Claim, context: ModelContext, attempt: Attempt, *, late: bool) -> Call:
    completion, error, usage, price = attempt.completion, attempt.error, attempt.usage, context.price
    status = Call.Status.LATE if late else (Call.Status.OK if error is None else Call.Status.ERROR)
    timing: Any = completion or error
    cost, cost_source = _bill(attempt, context)
    return Call(
        team_id=claimed.payer.team_id,
        tournament=claimed.payer,
        provider=context.provider,
        language_model=context.language_model,
        purpose=claimed.purpose,
        status=status,
        error_code=error.code if error else "",
        error=error.message if error else "",
        http_status=error.http_status if error else 200,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        duration_ms=timing.duration_ms,
        ttft_ms=timing.ttft_ms,
        host=completion.host if completion else "",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=cost,
        cost_source=cost_source,
        input_price_usd=price.input_per_million if price else None,
        output_price_usd=price.output_per_million if price else None,
        **_subject(claimed.row),
    )


@dataclass(frozen=True)
class Work:
    """What the two kinds of paid call differ in."""

    row: Row
    payer: Tournament
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
    except (MissingKey, UnreadableSecret, OSError) as fault:
        # A key that is not set or a file that is gone: no call can leave, and the row says why.
        claimed = claim(work.row, payer=work.payer, reserve_usd=Decimal(0))
        return claimed is not None and settle(claimed, None, [], work.unprepared(str(fault)))
    claimed = claim(work.row, payer=work.payer, reserve_usd=worst_case)
    if claimed is None:
        return False
    attempts = call_model(context, prepared)
    # The answer is in: the next call may leave while this one is stored.
    slot.release()
    wake([slot.provider_id])
    changes = work.changes(attempts[-1])
    slot.wake_at_end = changes["status"] == CallStatus.QUEUED
    return settle(claimed, context, attempts, changes)
