"""Settling: what came back is stored under the claim's own token, with a `Call` for every HTTP attempt."""

from __future__ import annotations

import datetime as dt
import logging
import time
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import DataError, OperationalError, connection, transaction
from django.db.models import F
from django.utils import timezone

from arena import statements
from arena.judging.skips import Retry
from arena.llm.messages import Usage
from arena.llm.text import storable
from arena.models import Call, CallStatus, Trial
from arena.services.attempts import Attempt
from arena.services.bills import Bill, bill_for
from arena.services.claims import Claim, Row, accounts_of, subject_of, who_paid
from arena.services.wire import ModelContext

logger = logging.getLogger(__name__)
# A restart of the database takes seconds.
PAUSES_S = (0.5, 2.0, 8.0)


def settle(claimed: Claim, context: ModelContext | None, attempts: list[Attempt], changes: dict[str, Any]) -> bool:
    """Store what came back. False where the claim was no longer its own: then only the calls are kept.

    What was paid for is not lost to a database that is away for a moment, nor to an answer it cannot hold.
    """
    failed = False
    for pause_s in PAUSES_S:
        try:
            return (failed and _is_stored(claimed, attempts)) or _settle(claimed, context, attempts, changes)
        except OperationalError:
            failed = True
            logger.exception("An answer could not be stored; once more in %s s.", pause_s)
            connection.close()
            time.sleep(pause_s)
        except (DataError, InvalidOperation, ValueError):
            logger.exception("An answer cannot be stored as it is; its row fails.")
            return _settle(claimed, context, attempts, _unstorable(claimed.row), figures=False)
    return _is_stored(claimed, attempts) or _settle(claimed, context, attempts, changes)


def _is_stored(claimed: Claim, attempts: list[Attempt]) -> bool:
    """A connection that breaks at the commit does not tell whether it was made; a second one would book it twice."""
    own = Call.objects.filter(**subject_of(claimed.row))
    return bool(attempts) and own.filter(started_at=attempts[-1].started_at).exists()


def _unstorable(row: Row) -> dict[str, Any]:
    code = {"skip_code": "OTHER_ERROR"} if isinstance(row, Trial) else {"error_code": "OTHER"}
    sentence = "The answer could not be stored."
    return {"status": CallStatus.FAILED, "finished_at": timezone.now(), "error": sentence, **code}


def _settle(
    claimed: Claim,
    context: ModelContext | None,
    attempts: list[Attempt],
    changes: dict[str, Any],
    *,
    figures: bool = True,
) -> bool:
    if context is not None and figures and attempts[-1].completion is not None:
        # What the answer itself cost; retries and refusals before it are on the books as calls of their own.
        changes = {**changes, "cost_usd": _bill(attempts[-1], context).cost_usd}
    with transaction.atomic():
        own = statements.settle(
            claimed.row,
            token=claimed.token,
            changes={"claim_token": "", "lease_until": None, "reserved_usd": None, "dispatched_at": None, **changes},
        )
        calls = [
            _call(claimed, context, attempt, late=not own, figures=figures)
            for attempt in attempts
            if context is not None
        ]
        if calls:
            statements.insert(calls)
        _book(claimed, calls)
    return own


def _bill(attempt: Attempt, context: ModelContext) -> Bill:
    return bill_for(attempt.error, attempt.usage, context.price)


def back_to_queue(retry: Retry, row: Row) -> dict[str, Any]:
    """The changes that send a row back, to be settled like any other outcome."""
    counter = {"waits": row.waits + 1} if retry.is_wait else {"failures": row.failures + 1}
    not_before = timezone.now() + dt.timedelta(seconds=retry.delay_s)
    return {"status": CallStatus.QUEUED, "not_before": not_before, **counter}


def _book(claimed: Claim, calls: list[Call]) -> None:
    spent = sum((call.cost_usd for call in calls if call.cost_usd is not None), Decimal(0))
    held = claimed.reserved_usd
    if held is None:
        if spent:
            # It left before there was a budget; one that was set since counts it.
            statements.book(claimed.payer, spent)
        return
    if any(call.cost_usd is None for call in calls):
        # What is not known may have cost all that was held for it.
        spent = max(spent, held)
    accounts_of(claimed.payer).update(reserved_usd=F("reserved_usd") - held, spent_usd=F("spent_usd") + spent)


def _call(claimed: Claim, context: ModelContext, attempt: Attempt, *, late: bool, figures: bool) -> Call:
    completion, error, usage, price = (
        attempt.completion,
        attempt.error,
        attempt.usage if figures else Usage(),
        context.price,
    )
    status = Call.Status.LATE if late else (Call.Status.OK if error is None else Call.Status.ERROR)
    timing: Any = completion or error
    cost, cost_source = _bill(attempt, context) if figures else (None, "")
    return Call(
        **who_paid(claimed.payer),
        provider=context.provider,
        language_model=context.language_model,
        purpose=claimed.purpose,
        status=status,
        error_code=error.code if error else "",
        error=storable(error.message) if error else "",
        http_status=error.http_status if error else 200,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        duration_ms=timing.duration_ms,
        ttft_ms=timing.ttft_ms,
        host=completion.host[:255] if completion else "",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=cost,
        cost_source=cost_source,
        input_price_usd=price.input_per_million if price else None,
        output_price_usd=price.output_per_million if price else None,
        **subject_of(claimed.row),
    )
