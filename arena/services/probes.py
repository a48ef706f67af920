"""The test button: tiny calls to a model, recorded like any other, and what they showed."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from arena.encryption import UnreadableSecret
from arena.llm.listing import list_models
from arena.llm.messages import Completion
from arena.llm.probe import PROBE_MAX_TOKENS, Attempt, ProbeResult, one_page_pdf, probe
from arena.llm.text import storable
from arena.llm.wire import wire_format
from arena.models import Call, LanguageModel, Provider, User
from arena.services import audit
from arena.services.attempts import OpenTransaction, remember
from arena.services.bills import bill_for
from arena.services.wire import MissingKey, ModelContext, endpoint_of, forget_context, model_context

LIST_DEADLINE_S = 15.0
# Somebody waits for the answers of all models on one page.
MANY_DEADLINE_S = 30.0
MANY_THREADS = 8
# Read back by models that can; drawn, so that no answer can be guessed.
WORD_SIGNS = "ABCDEFGHKLMNPRSTUVWXYZ"


def probe_model(*, language_model: LanguageModel, actor: User | None, with_pdf: bool = False) -> ProbeResult:
    """Raises `MissingKey` or `UnreadableSecret` where there is nothing to call with."""
    forget_context(language_model.pk)
    context = model_context(language_model.pk)
    _leave_database()
    row = context.language_model
    word = "".join(secrets.choice(WORD_SIGNS) for _ in range(8))
    result = probe(
        context.endpoint,
        row.model_id,
        parameters=dict(row.parameters),
        pdf=one_page_pdf(word) if with_pdf else None,
        pdf_word=word if with_pdf else None,
        max_tokens=_room(row),
    )
    _note(context, result, actor)
    return result


def probe_models(*, language_models: Sequence[LanguageModel], actor: User | None) -> dict[int, str]:
    """One tiny call to each model, more only where an endpoint refuses something. All at once, within the limits.

    Returns, by key, why a model could not be called at all; what the others said is stored with them.
    """
    contexts, problems = [], {}
    for language_model in language_models:
        forget_context(language_model.pk)
        try:
            contexts.append(model_context(language_model.pk))
        except (MissingKey, UnreadableSecret) as error:
            problems[language_model.pk] = str(error)
    if not contexts:
        return problems
    _leave_database()
    rooms = {context.provider.pk: threading.BoundedSemaphore(context.provider.max_concurrency) for context in contexts}

    def call(context: ModelContext) -> ProbeResult:
        # No query here: the threads have no connection to the database, and need none.
        with rooms[context.provider.pk]:
            return _probe(context, deadline_s=MANY_DEADLINE_S)

    with ThreadPoolExecutor(MANY_THREADS, thread_name_prefix="tiltyard-probe") as pool:
        results = list(pool.map(call, contexts))
    for context, result in zip(contexts, results, strict=True):
        _note(context, result, actor)
    return problems


def _probe(context: ModelContext, *, deadline_s: float) -> ProbeResult:
    row = context.language_model
    return probe(
        context.endpoint,
        row.model_id,
        parameters=dict(row.parameters),
        max_tokens=_room(row),
        deadline_s=deadline_s,
    )


def _note(context: ModelContext, result: ProbeResult, actor: User | None) -> None:
    _record(context, result, actor)
    if result.ok and result.changes:
        remember(context.language_model.pk, result.changes)


def offered_models(*, provider: Provider) -> list[str]:
    """The ids that a provider lists. Raises `LLMError`, `MissingKey` or `UnreadableSecret`."""
    endpoint = endpoint_of(provider)
    _leave_database()
    return list_models(endpoint, deadline_s=LIST_DEADLINE_S)


def _leave_database() -> None:
    if connection.in_atomic_block:
        raise OpenTransaction("Commit before calling an endpoint.")
    if connection.vendor == "postgresql":
        connection.close()


@transaction.atomic
def _record(context: ModelContext, result: ProbeResult, actor: User | None) -> None:
    calls = [_call(context, attempt) for attempt in result.attempts]
    Call.objects.bulk_create(calls)
    row = LanguageModel.objects.select_for_update(of=("self",)).select_related("provider", "team")
    language_model = row.get(pk=context.language_model.pk)
    if language_model.fingerprint == context.language_model.fingerprint:
        # An edit in between made this the result of another configuration.
        learned = {**language_model.learned, "probe": _stored(result, calls, language_model.learned.get("probe"))}
        if result.ok and "changes" in learned:
            disproved = _disproved(result, context)
            learned["changes"] = [change for change in learned["changes"] if change not in disproved]
        LanguageModel.objects.filter(pk=language_model.pk).update(learned=learned)
    audit.record(
        team=language_model.team,
        actor=actor,
        action="language_model.probe",
        target=language_model.full_id,
        new={"ok": result.ok, "calls": len(calls)},
    )


def _disproved(result: ProbeResult, context: ModelContext) -> set[str]:
    """What was refused once and goes through now, so that a mended endpoint is used in full again."""
    accepted = {f"no:{name}" for name in context.language_model.parameters}
    forms = wire_format(context.endpoint).forms
    if result.structured in forms:
        accepted |= {f"no_{form}" for form in forms[forms.index(result.structured) :]}
    return accepted - set(result.changes)


def _room(language_model: LanguageModel) -> int:
    """Some endpoints want the answer's limit above what they are told to think."""
    thinking = language_model.parameters.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    room = PROBE_MAX_TOKENS + (budget if isinstance(budget, int) else 0)
    return min(room, language_model.max_tokens or room)


