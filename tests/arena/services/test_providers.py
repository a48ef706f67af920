"""Keys go in and never come out; addresses stay within what the operator allows."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from pytest_django import Settings

from arena.encryption import decrypt
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.listing import list_models
from arena.models import AuditLog, Provider, Role, Team, User
from arena.services.providers import ProviderFields, create_provider, update_provider
from arena.services.wire import MissingKey, endpoint_of
from tests.personas import World

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret-0123456789"
URL = "https://llm.example.com/v1"


@pytest.fixture
def team(world: World) -> Team:
    return world.own.team


@pytest.fixture
def actor(world: World) -> User:
    return world.own.user(Role.ADMIN)


def fields(**changes: Any) -> ProviderFields:
    return ProviderFields(**{"name": "house", "base_url": URL} | changes)


def a_provider(team: Team, key: str = KEY, **changes: Any) -> Provider:
    return create_provider(team=team, actor=None, fields=fields(**changes), key=key)


def problems(team: Team, key: str = "", **changes: Any) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as error:
        a_provider(team, key, **changes)
    return dict(error.value.message_dict)


def test_the_key_is_stored_encrypted(team: Team) -> None:
    provider = a_provider(team, f"  {KEY}\n")
    assert KEY not in provider.encrypted_key
    assert decrypt(provider.encrypted_key) == KEY


def test_the_key_is_in_no_log_no_audit_entry_and_no_representation(
    team: Team, actor: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = a_provider(team)
    provider = update_provider(provider=provider, actor=actor, fields=fields(max_concurrency=2), key=KEY + "x")
    update_provider(provider=provider, actor=actor, fields=fields(), remove_key=True)
    entries = json.dumps(list(AuditLog.objects.values("action", "target", "old", "new")))
    assert [entry.new.get("key") for entry in AuditLog.objects.filter(action__startswith="provider").order_by("pk")][
        -3:
    ] == ["stored", "replaced", "none"]
    texts = [entries, caplog.text, repr(provider), str(provider), repr(fields()), repr(endpoint_of(provider))]
    texts.append(serializers.serialize("json", Provider.objects.all()))
    assert not [text for text in texts if "very-secret" in text]


@pytest.mark.parametrize("bad", ["two words", "schlüssel", "a" * 5000, "line\nbreak"])
def test_an_error_about_a_key_does_not_repeat_it(team: Team, bad: str) -> None:
    found = problems(team, bad)
    assert list(found) == ["key"]
    assert bad not in found["key"][0]


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://llm.example.com/v2", True),
        ("https://LLM.example.com/v1", True),
        ("https://llm.example.com:8443/v1", False),
        ("https://llm.example.org/v1", False),
        ("http://llm.example.com/v1", False),
    ],
)
def test_a_key_goes_to_no_other_host(team: Team, actor: User, address: str, kept: bool) -> None:
    after = update_provider(provider=a_provider(team), actor=actor, fields=fields(base_url=address))
    assert bool(after.encrypted_key) is kept


def test_a_new_key_may_come_with_a_new_host(team: Team, actor: User) -> None:
    address = "https://llm.example.org/v1"
    after = update_provider(provider=a_provider(team), actor=actor, fields=fields(base_url=address), key="sk-other")
    assert decrypt(after.encrypted_key) == "sk-other"


def test_an_edit_without_a_key_keeps_it(team: Team, actor: User) -> None:
    after = update_provider(provider=a_provider(team), actor=actor, fields=fields(max_concurrency=3))
    assert decrypt(after.encrypted_key) == KEY


@pytest.mark.parametrize("name", ["PATH", "SECRET_KEY", "tiltyard_key_x", "TILTYARD_KEY_", "XTILTYARD_KEY_A", "A=B"])
def test_only_variables_made_for_keys_are_read(team: Team, name: str) -> None:
    assert "key_variable" in problems(team, key_variable=name)


def test_a_key_from_a_variable(team: Team, actor: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_KEY_HOUSE", "from-outside")
    provider = update_provider(provider=a_provider(team), actor=actor, fields=fields(key_variable="TILTYARD_KEY_HOUSE"))
    assert not provider.encrypted_key
    assert endpoint_of(provider).api_key == "from-outside"
    assert "key" in problems(team, KEY, name="other", key_variable="TILTYARD_KEY_HOUSE")


@pytest.mark.parametrize(
    "address",
    ["ftp://llm.example.com", "https://user:pw@llm.example.com/v1", "https://llm.example.com/v1?key=x", "nonsense"],
)
def test_addresses_that_are_none_are_refused(team: Team, address: str) -> None:
    assert "base_url" in problems(team, base_url=address)


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:11434/v1",
        "http://127.0.0.1/v1",
        "http://169.254.169.254/v1",
        "http://[::1]/v1",
        "http://10.1.2.3/",
    ],
)
def test_private_addresses_need_the_operators_word(team: Team, settings: Settings, address: str) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    assert "base_url" in problems(team, base_url=address)
    settings.ALLOW_PRIVATE_ENDPOINTS = True
    assert a_provider(team, base_url=address).pk


def test_a_name_that_leads_to_a_private_address_is_not_called(
    team: Team, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    provider = a_provider(team, base_url="http://intranet.example.com/v1")
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
    with pytest.raises(LLMError) as error:
        list_models(endpoint_of(provider))
    assert error.value.code is ErrorCode.BLOCKED_ADDRESS


def test_one_name_serves_one_provider(team: Team, world: World) -> None:
    a_provider(team)
    assert "name" in problems(team)
    assert a_provider(world.other.team).pk


@pytest.mark.parametrize(
    ("address", "kept"),
    [("https://llm.example.com/v2", True), ("https://llm.example.org/v1", False), ("http://llm.example.com/v1", False)],
)
def test_a_variable_goes_to_no_other_host(team: Team, actor: User, address: str, kept: bool) -> None:
    provider = a_provider(team, "", key_variable="TILTYARD_KEY_HOUSE")
    after = update_provider(
        provider=provider, actor=actor, fields=fields(base_url=address, key_variable="TILTYARD_KEY_HOUSE")
    )
    assert after.key_variable == ("TILTYARD_KEY_HOUSE" if kept else "")
    # Named again for the new address, it is meant for it.
    again = fields(base_url=address, key_variable="TILTYARD_KEY_HOUSE")
    assert update_provider(provider=after, actor=actor, fields=again).key_variable == "TILTYARD_KEY_HOUSE"


@pytest.mark.parametrize(
    ("hosts", "address", "allowed"),
    [
        ("llm.example.com", URL, True),
        (" other.example.com , LLM.Example.com ", URL, True),
        ("llm.example.com", "https://llm.example.com:8443/v1", True),
        ("llm.example.com", "https://llm.example.com.evil.example/v1", False),
        ("example.com", URL, False),
        ("", URL, True),
    ],
)
def test_the_operator_ties_a_key_to_hosts(
    team: Team, monkeypatch: pytest.MonkeyPatch, hosts: str, address: str, allowed: bool
) -> None:
    monkeypatch.setenv("TILTYARD_KEY_HOUSE", "from-outside")
    monkeypatch.setenv("TILTYARD_KEYHOSTS_HOUSE", hosts)
    provider = a_provider(team, "", key_variable="TILTYARD_KEY_HOUSE", base_url=address)
    if allowed:
        assert endpoint_of(provider).api_key == "from-outside"
    else:
        with pytest.raises(MissingKey, match="TILTYARD_KEYHOSTS_HOUSE") as error:
            endpoint_of(provider)
        assert "from-outside" not in str(error.value)


def test_a_wire_format_brings_the_address_of_its_maker(team: Team) -> None:
    for kind, base_url in (
        ("anthropic", "https://api.anthropic.com/v1"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta"),
    ):
        assert a_provider(team, name=kind, kind=kind, base_url=" ").base_url == base_url
        own = a_provider(team, name=f"{kind}-gateway", kind=kind)
        assert (own.base_url, endpoint_of(own).kind) == (URL, kind)
    assert set(problems(team, base_url="")) == {"base_url"}
    assert set(problems(team, kind="smoke-signals")) == {"kind"}
