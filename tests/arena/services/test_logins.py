from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

from arena.models import LoginLink, Membership, Role
from arena.selectors.teams import login_link_by_token
from arena.services.logins import (
    TooManyAttempts,
    check_password,
    client_address,
    create_login_link,
    create_reset_link,
    use_login_link,
)
from arena.services.members import Refused
from tests.personas import PASSWORD, World

ABSENT = "nobody@example.com"


@pytest.fixture
def _few_attempts(settings: Settings) -> None:
    settings.LOGIN_FAILURES_PER_ACCOUNT = 3
    settings.LOGIN_FAILURES_PER_ADDRESS = 5


def attempt(email: str, password: str, address: str = "192.0.2.1") -> bool:
    request = RequestFactory().post("/login/", REMOTE_ADDR=address)
    return check_password(request, email=email, password=password) is not None


@pytest.mark.usefixtures("_few_attempts")
@pytest.mark.parametrize("exists", [True, False])
def test_an_account_locks_after_its_failures_whether_or_not_it_exists(world: World, exists: bool) -> None:
    email = world.own.user(Role.MEMBER).email if exists else ABSENT
    for number in range(3):
        assert not attempt(email, "wrong", f"192.0.2.{number}")
    with pytest.raises(TooManyAttempts):
        attempt(email.upper(), PASSWORD, "192.0.2.9")


@pytest.mark.usefixtures("_few_attempts")
def test_an_address_locks_over_many_accounts(world: World) -> None:
    for number in range(5):
        assert not attempt(f"{number}@example.com", "wrong")
    with pytest.raises(TooManyAttempts):
        attempt(world.own.user(Role.MEMBER).email, PASSWORD)
    assert attempt(world.own.user(Role.MEMBER).email, PASSWORD, "192.0.2.2")


@pytest.mark.usefixtures("_few_attempts")
def test_a_success_clears_the_account_but_not_the_address(world: World) -> None:
    email = world.own.user(Role.MEMBER).email
    for _ in range(2):
        assert not attempt(email, "wrong")
    assert attempt(email, PASSWORD)
    for _ in range(3):
        assert not attempt(email, "wrong")
    with pytest.raises(TooManyAttempts):
        attempt(world.own.user(Role.OWNER).email, PASSWORD)


@pytest.mark.usefixtures("_few_attempts")
def test_the_lock_ends(world: World) -> None:
    email = world.own.user(Role.MEMBER).email
    for number in range(4):
        try:
            attempt(email, "wrong", f"192.0.2.{number}")
        except TooManyAttempts:
            assert number == 3
    cache.clear()  # As when LOGIN_LOCK_SECONDS have passed.
    assert attempt(email, PASSWORD)


@pytest.mark.usefixtures("_few_attempts")
def test_the_lock_lasts_its_full_time_from_the_moment_it_falls(db: None) -> None:
    with patch("arena.services.logins.cache", wraps=cache) as spy:
        for number in range(5):
            try:
                attempt(ABSENT, "wrong", f"192.0.2.{number}")
            except TooManyAttempts:
                assert number >= 3
    assert [call.args[1] for call in spy.touch.call_args_list] == [900]


@pytest.mark.parametrize("exists", [True, False])
def test_one_hash_is_computed_whether_or_not_the_account_exists(
    world: World, exists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib.auth.hashers import MD5PasswordHasher

    hashes: list[str] = []
    encode = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashes.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    assert not attempt(world.own.user(Role.MEMBER).email if exists else ABSENT, "wrong")
    assert hashes == ["wrong"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "behind_proxy", "expected"),
    [
        ("192.0.2.1", "203.0.113.9", False, "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7, 203.0.113.9", True, "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9:50123", True, "203.0.113.9"),
        ("10.0.0.1", "[2001:db8:1:2:3::4]:50123", True, "2001:db8:1:2::/64"),
        ("10.0.0.1", "", True, "10.0.0.1"),
        ("2001:db8:1:2:3::4", "", False, "2001:db8:1:2::/64"),
        ("unix socket", "", False, "unix socket"),
    ],
)
def test_the_address_that_counts(
    settings: Settings, peer: str, forwarded: str, behind_proxy: bool, expected: str
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if behind_proxy else None
    request = RequestFactory().get("/", REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == expected


def test_a_login_link_works_once(world: World) -> None:
    token = create_login_link(user=world.own.user(Role.RATER))
    link = login_link_by_token(token)
    assert link is not None
    assert token != link.token_hash
    assert use_login_link(link=link) == world.own.user(Role.RATER)
    with pytest.raises(Refused):
        use_login_link(link=link)
    assert login_link_by_token(token) is None


@pytest.mark.django_db(transaction=True)
def test_of_many_clicks_at_once_one_wins(world: World) -> None:
    link = login_link_by_token(create_login_link(user=world.own.user(Role.RATER)))
    assert link is not None

    def click(_: int) -> bool:
        try:
            use_login_link(link=link)
        except Refused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(click, range(4))) == 1


def test_an_old_link_and_a_closed_account_open_nothing(world: World) -> None:
    user = world.own.user(Role.RATER)
    old = login_link_by_token(create_login_link(user=user))
    assert old is not None
    LoginLink.objects.filter(pk=old.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(Refused):
        use_login_link(link=old)
    fresh = login_link_by_token(create_login_link(user=user))
    assert fresh is not None
    user.is_active = False
    user.save()
    with pytest.raises(Refused):
        use_login_link(link=fresh)


def test_a_link_that_asks_for_a_password_is_not_used_up_without_one(world: World) -> None:
    user = world.own.user(Role.RATER)
    token = create_login_link(user=user, sets_password=True)
    link = login_link_by_token(token)
    assert link is not None
    with pytest.raises(Refused):
        use_login_link(link=link)
    assert login_link_by_token(token) == link
    assert use_login_link(link=link, password="a brand new one").check_password("a brand new one")
    user.refresh_from_db()
    assert user.check_password("a brand new one")


def reset_link(world: World, actor: Role, target: Role) -> str:
    return create_reset_link(team=world.own.team, actor=world.own.user(actor), member=world.own.members[target])


def test_an_admin_resets_a_member_and_the_older_link_dies(world: World) -> None:
    first, second = reset_link(world, Role.ADMIN, Role.MEMBER), reset_link(world, Role.ADMIN, Role.MEMBER)
    assert login_link_by_token(first) is None
    link = login_link_by_token(second)
    assert link is not None
    assert link.sets_password


def test_an_admin_resets_no_owner(world: World) -> None:
    with pytest.raises(Refused):
        reset_link(world, Role.ADMIN, Role.OWNER)


def test_a_team_opens_no_account_that_reaches_beyond_it(world: World) -> None:
    user = world.own.user(Role.MEMBER)
    Membership.objects.create(team=world.other.team, user=user, role=Role.RATER)
    with pytest.raises(Refused):
        reset_link(world, Role.OWNER, Role.MEMBER)
    root = world.own.user(Role.RATER)
    root.is_superuser = True
    root.save()
    with pytest.raises(Refused):
        reset_link(world, Role.OWNER, Role.RATER)


def test_no_reset_link_where_mail_is_configured(world: World, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example.com"
    with pytest.raises(Refused):
        reset_link(world, Role.OWNER, Role.MEMBER)
