"""A judge compares two answers in one seat order: one paid call."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from django.utils import timezone

from arena import statements
from arena.dispatch import wake
from arena.judging.ballots import seat_vote
from arena.judging.prompts import (
    JudgePrompt,
    judge_messages,
    repair_messages,
    verdict_schema,
    verdict_schema_bytes,
    with_schema,
)
from arena.judging.protocol import Protocol
from arena.judging.skips import Retry, judge_limits, next_step, verdict_error_code
from arena.judging.verdict import (
    VERDICT_SCHEMA_NAME,
    ErrorCode,
    ParsedVerdict,
    VerdictError,
    final_code,
    parse_verdict,
    wants_repair,
)
from arena.llm.errors import LLMError
from arena.llm.messages import ChatRequest
from arena.llm.pricing import bound_input_bytes, worst_case_usd
from arena.llm.text import storable
from arena.models import CallStatus, Verdict
from arena.services import known, matches
from arena.services.attempts import Attempt, Prepared
from arena.services.paid_calls import Slot, Work, run_in_slot
from arena.services.settling import back_to_queue
from arena.services.wire import ModelContext, attachments_of, chat_messages, count_files, money, with_pdf_text

RAW_CHARACTER_CAP = 100_000


@dataclass
class JudgeCall:
    verdict: Verdict
    protocol: Protocol
    # An answer over the cap was cut for the judge.
    cut: bool = False


def run_verdict(verdict_id: int, _tournament_id: int, *, slot_just_taken: bool = False) -> None:
    """Claim, call, settle, and decide the match if this was its last verdict."""
    verdict = statements.load_verdict(verdict_id)
    if verdict is None or verdict.provider_id is None:
        return
    with Slot(verdict, verdict.tournament_id, just_taken=slot_just_taken) as slot:
        if slot.take() and _run(verdict, slot):
            matches.decide_when_complete(verdict.match_id, verdict.rejudge_id)
    if slot.wake_at_end:
        wake([verdict.provider_id], handed=1)


def _run(verdict: Verdict, slot: Slot) -> bool:
    protocol = known.protocol_of(verdict.ballot.jury_id)
    call = JudgeCall(verdict, protocol)
    work = Work(
        row=verdict,
        payer=known.rejudge_of(verdict.rejudge_id)
        if verdict.rejudge_id
        else known.tournament_of(verdict.tournament_id),
        language_model_id=known.judge_model_of(verdict.ballot.judge_id),
        prepare=partial(_prepare, call),
        changes=partial(_changes, call),
        unprepared=partial(_failed, ErrorCode.OTHER),
    )
    return run_in_slot(work, slot)


def judge_prompt(verdict: Verdict, protocol: Protocol) -> JudgePrompt:
    match, sample = verdict.match, known.sample_of(verdict.match.sample_id)
    assert match.first_trial is not None
    assert match.second_trial is not None
    answers = [match.first_trial.answer, match.second_trial.answer]
    if verdict.seat_order == Verdict.SeatOrder.SECOND_IN_A:
        answers.reverse()
    return judge_messages(
        sample_messages=sample.messages,
        answer_a=answers[0],
        answer_b=answers[1],
        protocol=protocol,
        # The same for both orders and all judges: they differ in nothing but the seats.
        fence_seed=f"{known.tournament_of(verdict.tournament_id).seed}:{match.sequence}",
        reference=sample.reference or None,
        sample_criteria=sample.criteria or None,
    )


def _prepare(call: JudgeCall, context: ModelContext) -> tuple[Prepared, Decimal | None]:
    verdict, language = call.verdict, call.protocol.language
    prompt = judge_prompt(verdict, call.protocol)
    call.cut = prompt.truncated_a or prompt.truncated_b
    files = attachments_of(known.sample_of(verdict.match.sample_id))
    messages = prompt.messages
    if verdict.repairs:
        problem = parse_verdict(verdict.raw, refusal=None, finish_reason=verdict.finish_reason or None)
        if isinstance(problem, VerdictError):
            messages = repair_messages(messages, reply=verdict.raw, error=problem, language=language)
    language_model = context.language_model
    if call.protocol.pdf_as_text and language_model.pdf_input == "none":
        messages = with_pdf_text(messages, files, language)
    plain = chat_messages(with_schema(messages, language), files)
    request = ChatRequest(
        model_id=language_model.model_id,
        messages=chat_messages(messages, files),
        parameters={"temperature": 0, **language_model.parameters},
        max_tokens=language_model.max_tokens,
        structured="schema",
        json_schema=verdict_schema(language),
        schema_name=VERDICT_SCHEMA_NAME,
    )
    pages, images = count_files(plain, {file.sha256: file.pages for file in files.values()})
    # The schema may have to stand in the prompt too, so both are counted.
    size = bound_input_bytes(request) + 2 * verdict_schema_bytes(language)
    worst_case = worst_case_usd(size, pages, language_model.max_tokens, context.price, images=images)
    return Prepared(request, plain, context.provider.judge_timeout_s), money(worst_case)


def _changes(call: JudgeCall, attempt: Attempt) -> dict[str, Any]:
    asked_for = {"structured": attempt.structured or "text"}
    if attempt.completion is None:
        assert attempt.error is not None
        return {**asked_for, **_failure(call, attempt.error)}
    verdict, completion = call.verdict, attempt.completion
    usage = completion.usage
    measures = {
        **asked_for,
        "raw": storable(completion.text[:RAW_CHARACTER_CAP]),
        "finish_reason": (completion.finish_reason or "")[:60],
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "ttft_ms": completion.ttft_ms,
        "duration_ms": completion.duration_ms,
        "host": completion.host[:255],
        "cut": call.cut,
    }
    parsed = parse_verdict(completion.text, refusal=completion.refusal, finish_reason=completion.finish_reason)
    if isinstance(parsed, ParsedVerdict):
        return {**measures, **_succeeded(verdict, parsed)}
    if wants_repair(parsed, repairs_made=verdict.repairs, repair_attempts=call.protocol.repair_attempts):
        again = {"status": CallStatus.QUEUED, "repairs": verdict.repairs + 1, "not_before": None}
        return {**measures, **again, "error": parsed.message}
    code = final_code(parsed, repaired=verdict.repairs > 0)
    return {**measures, **_failed(code, parsed.message)}


def _succeeded(verdict: Verdict, parsed: ParsedVerdict) -> dict[str, Any]:
    first_in_a = verdict.seat_order == Verdict.SeatOrder.FIRST_IN_A
    return {
        "status": CallStatus.SUCCEEDED,
        "finished_at": timezone.now(),
        "winner": parsed.winner,
        "vote": seat_vote(parsed.winner, first_in_seat_a=first_in_a).value,
        "comment_a": storable(parsed.comment_a),
        "comment_b": storable(parsed.comment_b),
        "reason": storable(parsed.reason),
        "error_code": "",
        "error": "",
    }


def _failed(code: str, message: str) -> dict[str, Any]:
    return {
        "status": CallStatus.FAILED,
        "finished_at": timezone.now(),
        "error_code": code,
        "error": storable(message),
    }


def _failure(call: JudgeCall, error: LLMError) -> dict[str, Any]:
    verdict = call.verdict
    step = next_step(
        error.code,
        transient=error.transient,
        counts_as_wait=error.counts_as_wait,
        failures=verdict.failures,
        waits=verdict.waits,
        limits=judge_limits(call.protocol),
        draw=random.random(),  # noqa: S311 - jitter
        retry_after_s=error.retry_after_s,
    )
    if isinstance(step, Retry):
        return {**back_to_queue(step, verdict), "error": storable(error.message)}
    return _failed(verdict_error_code(step.code), error.message)
