from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse

from tests.personas import PERSONAS, World
from tests.url_samples import named_urls, samples, send

TABLE = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"
ROW = re.compile(r"^\| `([a-z_]+:[a-z0-9-]+)` \|")
OUTCOMES = {"yes", "403", "404", "login"}


@pytest.fixture
def db(shared_world: World) -> None:
    """In place of the one that would begin every test with an empty database."""


@pytest.fixture
def world(db: None, shared_world: World) -> World:
    return shared_world


def read_table() -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if match := ROW.match(line):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            # Where a table has no column for guests, they are treated like anybody who is not signed in.
            if len(cells) == 1 + len(PERSONAS):
                cells.insert(-2, cells[-1])
            assert len(cells) == 2 + len(PERSONAS), f"this row has another number of columns: {line}"
            assert match[1] not in rows, f"{match[1]} has two rows"
            rows[match[1]] = dict(zip(PERSONAS, cells[2:], strict=True))
    return rows


ROWS = read_table()


def outcome(response: Any) -> str:
    status = int(response.status_code)
    if status == 302 and response["Location"].startswith(f"{reverse('arena:login')}?"):
        return "login"
    return "yes" if status < 400 else str(status)


def test_every_named_url_has_a_row_and_every_row_a_url() -> None:
    assert ROWS.keys() == named_urls().keys()


def test_every_named_url_has_a_sample() -> None:
    assert samples().keys() == named_urls().keys()


def test_the_table_uses_the_known_words() -> None:
    used = {word for row in ROWS.values() for word in row.values()}
    assert used <= OUTCOMES


def test_a_role_may_do_what_the_roles_below_it_may() -> None:
    for name, row in ROWS.items():
        allowed = [row[persona] == "yes" for persona in ("owner", "admin", "member", "rater")]
        assert allowed == sorted(allowed, reverse=True), name


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_server_does_what_the_table_says(name: str, world: World) -> None:
    sample = samples()[name]
    assert sample.methods, f"{name} is opened by no method"
    found = {}
    for method in sample.methods:
        for persona in PERSONAS:
            # What one person does must not change what the next one finds.
            with transaction.atomic():
                client = world.client(persona)
                response = send(client, name, sample, method, world.own, sample.kwargs(world.own))
                found[method, persona] = outcome(response)
                transaction.set_rollback(True)
    assert found == {(method, persona): ROWS[name][persona] for method in sample.methods for persona in PERSONAS}


@pytest.mark.parametrize("name", sorted(name for name, sample in samples().items() if not sample.get))
def test_what_changes_things_does_not_answer_get(name: str, world: World) -> None:
    response = world.client("owner").get(reverse(name, kwargs=samples()[name].kwargs(world.own)))
    assert response.status_code == 405
