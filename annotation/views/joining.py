"""Ways in for guests. GET says what the link is for; only POST uses it, since mail scanners follow links."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from annotation.models import Campaign, Rater
from annotation.services.raters import (
    accept_guest_invitation,
    invitation_by_token,
    join_by_open_link,
    open_link_by_token,
)
from annotation.views.access import NOT_STORED, remember_guest
from annotation.views.pairs import guidelines_of
from arena.services.logins import client_address
from arena.services.members import Refused
from arena.views.responses import see_other

GONE = 410


@require_http_methods(["GET", "HEAD", "POST"])
def guest_join(request: HttpRequest, token: str) -> HttpResponse:
    invitation = invitation_by_token(token)
    if invitation is None:
        return _closed(request)
    if request.method != "POST":
        return _page(request, invitation.campaign, label=invitation.label)
    try:
        rater, cookie = accept_guest_invitation(invitation=invitation, network=client_address(request))
    except Refused as refusal:
        return _closed(request, str(refusal))
    return _welcome(request, rater, cookie)


@require_http_methods(["GET", "HEAD", "POST"])
def open_join(request: HttpRequest, token: str) -> HttpResponse:
    link = open_link_by_token(token)
    if link is None:
        return _closed(request)
    if request.method != "POST":
        return _page(request, link.campaign)
    try:
        rater, cookie = join_by_open_link(link=link, network=client_address(request))
    except Refused as refusal:
        return _closed(request, str(refusal))
    return _welcome(request, rater, cookie)


def _page(request: HttpRequest, campaign: Campaign, **more: Any) -> HttpResponse:
    context = {"campaign": campaign, "guidelines": guidelines_of(campaign), **more}
    response = render(request, "annotation/rating/join.html", context)
    response["Cache-Control"] = NOT_STORED
    return response


def _closed(request: HttpRequest, sentence: str = "") -> HttpResponse:
    response = render(request, "annotation/rating/join_closed.html", {"sentence": sentence}, status=GONE)
    response["Cache-Control"] = NOT_STORED
    return response


def _welcome(request: HttpRequest, rater: Rater, cookie: str) -> HttpResponse:
    response = see_other("annotation:rate", campaign=rater.campaign.public_id)
    remember_guest(response, rater, cookie, secure=settings.SESSION_COOKIE_SECURE)
    response["Cache-Control"] = NOT_STORED
    return response
