"""Thin doors for Celery: an id in, one service called."""

from __future__ import annotations

from celery import shared_task


@shared_task
def refit_due_boards_task() -> None:
    pass
