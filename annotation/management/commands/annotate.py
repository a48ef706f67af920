from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from annotation.management.campaigns import campaign_of
from annotation.management.offline_page import offline_page
from annotation.services.offline import send_pairs
from arena.services.members import Refused

PAIRS, HOLD_DAYS = 50, 14


class Command(BaseCommand):
    help = "Write one HTML file in which somebody without an account votes blind; `anchor --merge` takes the votes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("campaign", help="id of an open campaign, as its address has it")
        parser.add_argument("--label", required=True, metavar="NAME", help="whom the page is for; not in the page")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the HTML file to write")
        parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"pairs at most, {PAIRS} by default")
        parser.add_argument(
            "--hold-days", type=int, default=HOLD_DAYS, metavar="N", help=f"hold their places, {HOLD_DAYS} by default"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        out: Path = options["out"]
        if out.exists():
            raise CommandError(f"{out} exists. Every page is another rater's: choose another name.")
        if not 1 <= options["hold_days"] <= 365:
            raise CommandError("--hold-days must be from 1 to 365.")
        campaign = campaign_of(options["campaign"])
        try:
            # Without the file there is no rater.
            with transaction.atomic():
                rater, assignments = send_pairs(
                    campaign=campaign,
                    label=options["label"],
                    pairs=options["pairs"],
                    hold_days=options["hold_days"],
                )
                out.write_text(offline_page(campaign, rater, assignments), encoding="utf-8")
        except Refused as refusal:
            raise CommandError(str(refusal)) from refusal
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{out}: {len(assignments)} pairs for {rater}, id {rater.public_id}.")
        if len(assignments) < options["pairs"]:
            self.stdout.write("The pool has no more for one rater at the moment.")
        self.stdout.write("The page saves a file of votes. Take it in: manage.py anchor --merge FILE")
