"""One team's data never comes out on another team's pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from tests.personas import World
from tests.url_samples import named_urls, samples, send

SAMPLES = samples()
TEAM_URLS = sorted(name for name, url in named_urls().items() if "team" in url.arguments)
NESTED = sorted(
    (name, argument)
    for name, url in named_urls().items()
    if "team" in url.arguments
    for argument in url.arguments - {"team"}
)
MEMBERS = ("owner", "admin", "member", "rater")


@pytest.fixture
def db(shared_world: World) -> None:
    """In place of the one that would begin every test with an empty database."""


@pytest.fixture
def world(db: None, shared_world: World) -> World:
    return shared_world


def body(response: Any) -> str:
    content: bytes = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode("utf-8", errors="replace")


@pytest.mark.parametrize("name", TEAM_URLS)
def test_the_owner_of_another_team_finds_nothing(name: str, world: World) -> None:
    sample = SAMPLES[name]
    for method in sample.methods:
        response = send(world.client("stranger"), name, sample, method, world.own, sample.kwargs(world.own))
        assert response.status_code == 404
        assert world.own.canary.lower() not in body(response).lower()


@pytest.mark.parametrize(("name", "argument"), NESTED)
def test_the_other_teams_things_are_not_found_under_the_own_team(name: str, argument: str, world: World) -> None:
    sample = SAMPLES[name]
    own, other = sample.kwargs(world.own), sample.kwargs(world.other)
    if own[argument] == other[argument]:
        pytest.skip(f"{argument} names no object: both teams have the same")
    for method in sample.methods:
        response = send(world.client("owner"), name, sample, method, world.own, own | {argument: other[argument]})
        assert response.status_code == 404
        assert world.other.canary.lower() not in body(response).lower()


@pytest.mark.parametrize("name", sorted(name for name, sample in SAMPLES.items() if sample.get))
def test_no_page_shows_what_belongs_to_the_other_team(name: str, world: World) -> None:
    sample = SAMPLES[name]
    for persona in MEMBERS:
        with transaction.atomic():
            response = send(world.client(persona), name, sample, "GET", world.own, sample.kwargs(world.own))
            assert world.other.canary.lower() not in body(response).lower(), persona
            transaction.set_rollback(True)


def test_the_canary_sings_at_home(world: World) -> None:
    sample = SAMPLES["arena:member-list"]
    response = send(world.client("owner"), "arena:member-list", sample, "GET", world.own, sample.kwargs(world.own))
    assert f"{world.own.canary}-rater" in body(response)
    assert f"{world.own.canary}-invited".lower() in body(response)
