"""Ways into a campaign: as a member of the team, by an invitation, by an open link."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Campaign, GuestInvitation, OpenLink, Rater
from arena.models import Membership, Role, User
from arena.services import audit
from arena.services.members import Refused
from arena.tokens import hash_token, make_token

OPEN_LINK_DAYS = 30


def join_as_member(*, campaign: Campaign, membership: Membership) -> Rater:
    """The member's place in an open campaign. From now on boards and matches of its tournaments are kept from members;
    owners and admins keep them, and their votes are marked."""
    if not campaign.is_open:
        raise Refused(_("This campaign is not open."))
    sees = membership.at_least(Role.ADMIN)
    try:
        with transaction.atomic():
            rater, _created = Rater.objects.get_or_create(
                campaign=campaign,
                user=membership.user,
                defaults={"label": str(membership.user), "could_see_names": sees},
            )
    except IntegrityError:
        rater = Rater.objects.get(campaign=campaign, user=membership.user)
    return rater


def note_role(rater: Rater, *, role: str) -> None:
    """A member who has become an admin can see names from now on; what was cast before stays as it was."""
    if role in {Role.OWNER, Role.ADMIN} and not rater.could_see_names:
        rater.could_see_names = True
        Rater.objects.filter(pk=rater.pk).update(could_see_names=True)


@transaction.atomic
def invite_guest(*, campaign: Campaign, actor: User, label: str) -> tuple[GuestInvitation, str]:
    """A single-use way in for one person. The token is in no table, so it can be shown only now.

    A new invitation takes the place of an unused one to the same person.
    """
    Campaign.objects.select_for_update().get(pk=campaign.pk)
    label = label.strip()
    if not label:
        raise Refused(_("Say whom the link is for: an address or a name."))
    if campaign.status not in {Campaign.Status.DRAFT, Campaign.Status.OPEN}:
        raise Refused(_("This campaign is closed."))
    campaign.invitations.filter(label=label, used_at=None, revoked_at=None).update(revoked_at=timezone.now())
    token = make_token()
    invitation = GuestInvitation.objects.create(
        campaign=campaign,
        label=label,
        token_hash=hash_token(token),
        invited_by=actor,
        expires_at=timezone.now() + timedelta(days=settings.INVITATION_DAYS),
    )
    audit.record(team=campaign.team, actor=actor, action="campaign.invite", target=campaign.name, new={"label": label})
    return invitation, token


def revoke_guest_invitation(*, invitation: GuestInvitation, actor: User) -> None:
    with transaction.atomic():
        open_now = GuestInvitation.objects.open().filter(pk=invitation.pk)
        if not open_now.update(revoked_at=timezone.now()):
            raise Refused(_("This invitation is closed already."))
        campaign = invitation.campaign
        audit.record(
            team=campaign.team,
            actor=actor,
            action="campaign.revoke_invitation",
            target=campaign.name,
            old={"label": invitation.label},
        )


def invitation_by_token(token: str) -> GuestInvitation | None:
    """An invitation that still opens something; used, expired and foreign ones are as good as absent."""
    return (
        GuestInvitation.objects.open()
        .select_related("campaign__team", "invited_by")
        .filter(token_hash=hash_token(token), campaign__status=Campaign.Status.OPEN)
        .first()
    )


@transaction.atomic
def accept_guest_invitation(*, invitation: GuestInvitation, network: str) -> tuple[Rater, str]:
    """Use the invitation up; gives the rater and the secret for the guest's cookie."""
    cookie = make_token()
    # The row's lock makes one of two clicks wait, and it then finds the invitation used.
    locked = GuestInvitation.objects.select_for_update().filter(pk=invitation.pk).first()
    still_open = GuestInvitation.objects.open().filter(pk=invitation.pk, campaign__status=Campaign.Status.OPEN)
    if locked is None or not still_open.exists():
        raise Refused(_("This link was used, withdrawn or has expired. Ask for a new one."))
    rater = Rater.objects.create(
        campaign=invitation.campaign,
        label=invitation.label,
        session=hash_token(cookie),
        network_hash=network_hash(invitation.campaign, network),
    )
    GuestInvitation.objects.filter(pk=invitation.pk).update(used_at=timezone.now(), rater=rater)
    return rater, cookie


