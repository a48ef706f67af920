from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand

from arena.models import Tournament
from arena.services.extensions import extend_tournament
from arena.services.retries import retry_tournament
from arena.services.tournament_errors import TournamentError
from ratings.headless.asking import agreed, check_database, dollars, say
from ratings.headless.board_text import board_lines
from ratings.headless.endings import Exit
from ratings.headless.going_on import planned_extension
from ratings.headless.runs import carry_out, stored
from ratings.headless.yaml_tree import ConfigError


class Command(BaseCommand):
    help = "Go on with a tournament that is over: more matches, candidates or samples, or what failed once more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tournament", help="its id")
        parser.add_argument("--matches", type=int, metavar="N", help="the limit of matches, those played included")
        parser.add_argument("--candidate", action="append", default=[], metavar="MODEL", help="provider/model_id")
        parser.add_argument("--newest-samples", action="store_true", help="go on with the newest task set version")
        parser.add_argument("--retry", action="store_true", help="instead: call again what failed, and nothing else")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="a hard stop for all of the tournament")
        parser.add_argument("--yes", action="store_true", help="start without asking")
        parser.add_argument("--team", default="", help="name or id of the team; refuse a tournament of another team")
        parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where the files go; default: here")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verbosity"] < 2:
            for name in ("celery", "kombu", "arena"):
                logging.getLogger(name).setLevel(logging.WARNING)
        out: TextIO = getattr(self.stdout, "_out", sys.stdout)
        try:
            check_database()
            tournament = self._retried(options) if options["retry"] else self._extended(options, out)
            code = Exit.NOT_STARTED if tournament is None else self._carry_out(tournament, options["out"], out)
        except ConfigError as error:
            for problem in error.problems:
                self.stderr.write(problem)
            code = Exit.NOT_STARTED
        if code:
            raise SystemExit(int(code))

    @staticmethod
    def _retried(options: dict[str, Any]) -> Tournament:
        if options["matches"] or options["candidate"] or options["newest_samples"]:
            raise ConfigError(["Give either --retry or what to go on with, not both."])
        tournament = stored(options["tournament"], team=options["team"])
        try:
            retry_tournament(tournament=tournament)
        except TournamentError as error:
            raise ConfigError(error.problems) from error
        return tournament

    @staticmethod
    def _extended(options: dict[str, Any], out: TextIO) -> Tournament | None:
        tournament, extension, plan = planned_extension(
            options["tournament"],
            team=options["team"],
            max_matches=options["matches"],
            candidates=options["candidate"],
            newest_samples=options["newest_samples"],
            budget_usd=options["budget"],
        )
        if not agreed(plan, yes=options["yes"], out=out):
            return None
        try:
            extend_tournament(tournament=tournament, extension=extension)
        except TournamentError as error:
            raise ConfigError(error.problems) from error
        return tournament

    @staticmethod
    def _carry_out(tournament: Tournament, folder: Path, out: TextIO) -> Exit:
        outcome = carry_out(tournament, folder=folder, out=out)
        for line in (*board_lines(outcome.board), outcome.ending.sentence):
            say(out, line)
        return outcome.ending.code
