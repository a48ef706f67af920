"""One message, one call: doubled messages, broken brokers and faults before the call."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from arena import dispatch
from arena.limits import slots
from arena.models import Call, CallStatus, Tournament, Trial
from arena.services import paid_calls, settling, trials
from arena.services.workers import active_claims
from tests.arena.call_world import answer_calls, claim_one, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]


@pytest.fixture
def tournament() -> Tournament:
    return started()


@pytest.fixture
def trial(tournament: Tournament) -> Trial:
    return trials_of(tournament)[0]


def held(trial: Trial) -> list[str]:
    assert trial.provider_id is not None
    return slots().held(trial.provider_id)


def run(trial: Trial, tournament: Tournament) -> None:
    trials.run_trial(trial.pk, tournament.pk)


def test_a_second_message_leaves_the_first_ones_slot_and_claim(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def doubled() -> None:
        before = active_claims.snapshot()
        run(trial, tournament)
        seen.extend([held(trial), before, active_claims.snapshot()])

    called = answer_calls(monkeypatch, doubled)
    run(trial, tournament)
    slots_held, before, after = seen
    assert slots_held == [f"{tournament.pk}:t{trial.pk}"]
    assert len(before) == 1
    assert after == before
    assert len(called) == 1
    # And the first one gives back both at its end.
    assert held(trial) == []
    assert not active_claims.snapshot()


def test_a_message_between_the_answer_and_its_storing_keeps_no_slot(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settle_late(*args: Any) -> bool:
        # The first message has given its slot back, and the row still runs.
        run(trial, tournament)
        return settling.settle(*args)

    monkeypatch.setattr(paid_calls, "settle", settle_late)
    called = answer_calls(monkeypatch)
    run(trial, tournament)
    assert len(called) == 1
    assert held(trial) == []


def test_a_message_for_a_row_that_is_done_keeps_no_slot(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = answer_calls(monkeypatch)
    run(trial, tournament)
    run(trial, tournament)
    assert len(called) == 1
    assert held(trial) == []


def test_an_answer_is_stored_where_the_slot_cannot_be_given_back(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def broken(*_: object) -> None:
        raise ConnectionError("the cache is away")

    answer_calls(monkeypatch)
    monkeypatch.setattr(slots(), "release", broken)
    run(trial, tournament)
    trial.refresh_from_db()
    assert (trial.status, trial.answer) == (CallStatus.SUCCEEDED, "An answer.")
    assert "could not be given back" in caplog.text


def test_an_answer_is_stored_where_the_next_call_cannot_be_sent(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ConnectionError("the broker is away")

    answer_calls(monkeypatch)
    monkeypatch.setattr(dispatch.door, "worker_is_here", True)
    monkeypatch.setattr("arena.dispatch.current_app.send_task", broken)
    run(trial, tournament)
    trial.refresh_from_db()
    assert trial.status == CallStatus.SUCCEEDED
    assert "could not be filled" in caplog.text
    assert held(trial) == []


def test_a_fault_of_ours_before_the_call_fails_the_row(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("messages")

    called = answer_calls(monkeypatch)
    monkeypatch.setattr(trials, "prepare", broken)
    run(trial, tournament)
    trial.refresh_from_db()
    assert (trial.status, trial.error) == (CallStatus.FAILED, "internal: KeyError")
    assert trial.skip_code == Trial.SkipCode.OTHER_ERROR
    assert "Traceback" in caplog.text
    assert not called
    assert not Call.objects.exists()


def test_a_broken_database_before_the_call_fails_no_row(
    trial: Trial, tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(trials, "prepare", broken)
    with pytest.raises(OperationalError):
        run(trial, tournament)
    trial.refresh_from_db()
    assert trial.status == CallStatus.QUEUED
    assert held(trial) == []


def test_a_call_waits_for_room_that_others_hold_and_pauses_where_there_is_none(
    tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = answer_calls(monkeypatch)
    # The worst case of a call is 2048 tokens at 4 USD a million, and its prompt: more than 0.008 USD, less than 0.02.
    Tournament.objects.filter(pk=tournament.pk).update(budget_usd=Decimal("0.02"))
    first, second, *_ = trials_of(tournament)
    claim_one(first, "0.0199")
    run(second, tournament)
    second.refresh_from_db()
    tournament.refresh_from_db()
    assert (tournament.status, second.status) == (Tournament.Status.RUNNING, CallStatus.QUEUED)
    assert second.not_before is not None
    assert second.not_before > timezone.now() - dt.timedelta(seconds=1)
    assert held(second) == []
    # Now it was not held but spent.
    Trial.objects.filter(pk=first.pk).update(status=CallStatus.SUCCEEDED, reserved_usd=None)
    Tournament.objects.filter(pk=tournament.pk).update(spent_usd=Decimal("0.0199"), reserved_usd=0)
    Trial.objects.filter(pk=second.pk).update(not_before=None)
    run(second, tournament)
    tournament.refresh_from_db()
    assert (tournament.status, tournament.reason) == (Tournament.Status.PAUSED, Tournament.Reason.BUDGET)
    assert "The next call may cost $0.0" in tournament.reason_text
    assert not called
