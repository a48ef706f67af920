from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models.campaigns import Campaign
from arena.models import PublicModel


class OpenLinkQuerySet(models.QuerySet["OpenLink"]):
    def usable(self) -> OpenLinkQuerySet:
        now = timezone.now()
        return self.filter(revoked_at=None, expires_at__gt=now, campaign__status=Campaign.Status.OPEN)


class OpenLink(PublicModel):
    """A link that anybody may use, within quotas. Only the token's hash is kept, so the table opens nothing."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="open_links")
    token_hash = models.CharField(max_length=64, unique=True)
    max_sessions = models.PositiveIntegerField(_("people at most"), default=100, validators=[MinValueValidator(1)])
    max_sessions_per_network = models.PositiveIntegerField(
        _("people from one network address"), default=5, validators=[MinValueValidator(1)]
    )
    votes_per_session = models.PositiveIntegerField(_("votes of one person"), default=100)
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    objects = OpenLinkQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["campaign"], condition=Q(revoked_at=None), name="open_link_one_live_per_campaign"
            ),
            models.CheckConstraint(
                condition=Q(max_sessions__gte=1, max_sessions_per_network__gte=1, votes_per_session__gte=1),
                name="open_link_quotas_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"open link of campaign {self.campaign_id}"


class Rater(PublicModel):
    """Somebody in one campaign: a member of the team by `user`, or a guest by the hash of a cookie."""

    class Origin(models.TextChoices):
        SITE = "site", _("on the site")
        OFFLINE = "offline", _("on an offline page")
        IMPORTED = "imported", _("read from a file")

    class Screening(models.TextChoices):
        """What an admin says of a session, whatever the anomaly screen finds."""

        AUTOMATIC = "", _("as the screen finds")
        EXCLUDED = "excluded", _("left out by an admin")
        KEPT = "kept", _("kept by an admin")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="raters")
    user = models.ForeignKey("arena.User", null=True, on_delete=models.CASCADE, related_name="raters")
    label = models.CharField(max_length=200, blank=True)
    # SHA-256 of the guest's cookie; empty for members.
    session = models.CharField(max_length=64, blank=True)
    # Null for members and for guests by invitation, whose votes no screen leaves out.
    open_link = models.ForeignKey(OpenLink, null=True, on_delete=models.CASCADE, related_name="raters")
    # A keyed hash: tells that two sessions share a network, and not which.
    network_hash = models.CharField(max_length=64, blank=True)
    could_see_names = models.BooleanField(default=False)
    # Votes and skips that stand, repeats and gold items included: the rater's own progress.
    answered = models.PositiveIntegerField(default=0)
    blocked_at = models.DateTimeField(null=True)
    origin = models.CharField(max_length=8, choices=Origin.choices, default=Origin.SITE)
    screening = models.CharField(max_length=8, choices=Screening.choices, default=Screening.AUTOMATIC, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "user"], condition=Q(user__isnull=False), name="rater_user_once_per_campaign"
            ),
            models.UniqueConstraint(fields=["session"], condition=~Q(session=""), name="rater_session_once"),
            models.CheckConstraint(
                condition=(Q(user__isnull=True) & ~Q(session="")) | Q(user__isnull=False, session=""),
                name="rater_is_member_or_guest",
            ),
        ]

    def __str__(self) -> str:
        return self.label or f"rater {self.public_id}"

    @property
    def is_anonymous_session(self) -> bool:
        """Came by an open link, so the anomaly screen may leave the votes out."""
        return self.open_link_id is not None


class GuestInvitationQuerySet(models.QuerySet["GuestInvitation"]):
    def open(self) -> GuestInvitationQuerySet:
        return self.filter(used_at=None, revoked_at=None, expires_at__gt=timezone.now())


class GuestInvitation(PublicModel):
    """Makes one guest once. Only the token's hash is kept."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="invitations")
    # An e-mail address or a name: whom the link was given to.
    label = models.CharField(_("for whom"), max_length=200)
    token_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    rater = models.OneToOneField(Rater, null=True, on_delete=models.CASCADE, related_name="invitation")
    revoked_at = models.DateTimeField(null=True)

    objects = GuestInvitationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(used_at__isnull=True, rater__isnull=True) | Q(used_at__isnull=False, rater__isnull=False),
                name="guest_invitation_used_iff_rater",
            ),
            models.UniqueConstraint(
                fields=["campaign", "label"],
                condition=Q(used_at=None, revoked_at=None),
                name="guest_invitation_one_open_per_label",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.label} to campaign {self.campaign_id}"
