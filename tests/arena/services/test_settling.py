"""What was paid for is kept: through a database that is away, and an answer that it cannot hold."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection

from arena import statements
from arena.models import Call, CallStatus, Tournament, Trial
from arena.services import settling, tournaments, trials
from tests.arena.call_world import ANSWER_USD, answer_calls, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]


def fail_first(monkeypatch: pytest.MonkeyPatch, faults: list[Exception]) -> None:
    """Storing raises these, one a time, and then works."""
    original = statements.settle

    def settle(*args: Any, **options: Any) -> bool:
        if faults:
            raise faults.pop(0)
        return original(*args, **options)

    monkeypatch.setattr(statements, "settle", settle)


def run_first(tournament: Tournament) -> Trial:
    trial = trials_of(tournament)[0]
    trials.run_trial(trial.pk, tournament.pk)
    trial.refresh_from_db()
    return trial


@pytest.mark.parametrize("fault", [DataError("integer out of range"), ValueError("a NUL")], ids=["database", "driver"])
def test_an_answer_that_cannot_be_held_fails_its_row_and_keeps_its_call(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    answer_calls(monkeypatch)
    fail_first(monkeypatch, [fault])
    tournament = started(budget_usd=Decimal(1))
    trial = run_first(tournament)
    assert (trial.status, trial.skip_code) == (CallStatus.FAILED, Trial.SkipCode.OTHER_ERROR)
    assert trial.error == "The answer could not be stored."
    assert (trial.claim_token, trial.reserved_usd, trial.cost_usd) == ("", None, None)
    call = Call.objects.get(trial=trial)
    assert (call.status, call.cost_usd, call.input_tokens, call.output_tokens) == (Call.Status.OK, None, None, None)
    # What it cost is not known, so all that was held for it counts.
    tournament.refresh_from_db()
    assert tournament.reserved_usd == 0
    assert tournament.spent_usd > Decimal("0.008")


def test_an_answer_is_stored_once_the_database_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.services.settling.PAUSES_S", (0, 0, 0))
    called = answer_calls(monkeypatch)
    fail_first(monkeypatch, [OperationalError("away")] * 3)
    tournament = started()
    trial = run_first(tournament)
    assert (trial.status, trial.answer, trial.cost_usd) == (CallStatus.SUCCEEDED, "An answer.", ANSWER_USD)
    assert Call.objects.filter(trial=trial).count() == len(called) == 1


def test_a_database_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.services.settling.PAUSES_S", (0, 0, 0))
    answer_calls(monkeypatch)
    fail_first(monkeypatch, [OperationalError("away")] * 4)
    with pytest.raises(OperationalError):
        run_first(started())
    # The lease ends by itself, and the row is called again.
    assert Trial.objects.filter(status=CallStatus.RUNNING).count() == 1


def test_a_budget_set_during_a_call_is_charged_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = started()

    def set_budget() -> None:
        tournaments.pause_tournament(tournament=tournament)
        tournaments.set_budget(tournament=tournament, budget_usd=Decimal(1))

    answer_calls(monkeypatch, set_budget)
    first, second, *_ = trials_of(tournament)
    trials.run_trial(first.pk, tournament.pk)
    tournament.refresh_from_db()
    assert (tournament.spent_usd, tournament.reserved_usd) == (ANSWER_USD, Decimal(0))
    # From here on calls reserve.
    tournaments.resume_tournament(tournament=tournament)
    trials.run_trial(second.pk, tournament.pk)
    trials.run_trial(second.pk, tournament.pk)
    tournament.refresh_from_db()
    assert (tournament.spent_usd, tournament.reserved_usd) == (2 * ANSWER_USD, Decimal(0))


def test_without_a_budget_nothing_is_charged_and_one_set_later_counts_what_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_calls(monkeypatch)
    tournament = started()
    run_first(tournament)
    tournament.refresh_from_db()
    assert tournament.spent_usd == 0
    tournaments.pause_tournament(tournament=tournament)
    tournaments.set_budget(tournament=tournament, budget_usd=Decimal(1))
    tournament.refresh_from_db()
    assert tournament.spent_usd == ANSWER_USD


def test_a_budget_set_while_a_call_is_being_stored_is_charged_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = started()
    # The pause comes while the call is in flight.
    answer_calls(monkeypatch, lambda: tournaments.pause_tournament(tournament=tournament))
    booked, book = threading.Event(), statements.book

    def book_and_linger(tournament_id: int, spent_usd: Decimal) -> None:
        book(tournament_id, spent_usd)
        booked.set()
        time.sleep(0.3)

    monkeypatch.setattr(statements, "book", book_and_linger)

    def run() -> None:
        run_first(tournament)
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert booked.wait(60)
    tournaments.set_budget(tournament=tournament, budget_usd=Decimal(1))
    thread.join(60)
    tournament.refresh_from_db()
    assert tournament.spent_usd == ANSWER_USD


@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_that_was_made_and_not_confirmed_is_not_made_twice(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr("arena.services.settling.PAUSES_S", (0, 0, 0))
    answer_calls(monkeypatch)
    original, broken = settling._settle, [OperationalError("the connection broke")] * times

    def unconfirmed(*args: Any, **options: Any) -> bool:
        if len(broken) > 1:
            raise broken.pop()
        stored = original(*args, **options)
        if broken:
            raise broken.pop()
        return stored

    monkeypatch.setattr(settling, "_settle", unconfirmed)
    tournament = started(budget_usd=Decimal(1))
    trial = run_first(tournament)
    tournament.refresh_from_db()
    assert (trial.status, trial.answer) == (CallStatus.SUCCEEDED, "An answer.")
    assert Call.objects.filter(trial=trial).count() == 1
    assert (tournament.spent_usd, tournament.reserved_usd) == (ANSWER_USD, Decimal(0))
