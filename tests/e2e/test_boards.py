from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from ratings import services
from tests.personas import World
from tests.ratings.world import simulated, tournament

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_from_the_verdict_to_the_evidence(page: Any, live_server: Any, world: World) -> None:
    names = ["Ada", "Bram", "Cleo", "Dora"]
    played = tournament(names, simulated(4, 20, seed=3), team=world.own.team)
    services.refit_due_boards()
    session = world.client("admin").cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    kwargs = {"team": world.own.team_id, "tournament": played.tournament.public_id}
    page.goto(live_server.url + reverse("ratings:board", kwargs=kwargs))
    assert page.locator(".verdict-sentence strong").inner_text() == "Ada"
    # A bar of each candidate on one axis, in the order of the ratings.
    boxes = [point.bounding_box() for point in page.locator(".interval-point").all()]
    places = [box["x"] for box in boxes]
    assert len(places) == 4
    assert places == sorted(places, reverse=True)

    page.get_by_role("link", name=re.compile("Rao-Kupper")).click()
    page.get_by_role("button", name="Show this board first to the team").click()
    page.wait_for_url(live_server.url + reverse("ratings:board", kwargs=kwargs))
    assert page.get_by_role("link", name=re.compile("half a win")).count() == 1

    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "spring-check-board.csv"
    page.get_by_role("link", name="History").click()
    assert page.locator("tbody tr").count() == 1
    assert complaints == []
