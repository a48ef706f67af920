"""Pages in a real browser. Skipped where there is none, unless REQUIRE_SERVICES=1 asks for a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A fixture of pytest-base-url, which pytest-playwright brings along, is written in a way that will go.
    ignore = pytest.mark.filterwarnings("ignore:Session-scoped fixtures defined as instance methods")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(ignore)


@pytest.fixture(scope="session", autouse=True)
def _async_unsafe() -> Iterator[None]:
    # Playwright keeps an event loop in this thread, where Django would refuse to touch the database.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    yield
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if not CHROMIUM.exists() and os.environ.get("REQUIRE_SERVICES") != "1":
        pytest.skip(f"{CHROMIUM} is not installed")
    return {**browser_type_launch_args, "executable_path": str(CHROMIUM), "args": ARGUMENTS}


@pytest.fixture(scope="session", autouse=True)
def _database_before_server(django_db_setup: None) -> None:
    # A server that starts first sees the in-memory name of the settings, and shares one connection by threads.
    return None
