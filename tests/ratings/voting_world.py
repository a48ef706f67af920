"""Votes put in row by row beside a finished tournament: as many raters as wanted, at any pace."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from itertools import count

from django.utils import timezone

from annotation.models import Assignment, Campaign, CampaignItem, OpenLink, Rater, Vote
from arena.models import Match, Team, Tournament, User

_numbers = count(1)


def campaign_over(team: Team, *tournaments: Tournament, status: str = "closed", **values: object) -> Campaign:
    now = timezone.now()
    campaign = Campaign.objects.create(team=team, name="Votes", status=status, opened_at=now, **values)
    campaign.tournaments.set(tournaments)
    matches = Match.objects.filter(tournament__in=tournaments).select_related("first", "second")
    CampaignItem.objects.bulk_create(
        [
            CampaignItem(
                campaign=campaign,
                match=match,
                state="clean",
                answers_key=f"answers-{match.first_trial_id}-{match.second_trial_id}",
                first_model_id=match.first.language_model_id,
                second_model_id=match.second.language_model_id,
            )
            for match in matches
        ]
    )
    return campaign


def member_rater(campaign: Campaign, user: User | None = None) -> Rater:
    user = user or User.objects.create_user(f"votes-{next(_numbers)}@example.com")
    return Rater.objects.create(campaign=campaign, user=user)


def anonymous(campaign: Campaign) -> Rater:
    number = next(_numbers)
    link, _ = OpenLink.objects.get_or_create(
        campaign=campaign,
        revoked_at=None,
        defaults={"token_hash": f"link-{number}", "expires_at": timezone.now() + dt.timedelta(days=1)},
    )
    return Rater.objects.create(campaign=campaign, open_link=link, session=f"session-{number}")


def cast(
    rater: Rater,
    says: Iterable[str],
    *,
    kind: str = "normal",
    standing: str = "counted",
    gap_s: float = 20.0,
    first_left: bool | None = None,
    skip: int = 0,
) -> list[Vote]:
    """One vote on each of the campaign's matches in turn: an outcome, `both_bad` or `skip`.

    The first answer stands left on every other match, or as `first_left` says.
    """
    items = list(CampaignItem.objects.filter(campaign=rater.campaign_id).order_by("match__sequence", "pk"))[skip:]
    begun = timezone.now() - dt.timedelta(days=1)
    votes = []
    for number, (item, said) in enumerate(zip(items, says, strict=False)):
        on_left = number % 2 == 0 if first_left is None else first_left
        left, right = ("first", "second") if on_left else ("second", "first")
        assignment = Assignment.objects.create(
            campaign_id=rater.campaign_id,
            rater=rater,
            kind=kind,
            item=item,
            match_id=item.match_id,
            repeat_of=Assignment.objects.get(rater=rater, match=item.match_id, kind="normal")
            if kind == "repeat"
            else None,
            answers_key=item.answers_key,
            left=left,
            right=right,
            position=rater.assignments.count() + 1,
            lease_until=timezone.now(),
            answered=True,
        )
        chosen = {"first": "left" if on_left else "right", "second": "right" if on_left else "left", "tie": "both_good"}
        is_skip = said == "skip"
        counted = standing == "counted" and not is_skip
        vote = Vote.objects.create(
            assignment=assignment,
            campaign_id=rater.campaign_id,
            rater=rater,
            match_id=item.match_id,
            choice=chosen.get(said, said),
            outcome="" if is_skip else "tie" if said == "both_bad" else said,
            standing="no_choice" if is_skip else standing,
            place=1 + Vote.objects.filter(match=item.match_id, campaign=rater.campaign_id, place__gt=0).count()
            if counted
            else None,
            places=50,
            reason="other" if is_skip else "",
            idempotency_key=f"key-{next(_numbers)}",
        )
        Vote.objects.filter(pk=vote.pk).update(created_at=begun + dt.timedelta(seconds=gap_s * number))
        votes.append(vote)
    return votes
