from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import resolve

from arena.models import User
from arena.selectors.teams import login_link_by_token


@pytest.mark.parametrize("keep_password", [True, False])
def test_it_prints_a_link_that_opens_the_account(db: None, keep_password: bool) -> None:
    user = User.objects.create_superuser("root@example.com", "old password")
    output = StringIO()
    call_command(
        "make_login_link",
        "Root@example.com",
        keep_password=keep_password,
        host="https://tilt.example.com/",
        stdout=output,
        stderr=StringIO(),
    )
    address = output.getvalue().strip()
    assert address.startswith("https://tilt.example.com/login-links/")
    link = login_link_by_token(resolve(address.removeprefix("https://tilt.example.com")).kwargs["token"])
    assert link is not None
    assert link.user == user
    assert link.sets_password is not keep_password


def test_an_unknown_address_is_an_error(db: None) -> None:
    with pytest.raises(CommandError, match="createsuperuser"):
        call_command("make_login_link", "nobody@example.com")


def test_the_first_account_is_made_by_createsuperuser(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a horse that counts to nine")
    call_command("createsuperuser", email="Root@Example.com", interactive=False, stdout=StringIO())
    user = User.objects.get(email="root@example.com")
    assert user.is_superuser
    assert user.check_password("a horse that counts to nine")
