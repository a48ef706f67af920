"""The file as a whole: what goes into the template, in the report's own language and time zone."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.safestring import mark_safe
from django.utils.text import slugify

from arena.judging.protocol import Protocol
from arena.manifest import manifest_of
from arena.models import Jury, Tournament
from arena.selectors.audit_cells import NoLinks, audit_context
from arena.selectors.jury_audit import kept_audit_of
from ratings.reports.answers import answer_lines
from ratings.reports.confidence import statements_of
from ratings.reports.examples import examples_of
from ratings.reports.provenance import NOTHING_GIVEN, Given
from ratings.selectors import (
    BoardView,
    drawn_scatter,
    drawn_tables,
    matrix_of,
    reported_board,
    slices_of,
)

# Fixed, whoever asks: the same records give the same file.
LANGUAGE = "en"
STYLES = ("tokens", "base", "components", "tables", "prose", "ratings", "juries", "print", "report")
# Beyond this the manifest would weigh more than the rest of the file; it lies beside the log of the run.
MANIFEST_CHARACTERS = 300_000
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CSS_SPACE = re.compile(r"\s+")


def report_html(tournament: Tournament, *, given: Given = NOTHING_GIVEN) -> str:
    """The report on a tournament as it was recorded. Reading changes no result and calls nobody."""
    with translation.override(LANGUAGE), timezone.override(dt.UTC):
        return render_to_string("ratings/report.html", _context(tournament, given))


def file_name(tournament: Tournament) -> str:
    name = slugify(tournament.name, allow_unicode=True)[:60] or "tournament"
    return f"{name}-{tournament.public_id}.report.html"


def _context(tournament: Tournament, given: Given) -> dict[str, Any]:
    jury = Jury.objects.select_related("tournament").get(tournament=tournament, primary=True)
    view = reported_board(tournament, jury)
    audit = kept_audit_of(jury)
    manifest = recorded_manifest(tournament)
    audited = audit_context(tournament, audit, NoLinks())
    # Of the audit, beside those of the board.
    audited["jury_categories"] = audited.pop("categories")
    style = styles()
    return (
        audited
        | _board(view)
        | {
            "tournament": tournament,
            "view": view,
            "style": mark_safe(style),  # noqa: S308 - the project's own files
            "style_hash": base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            "statements": statements_of(tournament, view=view, audit=audit, manifest=manifest, given=given),
            "answer_lines": answer_lines(tournament),
            "examples": examples_of(tournament, view=view),
            "protocol": Protocol.from_json(jury.protocol),
            "manifest": manifest,
            "is_demo": is_demo(manifest),
            "started": _moment(tournament.started_at),
            "finished": _moment(tournament.finished_at),
            "fitted": _moment(view.run.computed_at) if view.run else "",
            "settings_rows": _settings_rows(manifest),
            "entrants": [*manifest["candidates"]],
            "panel": [*manifest["judges"], *(one | {"stands_in": True} for one in manifest["replacement_judges"])],
            "manifest_text": _manifest_text(manifest),
        }
    )


def _board(view: BoardView) -> dict[str, Any]:
    if view.run is None or not view.tables:
        return {"tables": []}
    rows = view.tables[0].rows
    slices = slices_of(view.run)
    rated = [found for found in slices if found.rated]
    return {
        "tables": drawn_tables(view),
        "matrix": matrix_of(view.rows, view.run),
        "by_cost": drawn_scatter(rows, "mean_cost_usd"),
        "by_latency": drawn_scatter(rows, "median_latency_ms"),
        "slices": slices,
        "rated": [(found, found.leader(view.rows)) for found in rated],
        "thin": [found for found in slices if not found.rated],
        "lines": [(row, [found.cell(row) for found in rated]) for row in view.rows if row.stored.games],
    }


def recorded_manifest(tournament: Tournament) -> dict[str, Any]:
    """The manifest without what it takes from the present: versions that the run did not record stay unknown."""
    return manifest_of(tournament) | {"versions": tournament.settings.get("versions")}


def is_demo(manifest: dict[str, Any]) -> bool:
    """Whether an invented model took part."""
    entrants = [*manifest["candidates"], *manifest["judges"], *manifest["replacement_judges"]]
    return any(entrant["kind"] == "demo" for entrant in entrants)


def styles() -> str:
    """The site's own style sheets, without what a reader of the file does not need."""
    folder = Path(settings.BASE_DIR) / "static" / "css"
    texts = [(folder / f"{name}.css").read_text(encoding="utf-8") for name in STYLES]
    return CSS_SPACE.sub(" ", CSS_COMMENT.sub("", "\n".join(texts))).strip()


def _moment(value: dt.datetime | None) -> str:
    return "" if value is None else f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"


def _settings_rows(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """Every setting by its name in a configuration."""
    chosen = dict(manifest["settings"])
    protocol = chosen.pop("protocol")
    if manifest["imported"]:
        # Where the record has none, nought stands for it.
        chosen["seed"] = manifest["imported"].get("seed")
    named = [*chosen.items(), *((f"protocol.{name}", value) for name, value in sorted(protocol.items()))]
    return [(name, _plain(value)) for name, value in named if name != "protocol.criteria"]


def _plain(value: Any) -> str:
    if value is None or value == []:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _manifest_text(manifest: dict[str, Any]) -> str:
    text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
    return text if len(text) <= MANIFEST_CHARACTERS else ""
