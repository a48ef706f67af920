"""The report of a tournament as a download."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header

from arena.models import Role, Tournament
from arena.views.access import TeamRequest, team_view
from ratings.reports import file_name, report_html

READ = ("GET", "HEAD")


@team_view(Role.MEMBER, methods=READ)
def report(request: TeamRequest, tournament: str) -> HttpResponse:
    """Never shown on the site itself: it carries styles of its own, which the site's policy forbids."""
    found = get_object_or_404(
        Tournament.objects.select_related("team", "task_set"), team=request.team, public_id=tournament
    )
    if not found.juries.filter(primary=True).exists():
        raise Http404("no jury")
    response = HttpResponse(report_html(found), content_type="text/html; charset=utf-8")
    disposition = content_disposition_header(as_attachment=True, filename=file_name(found))
    if disposition is not None:
        response["Content-Disposition"] = disposition
    response["Cache-Control"] = "private, no-store"
    return response
