from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from arena.models import Membership, Role, TaskSet, Team, User
from tests.arena.ingest.builders import attachment_line, message_line, pdf_bytes, zip_bytes

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOSTILE = (
    "# Title\n\n<script>window.canary = 1</script> <img src=x onerror='window.canary = 2'> "
    "[link](javascript:window.canary=3) <svg onload='window.canary = 4'></svg> "
    "<iframe srcdoc='<script>parent.canary = 5</script>'></iframe>\n\n```html\n<script>window.canary = 6</script>\n```"
)


@pytest.fixture
def team(settings: Any, tmp_path: Path) -> Team:
    settings.MEDIA_ROOT = tmp_path / "media"
    return Team.objects.create(name="Acme")


@pytest.fixture
def visit(page: Page, live_server: Any, team: Team, context: Any) -> Any:
    user = User.objects.create_user("owner@example.com")
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    client = Client()
    client.force_login(user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))

    def go(name: str, **kwargs: str) -> Page:
        page.goto(live_server.url + reverse(f"arena:{name}", kwargs={"team": team.public_id} | kwargs))
        return page

    yield go
    assert dialogs == []


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_upload_check_correct_and_save(visit: Any, tmp_path: Path) -> None:
    bad = write(tmp_path, "cases.jsonl", message_line("Fine") + '\n{"prompt": 5}\n')
    page: Page = visit("task-set-upload")
    page.get_by_label("File").set_input_files(bad)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("1 sample has problems.")).to_be_visible()
    expect(page.get_by_text("cases.jsonl:2 prompt")).to_be_visible()
    expect(page.get_by_text("must be text or a list of parts")).to_be_visible()
    page.get_by_role("link", name="Upload another file").click()
    good = write(tmp_path, "cases.jsonl", message_line("Fine", category="easy") + "\n" + message_line("Also **fine**"))
    page.get_by_label("File").set_input_files(good)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("All is well.")).to_be_visible()
    page.get_by_label("Name of the task set").fill("My cases")
    page.get_by_role("button", name="Save the task set").click()
    expect(page.get_by_role("heading", name="My cases")).to_be_visible()
    page.get_by_label("Search").fill("also")
    expect(page.get_by_role("row")).to_have_count(4)
    page.get_by_role("link", name="s0002").click()
    expect(page.locator(".message strong")).to_have_text("fine")
    assert TaskSet.objects.get().name == "My cases"


def test_a_file_over_the_limit_is_refused_before_it_is_sent(visit: Any, settings: Any, tmp_path: Path) -> None:
    settings.UPLOAD_MAX_PACKED_BYTES = 1000
    page: Page = visit("task-set-upload")
    page.get_by_label("File").set_input_files(write(tmp_path, "large.jsonl", "x" * 2000))
    expect(page.get_by_role("alert")).to_contain_text("This file is larger than 1000")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("heading", name="Upload a task set")).to_be_visible()


def test_a_template_is_one_click(visit: Any) -> None:
    page: Page = visit("task-set-list")
    page.get_by_role("button", name="Customer support").click()
    expect(page.get_by_role("heading", name="Customer support")).to_be_visible()
    expect(page.get_by_text("is ready.")).to_be_visible()


def test_hostile_prompts_run_nothing(visit: Any, tmp_path: Path) -> None:
    line = message_line(
        HOSTILE, id="evil", category="<img src=x onerror=alert(1)>", reference=HOSTILE, criteria=HOSTILE
    )
    page: Page = visit("task-set-upload")
    page.get_by_label("File").set_input_files(write(tmp_path, "evil.jsonl", line))
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("All is well.")).to_be_visible()
    check_canary(page)
    page.get_by_role("button", name="Save the task set").click()
    expect(page.get_by_role("heading", name="evil")).to_be_visible()
    check_canary(page)
    page.get_by_role("link", name="evil", exact=True).click()
    expect(page.locator(".message h3")).to_have_text("Title")
    check_canary(page)


def check_canary(page: Page) -> None:
    assert page.evaluate("window.canary ?? null") is None
    assert page.locator("main script, main iframe, main svg, main [onerror], main [onload]").count() == 0
    assert page.locator("main a[href^='javascript']").count() == 0


def test_a_pdf_is_seen_in_its_page(visit: Any, tmp_path: Path) -> None:
    archive = zip_bytes(
        {
            "samples.jsonl": attachment_line("attachments/minutes.pdf", id="one"),
            "attachments/minutes.pdf": pdf_bytes(pages=3, text="Board minutes"),
        }
    )
    page: Page = visit("task-set-upload")
    page.get_by_label("File").set_input_files(write(tmp_path, "minutes.zip", archive))
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Save the task set").click()
    page.get_by_role("link", name="one", exact=True).click()
    expect(page.get_by_text("3 pages")).to_be_visible()
    # The browser's own viewer replaces the frame's document; without it there would be no further frame.
    page.wait_for_function("document.querySelector('iframe.pdf-frame').contentWindow !== null")
    page.wait_for_timeout(1500)
    assert any(frame.url.startswith("chrome-extension://") for frame in page.frames)
    page.get_by_role("link", name="As text").click()
    expect(page.get_by_text("Board minutes").first).to_be_visible()


def test_everything_works_without_scripts(browser: Any, live_server: Any, team: Team, tmp_path: Path) -> None:
    user = User.objects.create_user("owner@example.com")
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    client = Client()
    client.force_login(user)
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    page = context.new_page()
    page.goto(live_server.url + reverse("arena:task-set-upload", kwargs={"team": team.public_id}))
    lines = [json.dumps({"prompt": text}) for text in ("About ducks", "About trout")]
    page.get_by_label("File").set_input_files(write(tmp_path, "plain.jsonl", "\n".join(lines)))
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Save the task set").click()
    page.get_by_label("Search").fill("trout")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="s0002")).to_be_visible()
    expect(page.get_by_role("link", name="s0001")).to_have_count(0)
    context.close()
