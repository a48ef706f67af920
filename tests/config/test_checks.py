"""Each check finds its fault, says what to do, and is silent where all is well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.checks import CheckMessage, run_checks
from pytest_django import Settings

from config import checks

GOOD_KEY = Fernet.generate_key().decode()


@pytest.fixture
def team(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings that a team installation could have."""
    monkeypatch.delenv("TILTYARD_DEMO", raising=False)
    settings.EMBEDDED = settings.DEMO = False
    settings.SECRET_KEY = "0123456789abcdefghijklmnopqrstuvwxyz"
    settings.FIELD_KEYS = [GOOD_KEY]
    # No connection is made here, and to override the setting as a whole would warn.
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache"}}
    settings.CELERY_BROKER_URL = "redis://redis:6379/0"
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings


def found() -> list[CheckMessage]:
    return [
        *checks.secrets_are_usable(),
        *checks.processes_share_their_services(),
        *checks.media_can_be_written(),
        *checks.times_fit_together(),
        *checks.links_can_be_written(),
    ]


def test_a_sound_installation_is_left_in_peace(team: Settings) -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("setting", "value", "id_"),
    [
        ("SECRET_KEY", "short", "E001"),
        ("SECRET_KEY", "ab" * 40, "E001"),
        ("FIELD_KEYS", [""], "E002"),
        ("FIELD_KEYS", [GOOD_KEY, "not a key"], "E002"),
        ("CACHES", {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}, "E004"),
        ("CELERY_BROKER_URL", "memory://localhost/", "E005"),
        ("DEMO", True, "E006"),
        ("WORKER_BEAT_SECONDS", 20, "E008"),
        ("LEASE_SECONDS", 20, "E008"),
        ("EMAIL_HOST", "mail.example.com", "W001"),
    ],
)
def test_each_fault_is_found_alone_and_told_with_a_remedy(team: Settings, setting: str, value: Any, id_: str) -> None:
    setattr(team, setting, value)
    [message] = found()
    assert message.id == f"tiltyard.{id_}"
    assert message.msg.endswith((".", ")."))
    assert message.hint


def test_a_database_in_a_file_is_refused(team: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(team.DATABASES["default"], "ENGINE", "config.sqlite")
    assert [message.id for message in found()] == ["tiltyard.E003"]


def test_a_demo_asked_for_in_the_environment_is_refused_too(team: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_DEMO", "1")
    assert [message.id for message in found()] == ["tiltyard.E006"]


def test_the_unusable_key_is_named_by_its_place_and_not_shown(team: Settings) -> None:
    team.FIELD_KEYS = [GOOD_KEY, "hush-hush"]
    [message] = found()
    assert "number 2 of 2" in message.msg
    assert "hush" not in f"{message.msg}{message.hint}"


def test_a_media_folder_that_cannot_be_made_is_found(team: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    team.MEDIA_ROOT = tmp_path / "file" / "media"
    [message] = found()
    assert message.id == "tiltyard.E007"
    assert str(team.MEDIA_ROOT) in message.msg


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_media_folder_of_somebody_else_is_found(team: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "media"
    folder.mkdir(mode=0o500)
    assert [message.id for message in found()] == ["tiltyard.E007"]


def test_an_embedded_installation_may_keep_all_to_itself(team: Settings) -> None:
    team.EMBEDDED = team.DEMO = True
    team.CELERY_BROKER_URL = "memory://localhost/"
    assert found() == []


def test_they_are_registered(settings: Settings) -> None:
    settings.FIELD_KEYS = ["nothing"]
    assert "tiltyard.E002" in [message.id for message in run_checks()]
