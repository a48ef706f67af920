"""A finished step makes its boards due at once instead of at the next look."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from arena.dispatch import send
from arena.signals import step_finished
from ratings import services


@receiver(step_finished, dispatch_uid="ratings-refit")
def refit_after_step(tournament_id: int, **_: Any) -> None:
    for board in services.want_refit(tournament_id):
        send("ratings.tasks.refit_board_task", board.pk)
