from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from arena.manifest import manifest_of
from arena.models import Jury, Tournament
from arena.selectors.audit_tables import document
from arena.selectors.jury_audit import audit_of
from ratings.headless.results import board_of_tournament

PARTS = ("manifest", "board", "audit")
FORMAT = "tiltyard.export"
SCHEMA_VERSION = 1


class Command(BaseCommand):
    help = "Print what a tournament came to: its manifest, its board and the audit of its jury."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tournament", help="id of the tournament, as its address has it")
        parser.add_argument("--json", action="store_true", help="everything as one JSON document")
        parser.add_argument(
            "--only", action="append", choices=PARTS, help="this part alone; may be given more than once"
        )
        parser.add_argument("--jury", default="", metavar="ID", help="audit another jury of the tournament")

    def handle(self, *_args: Any, **options: Any) -> None:
        tournament = Tournament.objects.filter(public_id=options["tournament"]).first()
        if tournament is None:
            raise CommandError(f"No tournament has the id {options['tournament']!r}.")
        jury = self._jury(tournament, options["jury"])
        if not options["json"]:
            self._print_words(tournament, jury)
            return
        makers = {
            "manifest": lambda: manifest_of(tournament),
            "board": lambda: board_of_tournament(tournament),
            "audit": lambda: document(tournament, jury, audit_of(jury, with_length_control=True)),
        }
        parts = {name: makers[name]() for name in options["only"] or PARTS}
        everything = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **parts}
        self.stdout.write(json.dumps(everything, ensure_ascii=False, indent=2))

    def _print_words(self, tournament: Tournament, jury: Jury) -> None:
        self.stdout.write(f"{tournament.name} ({tournament.status})")
        self.stdout.write(board_of_tournament(tournament)["verdict"])
        for finding in document(tournament, jury, audit_of(jury))["findings"]:
            self.stdout.write(f"{finding['kind']}: {finding['sentence']}")

    @staticmethod
    def _jury(tournament: Tournament, public_id: str) -> Jury:
        juries = Jury.objects.select_related("tournament").filter(tournament=tournament)
        jury = juries.filter(public_id=public_id).first() if public_id else juries.filter(primary=True).first()
        if jury is None:
            raise CommandError(f"The tournament has no jury {public_id!r}." if public_id else "It has no jury yet.")
        return jury
