from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.apps import apps
from django.core.cache import cache

# Models are imported inside fixtures: pure tests run without Django's settings too.
if TYPE_CHECKING:
    from django.test import Client

    from tests.personas import World


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    # Counters of attempts would otherwise pass from one test to the next.
    if apps.ready:
        from arena.services.wire import forget_context

        cache.clear()
        forget_context()


@pytest.fixture
def world(db: None) -> World:
    from tests.url_samples import make_world

    return make_world()


@pytest.fixture
def owner(world: World) -> Client:
    return world.client("owner")


@pytest.fixture
def admin(world: World) -> Client:
    return world.client("admin")


@pytest.fixture
def member(world: World) -> Client:
    return world.client("member")


@pytest.fixture
def rater(world: World) -> Client:
    return world.client("rater")


@pytest.fixture
def stranger(world: World) -> Client:
    return world.client("stranger")


@pytest.fixture
def anonymous(world: World) -> Client:
    return world.client("anonymous")
