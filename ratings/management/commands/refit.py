from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ratings.models import Leaderboard, RatingRun
from ratings.services import Refit, boards_due, refit


class Command(BaseCommand):
    help = "Fit every board whose input changed; a board whose input is the same is left alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--board", metavar="ID", help="this board alone: the id in its address")
        parser.add_argument("--style", action="store_true", help="look at length and style too, whatever the size")
        parser.add_argument(
            "--no-anomaly-filter", action="store_true", help="keep the votes of sessions that the screen rejects"
        )
        parser.add_argument("--loop", action="store_true", help="go on until interrupted")
        parser.add_argument(
            "--interval", type=int, metavar="N", help="seconds between two looks of --loop; REFIT_INTERVAL_SECONDS"
        )

    def handle(
        self,
        *,
        board: str | None,
        style: bool,
        no_anomaly_filter: bool,
        loop: bool,
        interval: int | None,
        **options: Any,
    ) -> None:
        if interval is not None and not loop:
            raise CommandError("--interval says how often --loop looks; it means nothing without it.")
        if interval is not None and interval < 1:
            raise CommandError("--interval must be at least 1 second.")
        how = Refit(style=style, screen=not no_anomaly_filter)
        while True:
            self._once(board, how)
            if not loop:
                return
            try:
                time.sleep(interval or settings.REFIT_INTERVAL_SECONDS)
            except KeyboardInterrupt:
                return

    def _once(self, public_id: str | None, how: Refit) -> None:
        if public_id is None:
            # Style may be asked of boards that are not due otherwise.
            boards = list(Leaderboard.objects.values_list("pk", flat=True)) if how.style else boards_due()
        else:
            boards = list(Leaderboard.objects.filter(public_id=public_id).values_list("pk", flat=True))
            if not boards:
                raise CommandError(f"There is no board {public_id}. The id is the last part of a board's address.")
        runs = [run for run in (refit(pk, how) for pk in boards) if run is not None]
        for run in runs:
            self.stdout.write(_line(run))
        if not runs:
            self.stdout.write("Nothing changed; no board was fitted.")


def _line(run: RatingRun) -> str:
    ending = "" if run.converged else "; did not converge, not shown"
    leader = f", first {run.leader_label}" if run.leader_label else ""
    return (
        f"{run.leaderboard.public_id}: {run.comparisons} comparisons, {run.get_mode_display()}, "
        f"{run.duration_ms:.0f} ms{leader}{ending}"
    )
