from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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


@pytest.fixture(scope="module")
def lasting_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """One world for a whole module that tries every URL: making it takes a second, trying one URL milliseconds."""
    from django.db import transaction

    from tests.url_samples import make_world

    with django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)


@pytest.fixture
def shared_world(lasting_world: World, django_db_blocker: Any) -> Iterator[World]:
    """The lasting world, with whatever the test changes in the database undone after it."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        yield lasting_world
        transaction.set_rollback(True)


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
