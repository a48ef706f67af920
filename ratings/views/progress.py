from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from arena.models import Candidate, Role, Tournament
from arena.views.access import TeamRequest, team_view
from ratings import charts
from ratings.selectors import Course, Progress, Standing, progress_of, wording

READ = ("GET", "HEAD")


@dataclass(frozen=True)
class Line:
    candidate: Candidate
    # From 1, as in the chart; the colours and dashes of the style sheet repeat after eight.
    series: int
    style: int
    rating: str
    margin: str


@dataclass(frozen=True)
class TableRow:
    step: int
    cells: list[tuple[str, str]]


STYLES = 8


def _context(request: TeamRequest, tournament: Tournament) -> dict[str, Any]:
    found = progress_of(tournament)
    rated = [course for course in found.courses if course.readings]
    chart = charts.progress_chart([_readings(course) for course in rated], last_step=found.last_step)
    lines = [
        Line(course.candidate, number, (number - 1) % STYLES + 1, *_words(course.readings[-1]))
        for number, course in enumerate(rated, start=1)
    ]
    return {
        "nav_section": "tournaments",
        "tournament": tournament,
        "progress": found,
        "chart": chart,
        "curves": list(zip(chart.curves, lines, strict=True)),
        "lines": lines,
        "unrated": [course.candidate for course in found.courses if not course.readings],
        "value_labels": [(tick.at, wording.number(tick.value)) for tick in chart.values],
        "step_labels": [(tick.at, wording.number(tick.value)) for tick in chart.steps],
        "bands": min(charts.MOST_BANDS, len(lines)),
        "rows": _rows(found),
    }


def _readings(course: Course) -> list[charts.Reading]:
    return [charts.Reading(one.step, one.value, one.margin) for one in course.readings]


def _words(reading: Standing) -> tuple[str, str]:
    return wording.number(reading.value), wording.number(reading.margin)


def _rows(found: Progress) -> list[TableRow]:
    rated = [course for course in found.courses if course.readings]
    by_step = [{reading.step: reading for reading in course.readings} for course in rated]
    return [
        TableRow(step, [_words(readings[step]) if step in readings else ("–", "") for readings in by_step])
        for step in found.steps
    ]


def _tournament(request: TeamRequest, public_id: str) -> Tournament:
    return get_object_or_404(Tournament, team=request.team, public_id=public_id)


@team_view(Role.MEMBER, methods=READ)
def progress(request: TeamRequest, tournament: str) -> HttpResponse:
    return render(request, "ratings/progress.html", _context(request, _tournament(request, tournament)))


@team_view(Role.MEMBER, methods=READ)
def progress_fragment(request: TeamRequest, tournament: str) -> HttpResponse:
    """The chart alone, for a page that loads it into itself; whoever follows the link gets the whole page."""
    if not request.htmx:
        return redirect("ratings:progress", team=request.team.public_id, tournament=tournament)
    context = _context(request, _tournament(request, tournament)) | {"is_fragment": True}
    return render(request, "ratings/progress.html#progress", context)
