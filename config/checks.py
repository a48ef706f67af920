"""What `manage.py check` says of an installation before it starts: each message tells what to do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from config import env

SHORTEST_SECRET_KEY = 32
FEWEST_DIFFERENT_CHARACTERS = 5
# Caches that every process has for itself, or that keep nothing.
PRIVATE_CACHES = ("locmem.LocMemCache", "dummy.DummyCache", "filebased.FileBasedCache")
# Brokers that end with their process or stay on one machine.
PRIVATE_BROKERS = ("memory", "filesystem", "")


@register(Tags.security)
def secrets_are_usable(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    key = settings.SECRET_KEY
    if len(key) < SHORTEST_SECRET_KEY or len(set(key)) < FEWEST_DIFFERENT_CHARACTERS:
        found.append(
            Error(
                f"SECRET_KEY is too easy to guess: it needs at least {SHORTEST_SECRET_KEY} random characters.",
                hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"',
                id="tiltyard.E001",
            )
        )
    unreadable = [place for place, key in enumerate(settings.FIELD_KEYS, start=1) if not _is_fernet_key(key)]
    if unreadable or not settings.FIELD_KEYS:
        which = f"number {unreadable[0]} of {len(settings.FIELD_KEYS)}" if unreadable else "none is set"
        found.append(
            Error(
                f"TILTYARD_FIELD_KEYS holds a key that cannot be used ({which}).",
                hint="Set comma-separated Fernet keys, the newest first. Make one: python -c "
                '"from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
                id="tiltyard.E002",
            )
        )
    return found


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key.strip())
    except ValueError:
        return False
    return True


@register(Tags.compatibility)
def processes_share_their_services(**_: Any) -> list[CheckMessage]:
    """Web, worker and beat of a team installation are separate processes, often on separate machines."""
    if settings.EMBEDDED:
        return []
    found: list[CheckMessage] = []
    if "sqlite" in settings.DATABASES["default"]["ENGINE"]:
        found.append(
            Error(
                "A team installation cannot keep its data in SQLite, which several machines cannot share.",
                hint="Set DATABASE_URL to PostgreSQL, postgres://user:password@host/name; "
                "or run embedded, with DJANGO_SETTINGS_MODULE=config.settings.embedded.",
                id="tiltyard.E003",
            )
        )
    if settings.CACHES["default"]["BACKEND"].endswith(PRIVATE_CACHES):
        found.append(
            Error(
                "The cache is private to each process, so counters of failed logins would be too.",
                hint="Set CACHE_URL to Redis, redis://host:6379/1.",
                id="tiltyard.E004",
            )
        )
    if urlsplit(settings.CELERY_BROKER_URL).scheme in PRIVATE_BROKERS:
        found.append(
            Error(
                "The broker is private to each process, so no worker would hear of any work.",
                hint="Set CELERY_BROKER_URL to Redis, redis://host:6379/0.",
                id="tiltyard.E005",
            )
        )
    if settings.DEMO or env.flag("TILTYARD_DEMO", default=False):
        found.append(
            Error(
                "Demo mode is for a trial on one's own machine, not for a team.",
                hint="Unset TILTYARD_DEMO; or run embedded, with DJANGO_SETTINGS_MODULE=config.settings.embedded.",
                id="tiltyard.E006",
            )
        )
    return found


@register(Tags.files)
def media_can_be_written(**_: Any) -> list[CheckMessage]:
    folder = Path(settings.MEDIA_ROOT)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Trying is surer than reading permission bits: a full or read-only volume shows too.
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"tiltyard")
    except OSError as error:
        return [
            Error(
                f"Uploads cannot be stored in {folder}: {error.strerror or error}.",
                hint=f"Make it writable for user {os.geteuid()}, or set TILTYARD_DATA_DIR to a folder that is.",
                id="tiltyard.E007",
            )
        ]
    return []


@register(Tags.compatibility)
def times_fit_together(**_: Any) -> list[CheckMessage]:
    """A worker that lives must never be taken for dead: its calls would be made, and paid for, again."""
    found: list[CheckMessage] = []
    pairs = [("WORKER_BEAT_SECONDS", "WORKER_DEAD_SECONDS"), ("LEASE_RENEW_SECONDS", "LEASE_SECONDS")]
    for often, seldom in pairs:
        if getattr(settings, seldom) < 2 * getattr(settings, often):
            found.append(
                Error(
                    f"{seldom} must be at least twice {often}, "
                    "or a worker that is merely slow loses its calls to another, which pays for them again.",
                    hint=f"They are {getattr(settings, seldom)} and {getattr(settings, often)}; "
                    "unset both for values that fit.",
                    id="tiltyard.E008",
                )
            )
    return found


@register(Tags.urls)
def links_can_be_written(**_: Any) -> list[CheckMessage]:
    if settings.EMAIL_HOST and not settings.SITE_URL:
        return [
            Warning(
                "Mail is set up, but not the address that its links should have: they follow each request's host.",
                hint="Set SITE_URL, for example https://tiltyard.example.com.",
                id="tiltyard.W001",
            )
        ]
    return []
