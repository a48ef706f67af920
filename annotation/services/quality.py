"""What admins do about quality: sessions, matches and disagreements. Nothing here changes a vote."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotation.models import Adjudication, Assignment, Campaign, CampaignItem, Rater, Side, Vote
from annotation.pairing import keyed_draw
from annotation.selectors.quality import QueueRow, adjudication_queue
from arena.models import User
from arena.services import audit
from arena.services.members import Refused

LONGEST_NOTE = 10_000
TIES = (Vote.Choice.BOTH_GOOD, Vote.Choice.BOTH_BAD)


@transaction.atomic
def switch_screen(*, campaign: Campaign, actor: User | None, on: bool) -> None:
    changed = Campaign.objects.filter(pk=campaign.pk, screens_sessions=not on).update(screens_sessions=on)
    if changed:
        new = {"screens_sessions": on}
        audit.record(team=campaign.team, actor=actor, action="campaign.screen", target=campaign.name, new=new)


@transaction.atomic
def set_screening(*, rater: Rater, actor: User | None, screening: str) -> None:
    """Leave an anonymous session out, keep it, or go by the screen again. Its votes stay as they are."""
    if screening not in Rater.Screening.values:
        raise Refused(_("Choose one of the buttons."))
    if not rater.is_anonymous_session:
        raise Refused(_("Only sessions of an open link are screened; members and invited guests are always kept."))
    old = rater.screening
    Rater.objects.filter(pk=rater.pk).update(screening=screening)
    audit.record(
        team=rater.campaign.team,
        actor=actor,
        action="campaign.screen_session",
        target=rater.campaign.name,
        old={"session": str(rater), "screening": old},
        new={"session": str(rater), "screening": screening},
    )


@transaction.atomic
def leave_out_match(*, assignment: Assignment, actor: User | None) -> None:
    """No rater is given this match any more, as somebody reported it. Votes on it so far stand."""
    if assignment.item_id is None:
        raise Refused(_("A gold item is not part of the pool."))
    item = CampaignItem.objects.select_for_update().get(pk=assignment.item_id)
    if item.state == CampaignItem.State.EXCLUDED:
        return
    CampaignItem.objects.filter(pk=item.pk).update(state=CampaignItem.State.EXCLUDED)
    campaign = assignment.campaign
    new = {"match": item.match.public_id}
    audit.record(team=campaign.team, actor=actor, action="campaign.leave_out", target=campaign.name, new=new)


def adjudication_token(campaign: Campaign, item: int) -> str:
    """Names an item in an address and tells nothing about it; nobody without the secrets can make one."""
    key = (settings.SECRET_KEY + campaign.secret).encode()
    return hmac.new(key, f"adjudicate:{item}".encode(), hashlib.sha256).hexdigest()[:32]


def queue_row(campaign: Campaign, token: str) -> QueueRow | None:
    rows = adjudication_queue(campaign)
    return next((row for row in rows if hmac.compare_digest(adjudication_token(campaign, row.item.pk), token)), None)


def left_side(campaign: Campaign, item: int, actor: int) -> str:
    """Drawn anew for each admin, so that nobody learns a side from another's screen."""
    return Side.FIRST if keyed_draw(campaign.secret, "adjudicate", item, actor) < 0.5 else Side.SECOND


@transaction.atomic
def adjudicate(*, campaign: Campaign, token: str, actor: User, choice: str, note: str = "") -> Adjudication:
    """A decision beside the votes. Another one later takes its place and names it."""
    row = queue_row(campaign, token)
    if row is None:
        raise Refused(_("The votes on this pair agree by now, so there is nothing to decide."))
    allowed = {Vote.Choice.LEFT, Vote.Choice.RIGHT, *TIES}
    if choice not in {one.value for one in allowed}:
        raise Refused(_("Choose one of the buttons."))
    CampaignItem.objects.select_for_update().get(pk=row.item.pk)
    left = left_side(campaign, row.item.pk, actor.pk)
    right = Side.SECOND if left == Side.FIRST else Side.FIRST
    sides = {Vote.Choice.LEFT.value: str(left), Vote.Choice.RIGHT.value: str(right)}
    standing = Adjudication.objects.current().filter(item=row.item).first()
    if standing is not None:
        Adjudication.objects.filter(pk=standing.pk).update(is_current=False)
    made = Adjudication.objects.create(
        campaign=campaign,
        item=row.item,
        actor=actor,
        left=left,
        choice=choice,
        outcome=sides.get(choice, "tie"),
        note=note.strip()[:LONGEST_NOTE],
        votes=row.found.votes,
        supersedes=standing,
    )
    audit.record(team=campaign.team, actor=actor, action="campaign.adjudicate", target=campaign.name)
    return made
