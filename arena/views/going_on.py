"""A tournament that is over goes on, or tries again what failed; and what it was, as its manifest says."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.text import slugify

from arena.forms.going_on import ExtensionForm, RetryForm
from arena.manifest import manifest_of
from arena.models import Role, Tournament
from arena.selectors.extensions import counted, plan_of_extension
from arena.selectors.retries import retryable_of
from arena.services.extensions import extend_tournament
from arena.services.retries import retry_tournament
from arena.services.tournament_errors import TournamentError
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other
from arena.views.tournaments import UNPROCESSABLE, tournament_or_404

READ = ("GET", "HEAD")


def _context(tournament: Tournament, **more: Any) -> dict[str, Any]:
    return {"nav_section": "tournaments", "tournament": tournament, **more}


@team_view(Role.ADMIN)
def tournament_extend(request: TeamRequest, tournament: str) -> HttpResponse:
    """The first press of the button plans; the second, beside the plan, goes on."""
    found = tournament_or_404(request, tournament)
    form = ExtensionForm(request.POST if request.method == "POST" else None, tournament=found)
    plan = None
    if request.method == "POST" and form.is_valid():
        extension = form.extension()
        plan = plan_of_extension(found, extension)
        if request.POST.get("action") == "start":
            try:
                extend_tournament(tournament=found, extension=extension, actor=request.user)
            except TournamentError as error:
                plan.problems = error.problems
            else:
                return see_other("arena:tournament-detail", team=request.team.public_id, tournament=found.public_id)
    wrong = bool(form.errors or (plan and plan.problems))
    context = _context(found, form=form, plan=plan, played=counted(found), ended=found.status == "finished")
    return render(request, "arena/tournaments/extend.html", context, status=UNPROCESSABLE if wrong else 200)


@team_view(Role.ADMIN)
def tournament_retry(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    failed = retryable_of(found)
    initial = {"answers": bool(failed.void_matches), "verdicts": bool(failed.verdicts)}
    form = RetryForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            retry_tournament(tournament=found, actor=request.user, **form.cleaned_data)
        except TournamentError as error:
            for problem in error.problems:
                form.add_error(None, problem)
        else:
            return see_other("arena:tournament-detail", team=request.team.public_id, tournament=found.public_id)
    context = _context(found, form=form, failed=failed)
    return render(request, "arena/tournaments/retry.html", context, status=UNPROCESSABLE if form.errors else 200)


@team_view(Role.MEMBER, methods=READ)
def tournament_manifest(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    manifest = manifest_of(found)
    context = _context(found, manifest=manifest, extensions=manifest["settings"]["extensions"])
    return render(request, "arena/tournaments/manifest.html", context)


@team_view(Role.MEMBER, methods=READ)
def tournament_manifest_json(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    response = JsonResponse(manifest_of(found), json_dumps_params={"ensure_ascii": False, "indent": 2})
    name = slugify(found.name) or "tournament"
    response["Content-Disposition"] = f'attachment; filename="{name}-{found.public_id}.run.json"'
    return response
