from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.core.cache import cache

# Models are imported inside fixtures: pure tests run without Django's settings too.
if TYPE_CHECKING:
    from django.test import Client

    from tests.personas import World
    from tests.recorded_world import RecordedWorld


# These wait for processes of their own, some for most of a minute: whoever began with them last would end alone.
LONG = ("faults", "team")
# What a test that asks for the database has among its fixtures.
# pytest-django asks for its blocker everywhere.
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database-only", action="store_true", help="leave out the tests that ask for no database")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("database_only"):
        without = [item for item in items if not asks_for_database(item)]
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if asks_for_database(item)]
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in LONG)


def asks_for_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("django_db") or item.get_closest_marker("team"):
        return True
    return bool(DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    from tests.emptying import empty_quickly

    with django_db_blocker.unblock():
        empty_quickly()


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
