from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from arena.embedded import EmbeddedWorker
from arena.llm.demo.catalogue import DEMO_KEY
from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings
from arena.models import Call, Decision, Membership, Provider, Role, Team, Tournament, Trial, User
from arena.services.wire import forget_context
from tests.arena.tournament_world import Cast, make_model, make_provider, make_task_set, make_tournament

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
CANDIDATES = ("squire-1", "page-mini", "herald-x")
JUDGES = ("lancer-large", "magistrate-1")
EVIL = "<script>window.canary = 1</script> <img src=x onerror='window.canary = 2'> [x](javascript:window.canary=3)"
END_MS = 60_000


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    with serve_in_thread(0, DemoSettings.quiet(latency_ms=40)) as server:
        yield server


@pytest.fixture
def worker(settings: Any, tmp_path: Path) -> Iterator[EmbeddedWorker]:
    settings.DATA_DIR = tmp_path
    settings.RECONCILE_SECONDS = 1
    forget_context()
    with EmbeddedWorker(threads=8) as running:
        yield running


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Acme")


@pytest.fixture
def cast(team: Team, demo: DemoServer) -> Cast:
    provider = make_provider(team, name="demo", base_url=demo.base_url, max_concurrency=4)
    assert DEMO_KEY == "demo"
    models = {name: make_model(provider, name) for name in (*CANDIDATES, *JUDGES)}
    task_set = make_task_set(team, 6, text="Explain the price increase to a customer in case")
    return Cast(task_set, [models[name] for name in CANDIDATES], [models[name] for name in JUDGES])


@pytest.fixture
def visit(page: Page, live_server: Any, team: Team, context: Any) -> Callable[..., Page]:
    user = User.objects.create_user("owner@example.com")
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    client = Client()
    client.force_login(user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])

    def go(name: str, **kwargs: str) -> Page:
        page.goto(live_server.url + reverse(f"arena:{name}", kwargs={"team": team.public_id} | kwargs))
        return page

    return go


def tick(page: Page, model: str, place: str) -> None:
    page.get_by_role("checkbox", name=f"demo/{model} as a {place}", exact=True).check()


def test_from_the_plan_to_a_match(visit: Callable[..., Page], cast: Cast, worker: EmbeddedWorker) -> None:
    page = visit("tournament-plan")
    for model in CANDIDATES:
        tick(page, model, "candidate")
    for model in JUDGES:
        tick(page, model, "judge")
    page.get_by_label("Matches", exact=True).fill("6")
    page.get_by_label("Name").fill("First tilt")
    summary = page.locator("#plan-summary")
    expect(summary.locator("dd").first).to_have_text("6")
    expect(summary).to_contain_text("24")
    page.get_by_role("button", name="Start…").click()
    expect(page.get_by_role("heading", name="Start “First tilt”?")).to_be_visible()
    page.get_by_role("button", name="Start the tournament").click()
    # The page brings itself up to date.
    expect(page.locator("#live .status-finished")).to_be_visible(timeout=END_MS)
    expect(page.locator("#live")).to_contain_text("6 of 6 matches")
    expect(page.locator("#live")).not_to_have_attribute("hx-trigger", re.compile("every"))
    tournament = Tournament.objects.get(name="First tilt")
    assert Decision.objects.filter(match__tournament=tournament).count() == 6
    assert Call.objects.filter(tournament=tournament, purpose="verdict", status="ok").count() >= 24
    assert not Trial.objects.filter(requests__tournament=tournament, cost_usd=None).exists()

    page.get_by_role("link", name="Matches").last.click()
    expect(page.get_by_text("6 matches")).to_be_visible()
    page.locator("#match-rows tbody a").first.click()
    expect(page.get_by_role("heading", name="Answers")).to_be_visible()
    assert page.locator(".order").count() == 4
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("Match 2")).to_be_visible()


def test_pause_resume_and_stop(visit: Callable[..., Page], cast: Cast, worker: EmbeddedWorker) -> None:
    Provider.objects.update(max_concurrency=1)
    page = visit("tournament-plan")
    for model in CANDIDATES:
        tick(page, model, "candidate")
    for model in JUDGES:
        tick(page, model, "judge")
    page.get_by_label("Matches", exact=True).fill("18")
    page.get_by_label("Name").fill("Interrupted")
    page.get_by_role("button", name="Save as draft").click()
    page.get_by_role("link", name="Start…").click()
    page.get_by_role("button", name="Start the tournament").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live .status-paused")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#live .status-running")).to_be_visible()
    page.get_by_role("link", name="Stop…").click()
    expect(page.get_by_role("heading", name="Stop “Interrupted” for good?")).to_be_visible()
    page.get_by_role("button", name="Stop the tournament").click()
    expect(page.locator("#live .status-stopped")).to_be_visible()
    assert Tournament.objects.get().matches.filter(status="withdrawn").exists()


def test_hostile_answers_run_nothing(visit: Callable[..., Page], cast: Cast) -> None:
    tournament = make_tournament(cast, matches=1)
    match = tournament.matches.get()
    assert match.first_trial is not None
    type(match.first_trial).objects.filter(pk=match.first_trial.pk).update(answer=EVIL, reasoning=EVIL)
    page = visit("match-detail", tournament=tournament.public_id, match=match.public_id)
    expect(page.locator(".answer > .prose").first).to_contain_text("window.canary = 1")
    page.get_by_text("Reasoning").click()
    assert page.evaluate("window.canary") is None
