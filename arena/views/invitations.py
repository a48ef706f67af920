from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from arena.forms.people import RegistrationForm
from arena.models import Invitation, Membership, User
from arena.selectors.teams import account_exists, invitation_by_token, is_open
from arena.services.invitations import accept_invitation, register_by_invitation
from arena.services.members import Refused
from arena.views.people_base import log_in

TEMPLATE = "arena/people/invitation_accept.html"


@never_cache
def invitation_accept(request: HttpRequest, token: str) -> HttpResponse:
    """GET says who invites to what; only POST uses the invitation up.

    The account must carry the invited address: a link that was passed on opens no other account's way in.
    """
    invitation = invitation_by_token(token)
    if invitation is None or not is_open(invitation):
        return _closed(request, invitation)
    if isinstance(request.user, User):
        return _as_account(request, invitation, request.user)
    if account_exists(invitation.email):
        return render(request, TEMPLATE, {"invitation": invitation, "step": "login"})
    return _as_new_person(request, invitation)


def _closed(request: HttpRequest, invitation: Invitation | None) -> HttpResponse:
    # Whoever has joined by it, and comes back by the same link, wants to go to the team.
    if invitation is not None and isinstance(request.user, User):
        member = Membership.objects.filter(team=invitation.team, user=request.user).exists()
        if member:
            return redirect("arena:team-home", team=invitation.team.public_id)
    return render(request, "arena/people/invitation_closed.html", status=410)


def _as_account(request: HttpRequest, invitation: Invitation, user: User) -> HttpResponse:
    if user.email.lower() != invitation.email.lower():
        status = 409 if request.method == "POST" else 200
        return render(request, TEMPLATE, {"invitation": invitation, "step": "other_account"}, status=status)
    if request.method != "POST":
        return render(request, TEMPLATE, {"invitation": invitation, "step": "accept"})
    try:
        accept_invitation(invitation=invitation, user=user)
    except Refused:
        return _closed(request, invitation)
    return _welcome(request, invitation)


def _as_new_person(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    form = RegistrationForm(request.POST or None, user=User(email=invitation.email))
    if request.method != "POST" or not form.is_valid():
        status = 422 if form.errors else 200
        return render(request, TEMPLATE, {"invitation": invitation, "step": "register", "form": form}, status=status)
    try:
        user = register_by_invitation(
            invitation=invitation, name=form.cleaned_data["name"], password=form.cleaned_data["password"]
        )
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect(request.path)
    log_in(request, user)
    return _welcome(request, invitation)


def _welcome(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    messages.success(request, _("Welcome to %(team)s.") % {"team": invitation.team})
    return redirect("arena:team-home", team=invitation.team.public_id)