def _stored(result: ProbeResult, calls: list[Call], before: dict[str, Any] | None) -> dict[str, Any]:
    costs = [call.cost_usd for call in calls]
    known = [cost for cost in costs if cost is not None]
    return {
        "at": timezone.now().isoformat(),
        "ok": result.ok,
        "sentence": storable(result.sentence),
        "error_code": result.error_code.value if result.error_code else None,
        "latency_ms": result.latency_ms,
        "ttft_ms": result.ttft_ms,
        "streaming": result.streaming,
        "structured": result.structured,
        "structured_known": result.structured_known,
        **_pdf_findings(result, before or {}),
        "changes": list(result.changes),
        "host": result.host,
        "model_reported": storable(result.model_reported) if result.model_reported else None,
        "calls": len(calls),
        # One unknown part makes the whole unknown.
        "cost_usd": str(sum(known, Decimal(0))) if len(known) == len(costs) else None,
    }


def _pdf_findings(result: ProbeResult, before: dict[str, Any]) -> dict[str, Any]:
    """A test without a PDF disproves nothing that an earlier one found out."""
    if result.ok and result.pdf_accepted is None:
        return {name: before.get(name) for name in ("pdf_accepted", "pdf_read")}
    return {"pdf_accepted": result.pdf_accepted, "pdf_read": result.pdf_read}


def _call(context: ModelContext, attempt: Attempt) -> Call:
    outcome, error, price, usage = attempt.outcome, attempt.error, context.price, attempt.usage
    bill = bill_for(attempt.error, attempt.usage, context.price)
    return Call(
        team_id=context.language_model.team_id,
        provider=context.provider,
        language_model=context.language_model,
        purpose=Call.Purpose.PROBE,
        status=Call.Status.OK if error is None else Call.Status.ERROR,
        error_code=error.code.value if error else "",
        error=storable(error.message) if error else "",
        http_status=error.http_status if error else 200,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        duration_ms=outcome.duration_ms,
        ttft_ms=outcome.ttft_ms,
        host=outcome.host if isinstance(outcome, Completion) else "",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=bill.cost_usd,
        cost_source=bill.source,
        input_price_usd=price.input_per_million if price else None,
        output_price_usd=price.output_per_million if price else None,
    )
