from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand

from arena.models import Jury
from arena.services.rejudges import start_rejudge
from arena.services.tournament_errors import TournamentError
from ratings.headless.asking import agreed, check_database, dollars, say
from ratings.headless.board_text import board_lines
from ratings.headless.endings import Exit
from ratings.headless.going_on import planned_rejudge, rejudge_to_resume, see_rejudge_through
from ratings.headless.progress import Progress
from ratings.headless.yaml_tree import ConfigError


class Command(BaseCommand):
    help = "Let another jury judge the recorded answers of a tournament that is over; only judges are called."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tournament", help="its id")
        parser.add_argument("config", nargs="?", type=Path, help="who judges and how, a YAML file")
        parser.add_argument("--yes", action="store_true", help="start without asking")
        parser.add_argument("--resume", default="", metavar="ID", help="go on with a rejudge instead")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="a hard stop; replaces the one of the file")
        parser.add_argument("--team", default="", help="name or id of the team; refuse a tournament of another team")
        parser.add_argument(
            "--out", type=Path, default=Path(), metavar="DIR", help="where the board goes; default: here"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verbosity"] < 2:
            for name in ("celery", "kombu", "arena"):
                logging.getLogger(name).setLevel(logging.WARNING)
        out: TextIO = getattr(self.stdout, "_out", sys.stdout)
        try:
            check_database()
            jury = self._jury(options, out)
            code = Exit.NOT_STARTED if jury is None else self._see_through(jury, options["out"], out)
        except ConfigError as error:
            for problem in error.problems:
                self.stderr.write(problem)
            code = Exit.NOT_STARTED
        if code:
            raise SystemExit(int(code))

    @staticmethod
    def _jury(options: dict[str, Any], out: TextIO) -> Jury | None:
        if bool(options["config"]) == bool(options["resume"]):
            raise ConfigError(["Give either a configuration or --resume ID: a rejudge goes on as it was stored."])
        names = {"team": options["team"], "budget_usd": options["budget"]}
        if options["resume"]:
            return rejudge_to_resume(options["tournament"], options["resume"], **names)
        spec, plan = planned_rejudge(options["tournament"], options["config"], **names)
        if not agreed(plan, yes=options["yes"], out=out):
            return None
        try:
            return start_rejudge(spec=spec, actor=None)
        except TournamentError as error:
            raise ConfigError(error.problems) from error

    @staticmethod
    def _see_through(jury: Jury, folder: Path, out: TextIO) -> Exit:
        say(out, f"Rejudge {jury.public_id}: {jury.name}")
        ended = see_rejudge_through(jury, folder=folder, progress=Progress(out))
        for line in (*board_lines(ended.board), ended.sentence, f"Wrote {ended.path}"):
            say(out, line)
        return ended.code
