"""Thin doors for Celery: an id in, one service called."""

from __future__ import annotations

from celery import shared_task

from ratings import services


@shared_task
def refit_board_task(leaderboard_id: int) -> None:
    services.refit(leaderboard_id)


@shared_task
def refit_due_boards_task() -> None:
    services.refit_due_boards()
