from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.models import ROLE_ORDER, Invitation, Membership, Role, Team, User
from arena.services import audit


class Refused(Exception):
    """A rule of the house forbids the change; the message is for the person who asked."""


def roles_within(role: str) -> list[Role]:
    """The roles that somebody of `role` may grant: none above their own."""
    return ROLE_ORDER[ROLE_ORDER.index(Role(role)) :]


def locked_membership(*, team: Team, user: User) -> Membership:
    """The actor's own membership as it is now, under the team's lock, so that roles cannot change meanwhile."""
    Team.objects.select_for_update().get(pk=team.pk)
    membership = Membership.objects.filter(team=team, user=user).first()
    if membership is None or not membership.at_least(Role.ADMIN):
        raise Refused(_("You no longer manage this team's members."))
    return membership


@transaction.atomic
def change_role(*, team: Team, actor: User, member: Membership, role: Role) -> None:
    own = locked_membership(team=team, user=actor)
    member = _locked_target(team, member)
    if role == member.role:
        return
    _require_rank(own, member)
    if role not in roles_within(own.role):
        raise Refused(_("You cannot grant a role above your own."))
    if role != Role.OWNER:
        _require_another_owner(member)
    old, member.role = member.role, role
    member.save(update_fields=["role"])
    _revoke_invitations_beyond(member)
    audit.record(
        team=team,
        actor=actor,
        action="member.role",
        target=member.user.email,
        old={"role": str(old)},
        new={"role": str(role)},
    )


@transaction.atomic
def remove_member(*, team: Team, actor: User, member: Membership) -> None:
    own = locked_membership(team=team, user=actor)
    member = _locked_target(team, member)
    _require_rank(own, member)
    _end_membership(member, actor=actor, action="member.remove")


@transaction.atomic
def leave_team(*, team: Team, user: User) -> None:
    Team.objects.select_for_update().get(pk=team.pk)
    member = Membership.objects.select_related("user").filter(team=team, user=user).first()
    if member is None:
        raise Refused(_("You are no longer in this team."))
    _end_membership(member, actor=user, action="member.leave")


def _end_membership(member: Membership, *, actor: User, action: str) -> None:
    _require_another_owner(member)
    _revoke_invitations_beyond(member, gone=True)
    audit.record(team=member.team, actor=actor, action=action, target=member.user.email, old={"role": str(member.role)})
    member.delete()


def _locked_target(team: Team, member: Membership) -> Membership:
    target = Membership.objects.select_related("user", "team").filter(team=team, pk=member.pk).first()
    if target is None:
        raise Refused(_("This person is no longer in the team."))
    return target


def _require_rank(own: Membership, member: Membership) -> None:
    if not own.at_least(Role(member.role)):
        raise Refused(_("Only an owner can change an owner."))


def _require_another_owner(member: Membership) -> None:
    others = Membership.objects.filter(team=member.team, role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and not others.exists():
        raise Refused(_("A team needs an owner. Make somebody else an owner first."))


def _revoke_invitations_beyond(member: Membership, *, gone: bool = False) -> None:
    # Otherwise an invitation kept in a drawer would bring back what was taken away.
    invitations = Invitation.objects.open().filter(team=member.team, invited_by=member.user)
    if not gone and member.at_least(Role.ADMIN):
        invitations = invitations.exclude(role__in=roles_within(member.role))
    invitations.update(revoked_at=timezone.now())
