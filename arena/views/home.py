from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from arena.forms.people import TeamForm
from arena.models import Role
from arena.selectors.concealment import concealed_tournaments
from arena.selectors.teams import home_of, may_create_team, memberships_of
from arena.services.teams import create_team
from arena.views.access import TeamRequest, team_view
from arena.views.people_base import this_user

LAST_TEAM = "last_team"


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """To the team that was open last; with several and no memory, to the choice; with none, to the way to one."""
    user = this_user(request)
    ids = [membership.team.public_id for membership in memberships_of(user)]
    last = request.session.get(LAST_TEAM)
    if last in ids or len(ids) == 1:
        return redirect("arena:team-home", team=last if last in ids else ids[0])
    if ids:
        return redirect("arena:team-list")
    if may_create_team(user):
        return redirect("arena:team-create")
    return render(request, "arena/people/no_team.html")


@login_required
def team_list(request: HttpRequest) -> HttpResponse:
    user = this_user(request)
    context = {"memberships": memberships_of(user), "may_create": may_create_team(user)}
    return render(request, "arena/people/team_list.html", context)


@login_required
def team_create(request: HttpRequest) -> HttpResponse:
    user = this_user(request)
    if not may_create_team(user):
        raise PermissionDenied
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        team = create_team(user=user, name=form.cleaned_data["name"])
        return redirect("arena:team-home", team=team.public_id)
    first = not memberships_of(user).exists()
    return render(request, "arena/people/team_create.html", {"form": form, "first": first})


@team_view(Role.RATER, methods=("GET", "HEAD"))
def team_home(request: TeamRequest) -> HttpResponse:
    if request.session.get(LAST_TEAM) != request.team.public_id:
        request.session[LAST_TEAM] = request.team.public_id
    # Raters stay blind: what takes part, and how it stands, is not for them.
    sees_results = request.membership.at_least(Role.MEMBER)
    home = home_of(request.team) if sees_results else None
    concealed = concealed_tournaments(request.membership) if home is not None else set()
    context = {"nav_section": "home", "home": home, "concealed": concealed}
    return render(request, "arena/home.html", context)
