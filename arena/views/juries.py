"""The audit of a jury: words first, then tables with bars, each figure with the matches behind it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.text import slugify

from arena.models import Jury, Role, Tournament
from arena.selectors.audit_cells import audit_context
from arena.selectors.audit_tables import TABLES, document
from arena.selectors.jury_audit import kept_audit_of
from arena.selectors.rejudging import ENDED
from arena.views.access import TeamRequest, team_view
from arena.views.tournaments import tournament_or_404

READ = ("GET", "HEAD")
# What a spreadsheet would take for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


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
    context = audit_context(found, audit, _Links(request, found, jury)) | {
        "nav_section": "tournaments",
        "tournament": found,
        "jury": jury,
        "juries": list(found.juries.order_by("-primary", "created_at")),
        "tables": list(TABLES),
        "can_rejudge": found.status in ENDED and request.membership.at_least(Role.ADMIN),
        "jury_query": "" if jury.primary else f"?jury={jury.public_id}",
    }
    return render(request, "arena/juries/audit.html", context)


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
