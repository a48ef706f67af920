"""A team installation as its operator meets it: it says what is missing, and is safe as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

ROOT = Path(__file__).resolve().parents[2]
SOUND = {
    "DJANGO_SETTINGS_MODULE": "config.settings.base",
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "TILTYARD_FIELD_KEYS": Fernet.generate_key().decode(),
    "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
}
KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH")


def manage(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    outside = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = {**outside, **SOUND, "TILTYARD_DATA_DIR": str(folder), **changes}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("changes", [{}, {"SECURE_SSL_REDIRECT": "0"}, {"BEHIND_PROXY": "1"}])
def test_nothing_is_left_to_say_before_deployment(tmp_path: Path, changes: dict[str, str]) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **changes)
    assert done.returncode == 0, done.stderr


def test_an_unusable_key_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", TILTYARD_FIELD_KEYS="nothing")
    assert done.returncode == 1
    assert "tiltyard.E002" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Make one" in done.stderr
