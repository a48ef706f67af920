"""A candidate answers a sample: one paid call, generated once and reused by every match."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import partial
from typing import Any

from django.utils import timezone

from arena import statements
from arena.dispatch import wake
from arena.judging.metrics import characters, markdown_density
from arena.judging.skips import TRIAL_LIMITS, Retry, next_step, trial_skip_code
from arena.llm.errors import LLMError
from arena.llm.messages import ChatRequest, Completion
from arena.llm.pricing import bound_input_bytes, worst_case_usd
from arena.llm.text import storable
from arena.models import CallStatus, Tournament, Trial
from arena.services import known, matches, steps
from arena.services.attempts import Attempt, Prepared
from arena.services.paid_calls import Slot, Work, run_in_slot
from arena.services.settling import back_to_queue
from arena.services.wire import (
    ModelContext,
    attachments_of,
    candidate_messages,
    chat_messages,
    count_files,
    money,
)


def run_trial(trial_id: int, tournament_id: int, *, slot_just_taken: bool = False) -> None:
    """Claim, call, settle, and bring forward the matches that waited for it.

    The tournament it was sent for pays. If that one stands still, the claim fails, and the dispatcher sends the
    trial for another one that wants it.
    """
    trial = statements.load_trial(trial_id)
    if trial is None or trial.provider_id is None:
        return
    with Slot(trial, tournament_id, just_taken=slot_just_taken) as slot:
        if slot.take() and _run(trial, known.tournament_of(tournament_id), slot):
            advance_matches(trial.pk)
    if slot.wake_at_end:
        wake([trial.provider_id], handed=1)


def _run(trial: Trial, payer: Tournament, slot: Slot) -> bool:
    work = Work(
        row=trial,
        payer=payer,
        language_model_id=known.payers_model_of((payer.pk, trial.language_model_id)),
        prepare=partial(prepare, trial),
        changes=partial(_changes, trial),
        unprepared=_unprepared,
    )
    return run_in_slot(work, slot)


def prepare(trial: Trial, context: ModelContext) -> tuple[Prepared, Decimal | None]:
    assert trial.sample_id is not None
    sample, language_model = known.sample_of(trial.sample_id), context.language_model
    files = attachments_of(sample)
    messages = chat_messages(candidate_messages(sample.messages, language_model.system_prompt), files)
    request = ChatRequest(
        model_id=language_model.model_id,
        messages=messages,
        parameters=language_model.parameters,
        max_tokens=language_model.max_tokens,
    )
    pages, images = count_files(messages, {file.sha256: file.pages for file in files.values()})
    worst_case = worst_case_usd(
        bound_input_bytes(request), pages, language_model.max_tokens, context.price, images=images
    )
    # A candidate's stream has no deadline, only a limit of silence.
    return Prepared(request), money(worst_case)


def _changes(trial: Trial, attempt: Attempt) -> dict[str, Any]:
    completion = attempt.completion
    if completion is None:
        assert attempt.error is not None
        return _failure(trial, attempt.error)
    text = storable(completion.text or completion.refusal or "")
    if not text.strip():
        step = next_step(
            "EMPTY",
            transient=False,
            counts_as_wait=False,
            failures=trial.failures,
            waits=trial.waits,
            limits=TRIAL_LIMITS,
            draw=random.random(),  # noqa: S311 - jitter
        )
        if isinstance(step, Retry):
            return back_to_queue(step, trial)
        return {
            **_ended(CallStatus.FAILED),
            **_measures(completion),
            "skip_code": trial_skip_code(step.code),
            "error": _said_nothing(completion),
        }
    return {
        **_ended(CallStatus.SUCCEEDED),
        **_measures(completion),
        "answer": text,
        "truncated": completion.truncated,
        "characters": characters(text),
        "markdown_density": markdown_density(text),
        "error": "",
        "skip_code": "",
        "partial_answer": "",
    }


def _said_nothing(completion: Completion) -> str:
    if completion.refused or completion.truncated:
        return f"The answer was empty; the provider gave the reason {completion.finish_reason}."
    return "The answer was empty."


def _failure(trial: Trial, error: LLMError) -> dict[str, Any]:
    step = next_step(
        error.code,
        transient=error.transient,
        counts_as_wait=error.counts_as_wait,
        failures=trial.failures,
        waits=trial.waits,
        limits=TRIAL_LIMITS,
        draw=random.random(),  # noqa: S311 - jitter
        retry_after_s=error.retry_after_s,
    )
    kept = {"error": storable(error.message), "partial_answer": storable(error.partial_text)}
    if isinstance(step, Retry):
        return {**back_to_queue(step, trial), **kept}
    usage = error.usage
    return {
        **_ended(CallStatus.FAILED),
        **kept,
        "skip_code": trial_skip_code(step.code),
        "reasoning": storable(error.partial_reasoning),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "ttft_ms": error.ttft_ms,
        "duration_ms": error.duration_ms,
    }


def _unprepared(message: str) -> dict[str, Any]:
    return {**_ended(CallStatus.FAILED), "error": storable(message), "skip_code": Trial.SkipCode.OTHER_ERROR}


def _ended(status: str) -> dict[str, Any]:
    return {"status": status, "finished_at": timezone.now()}


def _measures(completion: Completion) -> dict[str, Any]:
    return {
        "reasoning": storable(completion.reasoning),
        "finish_reason": (completion.finish_reason or "")[:60],
        "input_tokens": completion.usage.input_tokens,
        "output_tokens": completion.usage.output_tokens,
        "reasoning_tokens": completion.usage.reasoning_tokens,
        "ttft_ms": completion.ttft_ms,
        "duration_ms": completion.duration_ms,
        "host": completion.host[:255],
    }


def advance_matches(trial_id: int) -> None:
    """Bring forward every match that waits for this trial, and steps that wait for a probe. Safe to repeat."""
    for step_id in statements.probed_steps(trial_id):
        steps.complete_when_done(step_id)
    tournament_ids = statements.waiting_tournaments(trial_id)
    if tournament_ids and Trial.objects.filter(pk=trial_id, status=CallStatus.FAILED).exists():
        for tournament_id in tournament_ids:
            steps.plan_when_due(tournament_id)
    # Others as well: they may have waited to know whether this answer benches somebody.
    for tournament_id in tournament_ids:
        matches.begin_ready(tournament_id, statements.ready_matches(trial_id, tournament_id, steps.STEPS_LOOKED_AT))
