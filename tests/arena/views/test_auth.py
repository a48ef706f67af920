from __future__ import annotations

import re
import threading
from http import HTTPStatus

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from arena.models import Role, User
from arena.services import mail
from arena.services.logins import create_login_link
from tests.personas import PASSWORD, World

NEW = "four lanes and a tilt"
LOGIN = "/login/"


def wait_for_mail() -> None:
    for thread in threading.enumerate():
        if thread.name == mail.THREAD_NAME:
            thread.join(10)


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_login_goes_where_it_was_asked_for(world: World, anonymous: Client) -> None:
    target = reverse("arena:member-list", args=[world.own.team_id])
    assert anonymous.get(target)["Location"] == f"{LOGIN}?next={target}"
    response = anonymous.post(
        LOGIN, {"username": world.own.user(Role.OWNER).email.upper(), "password": PASSWORD, "next": target}
    )
    assert response["Location"] == target


def test_login_leads_to_no_other_site(world: World, anonymous: Client) -> None:
    data = {"username": world.own.user(Role.OWNER).email, "password": PASSWORD, "next": "https://evil.example/"}
    assert anonymous.post(LOGIN, data)["Location"] == reverse("arena:home")


def test_login_leads_nobody_in_a_circle(owner: Client) -> None:
    assert owner.get(f"{LOGIN}?next={LOGIN}")["Location"] == reverse("arena:home")


@pytest.mark.parametrize("attempts", [1, 3])
def test_what_login_says_is_the_same_for_an_absent_account(
    world: World, anonymous: Client, settings: Settings, attempts: int
) -> None:
    settings.LOGIN_FAILURES_PER_ACCOUNT = 2
    pages = []
    for email in (world.own.user(Role.OWNER).email, "nobody@example.com"):
        for _ in range(attempts):
            page = anonymous.post(LOGIN, {"username": email, "password": "wrong"}).content.decode()
        page = re.sub(r"(csrf|CSRF)[^>]*", "", page)
        pages.append(page.replace(email, ""))
    assert pages[0] == pages[1]
    assert ("Too many attempts" in pages[0]) == (attempts == 3)
    assert not is_logged_in(anonymous)


def test_logout_needs_a_post(owner: Client) -> None:
    assert owner.get("/logout/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    owner.post("/logout/")
    assert not is_logged_in(owner)


def test_a_new_password_ends_other_sessions_and_keeps_this_one(world: World, member: Client) -> None:
    elsewhere = world.client("member")
    data = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert member.post("/profile/password/", data).status_code == HTTPStatus.FOUND
    assert member.get("/profile/").status_code == HTTPStatus.OK
    assert elsewhere.get("/profile/").status_code == HTTPStatus.FOUND


def test_the_profile_keeps_name_and_language(world: World, member: Client) -> None:
    member.post("/profile/", {"name": "花子", "language": "ja"})
    world.own.user(Role.MEMBER).refresh_from_db()
    assert User.objects.get(pk=world.own.user(Role.MEMBER).pk).name == "花子"
    assert 'lang="ja"' in member.get("/profile/").content.decode()
    member.post("/profile/", {"name": "花子", "language": ""})
    assert 'lang="en"' in member.get("/profile/").content.decode()


def test_without_mail_the_reset_page_says_whom_to_ask(anonymous: Client, mailoutbox: list[EmailMessage]) -> None:
    page = anonymous.post("/password-reset/", {"email": "a@example.com"}).content.decode()
    assert "make_login_link" in page
    assert 'name="email"' not in page


@pytest.mark.django_db(transaction=True)
def test_with_mail_a_link_sets_the_password(
    world: World, anonymous: Client, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST, settings.SITE_URL = "mail.example.com", "https://tilt.example.com"
    user = world.own.user(Role.MEMBER)
    anonymous.post("/password-reset/", {"email": user.email})
    anonymous.post("/password-reset/", {"email": "nobody@example.com"})
    wait_for_mail()
    assert [message.to for message in mailoutbox] == [[user.email]]
    link = re.search(r"https://tilt\.example\.com(/\S+)", str(mailoutbox[0].body))
    assert link is not None
    form = anonymous.get(link[1])["Location"]
    anonymous.post(form, {"new_password1": NEW, "new_password2": NEW})
    user.refresh_from_db()
    assert user.check_password(NEW)
    assert anonymous.get(link[1]).status_code == HTTPStatus.OK
    assert "no longer works" in anonymous.get(link[1]).content.decode()


@pytest.mark.django_db(transaction=True)
def test_resets_are_limited_per_account(
    world: World, anonymous: Client, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST, settings.LOGIN_FAILURES_PER_ACCOUNT = "mail.example.com", 2
    for _ in range(4):
        anonymous.post("/password-reset/", {"email": world.own.user(Role.MEMBER).email})
    wait_for_mail()
    assert len(mailoutbox) == 2


def test_a_mail_server_that_fails_breaks_no_page(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: EmailMessage) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr(EmailMessage, "send", refuse)
    mail._deliver(EmailMessage(to=["a@example.com"]))
    assert "was not sent" in caplog.text


def test_looking_at_a_login_link_uses_nothing_up(world: World, anonymous: Client) -> None:
    url = reverse("arena:login-link", args=[create_login_link(user=world.own.user(Role.RATER))])
    for _ in range(2):
        response = anonymous.get(url)
        assert response.status_code == HTTPStatus.OK
        assert "no-store" in response["Cache-Control"]
    assert not is_logged_in(anonymous)
    assert anonymous.post(url)["Location"] == reverse("arena:home")
    assert is_logged_in(anonymous)
    assert anonymous.post(url).status_code == HTTPStatus.GONE


def test_a_reset_link_asks_for_a_password_first(world: World, anonymous: Client) -> None:
    user = world.own.user(Role.RATER)
    url = reverse("arena:login-link", args=[create_login_link(user=user, sets_password=True)])
    assert anonymous.post(url, {"password": "short", "password_again": "short"}).status_code == HTTPStatus.OK
    assert anonymous.post(url, {"password": NEW, "password_again": NEW + "!"}).status_code == HTTPStatus.OK
    assert not is_logged_in(anonymous)
    anonymous.post(url, {"password": NEW, "password_again": NEW})
    assert is_logged_in(anonymous)
    user.refresh_from_db()
    assert user.check_password(NEW)


def test_the_profile_asks_little(member: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(3):  # session, user, memberships with their teams
        member.get("/profile/")
