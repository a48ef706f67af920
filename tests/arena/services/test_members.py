from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from arena.models import AuditLog, Invitation, Membership, Role
from arena.services.invitations import invite
from arena.services.members import Refused, change_role, leave_team, remove_member
from tests.personas import World


def role_of(world: World, role: Role) -> str:
    return Membership.objects.get(pk=world.own.members[role].pk).role


def set_role(world: World, actor: Role, target: Role, role: Role) -> None:
    side = world.own
    change_role(team=side.team, actor=side.user(actor), member=side.members[target], role=role)


def test_an_owner_changes_a_role_and_the_log_tells_it(world: World) -> None:
    set_role(world, Role.OWNER, Role.RATER, Role.MEMBER)
    assert role_of(world, Role.RATER) == Role.MEMBER
    entry = AuditLog.objects.get(team=world.own.team, action="member.role")
    assert (entry.old, entry.new) == ({"role": "rater"}, {"role": "member"})
    assert entry.actor == world.own.user(Role.OWNER)
    assert entry.target == world.own.user(Role.RATER).email


@pytest.mark.parametrize(
    ("actor", "target", "role"),
    [
        (Role.ADMIN, Role.MEMBER, Role.OWNER),
        (Role.ADMIN, Role.ADMIN, Role.OWNER),
        (Role.ADMIN, Role.OWNER, Role.MEMBER),
        (Role.MEMBER, Role.RATER, Role.MEMBER),
        (Role.OWNER, Role.OWNER, Role.ADMIN),
    ],
    ids=["above-own", "self-above", "touches-owner", "no-manager", "last-owner"],
)
def test_roles_that_nobody_may_grant(world: World, actor: Role, target: Role, role: Role) -> None:
    before = role_of(world, target)
    with pytest.raises(Refused):
        set_role(world, actor, target, role)
    assert role_of(world, target) == before


def test_one_of_two_owners_may_step_down(world: World) -> None:
    set_role(world, Role.OWNER, Role.ADMIN, Role.OWNER)
    set_role(world, Role.OWNER, Role.OWNER, Role.MEMBER)
    assert role_of(world, Role.OWNER) == Role.MEMBER
    with pytest.raises(Refused):
        set_role(world, Role.ADMIN, Role.ADMIN, Role.MEMBER)


def test_a_removed_member_is_gone_and_so_are_their_invitations(world: World) -> None:
    side = world.own
    invitation, _ = invite(team=side.team, actor=side.user(Role.ADMIN), email="back@example.com", role=Role.ADMIN)
    remove_member(team=side.team, actor=side.user(Role.OWNER), member=side.members[Role.ADMIN])
    assert not Membership.objects.filter(team=side.team, user=side.user(Role.ADMIN)).exists()
    assert not Invitation.objects.open().filter(pk=invitation.pk).exists()


def test_a_lower_role_takes_back_the_invitations_beyond_it(world: World) -> None:
    side = world.own
    set_role(world, Role.OWNER, Role.ADMIN, Role.OWNER)
    high, _ = invite(team=side.team, actor=side.user(Role.ADMIN), email="high@example.com", role=Role.OWNER)
    low, _ = invite(team=side.team, actor=side.user(Role.ADMIN), email="low@example.com", role=Role.MEMBER)
    set_role(world, Role.OWNER, Role.ADMIN, Role.ADMIN)
    still_open = set(Invitation.objects.open().filter(pk__in=[high.pk, low.pk]))
    assert still_open == {low}


def test_an_admin_removes_no_owner_and_nobody_of_another_team(world: World) -> None:
    actor = world.own.user(Role.ADMIN)
    with pytest.raises(Refused):
        remove_member(team=world.own.team, actor=actor, member=world.own.members[Role.OWNER])
    with pytest.raises(Refused):
        remove_member(team=world.own.team, actor=actor, member=world.other.members[Role.RATER])
    assert Membership.objects.count() == 2 * len(Role)


def test_the_last_owner_cannot_leave_and_others_can(world: World) -> None:
    side = world.own
    with pytest.raises(Refused):
        leave_team(team=side.team, user=side.user(Role.OWNER))
    leave_team(team=side.team, user=side.user(Role.RATER))
    assert not Membership.objects.filter(pk=side.members[Role.RATER].pk).exists()
    assert AuditLog.objects.filter(team=side.team, action="member.leave").count() == 1


def test_a_role_that_was_taken_away_meanwhile_gives_no_power(world: World) -> None:
    side = world.own
    actor = side.user(Role.ADMIN)
    # As when the request began before the actor was demoted.
    Membership.objects.filter(pk=side.members[Role.ADMIN].pk).update(role=Role.MEMBER)
    with pytest.raises(Refused):
        remove_member(team=side.team, actor=actor, member=side.members[Role.RATER])


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_do_not_both_go(world: World) -> None:
    side = world.own
    set_role(world, Role.OWNER, Role.ADMIN, Role.OWNER)

    def leave(role: Role) -> bool:
        try:
            leave_team(team=side.team, user=side.user(role))
        except Refused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(leave, [Role.OWNER, Role.ADMIN])) == 1
    assert Membership.objects.filter(team=side.team, role=Role.OWNER).count() == 1
