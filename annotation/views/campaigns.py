from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache

from annotation.forms import CampaignForm, GuestInvitationForm, OpenLinkForm
from annotation.models import Campaign, GuestInvitation, Rater
from annotation.selectors.campaigns import campaigns_of, newest_guidelines, pool_state, raters_of, rows_of, waiting_for
from annotation.services.campaigns import (
    close_campaign,
    create_campaign,
    make_gold,
    open_campaign,
    reveal_campaign,
    take_in_new_matches,
    update_campaign,
)
from annotation.services.raters import (
    OPEN_LINK_DAYS,
    block_rater,
    create_open_link,
    invite_guest,
    revoke_guest_invitation,
    revoke_open_link,
)
from arena.models import Role
from arena.services.members import Refused
from arena.views.access import TeamRequest, team_view
from arena.views.people_base import absolute_link
from arena.views.responses import see_other

PAGE_SIZE = 30
UNPROCESSABLE = 422
READ = ("GET", "HEAD")
POST = ("POST",)
# Enough that nobody meets one twice before the pool is done.
GOLD_OF_POOL = 40


def _campaign(request: TeamRequest, public_id: str) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("team"), team=request.team, public_id=public_id)


def _back(request: TeamRequest, campaign: Campaign) -> HttpResponse:
    return see_other("annotation:campaign-detail", team=request.team.public_id, campaign=campaign.public_id)


@team_view(Role.MEMBER, methods=READ)
def campaign_list(request: TeamRequest) -> HttpResponse:
    is_admin = request.membership.at_least(Role.ADMIN)
    campaigns = campaigns_of(request.team)
    if not is_admin:
        campaigns = campaigns.exclude(status=Campaign.Status.DRAFT)
    page = Paginator(campaigns, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav_section": "campaigns",
        "page_obj": page,
        "rows": rows_of(list(page.object_list)),
        "is_admin": is_admin,
        "waiting": {campaign.pk for campaign in waiting_for(request.membership)},
    }
    return render(request, "annotation/campaigns/list.html", context)


@team_view(Role.RATER, methods=READ)
def waiting_fragment(request: TeamRequest) -> HttpResponse:
    """What waits for me: a part of the team's page, and a page of its own for whoever follows the link."""
    context = {"nav_section": "home", "campaigns": waiting_for(request.membership), "is_fragment": bool(request.htmx)}
    name = "annotation/campaigns/waiting.html"
    return render(request, f"{name}#waiting" if request.htmx else name, context)


@team_view(Role.ADMIN)
def campaign_create(request: TeamRequest) -> HttpResponse:
    form = CampaignForm(request.POST or None, team=request.team)
    if request.method == "POST" and form.is_valid():
        try:
            campaign = create_campaign(team=request.team, actor=request.user, fields=form.cleaned_fields())
        except Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("The campaign is saved as a draft. Nobody sees it until you open it."))
            return _back(request, campaign)
    return _form(request, form)


@team_view(Role.ADMIN)
def campaign_edit(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    form = CampaignForm(request.POST or None, team=request.team, campaign=found)
    if request.method == "POST" and form.is_valid():
        try:
            update_campaign(campaign=found, actor=request.user, fields=form.cleaned_fields())
        except Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("Saved."))
            return _back(request, found)
    return _form(request, form, campaign=found)


def _form(request: TeamRequest, form: CampaignForm, **more: Any) -> HttpResponse:
    status = UNPROCESSABLE if form.errors else 200
    context = {"nav_section": "campaigns", "form": form, **more}
    return render(request, "annotation/campaigns/form.html", context, status=status)


def _detail(request: TeamRequest, campaign: Campaign, *, status: int = 200, **forms: Any) -> HttpResponse:
    context = {
        "nav_section": "campaigns",
        "campaign": campaign,
        "row": rows_of([campaign])[0],
        "pool": pool_state(campaign),
        "gold": campaign.gold_items.filter(active=True).count(),
        "tournaments": campaign.tournaments.order_by("-created_at"),
        "guidelines": newest_guidelines(campaign),
        "raters": raters_of(campaign),
        "invitations": GuestInvitation.objects.open().filter(campaign=campaign).order_by("-created_at"),
        "open_link": campaign.open_links.filter(revoked_at=None).first(),
        "invitation_form": GuestInvitationForm(auto_id="invite_%s"),
        "open_link_form": OpenLinkForm(auto_id="open_%s"),
        "may_reveal": campaign.status == Campaign.Status.CLOSED and campaign.reveal != Campaign.Reveal.NEVER,
        **forms,
    }
    return render(request, "annotation/campaigns/detail.html", context, status=status)


