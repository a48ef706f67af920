from __future__ import annotations

import json
import logging
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand

from arena.models import Tournament
from arena.selectors.plan import Plan
from arena.services import workers
from ratings.headless.asking import agreed, check_database, dollars
from ratings.headless.board_text import board_lines
from ratings.headless.endings import EXIT_CODES, Exit
from ratings.headless.plan_text import plan_json
from ratings.headless.runs import Outcome, begin, carry_out, planned, to_resume
from ratings.headless.yaml_tree import ConfigError


class Command(BaseCommand):
    help = "Run a tournament from a configuration file: plan and cost first, then the run, its log and its board."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        return super().create_parser(
            prog_name, subcommand, epilog=EXIT_CODES, formatter_class=RawDescriptionHelpFormatter, **kwargs
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("config", nargs="?", type=Path, help="the configuration, a YAML file")
        parser.add_argument("--yes", action="store_true", help="start without asking")
        parser.add_argument("--team", default="", help="name or id of the team; may be left out where there is one")
        parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where the files go; default: here")
        parser.add_argument("--resume", default="", metavar="ID", help="go on with a tournament instead")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="a hard stop; replaces the one of the file")
        parser.add_argument("--json", action="store_true", help="print JSON on standard output, all else on error")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verbosity"] < 2:
            # The worker in this process would report each task between the lines of the progress.
            for name in ("celery", "kombu", "arena"):
                logging.getLogger(name).setLevel(logging.WARNING)
        # Plain text on either stream: Django's wrapper would add line ends to a progress bar.
        self.told: TextIO = getattr((self.stderr if options["json"] else self.stdout), "_out", sys.stdout)
        try:
            code = self._run(options)
        except ConfigError as error:
            code = self._refuse(error, options)
        except KeyboardInterrupt:
            self._leave_at_once()
        if code:
            raise SystemExit(int(code))

    def _run(self, options: dict[str, Any]) -> Exit:
        check_database()
        if bool(options["config"]) == bool(options["resume"]):
            raise ConfigError(["Give either a configuration or --resume ID: a run goes on as it was stored."])
        if options["resume"]:
            tournament = to_resume(options["resume"], team=options["team"], budget_usd=options["budget"])
        else:
            spec, plan = planned(options["config"], team=options["team"], budget_usd=options["budget"])
            if not self._agreed(plan, options):
                return Exit.NOT_STARTED
            tournament = begin(spec)
        self._say(f"Tournament {tournament.public_id}: {tournament.name}")
        return self._conclude(carry_out(tournament, folder=options["out"], out=self.told), options)

    def _say(self, text: str) -> None:
        self.told.write(f"{text}\n")
        self.told.flush()

    def _agreed(self, plan: Plan, options: dict[str, Any]) -> bool:
        if agreed(plan, yes=options["yes"], out=self.told):
            return True
        if options["json"]:
            self._print_json({"started": False, "exit_code": int(Exit.NOT_STARTED), "plan": plan_json(plan)})
        return False

    def _conclude(self, outcome: Outcome, options: dict[str, Any]) -> Exit:
        for line in board_lines(outcome.board):
            self._say(line)
        self._say(outcome.ending.sentence)
        for path in (outcome.files.matches, outcome.files.manifest, outcome.files.board, outcome.files.report):
            self._say(f"Wrote {path}")
        if options["json"]:
            self._print_json(_summary(outcome))
        return outcome.ending.code

    def _refuse(self, error: ConfigError, options: dict[str, Any]) -> Exit:
        for problem in error.problems:
            self.stderr.write(problem)
        if options["json"]:
            self._print_json({"started": False, "exit_code": int(Exit.NOT_STARTED), "problems": error.problems})
        return Exit.NOT_STARTED

    def _print_json(self, value: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(value, ensure_ascii=False, indent=2))

    def _leave_at_once(self) -> None:
        """Threads in the middle of a call would keep the process alive; its rows are freed and sent anew."""
        workers.forget()
        self._say("Left at once. Calls in flight are lost; the tournament can be resumed.")
        os._exit(int(Exit.INTERRUPTED))


def _summary(outcome: Outcome) -> dict[str, Any]:
    tournament: Tournament = outcome.tournament
    return {
        "started": True,
        "exit_code": int(outcome.ending.code),
        "ending": outcome.ending.sentence,
        "tournament_id": tournament.public_id,
        "status": tournament.status,
        "reason": tournament.reason,
        "files": {
            "matches": str(outcome.files.matches),
            "manifest": str(outcome.files.manifest),
            "board": str(outcome.files.board),
            "report": str(outcome.files.report),
        },
        "board": outcome.board,
    }
