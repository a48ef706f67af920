"""The pages beside a board."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import slugify

from arena.models import Role
from arena.views.access import TeamRequest, team_view
from ratings import charts
from ratings.models import Leaderboard, Rating, RatingRun
from ratings.selectors import (
    BoardView,
    Row,
    board_of,
    comparisons_of,
    drawn_scatter,
    history_of,
    matrix_of,
    runs_of,
    slices_of,
    title_of,
    wording,
)
from ratings.views import downloads, tables
from ratings.views.access import about_board, board_by_id

READ = ("GET", "HEAD")
RUNS_PER_PAGE = 50
# Lines that a chart can hold and still be read; bands of more than a few would cover each other.
MOST_LINES, MOST_BANDS, FIRST_LINES = 8, 4, 4


def _head(request: TeamRequest, public_id: str, part: str) -> tuple[Leaderboard, BoardView, dict[str, Any]]:
    board = board_by_id(request, public_id)
    view = board_of(board)
    return board, view, about_board(board) | {"part": part, "view": view}


def _whole(run: RatingRun) -> RatingRun:
    """With the evidence, which other pages leave unread."""
    return RatingRun.objects.get(pk=run.pk)


@team_view(Role.MEMBER, methods=READ)
def head_to_head(request: TeamRequest, board: str) -> HttpResponse:
    _, view, context = _head(request, board, "head-to-head")
    if view.run:
        context["matrix"] = matrix_of(view.rows, _whole(view.run))
    return render(request, "ratings/head_to_head.html", context)


@team_view(Role.MEMBER, methods=READ)
def compare(request: TeamRequest, board: str) -> HttpResponse:
    """One against all others, and against one of them in a sentence."""
    _, view, context = _head(request, board, "compare")
    played = [row for row in view.rows if row.stored.games]
    if view.run and len(played) > 1:
        one = _chosen(played, request.GET.get("one")) or played[0]
        comparisons = comparisons_of(played, _whole(view.run), one)
        other = _chosen(played, request.GET.get("other"))
        shown = next((found for found in comparisons if found.other is other), comparisons[0])
        context |= {"played": played, "one": one, "shown": shown, "comparisons": comparisons}
    return render(request, "ratings/compare.html", context)


def _chosen(rows: list[Row], subject_id: str | None) -> Row | None:
    return next((row for row in rows if str(row.subject_id) == subject_id), None)


@dataclass(frozen=True)
class DrawnLine:
    row: Row
    series: int
    line: charts.Line
    with_band: bool


@team_view(Role.MEMBER, methods=READ)
def over_time(request: TeamRequest, board: str) -> HttpResponse:
    found, view, context = _head(request, board, "over-time")
    rated = [row for table in view.tables for row in table.rows]
    asked = set(request.GET.getlist("show"))
    shown = [row for row in rated if str(row.subject_id) in asked][:MOST_LINES] or rated[:FIRST_LINES]
    history = history_of(found, rated)
    lines = {row.subject_id: ratings for row, ratings in history.lines}
    spans = [
        [
            charts.Span(None, None, None)
            if rating is None
            else charts.Span(rating.rating, rating.ci_lower, rating.ci_upper)
            for rating in lines[row.subject_id]
        ]
        for row in shown
    ]
    chart = charts.line_chart(spans)
    drawn = [
        DrawnLine(row, number + 1, line, with_band=len(shown) <= MOST_BANDS)
        for number, (row, line) in enumerate(zip(shown, chart.lines, strict=True))
    ]
    context |= {
        "history": history,
        "chart": chart,
        "levels": [(level.y, wording.number(level.value)) for level in chart.levels],
        "drawn": drawn,
        "rated": rated,
        "shown_ids": {row.subject_id for row in shown},
        "most_lines": MOST_LINES,
        "table": [
            (run, [_cell(lines[row.subject_id][at]) for row in shown])
            for at, run in reversed(list(enumerate(history.runs)))
        ],
    }
    return render(request, "ratings/over_time.html", context)


def _cell(rating: Rating | None) -> tuple[str, str]:
    if rating is None:
        return "–", ""
    return wording.cell(rating.rating, rating.ci_lower, rating.ci_upper, games=rating.games)


@team_view(Role.MEMBER, methods=READ)
def cost(request: TeamRequest, board: str) -> HttpResponse:
    """Rating against what an answer costs and how long it takes. Of the largest group: others do not compare."""
    _, view, context = _head(request, board, "cost")
    if view.tables:
        rows = view.tables[0].rows
        context |= {
            "rows": rows,
            "by_cost": drawn_scatter(rows, "mean_cost_usd"),
            "by_latency": drawn_scatter(rows, "median_latency_ms"),
        }
    return render(request, "ratings/cost.html", context)


@team_view(Role.MEMBER, methods=READ)
def categories(request: TeamRequest, board: str) -> HttpResponse:
    _, view, context = _head(request, board, "categories")
    if view.run:
        slices = slices_of(_whole(view.run))
        rated = [found for found in slices if found.rated]
        context |= {
            "slices": slices,
            "rated": [(found, found.leader(view.rows)) for found in rated],
            "thin": [found for found in slices if not found.rated],
            "lines": [(row, [found.cell(row) for found in rated]) for row in view.rows if row.stored.games],
        }
    return render(request, "ratings/categories.html", context)


@team_view(Role.MEMBER, methods=READ)
def run_list(request: TeamRequest, board: str) -> HttpResponse:
    found = board_by_id(request, board)
    page = Paginator(runs_of(found), RUNS_PER_PAGE).get_page(request.GET.get("page"))
    context = about_board(found) | {"part": "runs", "page_obj": page, "view": {"run": True}}
    return render(request, "ratings/run_list.html", context)


@team_view(Role.MEMBER, methods=READ)
def run_evidence(request: TeamRequest, board: str, run: str) -> HttpResponse:
    """All that the ratings of a run were computed from, and the ratings."""
    found = get_object_or_404(
        RatingRun.objects.select_related("leaderboard"),
        leaderboard=board_by_id(request, board),
        public_id=run,
    )
    response = JsonResponse(downloads.evidence(found), json_dumps_params={"ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="run-{found.public_id}.json"'
    return response


def _records(request: TeamRequest, public_id: str, table: str) -> tuple[Leaderboard, BoardView, list[tables.Record]]:
    if table not in tables.MAKERS:
        raise Http404("no such table")
    board = board_by_id(request, public_id)
    view = board_of(board)
    records = tables.MAKERS[table](board, view, _whole(view.run)) if view.run else []
    return board, view, records


def _attach(response: HttpResponseBase, board: Leaderboard, table: str, ending: str) -> None:
    name = slugify(title_of(board)) or "board"
    response["Content-Disposition"] = f'attachment; filename="{name}-{table}.{ending}"'


@team_view(Role.MEMBER, methods=READ)
def table_csv(request: TeamRequest, board: str, table: str) -> HttpResponseBase:
    found, _, records = _records(request, board, table)
    response = StreamingHttpResponse(tables.csv_lines(records), content_type="text/csv; charset=utf-8")
    _attach(response, found, table, "csv")
    return response


@team_view(Role.MEMBER, methods=READ)
def table_json(request: TeamRequest, board: str, table: str) -> HttpResponse:
    found, view, records = _records(request, board, table)
    document: Any = downloads.document(view) if table == "ratings" else records
    response = JsonResponse(document, safe=False, json_dumps_params={"ensure_ascii": False})
    _attach(response, found, table, "json")
    return response
