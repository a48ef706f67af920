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
from arena.selectors.concealment import is_concealed

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
    """Let members of at least `role` in; strangers and raters get 404, lesser members 403, anonymous people the
    login page. What is about a tournament that is kept from the member is 404 too: see `arena.selectors.concealment`.

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
            tournament = kwargs.get("tournament")
            if isinstance(tournament, str) and is_concealed(membership, tournament):
                raise Http404("kept from those who vote blind")
            if not membership.at_least(role):
                # Raters are not to know what there is.
                raise Http404("not for raters") if membership.role == Role.RATER else PermissionDenied
            request.membership, request.team = membership, membership.team
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            return view(request, *args, **kwargs)

        guarded.required_role = role  # type: ignore[attr-defined]
        return guarded

    return decorate