@transaction.atomic
def create_open_link(
    *,
    campaign: Campaign,
    actor: User,
    max_sessions: int = 100,
    max_sessions_per_network: int = 5,
    votes_per_session: int = 100,
) -> tuple[OpenLink, str]:
    """A link for anybody, within quotas. It takes the place of the one before, which opens nothing any more."""
    Campaign.objects.select_for_update().get(pk=campaign.pk)
    if campaign.status not in {Campaign.Status.DRAFT, Campaign.Status.OPEN}:
        raise Refused(_("This campaign is closed."))
    campaign.open_links.filter(revoked_at=None).update(revoked_at=timezone.now())
    token = make_token()
    link = OpenLink.objects.create(
        campaign=campaign,
        token_hash=hash_token(token),
        created_by=actor,
        expires_at=timezone.now() + timedelta(days=OPEN_LINK_DAYS),
        max_sessions=max_sessions,
        max_sessions_per_network=max_sessions_per_network,
        votes_per_session=votes_per_session,
    )
    audit.record(
        team=campaign.team,
        actor=actor,
        action="campaign.open_link",
        target=campaign.name,
        new={
            "people": max_sessions,
            "people_per_network": max_sessions_per_network,
            "votes_per_person": votes_per_session,
        },
    )
    return link, token


@transaction.atomic
def revoke_open_link(*, campaign: Campaign, actor: User) -> None:
    if not campaign.open_links.filter(revoked_at=None).update(revoked_at=timezone.now()):
        raise Refused(_("There is no open link."))
    audit.record(team=campaign.team, actor=actor, action="campaign.revoke_open_link", target=campaign.name)


def open_link_by_token(token: str) -> OpenLink | None:
    return OpenLink.objects.usable().select_related("campaign__team").filter(token_hash=hash_token(token)).first()


@transaction.atomic
def join_by_open_link(*, link: OpenLink, network: str) -> tuple[Rater, str]:
    """An anonymous session, if the quotas leave room; gives the rater and the secret for the guest's cookie."""
    cookie = make_token()
    hashed = network_hash(link.campaign, network)
    # Under the link's lock, so that two people cannot share the last place.
    OpenLink.objects.select_for_update().get(pk=link.pk)
    if not OpenLink.objects.usable().filter(pk=link.pk).exists():
        raise Refused(_("This link is closed. Ask for a new one."))
    if link.raters.count() >= link.max_sessions:
        raise Refused(_("As many people as were asked for are taking part already. Thank you for coming."))
    if link.raters.filter(network_hash=hashed).count() >= link.max_sessions_per_network:
        raise Refused(_("From your network as many people as allowed take part already. Thank you for coming."))
    rater = Rater.objects.create(
        campaign=link.campaign, open_link=link, session=hash_token(cookie), network_hash=hashed
    )
    return rater, cookie


def rater_by_cookie(*, campaign: str, cookie: str) -> Rater | None:
    return (
        Rater.objects.select_related("campaign__team", "open_link")
        .filter(campaign__public_id=campaign, session=hash_token(cookie))
        .first()
    )


def network_hash(campaign: Campaign, network: str) -> str:
    """Keyed by campaign: the table cannot be searched for an address, nor joined across campaigns."""
    key = (settings.SECRET_KEY + campaign.secret).encode()
    return hmac.new(key, network.encode(), hashlib.sha256).hexdigest()


@transaction.atomic
def block_rater(*, rater: Rater, actor: User) -> None:
    """No further pair; the votes so far are kept."""
    if Rater.objects.filter(pk=rater.pk, blocked_at=None).update(blocked_at=timezone.now()):
        campaign = rater.campaign
        audit.record(
            team=campaign.team,
            actor=actor,
            action="campaign.block_rater",
            target=campaign.name,
            new={"rater": str(rater)},
        )
