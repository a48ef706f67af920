from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.models import Invitation, LoginLink, Membership, Role, Team, User
from arena.services import audit
from arena.services.mail import mail_is_configured, send_mail_after_commit
from arena.services.members import Refused, locked_membership, roles_within
from arena.tokens import hash_token, make_token


@transaction.atomic
def invite(*, team: Team, actor: User, email: str, role: Role) -> tuple[Invitation, str]:
    """Open a membership to one address. The token is in no table, so it can be shown only now.

    A new invitation takes the place of an older one to the same address.
    """
    own = locked_membership(team=team, user=actor)
    email = email.strip().lower()
    if role not in roles_within(own.role):
        raise Refused(_("You cannot grant a role above your own."))
    if Membership.objects.filter(team=team, user__email__iexact=email).exists():
        raise Refused(_("%(email)s is in this team already.") % {"email": email})
    pending = Invitation.objects.filter(team=team, email=email, accepted_at=None, revoked_at=None)
    if pending.exclude(role__in=roles_within(own.role)).exists():
        raise Refused(_("An owner has invited this address already."))
    pending.update(revoked_at=timezone.now())
    token = make_token()
    invitation = Invitation(
        team=team,
        email=email,
        role=role,
        token_hash=hash_token(token),
        invited_by=actor,
        expires_at=timezone.now() + timedelta(days=settings.INVITATION_DAYS),
    )
    invitation.full_clean(exclude=["accepted_at", "accepted_by", "revoked_at"])
    invitation.save()
    audit.record(team=team, actor=actor, action="invitation.create", target=email, new={"role": str(role)})
    return invitation, token


def mail_invitation(*, invitation: Invitation, link: str) -> bool:
    """Send the link where mail is configured; says whether it will be sent."""
    if not mail_is_configured():
        return False
    words = {
        "team": invitation.team.name,
        "inviter": str(invitation.invited_by),
        "link": link,
        "days": settings.INVITATION_DAYS,
    }
    send_mail_after_commit(
        to=invitation.email,
        subject=" ".join((_("Invitation to %(team)s on Tiltyard") % words).split()),
        body=_(
            "%(inviter)s invites you to the team %(team)s on Tiltyard.\n\n"
            "Open this link to accept. It works once, for %(days)s days:\n\n%(link)s\n\n"
            "If you did not expect this, do nothing.\n"
        )
        % words,
    )
    return True


@transaction.atomic
def revoke_invitation(*, team: Team, actor: User, invitation: Invitation) -> None:
    own = locked_membership(team=team, user=actor)
    if invitation.role not in roles_within(own.role):
        raise Refused(_("Only an owner can withdraw an owner's invitation."))
    changed = Invitation.objects.filter(pk=invitation.pk, team=team, accepted_at=None, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    if not changed:
        raise Refused(_("This invitation is closed already."))
    audit.record(
        team=team,
        actor=actor,
        action="invitation.revoke",
        target=invitation.email,
        old={"role": str(invitation.role)},
    )


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> Membership:
    """Make the invited person a member, once. The account must be the one that was invited."""
    if user.email.lower() != invitation.email.lower():
        raise Refused(_("This invitation is for another address."))
    Team.objects.select_for_update().get(pk=invitation.team_id)
    # The condition and the mark are one statement: of two clicks, one wins.
    won = Invitation.objects.open().filter(pk=invitation.pk).update(accepted_at=timezone.now(), accepted_by=user)
    if not won:
        raise Refused(_("This invitation was used, withdrawn or has expired. Ask for a new one."))
    membership, created = Membership.objects.get_or_create(
        team_id=invitation.team_id, user=user, defaults={"role": invitation.role}
    )
    if created:
        # A reset link from another team's admin would now open this team too.
        LoginLink.objects.filter(user=user, used_at=None, created_by__isnull=False).update(expires_at=timezone.now())
        audit.record(
            team=invitation.team,
            actor=user,
            action="member.join",
            target=user.email,
            new={"role": str(membership.role)},
        )
    return membership


@transaction.atomic
def register_by_invitation(*, invitation: Invitation, name: str, password: str) -> User:
    if User.objects.filter(email__iexact=invitation.email).exists():
        raise Refused(_("There is an account for this address already. Sign in to accept."))
    user = User.objects.create_user(invitation.email, password, name=name.strip())
    accept_invitation(invitation=invitation, user=user)
    return user
