from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page, expect

from ratings import services
from tests.personas import World
from tests.ratings.world import Played, simulated, tournament

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NAMES = ["Ada", "Bram", "Cleo", "Dora"]


@pytest.fixture
def played(world: World) -> Played:
    played = tournament(
        NAMES, simulated(4, 20, seed=3), team=world.own.team, costs=["0.0120", "0.0030", "0.0040", "0.0004"]
    )
    services.refit_due_boards()
    return played


@pytest.fixture
def admin_page(page: Page, live_server: Any, world: World) -> Iterator[Page]:
    """A page of a browser that an admin is logged in with. Nothing may be complained of on the way."""
    session = world.client("admin").cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []


def address(live_server: Any, played: Played) -> str:
    kwargs = {"team": played.tournament.team.public_id, "tournament": played.tournament.public_id}
    return str(live_server.url) + reverse("ratings:board", kwargs=kwargs)


def places(page: Page, selector: str, axis: str = "x") -> list[float]:
    boxes = [found.bounding_box() for found in page.locator(selector).all()]
    return [box[axis] for box in boxes if box is not None]


def test_from_the_verdict_to_the_evidence(admin_page: Page, live_server: Any, played: Played) -> None:
    page, board = admin_page, address(live_server, played)
    page.goto(board)
    assert page.locator(".verdict-sentence strong").inner_text() == "Ada"
    # A bar of each candidate on one axis, in the order of the ratings.
    across = places(page, ".interval-point")
    assert len(across) == 4
    assert across == sorted(across, reverse=True)

    page.get_by_text("Rate by another method").click()
    page.get_by_label("Ties").select_option("rao_kupper")
    page.get_by_role("button", name="Open that board").click()
    page.get_by_role("button", name="Show this board first to the team").click()
    page.wait_for_url(board)
    expect(page.locator("#method-ties")).to_have_value("rao_kupper")
    expect(page.get_by_role("button", name="Show this board first to the team")).to_have_count(0)

    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "spring-check-ratings.csv"
    page.get_by_role("navigation", name="Parts of the board").get_by_role("link", name="Fits").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_through_the_parts_of_a_board(admin_page: Page, live_server: Any, played: Played) -> None:
    page = admin_page
    page.goto(live_server.url + reverse("ratings:board-list", kwargs={"team": played.tournament.team.public_id}))
    page.get_by_role("link", name="Spring check").click()
    parts = page.get_by_role("navigation", name="Parts of the board")

    parts.get_by_role("link", name="Head to head").click()
    expect(page.locator(".heatmap tbody tr")).to_have_count(4)
    # Who beat the other more often has more of the one colour than that one.
    shades = page.locator(".heatmap .heat:not(.heat-self)")
    best, worst = shades.nth(2), shades.nth(9)
    assert re.search(r"heat-[6-9]|heat-10", best.get_attribute("class") or "")
    assert re.search(r"heat-[0-4]\b", worst.get_attribute("class") or "")
    colours = [cell.evaluate("cell => getComputedStyle(cell).backgroundColor") for cell in (best, worst)]
    assert colours[0] != colours[1]

    parts.get_by_role("link", name="Compare").click()
    page.get_by_label("Model").select_option(label="Dora")
    page.get_by_label("against").select_option(label="Bram")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".verdict-sentence")).to_contain_text("Bram is ahead of Dora in ")
    expect(page.locator("tr.row-lead th")).to_have_text("Bram")

    parts.get_by_role("link", name="Cost and speed").click()
    across, down = (
        places(page, "svg[role=img] >> nth=0 >> circle"),
        places(page, "svg[role=img] >> nth=0 >> circle", "y"),
    )
    assert len(across) == 4
    # Ada is dearest and furthest up, Dora cheapest and furthest down.
    assert (max(across), min(across)) == (across[0], across[3])
    assert (min(down), max(down)) == (down[0], down[3])
    expect(page.locator(".board-best-name").first).to_contain_text("Ada")


def test_a_line_grows_with_each_fit(admin_page: Page, live_server: Any, played: Played) -> None:
    played.decide([(0, 1, "first", 2), (2, 3, "second", 2)], step=2)
    services.refit_due_boards()
    page = admin_page
    page.goto(address(live_server, played))
    page.get_by_role("navigation", name="Parts of the board").get_by_role("link", name="Over time").click()
    expect(page.locator("circle.series-1")).to_have_count(2)
    expect(page.locator("path.chart-line")).to_have_count(4)
    page.get_by_label("Bram").uncheck()
    page.get_by_label("Cleo").uncheck()
    page.get_by_role("button", name="Show these").click()
    expect(page.locator(".chart-legend li")).to_have_text(["Ada", "Dora"])
    expect(page.locator("path.chart-line")).to_have_count(2)
    expect(page.locator("table tbody tr")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_part_is_wider_than_a_phone(
    scheme: Any, admin_page: Page, live_server: Any, played: Played, world: World
) -> None:
    page = admin_page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(address(live_server, played))
    links = page.get_by_role("navigation", name="Parts of the board").get_by_role("link").all()
    addresses = [link.get_attribute("href") or "" for link in links]
    assert len(addresses) == 7
    for part in addresses:
        page.goto(live_server.url + part)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, part
