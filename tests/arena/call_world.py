"""Paid calls without an endpoint: rows that wait to be called, and answers made up on the spot."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from arena.llm.messages import ChatRequest, Completion, Endpoint, Usage
from arena.models import Tournament, Trial
from arena.services import tournaments, workers
from arena.services.attempts import Attempt
from arena.services.claims import Claim, claim
from arena.services.known import tournament_of
from arena.services.wire import ModelContext, model_context
from tests.arena.arena_world import ArenaWorld, make_arena_world

Complete = Callable[[], None]
NOWHERE = "http://127.0.0.1:9/v1"
ANSWER = Completion(
    text="An answer.",
    reasoning="",
    finish_reason="stop",
    refusal=None,
    # 0.0003 USD by the price list of the tests.
    usage=Usage(input_tokens=100, output_tokens=50),
    ttft_ms=10.0,
    duration_ms=20.0,
    host="127.0.0.1",
    model_reported=None,
    streamed=True,
)
ANSWER_USD = Decimal("0.0003")


def started(world: ArenaWorld | None = None, **changes: Any) -> Tournament:
    """A tournament that runs; no message of it is sent, since no worker is in this process."""
    tournament = (world or make_arena_world(NOWHERE)).create(**changes)
    tournaments.start_tournament(tournament=tournament)
    return tournament


def trials_of(tournament: Tournament) -> list[Trial]:
    return list(Trial.objects.filter(requests__tournament=tournament).order_by("pk"))


def answer_calls(monkeypatch: pytest.MonkeyPatch, during: Complete | None = None) -> list[str]:
    """Every call gets the same answer; `during` is done while the first one is in flight. Lists the models called."""
    called: list[str] = []

    def complete(_: Endpoint, request: ChatRequest, *, deadline_s: float | None = None) -> Completion:
        called.append(request.model_id)
        if during is not None and len(called) == 1:
            during()
        return ANSWER

    monkeypatch.setattr("arena.services.attempts.complete", complete)
    return called


def claim_one(trial: Trial, amount: str | Decimal | None = "0.01") -> Claim:
    """Claimed for the first tournament that asked for it."""
    payer = Tournament.objects.filter(trial_requests__trial=trial).earliest("pk")
    claimed = claim(trial, payer=payer, reserve_usd=None if amount is None else Decimal(amount))
    assert claimed is not None
    return claimed


def context_of(trial: Trial) -> ModelContext:
    return model_context(trial.language_model_id)


def answered() -> Attempt:
    return Attempt(timezone.now(), timezone.now(), completion=ANSWER)


def lose(trial: Trial) -> Trial:
    """As if the worker had died: the lease ran out."""
    Trial.objects.filter(pk=trial.pk).update(lease_until=timezone.now() - dt.timedelta(seconds=1))
    return Trial.objects.select_related("payer").get(pk=trial.pk)


def forget_process() -> None:
    """What a process remembers of rows that an earlier test had."""
    from arena import dispatch, limits

    limits.slots.cache_clear()
    workers.forget()
    for token in workers.active_claims.snapshot():
        workers.active_claims.remove(token)
    for lately in (dispatch._limits_of, dispatch._running):
        lately._values.clear()
    tournament_of.forget()
