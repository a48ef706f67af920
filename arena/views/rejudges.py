"""Another jury over recorded answers: its form with plan and cost, and its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from arena.forms.going_on import RejudgeForm
from arena.forms.tournaments import PRESET_NOTES, BudgetForm
from arena.models import Jury, Role, Tournament
from arena.selectors.jury_progress import progress_of
from arena.selectors.rejudging import ENDED, plan_of_rejudge
from arena.selectors.retries import failed_verdicts
from arena.services import rejudges
from arena.services.retries import retry_rejudge
from arena.services.tournament_errors import TournamentError
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other
from arena.views.tournaments import STOP_POLLING, UNPROCESSABLE, tournament_or_404

ACTIONS: dict[str, Callable[..., None]] = {
    "pause": rejudges.pause_rejudge,
    "resume": rejudges.resume_rejudge,
    "stop": rejudges.stop_rejudge,
    "retry": retry_rejudge,
}


def _rejudge(request: TeamRequest, tournament: str, jury: str) -> tuple[Tournament, Jury]:
    found = tournament_or_404(request, tournament)
    rows = Jury.objects.select_related("tournament__team", "created_by").filter(tournament=found, primary=False)
    return found, get_object_or_404(rows, public_id=jury)


@team_view(Role.ADMIN)
def rejudge_create(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    form = RejudgeForm(request.POST if request.method == "POST" else None, tournament=found)
    plan = None
    if request.method == "POST" and form.is_valid():
        spec = form.spec()
        plan = plan_of_rejudge(spec)
        if request.POST.get("action") == "start" and not request.htmx:
            try:
                jury = rejudges.start_rejudge(spec=spec, actor=request.user)
            except TournamentError as error:
                plan.problems = error.problems
            else:
                return _to(request, found, jury)
    context = {
        "nav_section": "tournaments",
        "tournament": found,
        "form": form,
        "plan": plan,
        "ended": found.status in ENDED,
        "preset_notes": PRESET_NOTES,
        "unfinished": form.is_bound and plan is None,
        "new_parts": request.POST.get("parts_of") != request.POST.get("preset"),
    }
    if request.htmx and request.method == "POST":
        return render(request, "arena/tournaments/_plan_update.html", context)
    wrong = bool(form.errors or (plan and plan.problems))
    return render(request, "arena/juries/new.html", context, status=UNPROCESSABLE if wrong else 200)


def _to(request: TeamRequest, tournament: Tournament, jury: Jury) -> HttpResponse:
    return see_other(
        "arena:rejudge-detail", team=request.team.public_id, tournament=tournament.public_id, jury=jury.public_id
    )


def _context(request: TeamRequest, found: Tournament, jury: Jury, **more: Any) -> dict[str, Any]:
    return {
        "nav_section": "tournaments",
        "tournament": found,
        "jury": jury,
        "progress": progress_of(jury),
        "acts": request.membership.at_least(Role.ADMIN),
        "retries": 0 if jury.status in {"running", "stopped"} else failed_verdicts(jury).count(),
        "budget_form": BudgetForm(initial={"budget_usd": jury.budget_usd}),
        **more,
    }


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def rejudge_detail(request: TeamRequest, tournament: str, jury: str) -> HttpResponse:
    found, row = _rejudge(request, tournament, jury)
    if not request.htmx:
        return render(request, "arena/juries/rejudge.html", _context(request, found, row))
    status = 200 if row.is_active else STOP_POLLING
    context = _context(request, found, row, is_fragment=True)
    return render(request, "arena/juries/rejudge.html#live", context, status=status)


@team_view(Role.ADMIN, methods=("POST",))
def rejudge_act(request: TeamRequest, tournament: str, jury: str, action: str) -> HttpResponse:
    found, row = _rejudge(request, tournament, jury)
    try:
        if action == "budget":
            form = BudgetForm(request.POST)
            if not form.is_valid():
                context = _context(request, found, row, budget_form=form, form=form)
                return render(request, "arena/juries/rejudge.html", context, status=UNPROCESSABLE)
            rejudges.set_rejudge_budget(jury=row, budget_usd=form.cleaned_data["budget_usd"], actor=request.user)
        elif action in ACTIONS:
            ACTIONS[action](jury=row, actor=request.user)
        else:
            raise Http404("no such action")
    except TournamentError as error:
        for problem in error.problems:
            messages.error(request, problem)
    return _to(request, found, row)
