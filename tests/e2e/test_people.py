"""From a password to a colleague in the team, and the ways in and out."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from arena.models import LoginLink, Membership, Role, Team, User
from arena.services.logins import create_login_link

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a horse that counts to nine"
ANOTHER_PASSWORD = "four lanes and a tilt"


@pytest.fixture
def team(transactional_db: None) -> Team:
    team = Team.objects.create(name="Kessler Support")
    owner = User.objects.create_user("ana@example.com", PASSWORD, name="Ana")
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    return team


def sign_in(page: Page, address: str, password: str) -> None:
    page.get_by_label("E-mail address").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()


def test_an_owner_invites_somebody_who_joins(page: Page, browser: Browser, live_server: LiveServer, team: Team) -> None:
    page.goto(live_server.url)
    sign_in(page, "ana@example.com", "not this one at all")
    expect(page.get_by_role("main")).to_contain_text("This address and password do not go together.")
    expect(page.get_by_label("E-mail address")).to_have_value("ana@example.com")
    sign_in(page, "ana@example.com", PASSWORD)
    expect(page.get_by_role("heading", level=1)).to_have_text(team.name)

    page.get_by_role("navigation").get_by_role("link", name="Members").click()
    page.get_by_label("E-mail address").fill("bo@example.com")
    page.get_by_role("button", name="Invite", exact=True).click()
    link = page.locator("#link").inner_text()
    assert link.startswith(live_server.url)

    elsewhere = browser.new_context()
    guest = elsewhere.new_page()
    guest.goto(link)
    expect(guest.get_by_role("heading", level=1)).to_have_text(f"Join {team.name}")
    guest.get_by_label("Name").fill("Bo")
    guest.get_by_label("New password", exact=True).fill(ANOTHER_PASSWORD)
    guest.get_by_label("again").fill(ANOTHER_PASSWORD)
    guest.get_by_role("button", name="Create the account and join").click()
    expect(guest.get_by_role("heading", level=1)).to_have_text(team.name)
    guest.get_by_role("navigation").get_by_role("link", name="Members").click()
    expect(guest.get_by_role("row").filter(has_text="bo@example.com")).to_contain_text("Member")
    expect(guest.get_by_role("heading", name="Invite somebody")).to_have_count(0)

    guest.locator(".menu-end summary").click()
    guest.get_by_role("button", name="Sign out").click()
    expect(guest.get_by_role("heading", level=1)).to_have_text("Sign in")
    guest.goto(link)
    expect(guest.get_by_role("main")).not_to_contain_text(f"Join {team.name}")
    elsewhere.close()
    assert Membership.objects.get(user__email="bo@example.com").role == Role.MEMBER


def test_a_login_link_is_used_up_by_its_button_alone(page: Page, live_server: LiveServer, team: Team) -> None:
    token = create_login_link(user=User.objects.get(email="ana@example.com"))
    address = f"{live_server.url}/login-links/{token}/"
    for _ in range(2):
        page.goto(address)
    assert LoginLink.objects.get().used_at is None
    page.get_by_role("button", name="Sign in as Ana").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(team.name)
    assert LoginLink.objects.get().used_at is not None

    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 410
    expect(page.get_by_role("button", name="Sign in as Ana")).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text("once")
