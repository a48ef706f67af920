from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from annotation.models import Assignment, Campaign, CampaignItem, GuidelineVersion, Rater, Vote
from arena.models import Membership, Team


@dataclass(frozen=True)
class CampaignRow:
    campaign: Campaign
    matches: int
    wanted: int
    counted: int
    raters: int


def campaigns_of(team: Team) -> QuerySet[Campaign]:
    return Campaign.objects.filter(team=team).order_by("-created_at", "-pk")


def rows_of(campaigns: list[Campaign]) -> list[CampaignRow]:
    """Two queries whatever the number."""
    items = CampaignItem.objects.filter(campaign__in=campaigns).exclude(state=CampaignItem.State.EXCLUDED)
    pools = {
        key: (matches, counted or 0)
        for key, matches, counted in items.order_by()
        .values_list("campaign")
        .annotate(n=Count("pk"), counted=Sum("counted"))
    }
    raters = dict(Rater.objects.filter(campaign__in=campaigns).order_by().values_list("campaign").annotate(Count("pk")))
    rows = []
    for campaign in campaigns:
        matches, counted = pools.get(campaign.pk, (0, 0))
        wanted = matches * campaign.raters_per_pair
        rows.append(CampaignRow(campaign, matches, wanted, counted, raters.get(campaign.pk, 0)))
    return rows


@dataclass(frozen=True)
class PoolState:
    waiting: int
    clean: int
    leaks: int
    excluded: int
    reported: int


def pool_state(campaign: Campaign) -> PoolState:
    counts = dict(campaign.items.order_by().values_list("state").annotate(Count("pk")))
    reported = Assignment.objects.filter(campaign=campaign, leak_reported_at__isnull=False)
    return PoolState(
        waiting=counts.get("new", 0),
        clean=counts.get("clean", 0),
        leaks=counts.get("leaks", 0),
        excluded=counts.get("excluded", 0),
        reported=reported.values("match").distinct().count(),
    )


def waiting_for(membership: Membership) -> list[Campaign]:
    """The open campaigns of the team in which something is left to judge for this member."""
    own = Rater.objects.filter(campaign=OuterRef("pk"), user=membership.user_id)
    seen = Assignment.objects.filter(
        rater__campaign=OuterRef("campaign"), rater__user=membership.user_id, answered=True
    )
    left = CampaignItem.objects.filter(
        ~Exists(seen.filter(match=OuterRef("match"))),
        campaign=OuterRef("pk"),
        state__in=[CampaignItem.State.NEW, *CampaignItem.SERVED_STATES],
        counted__lt=OuterRef("raters_per_pair"),
    )
    campaigns = Campaign.objects.open().filter(~Exists(own.filter(blocked_at__isnull=False)), team=membership.team_id)
    return list(campaigns.filter(Exists(left)).order_by("opened_at", "pk"))


def newest_guidelines(campaign: Campaign) -> GuidelineVersion | None:
    return GuidelineVersion.objects.filter(campaign=campaign).order_by("-number").first()


def last_vote(rater: Rater) -> Vote | None:
    """What the rater said last and has not taken back: what an undo is about."""
    return own_votes(rater).first()


def own_votes(rater: Rater) -> QuerySet[Vote]:
    return (
        Vote.objects.current()
        .filter(rater=rater)
        .exclude(choice=Vote.Choice.UNDONE)
        .select_related("assignment")
        .order_by("-created_at", "-pk")
    )


def raters_of(campaign: Campaign) -> QuerySet[Rater]:
    """With their votes by standing: for the list that admins see."""
    current = Q(votes__is_current=True)
    return (
        Rater.objects.filter(campaign=campaign)
        .select_related("user", "open_link")
        .annotate(
            counted=Count("votes", filter=current & Q(votes__standing=Vote.Standing.COUNTED)),
            skipped=Count("votes", filter=current & Q(votes__choice=Vote.Choice.SKIP)),
        )
        .order_by(F("answered").desc(), "pk")
    )
