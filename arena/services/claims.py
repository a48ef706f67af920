"""Claims: a paid call's row becomes RUNNING by one conditional UPDATE, under a token of its own.

A claim reserves the call's worst case against the budget of the tournament that pays. The reservation of a call
whose worker died is never released, since the provider may have charged for it: so spend can not pass the budget,
whatever is killed.
"""

from __future__ import annotations

import datetime as dt
import secrets
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from arena import statements
from arena.models import Call, CallStatus, Tournament, Trial, Verdict
from arena.models.calls import PaidCallQuerySet
from arena.services import known
from arena.services.workers import present
from arena.statements import Payer

Row = Trial | Verdict
# A call that took its worker down with it this often is not made again.
MOST_LOSSES = 5


class BudgetReached(Exception):
    """The next call's worst case does not fit what is left of the budget."""


class BudgetHeld(Exception):
    """It does not fit now, but calls in flight hold more than they will cost: worth another look."""


@dataclass(frozen=True)
class Claim:
    row: Row
    token: str
    payer: Payer
    reserved_usd: Decimal | None

    @property
    def purpose(self) -> str:
        return Call.Purpose.TRIAL if isinstance(self.row, Trial) else Call.Purpose.VERDICT


def rows_of(row: Row) -> PaidCallQuerySet[Any]:
    return type(row).objects.filter(pk=row.pk)


def claim(row: Row, *, payer: Payer, reserve_usd: Decimal | None) -> Claim | None:
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
            known.forget_payer(payer)
            return None
    return Claim(row, token, payer, reserve_usd)


def accounts_of(payer: Payer) -> QuerySet[Any]:
    """The row that the payer's budget is kept on."""
    return type(payer)._default_manager.filter(pk=payer.pk)


def who_paid(payer: Payer) -> dict[str, Any]:
    """The columns of a `Call` that say so."""
    if isinstance(payer, Tournament):
        return {"team_id": payer.team_id, "tournament_id": payer.pk}
    tournament = known.tournament_of(payer.tournament_id)
    return {"team_id": tournament.team_id, "tournament_id": tournament.pk, "rejudge_id": payer.pk}


def _reserve(payer: Payer, amount: Decimal | None) -> None:
    if amount is None:
        raise BudgetReached("The worst case of the next call is not known: a price or an answer limit is missing.")
    account = accounts_of(payer)
    fits = Q(budget_usd__gte=F("spent_usd") + F("reserved_usd") + amount)
    reserved = account.filter(fits).update(reserved_usd=F("reserved_usd") + amount)
    if reserved:
        return
    budget, spent = account.values_list("budget_usd", "spent_usd").get()
    if budget is None:
        # It was lifted since this process last looked.
        known.forget_payer(payer)
        raise BudgetHeld
    if spent + amount <= budget and _holds_reservations(payer):
        raise BudgetHeld
    raise BudgetReached(f"The next call may cost ${amount:.6f}, and the budget has less than that left.")


def _holds_reservations(payer: Payer) -> bool:
    running: dict[str, Any] = {"status": CallStatus.RUNNING, "reserved_usd__gt": 0}
    if not isinstance(payer, Tournament):
        return Verdict.objects.filter(rejudge=payer, **running).exists()
    return (
        Verdict.objects.filter(tournament=payer, rejudge=None, **running).exists()
        or Trial.objects.filter(payer=payer, **running).exists()
    )


def free_lost(row: Row, now: dt.datetime) -> bool:
    """Queue a row again whose worker is gone, and note the call: it may have been paid for.

    Its reservation stays with the payer, and settling a late answer under the old claim still releases it.
    """
    payer = row.payer if isinstance(row, Trial) else row.rejudge or row.tournament
    if isinstance(row, Trial):
        language_model_id = row.language_model_id
        if row.payer is not None:
            language_model_id = known.payers_model_of((row.payer.pk, language_model_id))
    else:
        language_model_id = row.ballot.judge.language_model_id
    changes: dict[str, Any] = {"status": CallStatus.QUEUED, "failures": row.failures + 1}
    if row.failures + 1 >= MOST_LOSSES:
        code = {"skip_code": "OTHER_ERROR"} if isinstance(row, Trial) else {"error_code": "OTHER"}
        sentence = "Its worker died each time this call was made."
        changes |= {"status": CallStatus.FAILED, "finished_at": now, "error": sentence, **code}
    with transaction.atomic():
        freed = (
            rows_of(row)
            .lost(now)
            .filter(claim_token=row.claim_token)
            .update(claim_token="", lease_until=None, reserved_usd=None, dispatched_at=None, **changes)
        )
        if freed:
            began = (row.lease_until or now) - dt.timedelta(seconds=settings.LEASE_SECONDS)
            Call.objects.create(
                **({"team_id": row.team_id} if isinstance(row, Trial) else {}) | (who_paid(payer) if payer else {}),
                provider_id=row.provider_id,
                language_model_id=language_model_id,
                purpose=Call.Purpose.TRIAL if isinstance(row, Trial) else Call.Purpose.VERDICT,
                status=Call.Status.LOST,
                error="The worker died during the call; whether it was charged is not known.",
                started_at=min(began, now),
                ended_at=now,
                **subject_of(row),
            )
    return bool(freed)


def subject_of(row: Row) -> dict[str, Any]:
    return {"trial": row} if isinstance(row, Trial) else {"verdict": row}
