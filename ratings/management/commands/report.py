from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from arena.models import Jury, Tournament
from ratings.headless.results import refitted, write_text
from ratings.reports import Given, file_name, report_html


class Command(BaseCommand):
    help = "Write the report of a tournament: one HTML file that opens anywhere, made of what was recorded alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tournament", help="id of the tournament, as its address has it")
        parser.add_argument("--out", type=Path, metavar="FILE", help="default: NAME-ID.report.html here")
        parser.add_argument(
            "--manifest",
            type=Path,
            metavar="FILE",
            help="a manifest to hold against what was recorded",
        )
        parser.add_argument(
            "--config", type=Path, metavar="FILE", help="a configuration to hold against the recorded hash"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        tournaments = Tournament.objects.select_related("team", "task_set")
        tournament = tournaments.filter(public_id=options["tournament"]).first()
        if tournament is None:
            raise CommandError(f"No tournament has the id {options['tournament']!r}.")
        jury = Jury.objects.filter(tournament=tournament, primary=True).first()
        if jury is None:
            raise CommandError("It has no jury yet, so there is nothing to report.")
        given = _given(options["manifest"], options["config"])
        refitted(tournament, jury)
        path: Path = options["out"] or Path(file_name(tournament))
        try:
            write_text(path, report_html(tournament, given=given))
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"Wrote {path}")


def _given(manifest: Path | None, configuration: Path | None) -> Given:
    return Given(
        manifest=_content(manifest),
        manifest_name=manifest.name if manifest else "",
        configuration=_content(configuration),
        configuration_name=configuration.name if configuration else "",
    )


def _content(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
