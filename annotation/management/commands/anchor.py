from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.anchoring import Likeness
from annotation.management.campaigns import campaign_of, tournament_of
from annotation.models import Campaign
from annotation.selectors.anchor import Anchor, anchor_of, campaigns_over
from annotation.services.offline import FilesRefused, merge_votes
from arena.models import Tournament
from ratings.engine.agreement import Estimate

REFUSED = 2


class Command(BaseCommand):
    help = "Say how far the jury agrees with people; with --merge, take in files of votes that came back first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tournament", nargs="?", default="", help="id of the tournament, as its address has it")
        parser.add_argument("--campaign", default="", metavar="ID", help="the votes of this campaign alone")
        parser.add_argument(
            "--merge", nargs="+", type=Path, default=[], metavar="FILE", help="files of votes from offline pages"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        tournament = tournament_of(options["tournament"]) if options["tournament"] else None
        chosen = campaign_of(options["campaign"]) if options["campaign"] else None
        if options["merge"]:
            self._merge(options["merge"])
        elif tournament is None and chosen is None:
            raise CommandError("Name a tournament or a campaign, or files with --merge.")
        if tournament is not None or chosen is not None:
            campaigns = [chosen] if chosen is not None else list(campaigns_over(tournament)) if tournament else []
            self._print(campaigns, tournament)

    def _merge(self, paths: list[Path]) -> None:
        try:
            merged = merge_votes(paths)
        except FilesRefused as refusal:
            lines = [str(problem) for problem in refusal.problems]
            raise CommandError("\n".join([*lines, "Nothing was merged."]), returncode=REFUSED) from refusal
        for one in merged:
            self.stdout.write(f"{one.file}: {one.new} new votes of {one.rater}, {one.again} were here before.")

    def _print(self, campaigns: list[Campaign], tournament: Tournament | None) -> None:
        found: Anchor = anchor_of(campaigns, tournament)
        self.stdout.write(f"{found.votes} votes of {found.voters} raters on the matches of the jury.")
        self._line("people", found.pooled)
        for rater in found.raters:
            self._line(f"  {rater.rater}", rater.found)
        for judge in found.judges:
            self._line(f"judge {judge.full_id}", judge.found)
        if found.best is not None:
            self.stdout.write(f"{found.best.full_id} agrees with people best, by kappa.")

    def _line(self, name: str, found: Likeness) -> None:
        ranks = found.ranks
        spearman, kendall = (("–" if value is None else f"{value:.2f}") for value in (ranks.spearman, ranks.kendall))
        self.stdout.write(
            f"{name}: {found.rounds} rounds, kappa {_kappa(found.kappa)}, Spearman {spearman}, Kendall {kendall} "
            f"({ranks.n} candidates)"
        )


def _kappa(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined ({(estimate.reason or '').replace('_', ' ')})"
    if estimate.lower is None or estimate.upper is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.lower:.2f}, {estimate.upper:.2f}]"
