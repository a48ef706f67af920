"""Giving a rater the next pair.

A pair is taken in a transaction of its own that locks the rater and then one item, and looks again: of fifty
raters that choose the same place at once, as many get it as there are places, and the others try the next.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from annotation.models import Assignment, Campaign, CampaignItem, GoldItem, Rater, Side
from annotation.pairing import first_goes_left, keyed_draw, kind_of_next, least_voted
from annotation.selectors import turns
from annotation.services.pools import answers_key, scan_pool

LEASE = dt.timedelta(minutes=30)
# Items searched for names while a rater waits, where no task has come to it.
SCANNED_WHILE_WAITING = 4


class Nothing(NamedTuple):
    """No pair, and why: `closed`, `blocked`, `quota` (of an open link), `done`, or `busy` (others hold the rest)."""

    reason: str


def next_assignment(rater: Rater) -> Assignment | Nothing:
    """The pair that stands before the rater, or a new one. The same in every tab until it is voted on."""
    campaign = rater.campaign
    for _ in range(3):
        if not campaign.is_open or rater.blocked_at is not None:
            return Nothing("blocked" if rater.blocked_at else "closed")
        standing = turns.open_assignment(rater)
        if standing is not None:
            return _renewed(standing)
        if rater.open_link is not None and rater.answered >= rater.open_link.votes_per_session:
            return Nothing("quota")
        try:
            made = _new_assignment(campaign, rater)
        except IntegrityError:
            # Another tab was quicker: what it was given stands there now.
            continue
        if isinstance(made, Nothing):
            return made
        return turns.with_texts().get(pk=made.pk)
    return Nothing("busy")


def assign_ahead(rater: Rater, *, count: int, hold: dt.timedelta) -> list[Assignment]:
    """Pairs for a rater who works away from the site, all at once: the same turns, gold and repeats as otherwise.

    Their places are held for `hold`. Fewer than `count` where the pool has no more.
    """
    campaign = rater.campaign
    offset = keyed_draw(campaign.secret, "offset", rater.pk)
    for position in range(1, count + 1):
        kinds = kind_of_next(
            turns.progress_of(rater),
            gold_share=campaign.gold_share,
            repeat_share=campaign.repeat_share,
            offset=offset,
        )
        made: Assignment | Nothing | None = None
        for kind in kinds:
            if kind == "repeat":
                made = _repeated(rater, position, turns.given_far_back(rater, position=position).first())
            elif kind == "gold":
                made = _gold(campaign, rater, position)
            else:
                made = _normal(campaign, rater, position)
            if made is not None:
                break
        if not isinstance(made, Assignment):
            break
    Assignment.objects.filter(rater=rater).update(lease_until=timezone.now() + hold)
    return list(turns.with_texts().filter(rater=rater).order_by("position"))


def _renewed(assignment: Assignment) -> Assignment:
    now = timezone.now()
    # Not at every look: once half of it is over.
    if assignment.lease_until < now + LEASE / 2:
        assignment.lease_until = now + LEASE
        Assignment.objects.filter(pk=assignment.pk).update(lease_until=assignment.lease_until)
    return assignment


def _new_assignment(campaign: Campaign, rater: Rater) -> Assignment | Nothing:
    progress = turns.progress_of(rater)
    offset = keyed_draw(campaign.secret, "offset", rater.pk)
    kinds = kind_of_next(progress, gold_share=campaign.gold_share, repeat_share=campaign.repeat_share, offset=offset)
    position = progress.total + 1
    for kind in kinds:
        made: Assignment | None
        if kind == "repeat":
            made = _repeat(rater, position)
        elif kind == "gold":
            made = _gold(campaign, rater, position)
        else:
            return _normal(campaign, rater, position)
        if made is not None:
            return made
    return Nothing("done")


def _repeat(rater: Rater, position: int) -> Assignment | None:
    return _repeated(rater, position, turns.repeatable(rater, position=position).first())


def _repeated(rater: Rater, position: int, original: Assignment | None) -> Assignment | None:
    if original is None:
        return None
    return _create(
        rater,
        position,
        kind=Assignment.Kind.REPEAT,
        item=original.item,
        match=original.match,
        repeat_of=original,
        answers_key=original.answers_key,
        left=original.right,
    )


def _gold(campaign: Campaign, rater: Rater, position: int) -> Assignment | None:
    gold = list(turns.unused_gold(campaign, rater).select_related("sample"))
    if not gold:
        return None
    one: GoldItem = min(gold, key=lambda item: keyed_draw(campaign.secret, "gold", item.pk, rater.pk))
    side = Side.FIRST if keyed_draw(campaign.secret, "gold side", one.pk, rater.pk) < 0.5 else Side.SECOND
    key = answers_key(one.sample.input_hash, [one.first_text, one.second_text])
    return _create(rater, position, kind=Assignment.Kind.GOLD, gold_item=one, answers_key=key, left=side)


def _normal(campaign: Campaign, rater: Rater, position: int) -> Assignment | Nothing:
    while True:
        made = _normal_of_pool(campaign, rater, position)
        if made is not None:
            return made
        if not scan_pool(campaign, limit=SCANNED_WHILE_WAITING):
            break
    left = any(load.left for load in turns.loads(campaign, rater).values())
    return Nothing("busy" if left else "done")


def _normal_of_pool(campaign: Campaign, rater: Rater, position: int) -> Assignment | None:
    for pair in turns.pairs_in_turn(campaign, rater, turn=position):
        items = turns.items_of(campaign, rater, pair, timezone.now())
        for key in least_voted(items, secret=campaign.secret, rater=rater.pk):
            made = _claimed(campaign, rater, key, position)
            if made is not None:
                return made
    return None


@transaction.atomic
def _claimed(campaign: Campaign, rater: Rater, key: int, position: int) -> Assignment | None:
    """A place at this item, if there is one still when nobody else can take it."""
    # Rater before item, here and where votes are stored: nobody waits in a circle.
    Rater.objects.select_for_update().get(pk=rater.pk)
    item = CampaignItem.objects.select_for_update().get(pk=key)
    held = turns.live_leases(timezone.now(), but=rater).filter(item=item).count()
    if item.counted + held >= campaign.raters_per_pair or item.state not in CampaignItem.SERVED_STATES:
        return None
    first_left = first_goes_left(
        turns.side_counts(item, rater), secret=campaign.secret, match=item.match_id, rater=rater.pk
    )
    made = _create(
        rater,
        position,
        kind=Assignment.Kind.NORMAL,
        item=item,
        match=item.match,
        answers_key=item.answers_key,
        left=Side.FIRST if first_left else Side.SECOND,
    )
    used = "first_left" if first_left else "second_left"
    CampaignItem.objects.filter(pk=item.pk).update(**{used: F(used) + 1, "pending": F("pending") + 1})
    return made


def _create(rater: Rater, position: int, *, left: str, **values: object) -> Assignment:
    right = Side.SECOND if left == Side.FIRST else Side.FIRST
    with transaction.atomic():
        return Assignment.objects.create(
            campaign=rater.campaign,
            rater=rater,
            position=position,
            left=left,
            right=right,
            lease_until=timezone.now() + LEASE,
            **values,
        )
