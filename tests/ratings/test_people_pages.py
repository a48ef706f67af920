from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from annotation.models import Campaign, Rater
from annotation.services.raters import join_as_member
from arena.models import Role
from ratings import services
from ratings.models import Leaderboard
from tests.personas import World
from tests.ratings.test_people import ROUNDS, opinions, stuffed
from tests.ratings.test_services import THREE
from tests.ratings.voting_world import campaign_over, cast, member_rater
from tests.ratings.world import Played, tournament

pytestmark = pytest.mark.django_db
SCOPES = ["tournament", "task_set", "team"]


@pytest.fixture
def played(world: World) -> Played:
    return tournament(THREE, ROUNDS, team=world.own.team, name="Voted on")


@pytest.fixture
def campaign(played: Played) -> Campaign:
    Campaign.objects.filter(team=played.tournament.team).update(status="closed")
    campaign = campaign_over(played.tournament.team, played.tournament, status="open")
    for seed in range(3):
        cast(member_rater(campaign), opinions(seed))
    return campaign


def board(played: Played, scope: str, source: str) -> Leaderboard:
    method = services.Method(ties="rao_kupper", source=source)
    team, lineage = played.tournament.team, played.tournament.task_set.lineage
    if scope == "tournament":
        found = services.board_of_jury(played.tournament, played.jury, method)
    else:
        found = services.wide_board(team, method, task_set_lineage=lineage if scope == "task_set" else "")
    services.refit(found.pk)
    return found


def status(world: World, persona: str, found: Leaderboard, name: str = "board-detail", **more: Any) -> int:
    address = reverse(f"ratings:{name}", kwargs={"team": world.own.team_id, "board": found.public_id, **more})
    return world.client(persona).get(address).status_code


def opening(world: World, persona: str, played: Played, scope: str, source: str) -> int:
    asked = {"tournament": {"tournament": played.tournament.public_id}, "team": {}}
    asked["task_set"] = {"task_set": played.tournament.task_set.lineage}
    address = reverse("ratings:board-open", kwargs={"team": world.own.team_id})
    return world.client(persona).get(address, {**asked[scope], "source": source}).status_code


@pytest.mark.parametrize("scope", SCOPES)
def test_boards_of_people_are_the_admins_until_voting_ends(
    scope: str, world: World, played: Played, campaign: Campaign
) -> None:
    for source in ("human", "both"):
        found = board(played, scope, source)
        run = found.runs.get()
        assert [status(world, persona, found) for persona in ("owner", "admin", "member")] == [200, 200, 404]
        assert status(world, "member", found, "run-evidence", run=run.public_id) == 404
        assert status(world, "member", found, "board-csv", table="ratings") == 404
        before = Leaderboard.objects.count()
        assert opening(world, "member", played, scope, source) == 404
        assert Leaderboard.objects.count() == before
    jury = board(played, scope, "jury")
    assert status(world, "member", jury) == 200
    Campaign.objects.filter(pk=campaign.pk).update(status="closed")
    assert status(world, "member", found) == 200


@pytest.mark.parametrize("scope", SCOPES)
def test_a_member_who_votes_finds_no_board_of_the_matches(
    scope: str, world: World, played: Played, campaign: Campaign
) -> None:
    found = board(played, scope, "jury")
    run = found.runs.get()
    join_as_member(campaign=campaign, membership=world.own.members[Role.MEMBER])
    for name, more in (
        ("board-detail", {}),
        ("board-head-to-head", {}),
        ("board-runs", {}),
        ("board-csv", {"table": "ratings"}),
        ("run-evidence", {"run": run.public_id}),
    ):
        assert status(world, "member", found, name, **more) == 404
    assert opening(world, "member", played, scope, "jury") == 404
    listing = reverse("ratings:board-list", kwargs={"team": world.own.team_id})
    page = world.client("member").get(listing).content.decode()
    assert found.public_id not in page
    assert "Voted on" not in page
    Campaign.objects.filter(pk=campaign.pk).update(status="closed")
    assert status(world, "member", found) == 200


def test_the_page_offers_the_sources_and_shows_them_apart(world: World, played: Played, campaign: Campaign) -> None:
    found = board(played, "tournament", "both")
    address = reverse("ratings:board-detail", args=[world.own.team_id, found.public_id])
    page = world.client("admin").get(address).content.decode()
    assert "Juries and people apart" in page
    assert "source=human" in page
    assert "Everybody who voted was a member" in page
    jury = reverse("ratings:board", args=[world.own.team_id, played.tournament.public_id])
    assert "source=human" in world.client("admin").get(jury).content.decode()
    assert "source=human" not in world.client("member").get(jury).content.decode()


def test_an_admin_decides_about_a_session(world: World, played: Played, campaign: Campaign) -> None:
    sided, fast, _ = stuffed(campaign)
    found = board(played, "tournament", "human")
    address = reverse("ratings:board-detail", args=[world.own.team_id, found.public_id])
    page = world.client("admin").get(address).content.decode()
    assert sided.public_id in page
    assert fast.public_id in page
    assert "&lt; 0.0001" in page
    decide = reverse("ratings:session-screening", args=[world.own.team_id, found.public_id, sided.public_id])
    assert world.client("member").post(decide, {"screening": "kept"}).status_code == 403
    assert world.client("admin").post(decide, {"screening": "perhaps"}).status_code == 404
    assert world.client("admin").post(decide, {"screening": "kept"})["Location"] == address
    assert Rater.objects.get(pk=sided.pk).screening == "kept"
    # A member's votes are no session.
    member = Rater.objects.filter(campaign=campaign, open_link=None).first()
    assert member is not None
    other = reverse("ratings:session-screening", args=[world.own.team_id, found.public_id, member.public_id])
    assert world.client("admin").post(other, {"screening": "excluded"}).status_code == 404
