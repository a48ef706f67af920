"""Thin doors for Celery: an id in, one service called."""

from __future__ import annotations

from celery import shared_task

from arena.services import reconcile, trials, verdicts


@shared_task
def run_trial_task(trial_id: int, tournament_id: int) -> None:
    trials.run_trial(trial_id, tournament_id)


@shared_task
def run_verdict_task(verdict_id: int, tournament_id: int) -> None:
    verdicts.run_verdict(verdict_id, tournament_id)


@shared_task
def advance_tournament_task(tournament_id: int) -> None:
    reconcile.advance_tournament(tournament_id)


@shared_task
def advance_rejudge_task(jury_id: int) -> None:
    reconcile.advance_rejudge(jury_id)


@shared_task
def reconcile_task() -> None:
    reconcile.reconcile_in_turn()


@shared_task
def drop_expired_task() -> None:
    reconcile.drop_expired()
