from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from arena.ingest.recorded import RunReading
from arena.management.teams import team_named
from arena.services.recorded_runs import RunError, import_run, read_run

# What a script can tell apart: 1 is a command that was given wrongly, 2 a record that was not taken.
REFUSED = 2


class Command(BaseCommand):
    help = "Import a run that orq-arena or JuryArena recorded as a finished tournament. No model is called."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the log, its folder, or a ZIP archive")
        parser.add_argument("--team", default="", help="name or id of the team; may be left out where there is one")
        parser.add_argument("--name", default="", help="name of the tournament; by default as the record calls it")
        parser.add_argument("--check", action="store_true", help="say what is wrong and store nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        path: Path = options["path"]
        team = None if options["check"] else team_named(options["team"])
        try:
            self._say(f"Reading {path} ...")
            reading = read_run(path)
            self._tell(reading)
            if not reading.clean:
                raise CommandError("Nothing was imported.", returncode=REFUSED)
            if team is None:
                self._say("Nothing was imported, as asked.")
                return
            imported = import_run(team=team, path=path, actor=None, name=options["name"], reading=reading)
        except RunError as error:
            raise CommandError("\n".join([*error.problems, "Nothing was imported."]), returncode=REFUSED) from error
        for one in imported:
            state = "Imported" if one.is_new else "Nothing changed: this run was imported before as"
            self._say(f"{state} {one.tournament.name}, id {one.tournament.public_id}.")

    def _tell(self, reading: RunReading) -> None:
        for problem in reading.problems:
            prefix = "warning: " if problem.severity == "warning" else ""
            self._say(f"{prefix}{problem}")
        hidden = reading.error_count + reading.warning_count - len(reading.problems)
        if hidden:
            self._say(f"... and {hidden} more problems.")
        for run in reading.runs:
            self._say(
                f"{run.source} {run.name}: {len(run.matches)} matches, {len(run.candidates)} candidates, "
                f"{len(run.judges)} judges, {len(run.answers)} answers."
            )
            if run.not_recorded:
                self._say(f"Not in the record: {', '.join(run.not_recorded)}.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
