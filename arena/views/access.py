"""The one door to a team's pages: every view below starts from the membership that the user has."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django_htmx.middleware import HtmxDetails

from arena.models import Membership, Role, Team, User

P = ParamSpec("P")


class TeamRequest(HttpRequest):
    """A request after `team_view`: somebody is logged in and belongs to the team."""

    htmx: HtmxDetails
    user: User
    team: Team
    membership: Membership


TeamView = Callable[Concatenate[TeamRequest, P], HttpResponseBase]


def team_view(
    role: Role, *, methods: tuple[str, ...] = ("GET", "HEAD", "POST")
) -> Callable[[TeamView[P]], Callable[..., HttpResponseBase]]:
    """Let members of at least `role` in; strangers get 404, lesser members 403, anonymous people the login page.

    The URL names the team as `team`; the view gets `request.team` and `request.membership` instead.
    """

    def decorate(view: TeamView[P]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: TeamRequest, team: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            user: User | AnonymousUser = request.user
            if isinstance(user, AnonymousUser):
                return redirect_to_login(request.get_full_path())
            membership = Membership.objects.select_related("team").filter(team__public_id=team, user=user).first()
            if membership is None:
                raise Http404("no such team")
            if not membership.at_least(role):
                raise PermissionDenied
            request.membership, request.team = membership, membership.team
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            return view(request, *args, **kwargs)

        guarded.required_role = role  # type: ignore[attr-defined]
        return guarded

    return decorate
