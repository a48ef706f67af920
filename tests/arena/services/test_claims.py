"""Claims hold the budget, whoever claims at once and whatever dies."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from arena.models import Call, CallStatus, Tournament, Trial
from arena.services import workers
from arena.services.claims import MOST_LOSSES, BudgetHeld, BudgetReached, claim, free_lost
from arena.services.settling import settle
from tests.arena.call_world import ANSWER_USD, answered, claim_one, context_of, lose, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]
AMOUNT = Decimal("0.01")


def with_budget(budget: str) -> tuple[Tournament, list[Trial]]:
    tournament = started(budget_usd=Decimal(budget))
    return tournament, trials_of(tournament)


def test_a_claim_waits_while_others_hold_what_they_may_not_need() -> None:
    tournament, (first, second, *_) = with_budget("0.015")
    held = claim_one(first, AMOUNT)
    with pytest.raises(BudgetHeld):
        claim(second, payer=tournament, reserve_usd=AMOUNT)
    second.refresh_from_db()
    assert second.status == CallStatus.QUEUED
    assert settle(held, context_of(first), [answered()], {"status": CallStatus.SUCCEEDED})
    # It cost less than was held.
    assert claim(second, payer=tournament, reserve_usd=AMOUNT) is not None
    tournament.refresh_from_db()
    assert (tournament.spent_usd, tournament.reserved_usd) == (ANSWER_USD, AMOUNT)


def test_a_claim_that_can_never_fit_says_so_although_others_hold_something() -> None:
    tournament, (first, second, *_) = with_budget("0.015")
    claim_one(first, AMOUNT)
    with pytest.raises(BudgetReached):
        claim(second, payer=tournament, reserve_usd=Decimal("0.016"))


def test_a_claim_does_not_wait_for_what_died() -> None:
    tournament, (first, second, *_) = with_budget("0.015")
    claim_one(first, AMOUNT)
    assert free_lost(lose(first), timezone.now())
    with pytest.raises(BudgetReached):
        claim(second, payer=tournament, reserve_usd=AMOUNT)


def test_a_worst_case_that_is_not_known_is_not_claimed() -> None:
    tournament, (first, *_) = with_budget("5")
    with pytest.raises(BudgetReached, match="not known"):
        claim(first, payer=tournament, reserve_usd=None)


def test_a_claim_that_knows_of_no_budget_does_not_pass_one() -> None:
    tournament = started()
    first = trials_of(tournament)[0]
    Tournament.objects.filter(pk=tournament.pk).update(budget_usd=Decimal(1))
    assert tournament.budget_usd is None
    assert claim(first, payer=tournament, reserve_usd=AMOUNT) is None


def test_claims_at_once_never_pass_the_budget() -> None:
    tournament, trials = with_budget("0.035")
    workers.present()
    barrier = threading.Barrier(8)
    won: list[int] = []
    turned_away: list[type[Exception]] = []

    def try_one(trial: Trial) -> None:
        try:
            barrier.wait()
            claimed = claim(trial, payer=tournament, reserve_usd=AMOUNT)
            won.extend([trial.pk] if claimed is not None else [])
        except BudgetHeld as held:
            turned_away.append(type(held))
        finally:
            connection.close()

    threads = [threading.Thread(target=try_one, args=(trial,)) for trial in trials[:8]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tournament.refresh_from_db()
    assert (len(won), len(turned_away)) == (3, 5)
    assert tournament.reserved_usd == 3 * AMOUNT
    assert set(Trial.objects.filter(status=CallStatus.RUNNING).values_list("pk", flat=True)) == set(won)


def test_a_row_that_is_lost_too_often_fails_and_its_reservations_stay() -> None:
    tournament, (trial, *_) = with_budget("1")
    for loss in range(1, MOST_LOSSES + 1):
        claim_one(trial, AMOUNT)
        assert free_lost(lose(trial), timezone.now())
        trial.refresh_from_db()
        tournament.refresh_from_db()
        assert trial.failures == loss
        assert trial.status == (CallStatus.QUEUED if loss < MOST_LOSSES else CallStatus.FAILED)
        assert Call.objects.filter(trial=trial, status=Call.Status.LOST, cost_usd=None).count() == loss
        assert tournament.reserved_usd == loss * AMOUNT
    assert trial.skip_code == Trial.SkipCode.OTHER_ERROR
    assert "worker died" in trial.error
    assert trial.finished_at is not None


def test_a_late_answer_releases_what_its_claim_held() -> None:
    tournament, (trial, *_) = with_budget("1")
    claimed = claim_one(trial, AMOUNT)
    assert free_lost(lose(trial), timezone.now())
    assert not settle(claimed, context_of(trial), [answered()], {"status": CallStatus.SUCCEEDED})
    tournament.refresh_from_db()
    trial.refresh_from_db()
    assert (tournament.reserved_usd, tournament.spent_usd) == (Decimal(0), ANSWER_USD)
    assert trial.status == CallStatus.QUEUED
    assert list(Call.objects.order_by("pk").values_list("status", flat=True)) == [Call.Status.LOST, Call.Status.LATE]


def test_a_row_is_freed_once() -> None:
    _, (trial, *_) = with_budget("1")
    claim_one(trial, AMOUNT)
    lost = lose(trial)
    assert free_lost(lost, timezone.now())
    claim_one(trial, AMOUNT)
    assert not free_lost(lost, timezone.now())
    trial.refresh_from_db()
    assert (trial.status, trial.failures) == (CallStatus.RUNNING, 1)
