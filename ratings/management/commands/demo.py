from __future__ import annotations

import os
import sys
import time
from typing import Any, TextIO

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from arena.embedded import AlreadyRunning, EmbeddedWorker
from arena.llm.demo.catalogue import DEMO_LABEL
from arena.llm.demo.server import serve_in_thread
from arena.models import Tournament
from arena.services import tournaments
from arena.serving import Site
from ratings.headless import demo
from ratings.headless.board_text import board_lines
from ratings.headless.progress import Progress, standing_of
from ratings.headless.results import board_of_tournament

POLL_SECONDS = 0.2


class Command(BaseCommand):
    help = (
        "Play a tournament on invented models, print its board and serve the site. DEMO_SERVE=0 ends after the board."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This fills the data folder with invented models. Use `make demo`, which has its own.")
        self.out: TextIO = getattr(self.stdout, "_out", sys.stdout)
        serves = os.environ.get("DEMO_SERVE", "1") != "0"
        self._say("Preparing the database ...")
        call_command("migrate", verbosity=0, interactive=False)
        try:
            with serve_in_thread() as endpoint, EmbeddedWorker():
                self._run(endpoint.base_url, serves=serves)
        except AlreadyRunning as error:
            raise CommandError("The demo runs already; stop the other one first.") from error
        except KeyboardInterrupt:
            self._say("\nStopped. `make demo` starts it again.")

    def _run(self, base_url: str, *, serves: bool) -> None:
        team, owner = demo.demo_team()
        tournament = demo.demo_tournament(team, owner, base_url)
        site = Site() if serves else None
        if site is not None:
            site.start()
        self._say(DEMO_LABEL)
        candidates, judges = tournament.candidates.count(), tournament.juries.get().judges.count()
        self._say(f"{tournament.name}: {candidates} candidates, {judges} judges, both seat orders")
        self._play(tournament)
        for line in board_lines(board_of_tournament(tournament)):
            self._say(line)
        finished = tournament.status == Tournament.Status.FINISHED
        if site is not None:
            self._say("")
            self._say(f"Site:       {site.url}")
            self._say(f"Log in:     {demo.login_link(owner, site.url)}   (works once)")
            self._say(f"Tournament: {demo.address_of(tournament, site.url)}")
            self._say("Ctrl-C stops it.")
            while True:
                time.sleep(3600)
        if not finished:
            raise CommandError(f"The tournament is {tournament.status}: {tournament.reason_text}")

    def _play(self, tournament: Tournament) -> None:
        progress = Progress(self.out)
        tournaments.start_tournament(tournament=tournament)
        while tournament.status == Tournament.Status.RUNNING:
            progress.show(standing_of(tournament))
            time.sleep(POLL_SECONDS)
            tournament.refresh_from_db()
        progress.end(standing_of(tournament))
        self._say(f"It {tournament.status}{demo.told_in(tournament.started_at, tournament.finished_at)}.")

    def _say(self, line: str) -> None:
        self.out.write(f"{line}\n")
        self.out.flush()
