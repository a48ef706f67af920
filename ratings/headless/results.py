"""The files a run leaves: the log of its matches, what it was, and its board."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.text import slugify

from arena.manifest import manifest_of
from arena.models import Jury, Match, Tournament
from ratings.models import Leaderboard, RatingRun
from ratings.reports import report_html
from ratings.selectors import Row, board_of, ratings_of
from ratings.services import leaderboard_for, refit

FORMAT = "tiltyard.board"
SCHEMA_VERSION = 1
WAIT_FOR_REFIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Files:
    """Named after the tournament and its id, so that no run writes over another and a resumed one finds its own."""

    matches: Path
    manifest: Path
    board: Path
    report: Path

    @classmethod
    def of(cls, folder: Path, tournament: Tournament) -> Files:
        name = slugify(tournament.name, allow_unicode=True)[:60] or "tournament"
        stem = f"{name}-{tournament.public_id}"
        return cls(
            folder / f"{stem}.jsonl",
            folder / f"{stem}.run.json",
            folder / f"{stem}.board.json",
            folder / f"{stem}.report.html",
        )

    def write_summaries(self, tournament: Tournament) -> dict[str, Any]:
        """The manifest, the board and the report as they are now; returns the board."""
        _write(self.manifest, manifest_of(tournament))
        board = board_of_tournament(tournament)
        _write(self.board, board)
        jury = Jury.objects.get(tournament=tournament, primary=True)
        refitted(tournament, jury)
        write_text(self.report, report_html(tournament))
        return board


def _write(path: Path, value: Any) -> None:
    write_text(path, f"{json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)}\n")


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def refitted(tournament: Tournament, jury: Jury) -> None:
    """The board that a report reads, fitted on all that is decided."""
    _refitted(leaderboard_for(tournament, jury, ties=Leaderboard.Ties.HALF_WIN))


def write_board(folder: Path, tournament: Tournament, jury: Jury) -> tuple[Path, dict[str, Any]]:
    """The board of another jury, beside the files of its tournament."""
    path = Files.of(folder, tournament).board
    path = path.with_name(path.name.replace(".board.json", f"-{jury.public_id}.board.json"))
    board = board_of_tournament(tournament, jury)
    _write(path, board)
    return path, board


def board_of_tournament(tournament: Tournament, jury: Jury | None = None) -> dict[str, Any]:
    jury = jury or Jury.objects.get(tournament=tournament, primary=True)
    board = leaderboard_for(tournament, jury)
    _refitted(board)
    verdict = board_of(board).verdict
    run = board.runs.published().first()
    counts = tournament.matches.order_by()
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "tournament_id": tournament.public_id,
        "jury_id": jury.public_id,
        "jury": jury.name or None,
        "name": tournament.name,
        "status": tournament.status,
        "reason": tournament.reason,
        "matches": {status: counts.filter(status=status).count() for status in sorted(Match.Status.values)},
        "verdict": verdict.plain,
        "caveats": [str(caveat) for caveat in verdict.caveats],
        "run": None if run is None else _run(run),
        "ratings": [] if run is None else [_rating(row) for row in ratings_of(run)],
    }


def _refitted(board: Leaderboard) -> None:
    """Fit on all that is decided. A refit that somebody else is at is waited for, and then looked at again."""
    deadline = time.monotonic() + WAIT_FOR_REFIT_SECONDS
    while True:
        refit(board.pk)
        board.refresh_from_db()
        busy = board.lease_until is not None and board.lease_until > timezone.now()
        if not busy or time.monotonic() > deadline:
            return
        time.sleep(0.1)


def _run(run: RatingRun) -> dict[str, Any]:
    return {
        "id": run.public_id,
        "computed_at": run.computed_at.isoformat(),
        "ties": run.ties,
        "ridge": run.ridge,
        "ridge_by_default": run.ridge_by_default,
        "settings": run.settings,
        "comparisons": run.comparisons,
        "samples": run.samples,
        "converged": run.converged,
        "evidence_hash": run.evidence_hash,
        # Enough to derive every rating again.
        "roster": run.roster,
        "triples": run.triples,
    }


def _rating(line: Row) -> dict[str, Any]:
    row = line.stored
    return {
        "model": line.full_id,
        "label": line.label,
        "benched": line.benched,
        "rating": row.rating,
        "rating_std_error": row.rating_std_error,
        # A null end beside a rating is an open end.
        "confidence_interval": {"lower": row.ci_lower, "upper": row.ci_upper},
        "component_id": row.component_id,
        "rank": row.rank,
        "rank_from": row.rank_from,
        "rank_to": row.rank_to,
        "held_by_prior": row.held_by_prior,
        "win_share": row.win_share,
        "games": row.games,
        "wins": row.wins,
        "losses": row.losses,
        "ties": row.ties,
        "mean_cost_usd": _money(row.mean_cost_usd),
        "median_latency_ms": row.median_latency_ms,
    }


def _money(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")
