"""Storing what a rater says: once, whatever the browser sends how often."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Assignment, Campaign, CampaignItem, Rater, Side, Vote
from annotation.selectors.turns import with_texts
from annotation.services.tallies import count_vote
from arena.services.members import Refused

KEY = re.compile(r"[A-Za-z0-9_-]{8,64}")
LONGEST_TEXT = 10_000
# A tab that was left open for a day says nothing about how long the reading took.
LONGEST_ACTIVE_MS = 6 * 60 * 60 * 1000


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """Of one answer, by the side on which the screen shows it."""

    tags: Sequence[str] = ()
    comment: str = ""

    def __bool__(self) -> bool:
        return bool(self.tags or self.comment.strip())


@dataclass(frozen=True, kw_only=True)
class Said:
    """What came from the browser. `key` is new for each showing of the pair and the same for each retry."""

    choice: str
    key: str
    left: Remarks = field(default_factory=Remarks)
    right: Remarks = field(default_factory=Remarks)
    # For a skip: one of `Vote.SkipReason`, with a note.
    reason: str = ""
    note: str = ""
    active_ms: int | None = None
    # The key of the vote that this one is to replace; empty for a first vote.
    replaces: str = ""


class Stored(NamedTuple):
    """The vote that stands now. `how`: new, `again` (the same request came before), or `kept` (another vote stood,
    and nothing was changed)."""

    vote: Vote
    how: Literal["new", "again", "kept"]


def assignment_of(rater: Rater, token: str) -> Assignment | None:
    """The rater's own assignment with what a page or a vote needs of it."""
    return with_texts().filter(rater=rater, token=token).first()


def current_vote(assignment: Assignment) -> Vote | None:
    """The vote or skip that stands; one that was taken back does not."""
    return Vote.objects.current().filter(assignment=assignment).exclude(choice=Vote.Choice.UNDONE).first()


def is_final(campaign: Campaign, vote: Vote) -> bool:
    """Names were shown for it, so it can no longer be changed."""
    shown = campaign.reveal == Campaign.Reveal.AFTER_VOTE and bool(vote.outcome)
    return shown or campaign.status != Campaign.Status.OPEN


def cast_vote(*, rater: Rater, token: str, said: Said) -> Stored:
    """Store a choice or a skip. Raises Refused with a sentence for the rater where the rules forbid it."""
    campaign = rater.campaign
    _check(campaign, said)
    with transaction.atomic():
        assignment = _locked(rater, token)
        again = Vote.objects.filter(assignment=assignment, idempotency_key=said.key).first()
        standing = Vote.objects.current().filter(assignment=assignment).first()
        if again is not None:
            return Stored(standing or again, "again")
        _require_open(rater)
        if standing is not None and standing.choice != Vote.Choice.UNDONE:
            if said.replaces != standing.idempotency_key:
                return Stored(standing, "kept")
            if is_final(campaign, standing):
                raise Refused(_("The names behind this pair have been shown, so the vote stands as it is."))
        return Stored(_append(assignment, rater, said, standing), "new")


def undo_vote(*, rater: Rater, token: str, key: str) -> Assignment:
    """Take the standing vote back, so that the pair is open again. A second undo of the same vote changes nothing."""
    with transaction.atomic():
        assignment = _locked(rater, token)
        standing = Vote.objects.current().filter(assignment=assignment).first()
        if standing is None or standing.choice == Vote.Choice.UNDONE:
            return assignment
        _require_open(rater)
        if is_final(rater.campaign, standing):
            raise Refused(_("The names behind this pair have been shown, so the vote stands as it is."))
        _append(assignment, rater, Said(choice=Vote.Choice.UNDONE, key=key), standing)
        # What was typed comes back with the pair.
        draft = draft_of(assignment, standing)
        Assignment.objects.filter(pk=assignment.pk).update(draft=draft)
        assignment.draft = draft
    return assignment


def draft_of(assignment: Assignment, vote: Vote) -> dict[str, Any]:
    """Tags and comments of a vote as the form has them, by side of the screen."""
    sides = {Side.FIRST: (vote.first_tags, vote.first_comment), Side.SECOND: (vote.second_tags, vote.second_comment)}
    left, right = sides[Side(assignment.left)], sides[Side(assignment.right)]
    return {"left_tags": left[0], "left_comment": left[1], "right_tags": right[0], "right_comment": right[1]}


def save_draft(*, rater: Rater, token: str, left: Remarks, right: Remarks) -> None:
    """Keep what is being typed, so that a lost session or network loses no word."""
    draft = {
        "left_tags": _tags(left),
        "left_comment": left.comment[:LONGEST_TEXT],
        "right_tags": _tags(right),
        "right_comment": right.comment[:LONGEST_TEXT],
    }
    Assignment.objects.filter(rater=rater, token=token, answered=False).update(draft=draft)


def report_leak(*, rater: Rater, token: str, note: str) -> None:
    """An answer gives away whose it is. The first report stands; admins see how many there are."""
    Assignment.objects.filter(rater=rater, token=token, leak_reported_at=None).update(
        leak_reported_at=timezone.now(), leak_note=note[:LONGEST_TEXT]
    )


def _locked(rater: Rater, token: str) -> Assignment:
    """Rater before item, here and where pairs are given out: nobody waits in a circle."""
    Rater.objects.select_for_update().get(pk=rater.pk)
    assignment = Assignment.objects.filter(rater=rater, token=token).first()
    if assignment is None:
        raise Refused(_("This pair is not yours. Reload the page."))
    if assignment.item_id is not None:
        items = CampaignItem.objects.select_for_update(of=("self",)).select_related("match")
        assignment.item = items.get(pk=assignment.item_id)
    return assignment


