"""One claimed call as HTTP attempts: what an endpoint refuses is left out, remembered, and tried without."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import connection, transaction
from django.utils import timezone

from arena.llm.client import complete
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.fallbacks import adapted, with_changes
from arena.llm.messages import ChatMessage, ChatRequest, Completion, Structured, Usage
from arena.llm.wire import wire_format
from arena.models import LanguageModel
from arena.services.wire import ModelContext, forget_context

logger = logging.getLogger(__name__)
MOST_CHANGES = 6


class OpenTransaction(RuntimeError):
    """A call was about to leave while a transaction was open, which would hold locks for as long as it takes."""


@dataclass(frozen=True)
class Attempt:
    started_at: dt.datetime
    ended_at: dt.datetime
    completion: Completion | None = None
    error: LLMError | None = None
    # The form of reply that was asked for on the wire; None where the prompt alone asked.
    structured: Structured | None = None

    @property
    def usage(self) -> Usage:
        if self.completion is not None:
            return self.completion.usage
        return self.error.usage if self.error is not None else Usage()


@dataclass(frozen=True)
class Prepared:
    """A request, and the messages to use where the endpoint takes no structured output on the wire."""

    request: ChatRequest
    plain_messages: Sequence[ChatMessage] | None = None
    deadline_s: float | None = None

    def ready(self, request: ChatRequest) -> ChatRequest:
        if self.plain_messages is not None and request.structured is None:
            return replace(request, messages=self.plain_messages)
        return request


def call_model(context: ModelContext, prepared: Prepared) -> list[Attempt]:
    """The attempts in order; the last one tells how it ended."""
    if connection.in_atomic_block:
        raise OpenTransaction("Commit before calling an endpoint.")
    if connection.vendor == "postgresql":
        # Back to the pool: a connection kept during calls makes the pool the limit of concurrency.
        connection.close()
    forms = wire_format(context.endpoint).forms
    request = with_changes(prepared.request, context.changes, forms)
    attempts: list[Attempt] = []
    changes: list[str] = []
    while True:
        attempts.append(_attempt(context, prepared.ready(request), prepared.deadline_s))
        error = attempts[-1].error
        step = adapted(request, error, forms) if error is not None and len(changes) < MOST_CHANGES else None
        if step is None:
            break
        request, change = step
        changes.append(change)
    if changes and attempts[-1].completion is not None:
        remember(context.language_model.pk, changes)
    return attempts


def _attempt(context: ModelContext, request: ChatRequest, deadline_s: float | None) -> Attempt:
    started_at = timezone.now()
    try:
        completion = complete(context.endpoint, request, deadline_s=deadline_s)
    except LLMError as error:
        return Attempt(started_at, timezone.now(), error=error, structured=request.structured)
    except Exception as error:
        # A fault of our own ends the call, not the tournament; it is logged whole and named on the row.
        logger.exception("A call to %s failed inside the client.", context.language_model.model_id)
        fault = LLMError(ErrorCode.OTHER, f"internal: {type(error).__name__}")
        return Attempt(started_at, timezone.now(), error=fault, structured=request.structured)
    return Attempt(started_at, timezone.now(), completion=completion, structured=request.structured)


def remember(language_model_id: int, changes: Sequence[str]) -> None:
    """Note per model what its endpoint refused, so that the next call does not ask for it again."""
    with transaction.atomic():
        row = LanguageModel.objects.select_for_update().only("learned").get(pk=language_model_id)
        known: list[str] = row.learned.get("changes", [])
        merged = [*known, *(change for change in changes if change not in known)]
        LanguageModel.objects.filter(pk=language_model_id).update(learned={**row.learned, "changes": merged})
    forget_context(language_model_id)
