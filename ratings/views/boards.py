from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify

from arena.models import Jury, Role, Tournament
from arena.views.access import TeamRequest, team_view
from ratings import charts, services
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import BoardView, Row, board_of, existing_board, runs_of, wording
from ratings.views import downloads

READ = ("GET", "HEAD")
RUNS_PER_PAGE = 50


@dataclass(frozen=True)
class DrawnTable:
    number: int
    rows: list[tuple[Row, charts.Bar | None]]
    chart: charts.IntervalChart
    # Places on the axis and what stands there.
    labels: list[tuple[str, str]]


def _tournament(request: TeamRequest, public_id: str) -> tuple[Tournament, Jury]:
    tournament = get_object_or_404(Tournament, team=request.team, public_id=public_id)
    wanted = request.GET.get("jury", "")
    chosen = {"public_id": wanted} if wanted else {"primary": True}
    jury = Jury.objects.filter(tournament=tournament, **chosen).first()
    if jury is None:
        raise Http404("no jury")
    return tournament, jury


def _board(request: TeamRequest, public_id: str) -> Leaderboard:
    """The board that the address asks for; without `ties`, the one that the team prefers."""
    tournament, jury = _tournament(request, public_id)
    ties = request.GET.get("ties") or None
    if ties is not None and ties not in Leaderboard.Ties.values:
        raise Http404("no such tie model")
    return existing_board(tournament, jury, ties)


def drawn(view: BoardView) -> list[DrawnTable]:
    tables = []
    for table in view.tables:
        spans = [charts.Span(row.rating, row.lower, row.upper) for row in table.rows]
        chart = charts.interval_chart(spans)
        labels = [(tick.at, wording.number(tick.value)) for tick in chart.ticks]
        tables.append(DrawnTable(table.number, list(zip(table.rows, chart.bars, strict=True)), chart, labels))
    return tables


def _jury_query(board: Leaderboard) -> str:
    return "" if board.jury.primary else f"&jury={board.jury.public_id}"


def _context(request: TeamRequest, board: Leaderboard) -> dict[str, Any]:
    view = board_of(board)
    return {
        "nav_section": "tournaments",
        "tournament": board.tournament,
        "board": board,
        "jury": board.jury,
        "jury_query": _jury_query(board),
        "view": view,
        "tables": drawn(view),
        "tie_models": Leaderboard.Ties.choices,
        "may_prefer": request.membership.at_least(Role.ADMIN) and not board.preferred,
    }


@team_view(Role.MEMBER, methods=READ)
def board(request: TeamRequest, tournament: str) -> HttpResponse:
    return render(request, "ratings/board.html", _context(request, _board(request, tournament)))


@team_view(Role.MEMBER, methods=READ)
def board_fragment(request: TeamRequest, tournament: str) -> HttpResponse:
    """The board alone, for a page that loads it into itself; whoever follows the link gets the whole page."""
    if not request.htmx:
        return redirect("ratings:board", team=request.team.public_id, tournament=tournament)
    context = _context(request, _board(request, tournament)) | {"is_fragment": True}
    return render(request, "ratings/board.html#board", context)


@team_view(Role.ADMIN, methods=("POST",))
def board_prefer(request: TeamRequest, tournament: str) -> HttpResponse:
    found, jury = _tournament(request, tournament)
    ties = request.POST.get("ties", "")
    if ties not in Leaderboard.Ties.values:
        raise Http404("no such tie model")
    services.prefer_ties(tournament=found, jury=jury, ties=ties, actor=request.user)
    return redirect("ratings:board", team=request.team.public_id, tournament=found.public_id)


def _file_name(board: Leaderboard, ending: str) -> str:
    return f"{slugify(board.tournament.name) or 'tournament'}-board.{ending}"


@team_view(Role.MEMBER, methods=READ)
def board_csv(request: TeamRequest, tournament: str) -> HttpResponseBase:
    found = _board(request, tournament)
    response = StreamingHttpResponse(_lines(board_of(found)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(found, "csv")}"'
    return response


class _Echo:
    def write(self, text: str) -> str:
        return text


def _lines(view: BoardView) -> Iterator[str]:
    writer = csv.writer(_Echo())
    # Spreadsheets take a file without this mark for one in the system's own encoding.
    yield "\ufeff" + writer.writerow(downloads.COLUMNS)
    for row in view.rows:
        record = downloads.record(row)
        yield writer.writerow([downloads.safe_cell(record[column]) for column in downloads.COLUMNS])


@team_view(Role.MEMBER, methods=READ)
def board_json(request: TeamRequest, tournament: str) -> HttpResponse:
    found = _board(request, tournament)
    response = JsonResponse(downloads.document(board_of(found)), json_dumps_params={"ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{_file_name(found, "json")}"'
    return response


@team_view(Role.MEMBER, methods=READ)
def run_list(request: TeamRequest, tournament: str) -> HttpResponse:
    found = _board(request, tournament)
    page = Paginator(runs_of(found), RUNS_PER_PAGE).get_page(request.GET.get("page"))
    kwargs = {"team": request.team.public_id, "tournament": found.tournament.public_id}
    context = {
        "nav_section": "tournaments",
        "tournament": found.tournament,
        "board": found,
        "page_obj": page,
        "board_url": f"{reverse('ratings:board', kwargs=kwargs)}?ties={found.ties}{_jury_query(found)}",
    }
    return render(request, "ratings/run_list.html", context)


@team_view(Role.MEMBER, methods=READ)
def run_evidence(request: TeamRequest, tournament: str, run: str) -> HttpResponse:
    """All that the ratings of a run were computed from, and the ratings."""
    found = get_object_or_404(
        RatingRun.objects.select_related("leaderboard"),
        leaderboard__tournament__public_id=tournament,
        leaderboard__team=request.team,
        public_id=run,
    )
    response = JsonResponse(downloads.evidence(found), json_dumps_params={"ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="run-{found.public_id}.json"'
    return response
