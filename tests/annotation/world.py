"""Campaigns over tournaments that were put in row by row."""

from __future__ import annotations

from itertools import count
from typing import Any

from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.services.campaigns import CampaignFields, create_campaign, open_campaign
from annotation.services.pools import scan_pool
from annotation.services.raters import join_as_member
from annotation.services.serving import next_assignment
from annotation.services.votes import Said, Stored, cast_vote
from arena.models import Membership, Role, Team, Tournament, User
from tests.arena.tournament_world import make_cast, make_provider, make_tournament

_numbers = count(1)


def make_team() -> Team:
    return Team.objects.create(name=f"Raters {next(_numbers)}")


def played(team: Team, *, matches: int = 6, prefix: str = "", **values: Any) -> Tournament:
    provider = make_provider(team, name=f"{prefix}host")
    cast = make_cast(team, prefix=prefix, samples=max(1, -(-matches // 3)), provider=provider)
    return make_tournament(cast, matches=matches, **values)


def draft(team: Team, *tournaments: Tournament, **fields: Any) -> Campaign:
    chosen = tournaments or (played(team),)
    defaults: dict[str, Any] = {"name": "Spring votes", "tournaments": chosen, "repeat_share": 0.0}
    return create_campaign(team=team, actor=None, fields=CampaignFields(**{**defaults, **fields}))


def opened(team: Team, *tournaments: Tournament, **fields: Any) -> Campaign:
    campaign = open_campaign(campaign=draft(team, *tournaments, **fields), actor=None)
    scan_pool(campaign)
    return campaign


def member(team: Team, role: Role = Role.MEMBER) -> Membership:
    user = User.objects.create_user(f"person-{next(_numbers)}@example.com")
    return Membership.objects.create(team=team, user=user, role=role)


def rater(campaign: Campaign, role: Role = Role.MEMBER) -> Rater:
    return join_as_member(campaign=campaign, membership=member(campaign.team, role))


def given(one: Rater) -> Assignment:
    found = next_assignment(one)
    assert isinstance(found, Assignment)
    return found


def said(choice: str = "left", **values: Any) -> Said:
    return Said(**{"choice": choice, "key": f"key-{next(_numbers):08}", **values})


def vote(one: Rater, choice: str = "left", assignment: Assignment | None = None, **values: Any) -> Stored:
    return cast_vote(rater=one, token=(assignment or given(one)).token, said=said(choice, **values))


def votes_of(campaign: Campaign) -> list[Vote]:
    return list(Vote.objects.filter(campaign=campaign).order_by("pk"))
