from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from arena.models import Invitation, LoginLink, Membership, Role, User
from arena.selectors.teams import invitation_by_token
from arena.services.invitations import accept_invitation, invite, register_by_invitation, revoke_invitation
from arena.services.logins import create_login_link
from arena.services.members import Refused
from tests.personas import PASSWORD, World


def make(
    world: World, *, role: Role = Role.MEMBER, email: str = "New@Example.com", by: Role = Role.OWNER
) -> Invitation:
    invitation, token = invite(team=world.own.team, actor=world.own.user(by), email=email, role=role)
    assert invitation_by_token(token) == invitation
    assert token not in str(vars(invitation))
    return invitation


def test_an_invitation_lasts_a_week(world: World) -> None:
    invitation = make(world)
    assert invitation.email == "new@example.com"
    assert timedelta(days=6, hours=23) < invitation.expires_at - timezone.now() <= timedelta(days=7)


def test_nobody_invites_above_their_own_role(world: World) -> None:
    with pytest.raises(Refused):
        make(world, role=Role.OWNER, by=Role.ADMIN)
    with pytest.raises(Refused):
        make(world, role=Role.RATER, by=Role.MEMBER)


def test_a_member_is_not_invited_again(world: World) -> None:
    with pytest.raises(Refused):
        make(world, email=world.own.user(Role.RATER).email.upper())


def test_a_second_invitation_replaces_the_first(world: World) -> None:
    first = make(world)
    second = make(world, role=Role.RATER)
    open_ones = Invitation.objects.open().filter(team=world.own.team, email="new@example.com")
    assert list(open_ones) == [second]
    assert first.pk != second.pk


def test_an_expired_one_does_not_stand_in_the_way(world: World) -> None:
    first = make(world)
    Invitation.objects.filter(pk=first.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    make(world)


def test_an_admin_neither_replaces_nor_revokes_an_owners_invitation(world: World) -> None:
    invitation = make(world, role=Role.OWNER)
    with pytest.raises(Refused):
        make(world, by=Role.ADMIN)
    with pytest.raises(Refused):
        revoke_invitation(team=world.own.team, actor=world.own.user(Role.ADMIN), invitation=invitation)
    assert Invitation.objects.open().filter(pk=invitation.pk).exists()


def test_accepting_joins_with_the_invited_role_once(world: World) -> None:
    invitation = make(world, role=Role.ADMIN)
    user = User.objects.create_user("new@example.com", PASSWORD)
    assert accept_invitation(invitation=invitation, user=user).role == Role.ADMIN
    Membership.objects.filter(user=user).delete()
    with pytest.raises(Refused):
        accept_invitation(invitation=invitation, user=user)
    assert not Membership.objects.filter(user=user).exists()


@pytest.mark.parametrize("change", ["revoked_at", "accepted_at", "expires_at"])
def test_a_closed_invitation_lets_nobody_in(world: World, change: str) -> None:
    invitation = make(world)
    Invitation.objects.filter(pk=invitation.pk).update(**{change: timezone.now()})
    with pytest.raises(Refused):
        register_by_invitation(invitation=invitation, name="New", password=PASSWORD)
    # The account goes back with the rest.
    assert not User.objects.filter(email="new@example.com").exists()


def test_another_account_is_not_let_in(world: World) -> None:
    invitation = make(world)
    with pytest.raises(Refused):
        accept_invitation(invitation=invitation, user=world.other.user(Role.OWNER))
    assert Invitation.objects.open().filter(pk=invitation.pk).exists()


def test_an_account_that_exists_is_not_registered_again(world: World) -> None:
    user = world.other.user(Role.MEMBER)
    invitation = make(world, email=user.email)
    with pytest.raises(Refused):
        register_by_invitation(invitation=invitation, name="Else", password="another password")
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_joining_a_second_team_closes_the_reset_links_of_the_first(world: World) -> None:
    user = world.other.user(Role.MEMBER)
    create_login_link(user=user, created_by=world.other.user(Role.OWNER), sets_password=True)
    accept_invitation(invitation=make(world, email=user.email), user=user)
    assert LoginLink.objects.get(user=user).expires_at <= timezone.now()
