from __future__ import annotations

import re
import threading
from http import HTTPStatus

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from arena.models import AuditLog, Invitation, Membership, Role, Team, User
from arena.services import audit, mail
from tests.personas import PASSWORD, World

NEW = {"name": "New Person", "password": "four lanes and a tilt", "password_again": "four lanes and a tilt"}


def url(world: World, name: str, **kwargs: object) -> str:
    return reverse(f"arena:{name}", kwargs={"team": world.own.team_id, **kwargs})


def invite(world: World, client: Client, email: str = "new@example.com", role: str = "member") -> str:
    page = client.post(url(world, "invitation-create"), {"email": email, "role": role}).content.decode()
    link = re.search(r"http://testserver(/invitations/[\w-]+/)", page)
    assert link is not None, page
    return link[1]


def test_an_invitation_link_is_shown_once(world: World, admin: Client) -> None:
    link = invite(world, admin)
    page = admin.get(url(world, "member-list")).content.decode()
    assert "new@example.com" in page
    assert link.split("/")[2] not in page


@pytest.mark.django_db(transaction=True)
def test_an_invitation_is_mailed_where_mail_is_configured(
    world: World, admin: Client, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example.com"
    link = invite(world, admin)
    for thread in threading.enumerate():
        if thread.name == mail.THREAD_NAME:
            thread.join(10)
    assert [message.to for message in mailoutbox] == [["new@example.com"]]
    assert link in mailoutbox[0].body
    assert world.own.team.name in mailoutbox[0].subject


@pytest.mark.parametrize(
    ("email", "role"), [("not an address", "member"), ("new@example.com", "owner"), ("taken", "member")]
)
def test_a_refused_invitation_says_why_beside_the_field(world: World, admin: Client, email: str, role: str) -> None:
    address = world.own.user(Role.RATER).email if email == "taken" else email
    before = Invitation.objects.count()
    response = admin.post(url(world, "invitation-create"), {"email": address, "role": role})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "field-errors" in response.content.decode()
    assert Invitation.objects.count() == before


def test_a_new_person_registers_and_is_in(world: World, admin: Client, anonymous: Client) -> None:
    link = invite(world, admin)
    page = anonymous.get(link).content.decode()
    assert world.own.team.name in page
    assert str(world.own.user(Role.ADMIN)) in page
    assert not User.objects.filter(email="new@example.com").exists()
    assert anonymous.post(link, NEW)["Location"] == url(world, "team-home")
    assert anonymous.get(url(world, "member-list")).status_code == HTTPStatus.OK
    user = User.objects.get(email="new@example.com")
    assert (user.name, user.check_password(NEW["password"])) == ("New Person", True)
    # Opened again by the same person it leads to the team, and by anybody else nowhere.
    assert anonymous.get(link)["Location"] == url(world, "team-home")
    assert Client().get(link).status_code == HTTPStatus.GONE


def test_a_weak_password_registers_nobody(world: World, admin: Client, anonymous: Client) -> None:
    response = anonymous.post(invite(world, admin), NEW | {"password": "new", "password_again": "new"})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert not User.objects.filter(email="new@example.com").exists()


def test_an_existing_account_logs_in_to_accept(world: World, admin: Client, anonymous: Client) -> None:
    user = world.other.user(Role.MEMBER)
    link = invite(world, admin, email=user.email)
    assert f"/login/?next={link}" in anonymous.get(link).content.decode()
    anonymous.post(link, NEW)
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
    assert not Membership.objects.filter(team=world.own.team, user=user).exists()
    anonymous.force_login(user)
    assert anonymous.post(link)["Location"] == url(world, "team-home")
    assert Membership.objects.get(team=world.own.team, user=user).role == Role.MEMBER


def test_an_invitation_is_not_for_whoever_holds_the_link(world: World, admin: Client, stranger: Client) -> None:
    link = invite(world, admin)
    assert "new@example.com" in stranger.get(link).content.decode()
    assert stranger.post(link).status_code == HTTPStatus.CONFLICT
    assert not Membership.objects.filter(team=world.own.team, user=world.other.user(Role.OWNER)).exists()


def test_a_withdrawn_invitation_opens_nothing(world: World, admin: Client, anonymous: Client) -> None:
    link = invite(world, admin)
    invitation = Invitation.objects.get(email="new@example.com")
    admin.post(url(world, "invitation-revoke", invitation=invitation.public_id))
    assert anonymous.post(link, NEW).status_code == HTTPStatus.GONE
    assert not User.objects.filter(email="new@example.com").exists()


def test_a_refusal_is_said_on_the_page(world: World, admin: Client) -> None:
    owner = world.own.members[Role.OWNER].pk
    response = admin.post(url(world, "member-role", member=owner), {"role": "member"}, follow=True)
    assert "Only an owner can change an owner." in response.content.decode()
    response = admin.post(url(world, "member-remove", member=owner), follow=True)
    assert "Only an owner can change an owner." in response.content.decode()
    assert Membership.objects.get(pk=owner).role == Role.OWNER


def test_an_admin_is_offered_nothing_above_or_beside_their_power(world: World, admin: Client) -> None:
    page = admin.get(url(world, "member-list")).content.decode()
    assert 'value="owner"' not in page
    assert url(world, "member-remove", member=world.own.members[Role.OWNER].pk) not in page
    assert url(world, "member-remove", member=world.own.members[Role.RATER].pk) in page


def test_a_member_sees_no_invitations(world: World, member: Client) -> None:
    page = member.get(url(world, "member-list")).content.decode()
    assert world.own.objects["invitation"].email not in page
    assert "<form" not in page.split('id="main"')[1].split("</main>")[0]


def test_removing_asks_first(world: World, owner: Client) -> None:
    rater = world.own.members[Role.RATER]
    assert rater.user.email in owner.get(url(world, "member-remove", member=rater.pk)).content.decode()
    assert Membership.objects.filter(pk=rater.pk).exists()
    owner.post(url(world, "member-remove", member=rater.pk))
    assert not Membership.objects.filter(pk=rater.pk).exists()
    assert world.client("rater").get(url(world, "team-home")).status_code == HTTPStatus.NOT_FOUND


def test_a_reset_link_leads_to_a_new_password(world: World, owner: Client) -> None:
    rater = world.own.members[Role.RATER]
    page = owner.post(url(world, "member-login-link", member=rater.pk)).content.decode()
    link = re.search(r"http://testserver(/login-links/[\w-]+/)", page)
    assert link is not None
    assert rater.user.email in Client().get(link[1]).content.decode()


def test_deleting_a_team_wants_its_name(world: World, owner: Client) -> None:
    response = owner.post(url(world, "team-delete"), {"name": "something else"})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert Team.objects.filter(pk=world.own.team.pk).exists()
    assert owner.post(url(world, "team-delete"), {"name": world.own.team.name})["Location"] == "/"
    assert not Team.objects.filter(pk=world.own.team.pk).exists()
    assert Team.objects.filter(pk=world.other.team.pk).exists()


def test_the_last_owner_is_told_what_to_do(world: World, owner: Client) -> None:
    response = owner.post(url(world, "team-leave"), follow=True)
    assert "Make somebody else an owner first." in response.content.decode()
    assert Membership.objects.filter(pk=world.own.members[Role.OWNER].pk).exists()


def test_the_audit_log_shows_the_newest_first_page_by_page(
    world: World, admin: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    AuditLog.objects.filter(team=world.own.team).delete()
    for number in range(60):
        audit.record(team=world.own.team, actor=world.own.user(Role.OWNER), action="test", target=f"entry-{number:02}")
    with django_assert_num_queries(6):  # session, user, membership with team, count, entries with actors, menu of teams
        page = admin.get(url(world, "audit-log")).content.decode()
    found = re.findall(r"entry-(\d\d)", page)
    assert found == [f"{number:02}" for number in range(59, 9, -1)]
    assert "entry-09" in admin.get(url(world, "audit-log") + "?page=2").content.decode()


def test_the_members_page_asks_no_query_per_row(
    world: World, admin: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        user = User.objects.create_user(f"more-{number}@example.com")
        Membership.objects.create(team=world.own.team, user=user, role=Role.MEMBER)
        invite(world, admin, email=f"invited-{number}@example.com")
    with django_assert_num_queries(6):  # session, user, membership with team, members, invitations, menu of teams
        page = admin.get(url(world, "member-list")).content.decode()
    assert page.count("more-") >= 20
    assert page.count("invited-") >= 20


def test_the_audit_log_speaks_in_words(admin: Client, world: World) -> None:
    audit.record(
        team=world.own.team,
        actor=world.own.user(Role.ADMIN),
        action="tournament.budget",
        target="Winter",
        old={"budget_usd": None, "enabled": True, "untouched": 1},
        new={"budget_usd": "5", "enabled": False, "untouched": 1, "content_hash": "ab" * 32},
    )
    text = " ".join(re.sub(r"<[^>]+>", " ", admin.get(url(world, "audit-log")).content.decode()).split())
    assert "set the budget of Winter budget usd 5 · content hash abababababab · enabled yes → no" in text
    assert "untouched" not in text