def _require_open(rater: Rater) -> None:
    status = Campaign.objects.values_list("status", flat=True).get(pk=rater.campaign_id)
    if status != Campaign.Status.OPEN:
        raise Refused(_("The campaign is closed, so nothing was stored."))
    if rater.blocked_at is not None:
        raise Refused(_("An admin has ended your part in this campaign, so nothing was stored."))


def _check(campaign: Campaign, said: Said) -> None:
    if not KEY.fullmatch(said.key):
        raise Refused(_("The request was incomplete. Reload the page and vote again."))
    if said.choice == Vote.Choice.SKIP:
        if said.reason not in Vote.SkipReason.values:
            raise Refused(_("Say why you skip this pair."))
        return
    kinds = {
        Vote.Choice.LEFT: Campaign.ReasonOn.BETTER,
        Vote.Choice.RIGHT: Campaign.ReasonOn.BETTER,
        Vote.Choice.BOTH_GOOD: Campaign.ReasonOn.TIE,
        Vote.Choice.BOTH_BAD: Campaign.ReasonOn.BOTH_BAD,
    }
    kind = {str(choice): reason for choice, reason in kinds.items()}.get(said.choice)
    if kind is None or (said.choice == Vote.Choice.BOTH_BAD and not campaign.allow_both_bad):
        raise Refused(_("Choose one of the buttons."))
    if kind in campaign.require_reason_on and not (said.left or said.right):
        raise Refused(_("For this choice the campaign asks for a reason: a tag or a comment on either answer."))


def _append(assignment: Assignment, rater: Rater, said: Said, standing: Vote | None) -> Vote:
    campaign = rater.campaign
    chosen = said.choice not in {Vote.Choice.SKIP, Vote.Choice.UNDONE}
    item = assignment.item if assignment.kind == Assignment.Kind.NORMAL else None
    if standing is not None:
        Vote.objects.filter(pk=standing.pk).update(is_current=False)
    kind, place = _place(assignment, rater, standing) if chosen else (Vote.Standing.NO_CHOICE, None)
    remarks = {assignment.left: said.left, assignment.right: said.right}
    vote = Vote.objects.create(
        assignment=assignment,
        campaign=campaign,
        rater=rater,
        match_id=assignment.match_id,
        choice=said.choice,
        outcome=_outcome(assignment, said.choice),
        standing=kind,
        place=place,
        places=campaign.raters_per_pair,
        first_tags=_tags(remarks[Side.FIRST]),
        second_tags=_tags(remarks[Side.SECOND]),
        first_comment=remarks[Side.FIRST].comment.strip()[:LONGEST_TEXT],
        second_comment=remarks[Side.SECOND].comment.strip()[:LONGEST_TEXT],
        reason=said.reason if said.choice == Vote.Choice.SKIP else "",
        note=said.note.strip()[:LONGEST_TEXT],
        idempotency_key=said.key,
        supersedes=standing,
        could_see_names=rater.could_see_names,
        active_ms=None if said.active_ms is None else max(0, min(said.active_ms, LONGEST_ACTIVE_MS)),
        guideline_version=campaign.guidelines.order_by("-number").values_list("number", flat=True).first(),
    )
    answered = said.choice != Vote.Choice.UNDONE
    changed = int(answered) - int(assignment.answered)
    # An edit comes from a page of its own and leaves nothing typed behind.
    Assignment.objects.filter(pk=assignment.pk).update(answered=answered, draft={})
    Rater.objects.filter(pk=rater.pk).update(answered=F("answered") + changed)
    if item is not None:
        before = 0 if standing is None or standing.place is None else 1
        CampaignItem.objects.filter(pk=item.pk).update(
            counted=F("counted") + (0 if place is None else 1) - before, pending=F("pending") - changed
        )
        count_vote(campaign=campaign, match=item.match, new=vote, old=standing)
    assignment.answered = answered
    return vote


def _outcome(assignment: Assignment, choice: str) -> str:
    """What the side of the screen means in the canonical order: known here alone, never in the browser."""
    return {
        Vote.Choice.LEFT.value: str(assignment.left),
        Vote.Choice.RIGHT.value: str(assignment.right),
        Vote.Choice.BOTH_GOOD.value: "tie",
        Vote.Choice.BOTH_BAD.value: "tie",
    }.get(str(choice), "")


def _place(assignment: Assignment, rater: Rater, standing: Vote | None) -> tuple[Vote.Standing, int | None]:
    """The lowest free place of the match; the item's lock is held, and the database holds the same rule."""
    if assignment.kind != Assignment.Kind.NORMAL:
        return Vote.Standing(assignment.kind), None
    if rater.could_see_names and not rater.campaign.counts_unblinded:
        return Vote.Standing.COULD_SEE_NAMES, None
    if standing is not None and standing.place is not None:
        return Vote.Standing.COUNTED, standing.place
    used = Vote.objects.current().filter(campaign=assignment.campaign_id, match=assignment.match_id)
    taken = set(used.exclude(place=None).values_list("place", flat=True))
    free = next((place for place in range(1, rater.campaign.raters_per_pair + 1) if place not in taken), None)
    return (Vote.Standing.OVER_QUOTA, None) if free is None else (Vote.Standing.COUNTED, free)


def _tags(remarks: Remarks) -> list[str]:
    return [tag for tag in Vote.Tag.values if tag in set(remarks.tags)]
