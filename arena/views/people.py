from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from arena.forms.people import DeleteTeamForm, InvitationForm, RoleForm, TeamForm
from arena.models import Invitation, Membership, Role
from arena.selectors.teams import audit_entries, contents_of, members_of, open_invitations
from arena.services.invitations import invite, mail_invitation, revoke_invitation
from arena.services.logins import LOGIN_LINK_HOURS, create_reset_link
from arena.services.mail import mail_is_configured
from arena.services.members import Refused, change_role, leave_team, remove_member, roles_within
from arena.services.teams import delete_team, rename_team
from arena.views.access import TeamRequest, team_view
from arena.views.people_base import absolute_link

AUDIT_PAGE_SIZE = 50


def _member(request: TeamRequest, member: int) -> Membership:
    return get_object_or_404(Membership.objects.select_related("user", "team"), team=request.team, pk=member)


def _members_page(request: TeamRequest, form: InvitationForm | None = None, status: int = 200) -> HttpResponse:
    own = request.membership
    manages = own.at_least(Role.ADMIN)
    granted = roles_within(own.role)
    members = members_of(request.team)
    owners = sum(member.role == Role.OWNER for member in members)
    rows = [
        {
            "member": member,
            "is_self": member.pk == own.pk,
            "last_owner": member.role == Role.OWNER and owners == 1,
            "manageable": manages and own.at_least(Role(member.role)),
        }
        for member in members
    ]
    context = {
        "nav_section": "members",
        "membership": own,
        "manages": manages,
        "rows": rows,
        "roles": [(role.value, role.label) for role in granted],
        "granted": granted,
        "invitations": list(open_invitations(request.team)) if manages else [],
        "form": form or InvitationForm(granted_by=own.role),
        "mail_is_configured": mail_is_configured(),
    }
    return render(request, "arena/people/member_list.html", context, status=status)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def member_list(request: TeamRequest) -> HttpResponse:
    return _members_page(request)


@team_view(Role.ADMIN, methods=("POST",))
def member_role(request: TeamRequest, member: int) -> HttpResponse:
    target = _member(request, member)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose one of the roles."))
        return redirect("arena:member-list", team=request.team.public_id)
    role = Role(form.cleaned_data["role"])
    try:
        change_role(team=request.team, actor=request.user, member=target, role=role)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("%(who)s is now: %(role)s.") % {"who": target.user, "role": role.label})
    return redirect("arena:member-list", team=request.team.public_id)


@team_view(Role.ADMIN)
def member_remove(request: TeamRequest, member: int) -> HttpResponse:
    target = _member(request, member)
    if request.method != "POST":
        return render(request, "arena/people/member_remove.html", {"member": target})
    try:
        remove_member(team=request.team, actor=request.user, member=target)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("arena:member-list", team=request.team.public_id)
    messages.success(request, _("%(who)s is no longer in the team.") % {"who": target.user})
    if target.user == request.user:
        return redirect("arena:home")
    return redirect("arena:member-list", team=request.team.public_id)


@never_cache
@team_view(Role.ADMIN, methods=("POST",))
def member_login_link(request: TeamRequest, member: int) -> HttpResponse:
    target = _member(request, member)
    try:
        token = create_reset_link(team=request.team, actor=request.user, member=target)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("arena:member-list", team=request.team.public_id)
    link = absolute_link(request, "arena:login-link", token)
    context = {"member": target, "link": link, "hours": LOGIN_LINK_HOURS}
    return render(request, "arena/people/login_link_created.html", context)


@never_cache
@team_view(Role.ADMIN, methods=("POST",))
def invitation_create(request: TeamRequest) -> HttpResponse:
    form = InvitationForm(request.POST, granted_by=request.membership.role)
    if not form.is_valid():
        return _members_page(request, form, status=422)
    try:
        invitation, token = invite(
            team=request.team,
            actor=request.user,
            email=form.cleaned_data["email"],
            role=Role(form.cleaned_data["role"]),
        )
    except Refused as refusal:
        form.add_error("email", str(refusal))
        return _members_page(request, form, status=422)
    link = absolute_link(request, "arena:invitation-accept", token)
    mailed = mail_invitation(invitation=invitation, link=link)
    # Shown in the answer itself: kept in no table and no session, it can be shown only here.
    context = {"invitation": invitation, "link": link, "mailed": mailed, "days": settings.INVITATION_DAYS}
    return render(request, "arena/people/invitation_created.html", context)


@team_view(Role.ADMIN, methods=("POST",))
def invitation_revoke(request: TeamRequest, invitation: str) -> HttpResponse:
    target = get_object_or_404(Invitation, team=request.team, public_id=invitation)
    try:
        revoke_invitation(team=request.team, actor=request.user, invitation=target)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("The invitation of %(email)s is withdrawn.") % {"email": target.email})
    return redirect("arena:member-list", team=request.team.public_id)


@team_view(Role.ADMIN, methods=("GET", "HEAD"))
def audit_log(request: TeamRequest) -> HttpResponse:
    page = Paginator(audit_entries(request.team), AUDIT_PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "arena/people/audit_log.html", {"page": page, "nav_section": "members"})


@team_view(Role.ADMIN)
def team_settings(request: TeamRequest) -> HttpResponse:
    form = TeamForm(request.POST or None, initial={"name": request.team.name})
    if request.method == "POST" and form.is_valid():
        rename_team(team=request.team, actor=request.user, name=form.cleaned_data["name"])
        messages.success(request, _("The team is now called %(name)s.") % {"name": request.team.name})
        return redirect("arena:team-settings", team=request.team.public_id)
    context = {"form": form, "is_owner": request.membership.at_least(Role.OWNER), "nav_section": "members"}
    return render(request, "arena/people/team_settings.html", context, status=422 if form.errors else 200)


@team_view(Role.OWNER)
def team_delete(request: TeamRequest) -> HttpResponse:
    form = DeleteTeamForm(request.POST or None, team=request.team)
    if request.method == "POST" and form.is_valid():
        name = request.team.name
        delete_team(team=request.team, actor=request.user)
        messages.success(request, _("The team %(name)s and everything in it is deleted.") % {"name": name})
        return redirect("arena:home")
    context = {"form": form, "contents": contents_of(request.team)}
    return render(request, "arena/people/team_delete.html", context, status=422 if form.errors else 200)


@team_view(Role.RATER)
def team_leave(request: TeamRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "arena/people/team_leave.html", {"membership": request.membership})
    try:
        leave_team(team=request.team, user=request.user)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("arena:team-home", team=request.team.public_id)
    messages.success(request, _("You have left %(team)s.") % {"team": request.team})
    return redirect("arena:home")
