"""The audit of a jury: words first, then tables with bars, each figure with the matches behind it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from arena.judging.audit import Audit, JudgeFigures
from arena.models import Jury, Role, Tournament
from arena.selectors.advice import meaning_of
from arena.selectors.audit_tables import TABLES, document
from arena.selectors.audit_words import (
    Finding,
    count_words,
    decimal_words,
    findings_of,
    interval,
    label_words,
    percent,
    place_of,
    reason_words,
    share_words,
)
from arena.selectors.jury_audit import kept_audit_of
from arena.selectors.rejudging import ENDED
from arena.views.access import TeamRequest, team_view
from arena.views.tournaments import tournament_or_404
from ratings.engine.agreement import Estimate, Wilson

READ = ("GET", "HEAD")
# What a spreadsheet would take for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
RECORDED_DEPTH = 3
RECORDED_ROWS = 200


@dataclass(frozen=True)
class Bar:
    """Places on an axis from 0 to 100 %, for SVG attributes."""

    start: str
    end: str
    point: str


@dataclass(frozen=True)
class ShareCell:
    """A share as text, as a bar, and the matches behind it."""

    text: str
    note: str
    bar: Bar | None = None
    href: str = ""
    stands_out: bool = False


@dataclass(frozen=True)
class JudgeRow:
    figures: JudgeFigures
    seat: ShareCell
    longer: ShareCell
    flips: ShareCell
    ties: ShareCell
    own: ShareCell
    kin: ShareCell
    errors: list[tuple[str, Any, str, str]]
    links: Mapping[str, str]

    @property
    def label(self) -> str:
        return self.figures.judge.label


class _Links:
    """Addresses in the match browser, which knows the primary jury alone."""

    def __init__(self, request: TeamRequest, tournament: Tournament, jury: Jury) -> None:
        kwargs = {"team": request.team.public_id, "tournament": tournament.public_id}
        self._base = reverse("arena:match-list", kwargs=kwargs) if jury.primary else ""

    def to(self, **query: str) -> str:
        return f"{self._base}?{urlencode(query)}" if self._base and query else ""


def _jury(request: TeamRequest, public_id: str) -> tuple[Tournament, Jury]:
    tournament = tournament_or_404(request, public_id)
    juries = Jury.objects.select_related("tournament").filter(tournament=tournament)
    wanted = request.GET.get("jury", "")
    jury = get_object_or_404(juries, public_id=wanted) if wanted else juries.filter(primary=True).first()
    if jury is None:
        raise Http404("no jury")
    return tournament, jury


@team_view(Role.MEMBER, methods=READ)
def jury_audit(request: TeamRequest, tournament: str) -> HttpResponse:
    found, jury = _jury(request, tournament)
    audit = kept_audit_of(jury)
    links = _Links(request, found, jury)
    imported = found.settings.get("imported")
    context = {
        "nav_section": "tournaments",
        "tournament": found,
        "jury": jury,
        "juries": list(found.juries.order_by("-primary", "created_at")),
        "audit": audit,
        "findings": _findings(findings_of(audit, imported), links),
        "judges": [_judge_row(figures, links) for figures in audit.judges],
        "statistics": _statistics(audit),
        "pairs": _pairs(audit, links),
        "patterns": _patterns(audit, links),
        "categories": _categories(audit, links),
        "tables": list(TABLES),
        "imported": imported,
        "can_rejudge": found.status in ENDED and request.membership.at_least(Role.ADMIN),
        "recorded": list(_recorded((imported or {}).get("recorded", {})))[:RECORDED_ROWS],
        "jury_query": "" if jury.primary else f"?jury={jury.public_id}",
    }
    return render(request, "arena/juries/audit.html", context)


def _findings(findings: list[Finding], links: _Links) -> list[tuple[Finding, str]]:
    return [(finding, links.to(**finding.query)) for finding in findings]


# Cells -------------------------------------------------------------------------------------------------------
def _bar(share: Wilson) -> Bar | None:
    if share.share is None or share.lower is None or share.upper is None:
        return None
    # A margin at both ends, so that strokes at 0 and 100 % are whole.
    start, end, point = (f"{2 + 96 * value:.2f}%" for value in (share.lower, share.upper, share.share))
    return Bar(start, end, point)


def _cell(
    share: Wilson | None, href: str = "", *, note: str = "", stands_out: bool = False, without: str = ""
) -> ShareCell:
    if share is None:
        return ShareCell(without or _("not recorded"), "")
    if share.share is None:
        return ShareCell("–", note)
    words = f"{share_words(share)}, {interval(share)}"
    return ShareCell(percent(share.share), f"{words}{note}", _bar(share), href, stands_out)


def _others(share: Wilson) -> str:
    return "" if share.share is None else _("; the others %(share)s") % {"share": percent(share.share)}


def _judge_row(figures: JudgeFigures, links: _Links) -> JudgeRow:
    place = place_of(figures.judge)

    def to(did: str) -> str:
        return links.to(judge=place, did=did)

    own = figures.own
    errors = [
        (code, meaning_of(code)[0], count_words(count), links.to(judge=place, error=code))
        for code, count in sorted(figures.errors.items())
    ]
    return JudgeRow(
        figures=figures,
        seat=_cell(figures.first_seat, to("first_seat"), stands_out=bool(figures.prefers_seat)),
        longer=_cell(
            figures.longer.own,
            to("longer"),
            note=_others(figures.longer.others),
            stands_out=figures.longer.stands_out,
        ),
        flips=_cell(figures.flips, to("flipped"), without=_("one order only")),
        ties=_cell(figures.ties, to("tie")),
        own=_cell(
            own.votes.own if own else Wilson(0, 0, None, None, None),
            to("itself"),
            note=_others(own.votes.others) if own else "",
            stands_out=bool(own and own.stands_out),
        ),
        kin=_cell(figures.kin.own, to("kin"), note=_others(figures.kin.others), stands_out=figures.kin.stands_out),
        errors=errors,
        links={did: to(did) for did in ("tie", "abstained", "failed", "excluded", "input_skipped", "played")},
    )


# Of the panel ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class StatisticRow:
    name: str
    cells: list[tuple[str, str]]


def _statistics(audit: Audit) -> list[StatisticRow]:
    names = {
        "modal_share": _("Mean modal share"),
        "fleiss": _("Fleiss' kappa"),
        "alpha": _("Krippendorff's alpha"),
        "ac1": _("Gwet's AC1"),
    }
    codings = [audit.agreement["ties_merged"], audit.agreement["decisive"]]
    return [StatisticRow(title, [_estimate(getattr(one, name)) for one in codings]) for name, title in names.items()]


def _estimate(estimate: Estimate) -> tuple[str, str]:
    if estimate.value is None:
        return "–", reason_words(estimate)
    notes = [label_words(estimate.label)] if estimate.label else []
    if estimate.lower is not None and estimate.upper is not None:
        ends = {"low": decimal_words(estimate.lower), "high": decimal_words(estimate.upper)}
        notes.append(_("%(low)s to %(high)s") % ends)
    notes.append(_("%(n)s matches") % {"n": count_words(estimate.units)})
    return decimal_words(estimate.value), ", ".join(notes)


def _pairs(audit: Audit, links: _Links) -> list[tuple[str, str, str, str, str]]:
    judges = {figures.judge.id: figures.judge for figures in audit.judges}
    rows = []
    for (one, other), estimate in audit.agreement["ties_merged"].cohen.items():
        # Raters of the engine are named by whatever can be a key; here it is the judge's.
        first, second = judges[one], judges[other]  # type: ignore[index]
        rows.append(
            (first.label, second.label, *_estimate(estimate), links.to(judge=place_of(first), other=place_of(second)))
        )
    return rows


def _patterns(audit: Audit, links: _Links) -> list[tuple[str, int, int, str, str]]:
    most = max((pattern.matches for pattern in audit.patterns), default=1)
    return [
        (
            pattern.signs,
            pattern.matches,
            pattern.conclusive,
            f"{100 * pattern.matches / most:.2f}%",
            links.to(votes=pattern.signs or "none"),
        )
        for pattern in audit.patterns
    ]


def _categories(audit: Audit, links: _Links) -> list[tuple[str, int, ShareCell]]:
    return [
        (
            one.category,
            one.judged,
            _cell(one.inconclusive, links.to(category=one.category or "-", result="inconclusive")),
        )
        for one in audit.categories
    ]


def _recorded(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Single figures of a record, by their path in it."""
    if isinstance(value, Mapping) and path.count(".") < RECORDED_DEPTH:
        for key, item in value.items():
            yield from _recorded(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (str, int, float)) and path:
        yield path, str(value)


# Downloads ---------------------------------------------------------------------------------------------------
class _Echo:
    def write(self, text: str) -> str:
        return text


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    columns = list(rows[0]) if rows else []
    # Spreadsheets take a file without this mark for one in the system's own encoding.
    yield "\ufeff" + writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_safe(row[column]) for column in columns])


@team_view(Role.MEMBER, methods=READ)
def jury_table(request: TeamRequest, tournament: str, table: str) -> HttpResponseBase:
    found, jury = _jury(request, tournament)
    if table not in TABLES:
        raise Http404("no such table")
    rows = list(TABLES[table](kept_audit_of(jury)))
    response = StreamingHttpResponse(_lines(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_name(found)}-{table}.csv"'
    return response


@team_view(Role.MEMBER, methods=READ)
def jury_json(request: TeamRequest, tournament: str) -> HttpResponse:
    found, jury = _jury(request, tournament)
    data = document(found, jury, kept_audit_of(jury))
    response = JsonResponse(data, json_dumps_params={"ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{_name(found)}-jury.json"'
    return response


def _name(tournament: Tournament) -> str:
    return slugify(tournament.name) or "tournament"
