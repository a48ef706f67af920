from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from arena.ingest import Inspection
from arena.management.teams import team_named
from arena.models import TaskSet, Team
from arena.services.task_set_errors import NothingChanged, TaskSetError
from arena.services.task_set_files import inspect_path
from arena.services.task_sets import import_path

# What a script can tell apart: 1 is a command that was given wrongly, 2 an upload that was not taken.
REFUSED = 2
PROGRESS_EVERY = 500


class Command(BaseCommand):
    help = "Import a task set from a folder, a JSONL, CSV or TSV file, or a ZIP archive."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the folder, file or archive")
        parser.add_argument("--team", default="", help="name or id of the team; may be left out where there is one")
        parser.add_argument("--name", default="", help="name of the task set; by default that of the file")
        parser.add_argument("--new-version-of", default="", metavar="NAME", help="make a new version of this task set")
        parser.add_argument("--only-good", action="store_true", help="leave out the samples that have problems")
        parser.add_argument("--check", action="store_true", help="say what is wrong and store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        team = None if options["check"] else team_named(options["team"])
        replaces = _task_set(team, options["new_version_of"]) if team and options["new_version_of"] else None
        try:
            self._say(f"Checking {path} ...")
            inspection = inspect_path(path)
            self._print_problems(inspection)
            acceptable = inspection.usable if options["only_good"] else inspection.clean
            if not acceptable:
                hint = " --only-good would take the others." if inspection.usable else ""
                raise CommandError(f"Nothing was stored.{hint}", returncode=REFUSED)
            if team is None:
                self._say("Nothing was stored, as asked.")
                return
            task_set = import_path(
                team=team,
                path=path,
                actor=None,
                name=options["name"],
                only_good=options["only_good"],
                replaces=replaces,
                inspection=inspection,
                progress=self._progress(inspection.good_count),
            )
        except NothingChanged as unchanged:
            self._say(str(unchanged))
            return
        except TaskSetError as error:
            raise CommandError("\n".join([*error.problems, "Nothing was stored."]), returncode=REFUSED) from error
        self._say(f"Stored {task_set}: {task_set.sample_count} samples, id {task_set.public_id}.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)

    def _print_problems(self, inspection: Inspection) -> None:
        for problem in inspection.problems:
            prefix = "warning: " if problem.severity == "warning" else ""
            self._say(f"{prefix}{problem}")
        hidden = inspection.problem_count - len(inspection.problems)
        if hidden:
            self._say(f"... and {hidden} more problems.")
        self._say(
            f"Good samples: {inspection.good_count} of {inspection.sample_count}. "
            f"Errors: {inspection.error_count}. Warnings: {inspection.warning_count}."
        )

    def _progress(self, total: int) -> Any:
        in_terminal = sys.stdout.isatty() and self.stdout.isatty()

        def tell(done: int) -> None:
            if in_terminal:
                filled = 30 * done // max(total, 1)
                end = "\n" if done >= total else ""
                self.stdout.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done} of {total} read{end}", ending="")
                self.stdout.flush()
            elif done % PROGRESS_EVERY == 0:
                self._say(f"{done} of {total} read")

        return tell


def _task_set(team: Team, name: str) -> TaskSet:
    found = list(TaskSet.objects.filter(team=team, name__iexact=name).newest_versions()[:2])
    if len(found) != 1:
        raise CommandError(f"{team.name} has {'several task sets' if found else 'no task set'} named {name!r}.")
    return found[0]