@team_view(Role.ADMIN, methods=READ)
def campaign_detail(request: TeamRequest, campaign: str) -> HttpResponse:
    return _detail(request, _campaign(request, campaign))


def _act(request: TeamRequest, campaign: Campaign, act: Callable[[], Any], sentence: str) -> HttpResponse:
    try:
        act()
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, sentence)
    return _back(request, campaign)


@team_view(Role.ADMIN, methods=POST)
def campaign_open(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)

    @transaction.atomic
    def act() -> None:
        opened = open_campaign(campaign=found, actor=request.user)
        if opened.gold_share and not opened.gold_items.exists():
            make_gold(campaign=opened, count=GOLD_OF_POOL)

    return _act(request, found, act, _("The campaign is open. Members find it on the team's page."))


@team_view(Role.ADMIN)
def campaign_close(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    if request.method != "POST":
        return render(request, "annotation/campaigns/close.html", {"nav_section": "campaigns", "campaign": found})

    def act() -> None:
        close_campaign(campaign=found, actor=request.user)

    return _act(request, found, act, _("The campaign is closed. Its votes are kept as they are."))


@team_view(Role.ADMIN)
def campaign_reveal(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    if request.method != "POST":
        return render(request, "annotation/campaigns/reveal.html", {"nav_section": "campaigns", "campaign": found})

    def act() -> None:
        reveal_campaign(campaign=found, actor=request.user)

    return _act(request, found, act, _("Raters now see the names behind their votes."))


@team_view(Role.ADMIN, methods=POST)
def campaign_grow(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    try:
        added = take_in_new_matches(campaign=found, actor=request.user)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        sentence = ngettext("%(n)d match is new in the pool.", "%(n)d matches are new in the pool.", added)
        messages.success(request, sentence % {"n": added})
    return _back(request, found)


@never_cache
@team_view(Role.ADMIN, methods=POST)
def campaign_invite(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    form = GuestInvitationForm(request.POST, auto_id="invite_%s")
    if form.is_valid():
        try:
            invitation, token = invite_guest(campaign=found, actor=request.user, label=form.cleaned_data["label"])
        except Refused as refusal:
            form.add_error("label", str(refusal))
        else:
            link = absolute_link(request, "annotation:guest-join", token)
            # Shown in the answer itself: kept in no table and no session, it can be shown only here.
            context = {"campaign": found, "title": invitation.label, "link": link, "days": settings.INVITATION_DAYS}
            return render(request, "annotation/campaigns/link.html", {"nav_section": "campaigns", **context})
    return _detail(request, found, status=UNPROCESSABLE, invitation_form=form)


@team_view(Role.ADMIN, methods=POST)
def campaign_revoke_invitation(request: TeamRequest, campaign: str, invitation: str) -> HttpResponse:
    found = _campaign(request, campaign)
    target = get_object_or_404(GuestInvitation, campaign=found, public_id=invitation)

    def act() -> None:
        revoke_guest_invitation(invitation=target, actor=request.user)

    return _act(request, found, act, _("The invitation of %(who)s is withdrawn.") % {"who": target.label})


@never_cache
@team_view(Role.ADMIN, methods=POST)
def campaign_open_link(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)
    form = OpenLinkForm(request.POST, auto_id="open_%s")
    if form.is_valid():
        try:
            _link, token = create_open_link(campaign=found, actor=request.user, **form.cleaned_data)
        except Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            link = absolute_link(request, "annotation:open-join", token)
            context = {"campaign": found, "link": link, "days": OPEN_LINK_DAYS, "is_open_link": True}
            return render(request, "annotation/campaigns/link.html", {"nav_section": "campaigns", **context})
    return _detail(request, found, status=UNPROCESSABLE, open_link_form=form)


@team_view(Role.ADMIN, methods=POST)
def campaign_revoke_open_link(request: TeamRequest, campaign: str) -> HttpResponse:
    found = _campaign(request, campaign)

    def act() -> None:
        revoke_open_link(campaign=found, actor=request.user)

    return _act(request, found, act, _("The open link opens nothing any more."))


@team_view(Role.ADMIN, methods=POST)
def campaign_block_rater(request: TeamRequest, campaign: str, rater: str) -> HttpResponse:
    found = _campaign(request, campaign)
    target = get_object_or_404(Rater.objects.select_related("campaign__team"), campaign=found, public_id=rater)

    def act() -> None:
        block_rater(rater=target, actor=request.user)

    return _act(request, found, act, _("%(who)s gets no further pair. The votes so far are kept.") % {"who": target})
