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
    from tests.recorded_world import RecordedWorld


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    # Counters of attempts would otherwise pass from one test to the next.
    if apps.ready:
        from arena.services.wire import forget_context

        cache.clear()
        forget_context()


@pytest.fixture(scope="session")
def recorded_world(django_db_setup: None, django_db_blocker: Any) -> RecordedWorld:
    from tests.recorded_world import record_world

    with django_db_blocker.unblock():
        return record_world()


@pytest.fixture
def world(recorded_world: RecordedWorld, db: None) -> World:
    return recorded_world.put_back()


@pytest.fixture(scope="module")
def lasting_world(recorded_world: RecordedWorld, django_db_blocker: Any) -> Iterator[World]:
    """One world for a whole module that tries every URL."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        yield recorded_world.put_back()
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
