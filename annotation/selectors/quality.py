"""The votes of a campaign as plain rows, and what the pages of its quality show."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from annotation import quality
from annotation.models import Adjudication, Assignment, Campaign, CampaignItem, GoldItem, Rater, Vote
from annotation.quality import CastVote, Contested, Pace, RaterFigures
from ratings.engine.agreement import Agreement, Coding, Wilson, wilson
from ratings.engine.anomaly import Screening


def votes_in(campaigns: Collection[Campaign]) -> list[CastVote]:
    """Every vote and skip that stands, in the order of voting: one query whatever the number."""
    rows = (
        Vote.objects.current()
        .filter(campaign__in=campaigns)
        .exclude(choice=Vote.Choice.UNDONE)
        .order_by("created_at", "pk")
        .values_list(
            "rater",
            "assignment",
            "match",
            "match__sample",
            "assignment__kind",
            "standing",
            "choice",
            "outcome",
            "assignment__repeat_of",
            "assignment__gold_item__expected",
            "could_see_names",
            "active_ms",
            "created_at",
        )
    )
    return [
        CastVote(
            rater=row[0],
            assignment=row[1],
            match=row[2],
            sample=row[3],
            kind=row[4],
            standing=row[5],
            choice=row[6],
            outcome=row[7],
            repeat_of=row[8],
            expected=row[9] or "",
            could_see_names=row[10],
            active_ms=row[11],
            created_at=row[12],
        )
        for row in rows
    ]


@dataclass(frozen=True)
class ScreenedSession:
    """An anonymous session, what the screen found, and whether its votes are left out now."""

    rater: Rater
    found: Screening
    excluded: bool


def screened_sessions(campaign: Campaign, votes: Sequence[CastVote]) -> list[ScreenedSession]:
    """Those left out or suspected first."""
    sessions = list(Rater.objects.filter(campaign=campaign, open_link__isnull=False).order_by("pk"))
    if not sessions:
        return []
    times: dict[int, list[float]] = defaultdict(list)
    acts = Vote.objects.filter(campaign=campaign, rater__open_link__isnull=False).order_by()
    for rater, moment in acts.values_list("rater", "created_at"):
        times[rater].append(moment.timestamp())
    keys = [session.pk for session in sessions]
    found = quality.screened((vote for vote in votes if vote.rater in set(keys)), keys, times)
    rows = [
        ScreenedSession(session, screening, _is_left_out(campaign, session, screening))
        for session, screening in zip(sessions, found, strict=True)
    ]
    return sorted(rows, key=lambda row: (not row.excluded, not row.found.flagged, -row.found.votes, row.rater.pk))


def _is_left_out(campaign: Campaign, session: Rater, found: Screening) -> bool:
    if session.screening:
        return session.screening == Rater.Screening.EXCLUDED
    return campaign.screens_sessions and found.excluded


def excluded_raters(campaigns: Collection[Campaign], votes: Sequence[CastVote]) -> set[int]:
    """Raters whose votes enter no result: anonymous sessions left out by the screen or an admin, and those that were
    left out where a file was exported. Members and guests by invitation are always kept."""
    screened = {row.rater.pk for campaign in campaigns for row in screened_sessions(campaign, votes) if row.excluded}
    told = Rater.objects.filter(campaign__in=campaigns, screening=Rater.Screening.EXCLUDED)
    return screened | set(told.values_list("pk", flat=True))


@dataclass(frozen=True)
class RaterRow:
    rater: Rater
    figures: RaterFigures
    left_out: bool


@dataclass(frozen=True)
class GoldRow:
    gold: GoldItem
    right: Wilson


@dataclass(frozen=True)
class Quality:
    """All that the dashboard shows."""

    votes: int
    pace: Pace
    agreement: Mapping[Coding, Agreement]
    raters: list[RaterRow]
    gold: list[GoldRow]
    leaks: list[Assignment]
    sessions: list[ScreenedSession]


def quality_of(campaign: Campaign, *, wanted: int, counted: int, now: dt.datetime | None = None) -> Quality:
    """A fixed number of queries whatever the number of raters and votes."""
    votes = votes_in([campaign])
    sessions = screened_sessions(campaign, votes)
    raters = {rater.pk: rater for rater in Rater.objects.filter(campaign=campaign).select_related("user")}
    excluded = {row.rater.pk for row in sessions if row.excluded}
    excluded |= {key for key, rater in raters.items() if rater.screening == Rater.Screening.EXCLUDED}
    entering = quality.rated(votes, excluded)
    figures = quality.rater_figures(votes, excluded)
    rows = [RaterRow(raters[key], found, key in excluded) for key, found in figures.items()]
    return Quality(
        votes=len(entering),
        pace=quality.pace(
            (vote.created_at for vote in votes if vote.standing == "counted"),
            left=wanted - counted,
            now=now or timezone.now(),
        ),
        agreement=quality.agreement_of(entering),
        raters=sorted(rows, key=lambda row: (-row.figures.votes, row.rater.pk)),
        gold=_gold(campaign),
        leaks=list(leak_reports(campaign)),
        sessions=sessions,
    )


def _gold(campaign: Campaign) -> list[GoldRow]:
    said: dict[int, list[str]] = defaultdict(list)
    votes = Vote.objects.current().filter(campaign=campaign, standing=Vote.Standing.GOLD)
    for gold, outcome in votes.order_by().values_list("assignment__gold_item", "outcome"):
        if gold is not None:
            said[gold].append(outcome)
    items = campaign.gold_items.select_related("sample").filter(pk__in=list(said))
    rows = [
        GoldRow(item, wilson(said[item.pk].count(item.expected), len(said[item.pk]))) for item in items.order_by("pk")
    ]
    return sorted(rows, key=lambda row: (row.right.share or 0, -row.right.trials))


def leak_reports(campaign: Campaign) -> QuerySet[Assignment]:
    reported = Assignment.objects.filter(campaign=campaign, leak_reported_at__isnull=False)
    return reported.select_related("rater__user", "item", "match__sample", "gold_item__sample").order_by(
        "-leak_reported_at"
    )


@dataclass(frozen=True)
class QueueRow:
    item: CampaignItem
    found: Contested
    decided: Adjudication | None


def adjudication_queue(campaign: Campaign) -> list[QueueRow]:
    """Matches on which the rated votes differ: undecided ones first, the lowest agreement on top."""
    votes = votes_in([campaign])
    found = quality.contested(quality.rated(votes, excluded_raters([campaign], votes)))
    items = CampaignItem.objects.filter(campaign=campaign, match__in=[one.match for one in found])
    by_match = {item.match_id: item for item in items}
    decided = {one.item_id: one for one in Adjudication.objects.current().filter(campaign=campaign)}
    rows = [
        QueueRow(by_match[one.match], one, decided.get(by_match[one.match].pk))
        for one in found
        if one.match in by_match
    ]
    return sorted(rows, key=lambda row: row.decided is not None)
