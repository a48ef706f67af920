"""A budget is a hard stop, however many threads spend it at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import Sum

from arena.llm.messages import ChatRequest, Completion, Endpoint, Usage
from arena.models import Call, CallStatus, Tournament, Trial
from arena.services import trials, workers
from tests.arena.arena_world import make_arena_world
from tests.arena.call_world import ANSWER, NOWHERE, answer_calls, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]
THREADS = 12
# As long as its limit allows: by the prices of the tests 0.0083 USD, little less than what a claim reserves.
LONG_ANSWER = replace(ANSWER, usage=Usage(input_tokens=100, output_tokens=2048))
# Room for a third of the 18 answers.
BUDGET = Decimal("0.052")


def test_many_threads_never_spend_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = started(make_arena_world(NOWHERE, limit=THREADS), budget_usd=BUDGET, max_matches=18, step_size=18)
    workers.present()
    seen: list[Decimal] = []
    lock = threading.Lock()

    def complete(_: Endpoint, request: ChatRequest, *, deadline_s: float | None = None) -> Completion:
        # While calls are in flight, what is spent and what they hold together stay within the budget.
        spent, reserved = Tournament.objects.values_list("spent_usd", "reserved_usd").get(pk=tournament.pk)
        with lock:
            seen.append(spent + reserved)
        return LONG_ANSWER

    monkeypatch.setattr("arena.services.attempts.complete", complete)
    queue = [trial.pk for trial in trials_of(tournament)]
    barrier = threading.Barrier(THREADS)

    def work() -> None:
        barrier.wait()
        try:
            while True:
                with lock:
                    if not queue:
                        return
                    trial_id = queue.pop()
                trials.run_trial(trial_id, tournament.pk)
                # What found no room while others held it looks again.
                waiting = Trial.objects.filter(pk=trial_id, status=CallStatus.QUEUED)
                if waiting.update(not_before=None) and Tournament.objects.filter(pk=tournament.pk, status="running"):
                    with lock:
                        queue.append(trial_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    tournament.refresh_from_db()
    paid = Call.objects.filter(tournament=tournament).aggregate(usd=Sum("cost_usd"))["usd"]
    assert 4 <= len(seen) <= 6
    assert max(seen) <= BUDGET
    assert tournament.spent_usd == paid <= BUDGET
    assert tournament.reserved_usd == 0
    assert (tournament.status, tournament.reason) == (Tournament.Status.PAUSED, Tournament.Reason.BUDGET)
    assert Call.objects.count() == len(seen)


def test_the_last_call_that_fits_is_made_and_the_next_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = started(make_arena_world(NOWHERE), budget_usd=BUDGET)
    called = answer_calls(monkeypatch)
    worst = Decimal("0.015")
    monkeypatch.setattr("arena.services.trials.worst_case_usd", lambda *_, **__: worst)
    first, second, *_ = trials_of(tournament)
    Tournament.objects.filter(pk=tournament.pk).update(spent_usd=BUDGET - worst)
    trials.run_trial(first.pk, tournament.pk)
    Tournament.objects.filter(pk=tournament.pk).update(spent_usd=BUDGET - worst + Decimal("0.0001"))
    trials.run_trial(second.pk, tournament.pk)
    tournament.refresh_from_db()
    second.refresh_from_db()
    assert (tournament.status, tournament.reason) == (Tournament.Status.PAUSED, Tournament.Reason.BUDGET)
    assert second.status == CallStatus.QUEUED
    assert len(called) == 1
