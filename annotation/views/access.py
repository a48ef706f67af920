"""The door to a rater's pages: a member of the team, or a guest by the cookie of one campaign."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.urls import reverse

from annotation.models import Campaign, Rater
from annotation.services.raters import note_role, rater_by_cookie
from arena.models import Membership, User
from arena.views.responses import see_other

P = ParamSpec("P")
COOKIE = "tiltyard-rater"
COOKIE_SECONDS = 90 * 24 * 3600
# Neither a shared cache nor the browser's own keeps a pair, so that Back asks the server again.
NOT_STORED = "no-store, private"


class RaterRequest(HttpRequest):
    """A request after `rater_view`. `rater` is None for a member who has not begun; see `rater_of`."""

    rater: Rater | None
    campaign: Campaign
    is_guest: bool
    # Of a member who has not begun, and so may.
    membership: Membership


def rater_of(request: RaterRequest) -> Rater:
    """The rater behind a request that came past `rater_view` without `before_joining`."""
    if request.rater is None:
        raise TypeError("this page is for those who have begun")
    return request.rater


RaterView = Callable[Concatenate[RaterRequest, P], HttpResponseBase]


def rater_view(
    *, methods: tuple[str, ...] = ("GET", "HEAD"), before_joining: bool = False
) -> Callable[[RaterView[P]], Callable[..., HttpResponseBase]]:
    """Let raters of the campaign in. Everybody else gets 404; nobody signed in and no cookie: the login page, whether
    or not there is such a campaign."""

    def decorate(view: RaterView[P]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: RaterRequest, campaign: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            _identify(request, campaign)
            response: HttpResponseBase
            if not hasattr(request, "campaign"):
                response = redirect_to_login(request.get_full_path())
            elif request.method not in methods:
                response = HttpResponseNotAllowed(methods)
            elif request.rater is None and "token" in kwargs:
                raise Http404("a pair belongs to one rater")
            elif request.rater is None and not before_joining:
                response = see_other("annotation:rate", campaign=campaign)
            else:
                response = view(request, *args, **kwargs)
            response["Cache-Control"] = NOT_STORED
            return response

        return guarded

    return decorate


def _identify(request: RaterRequest, campaign: str) -> None:
    """Sets campaign, rater and membership; leaves them out where the login page should ask first."""
    user: User | AnonymousUser = request.user
    if isinstance(user, User) and _as_member(request, campaign, user):
        return
    cookie = request.COOKIES.get(COOKIE, "")
    rater = rater_by_cookie(campaign=campaign, cookie=cookie) if cookie else None
    if rater is not None:
        request.rater, request.campaign, request.is_guest = rater, rater.campaign, True
    elif isinstance(user, User):
        raise Http404("no such campaign")


def _as_member(request: RaterRequest, campaign: str, user: User) -> bool:
    """One query for those who have begun; whoever has left the team is no member any more."""
    role = Membership.objects.filter(team=OuterRef("campaign__team"), user=user).values("role")[:1]
    raters = Rater.objects.select_related("campaign__team", "open_link").annotate(role=Subquery(role))
    rater = raters.filter(campaign__public_id=campaign, user=user, role__isnull=False).first()
    if rater is not None:
        note_role(rater, role=rater.role)
        request.rater, request.campaign, request.is_guest = rater, rater.campaign, False
        return True
    found = Membership.objects.select_related("team").filter(team__campaigns__public_id=campaign, user=user).first()
    if found is None:
        return False
    campaigns = Campaign.objects.select_related("team").exclude(status=Campaign.Status.DRAFT)
    request.rater, request.campaign = None, _or_404(campaigns.filter(public_id=campaign).first())
    request.is_guest, request.membership = False, found
    return True


def _or_404(campaign: Campaign | None) -> Campaign:
    if campaign is None:
        raise Http404("no such campaign")
    return campaign


def remember_guest(response: HttpResponse, rater: Rater, cookie: str, *, secure: bool) -> None:
    """The guest's only key: kept from scripts, and sent to the pages of this campaign alone."""
    path = reverse("annotation:rate", kwargs={"campaign": rater.campaign.public_id})
    response.set_cookie(COOKIE, cookie, max_age=COOKIE_SECONDS, path=path, secure=secure, httponly=True, samesite="Lax")
