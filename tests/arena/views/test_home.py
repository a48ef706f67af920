from __future__ import annotations

from http import HTTPStatus

from django.test import Client
from django.urls import reverse
from model_bakery import baker
from pytest_django import DjangoAssertNumQueries

from arena.models import LanguageModel, Membership, Provider, Role, TaskSet, Team, Tournament, User
from tests.personas import World


def team_url(team: Team) -> str:
    return reverse("arena:team-home", args=[team.public_id])


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_only_team_opens_at_once(world: World, rater: Client) -> None:
    assert rater.get("/")["Location"] == team_url(world.own.team)


def test_of_several_teams_the_last_one_opens(world: World) -> None:
    user = world.own.user(Role.MEMBER)
    Membership.objects.create(team=world.other.team, user=user, role=Role.RATER)
    client = logged_in(user)
    assert client.get("/")["Location"] == reverse("arena:team-list")
    page = client.get("/teams/").content.decode()
    assert world.own.team.name in page
    assert world.other.team.name in page
    client.get(team_url(world.other.team))
    assert client.get("/")["Location"] == team_url(world.other.team)
    Membership.objects.filter(team=world.other.team, user=user).delete()
    assert client.get("/")["Location"] == team_url(world.own.team)


def test_the_first_account_creates_the_first_team(db: None) -> None:
    client = logged_in(User.objects.create_user("first@example.com"))
    assert client.get("/")["Location"] == "/teams/new/"
    response = client.post("/teams/new/", {"name": "First"})
    team = Team.objects.get()
    assert response["Location"] == team_url(team)
    assert client.get("/teams/new/").status_code == HTTPStatus.FORBIDDEN


def test_a_later_account_is_told_to_ask_for_an_invitation(world: World) -> None:
    client = logged_in(User.objects.create_user("later@example.com"))
    response = client.get("/")
    assert response.status_code == HTTPStatus.OK
    assert "invitation to later@example.com" in response.content.decode()
    assert client.post("/teams/new/", {"name": "Mine"}).status_code == HTTPStatus.FORBIDDEN
    assert Team.objects.count() == 2


def test_a_superuser_creates_teams(world: World) -> None:
    client = logged_in(User.objects.create_superuser("root@example.com"))
    assert client.get("/")["Location"] == "/teams/new/"
    client.post("/teams/new/", {"name": "Third"})
    assert Team.objects.count() == 3


def test_an_empty_team_is_led_through(world: World, owner: Client) -> None:
    Tournament.objects.filter(team=world.own.team).delete()
    TaskSet.objects.filter(team=world.own.team).delete()
    page = owner.get(team_url(world.own.team)).content.decode()
    assert "To your first result" in page


def fill(team: Team, count: int) -> None:
    provider = baker.make(Provider, team=team, name="house")
    for number in range(count):
        task_set = baker.make(TaskSet, team=team, name=f"prompts-{number}")
        baker.make(LanguageModel, team=team, provider=provider, model_id=f"model-{number}")
        baker.make(Tournament, team=team, task_set=task_set, name=f"cup-{number}", max_matches=1)


def test_a_full_team_sees_its_newest_five_in_few_queries(
    world: World, member: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    fill(world.own.team, 8)
    member.get(team_url(world.own.team))  # The first visit keeps the team in the session.
    # session, user, membership with team, a count and the newest of three kinds, what is concealed, menu of teams
    with django_assert_num_queries(11):
        page = member.get(team_url(world.own.team)).content.decode()
    for name in ("prompts", "model", "cup"):
        assert f"{name}-7" in page
        assert f"{name}-3" in page
    assert "cup-2" not in page
    assert "To your first result" not in page


def test_a_rater_learns_neither_names_nor_results(world: World, rater: Client) -> None:
    fill(world.own.team, 2)
    page = rater.get(team_url(world.own.team)).content.decode()
    assert "model-0" not in page
    assert "cup-0" not in page
