from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from arena.forms.tournaments import BudgetForm
from arena.models import Role, Tournament
from arena.selectors.concealment import concealed_tournaments
from arena.selectors.plan import plan_of
from arena.selectors.specs import spec_of
from arena.selectors.tournaments import live_of, tournaments_of
from arena.services.tournaments import (
    TournamentError,
    delete_draft,
    pause_tournament,
    resume_tournament,
    set_budget,
    start_tournament,
    stop_tournament,
)
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other

PAGE_SIZE = 30
# htmx takes the answer and asks no more.
STOP_POLLING = 286
UNPROCESSABLE = 422


def tournament_or_404(request: TeamRequest, public_id: str) -> Tournament:
    return get_object_or_404(
        Tournament.objects.select_related("team", "task_set", "created_by", "baseline"),
        team=request.team,
        public_id=public_id,
    )


def _context(request: TeamRequest, tournament: Tournament, **more: Any) -> dict[str, Any]:
    return {
        "nav_section": "tournaments",
        "tournament": tournament,
        "acts": request.membership.at_least(Role.ADMIN),
        **more,
    }


def _back(request: TeamRequest, tournament: Tournament) -> HttpResponse:
    return see_other("arena:tournament-detail", team=request.team.public_id, tournament=tournament.public_id)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def tournament_list(request: TeamRequest) -> HttpResponse:
    page = Paginator(tournaments_of(request.team), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav_section": "tournaments",
        "page_obj": page,
        "acts": request.membership.at_least(Role.ADMIN),
        "concealed": concealed_tournaments(request.membership),
    }
    return render(request, "arena/tournaments/list.html", context)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def tournament_detail(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    if found.status == Tournament.Status.DRAFT:
        context = _context(request, found, plan=plan_of(spec_of(found)))
        return render(request, "arena/tournaments/draft.html", context)
    context = _context(request, found, live=live_of(found), is_fragment=bool(request.htmx))
    if not request.htmx:
        return render(request, "arena/tournaments/detail.html", context)
    status = 200 if found.is_active else STOP_POLLING
    return render(request, "arena/tournaments/detail.html#live", context, status=status)


@team_view(Role.ADMIN)
def tournament_start(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    if request.method == "POST":
        return _act(request, found, start_tournament)
    if found.status != Tournament.Status.DRAFT:
        return _back(request, found)
    plan = plan_of(spec_of(found))
    return render(request, "arena/tournaments/start.html", _context(request, found, plan=plan))


@team_view(Role.ADMIN, methods=("POST",))
def tournament_pause(request: TeamRequest, tournament: str) -> HttpResponse:
    return _act(request, tournament_or_404(request, tournament), pause_tournament)


@team_view(Role.ADMIN, methods=("POST",))
def tournament_resume(request: TeamRequest, tournament: str) -> HttpResponse:
    return _act(request, tournament_or_404(request, tournament), resume_tournament)


@team_view(Role.ADMIN)
def tournament_stop(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    if request.method == "POST":
        return _act(request, found, stop_tournament)
    return render(request, "arena/tournaments/stop.html", _context(request, found, live=live_of(found)))


@team_view(Role.ADMIN)
def tournament_delete(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    if request.method != "POST":
        return render(request, "arena/tournaments/delete.html", _context(request, found))
    try:
        delete_draft(tournament=found, actor=request.user)
    except TournamentError as error:
        _tell(request, error)
        return _back(request, found)
    messages.success(request, _("The draft “%(name)s” is deleted.") % {"name": found.name})
    return see_other("arena:tournament-list", team=request.team.public_id)


@team_view(Role.ADMIN)
def tournament_budget(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    form = BudgetForm(request.POST or None, initial={"budget_usd": found.budget_usd})
    if request.method == "POST" and form.is_valid():
        try:
            set_budget(tournament=found, budget_usd=form.cleaned_data["budget_usd"], actor=request.user)
            if request.POST.get("resume"):
                resume_tournament(tournament=found, actor=request.user)
        except TournamentError as error:
            for problem in error.problems:
                form.add_error(None, problem)
        else:
            return _back(request, found)
    status = UNPROCESSABLE if form.errors else 200
    context = _context(request, found, form=form, live=live_of(found))
    return render(request, "arena/tournaments/budget.html", context, status=status)


def _act(request: TeamRequest, tournament: Tournament, service: Callable[..., None]) -> HttpResponse:
    try:
        service(tournament=tournament, actor=request.user)
    except TournamentError as error:
        _tell(request, error)
    return _back(request, tournament)


def _tell(request: TeamRequest, error: TournamentError) -> None:
    for problem in error.problems:
        messages.error(request, problem)
