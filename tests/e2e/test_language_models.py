from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from arena.llm.demo.catalogue import DEMO_KEY
from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings
from arena.models import Call, LanguageModel, Membership, Role, Team, User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a horse that counts to nine"


@pytest.fixture
def endpoint() -> Iterator[DemoServer]:
    with serve_in_thread(settings=DemoSettings.quiet(latency_ms=5)) as server:
        yield server


def test_from_a_provider_to_a_tested_model(page: Page, live_server: LiveServer, endpoint: DemoServer) -> None:
    team = Team.objects.create(name="Kessler Support")
    user = User.objects.create_user("ana@example.com", PASSWORD, name="Ana")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)

    page.goto(f"{live_server.url}/t/{team.public_id}/models/")
    page.get_by_label("E-mail address").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()

    page.get_by_role("link", name="Ollama").click()
    expect(page.get_by_label("Base URL")).to_have_value("http://localhost:11434/v1")
    page.get_by_label("Base URL").fill(endpoint.base_url)
    page.get_by_label("Key (optional)", exact=True).fill(DEMO_KEY)
    page.get_by_role("button", name="Add the provider").click()

    page.get_by_role("button", name="List models").click()
    page.get_by_role("link", name="Add usher-2").click()
    expect(page.get_by_label("Model id")).to_have_value("usher-2")
    page.get_by_label("Parameters").fill('{"temperature": 0}')
    page.get_by_role("button", name="Add the model").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ollama/usher-2")

    page.get_by_role("button", name="Test this model").click()
    expect(page.locator("#probe")).to_contain_text("It answers")
    expect(page.locator("#probe")).to_contain_text("JSON mode, no schema")
    expect(page.locator("#calls")).to_contain_text("cost")
    model = LanguageModel.objects.get(model_id="usher-2")
    assert model.learned["probe"]["ok"] is True
    calls = Call.objects.filter(language_model=model)
    assert calls.exists()
    # No price is known for a server of one's own; what was refused cost nothing, the rest is unknown.
    assert {call.cost_usd for call in calls.filter(status=Call.Status.OK)} == {None}
    assert problems == []
