from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.services.imports import VotesRefused, import_votes
from arena.management.teams import team_named

REFUSED = 2


class Command(BaseCommand):
    help = "Read a votes.jsonl into a closed campaign of its own, with the prompts, models and answers it names."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a votes.jsonl that was exported without a filter")
        parser.add_argument("--team", default="", help="name or id of the team; may be left out where there is one")
        parser.add_argument("--name", default="", help="name of the campaign; by default as the file calls it")

    def handle(self, *_args: Any, **options: Any) -> None:
        team = team_named(options["team"])
        try:
            imported = import_votes(team=team, path=options["path"], name=options["name"])
        except VotesRefused as refusal:
            lines = [str(problem) for problem in refusal.problems]
            raise CommandError("\n".join([*lines, "Nothing was imported."]), returncode=REFUSED) from refusal
        campaign = imported.campaign
        state = "Imported" if imported.is_new else "Nothing changed: these votes were imported before as"
        self.stdout.write(f"{state} {campaign.name}, id {campaign.public_id}: {imported.votes} events.")
