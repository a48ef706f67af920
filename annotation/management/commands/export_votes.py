from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.management.campaigns import campaign_of
from annotation.selectors.exports import SOURCES, ExportFilter
from annotation.services.exports import write_folder


def day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no day such as 2026-11-30") from error


class Command(BaseCommand):
    help = "Write the votes of a campaign into a folder: JSONL, CSV, preference pairs, KTO rows and a dataset card."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("campaign", help="id of the campaign, as its address has it")
        parser.add_argument("folder", type=Path, help="where to; files of the same names are replaced")
        parser.add_argument("--since", type=day, metavar="DAY", help="from this day on")
        parser.add_argument("--until", type=day, metavar="DAY", help="up to and with this day")
        parser.add_argument("--rater", default="", metavar="ID", help="one rater's alone, by pseudonym or id")
        parser.add_argument("--category", default="", help="of one category alone")
        parser.add_argument(
            "--source",
            choices=SOURCES,
            default="people",
            help="people; jury; both: all events, and pairs on which the two agree",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        campaign = campaign_of(options["campaign"])
        names = ("since", "until", "rater", "category", "source")
        chosen = ExportFilter(**{name: options[name] for name in names})
        try:
            written = write_folder(campaign=campaign, chosen=chosen, folder=options["folder"])
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be written: {error.strerror}.") from error
        for name, count in written.items():
            self.stdout.write(f"{name}: {count - 1 if name.endswith('.csv') else count} rows")
