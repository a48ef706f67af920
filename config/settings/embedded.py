"""One process, nothing to install: SQLite, files on disk, the worker inside. Listens on loopback."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet

from config import env

BASE = Path(__file__).resolve().parents[2]
env.load_dotenv(BASE / ".env")
_data = Path(env.text("TILTYARD_DATA_DIR") or BASE / "var")


def _kept_secret(name: str, make: str) -> str:
    """A secret made once and kept beside the data, readable by its owner only."""
    path = _data / name
    _data.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(make)
    return make


if not (os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE")):
    os.environ["SECRET_KEY"] = _kept_secret("secret_key", secrets.token_urlsafe(50))
if not (os.environ.get("TILTYARD_FIELD_KEYS") or os.environ.get("TILTYARD_FIELD_KEYS_FILE")):
    os.environ["TILTYARD_FIELD_KEYS"] = _kept_secret("field_keys", Fernet.generate_key().decode())

from config.settings.base import *  # noqa: E402, F403
from config.settings.base import STORAGES, database  # noqa: E402

EMBEDDED = True
DEMO = env.flag("TILTYARD_DEMO", default=False)
DATABASES = {"default": database(f"sqlite:///{_data / 'tiltyard.sqlite3'}")}
# Opening a file of SQLite costs 5 ms of CPU, for the functions that Django registers: threads keep theirs.
DATABASES["default"]["CONN_MAX_AGE"] = None
CELERY_DB_REUSE_MAX = 1_000_000_000
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CELERY_BROKER_URL = "memory://localhost/"
# How long a message lies in memory before it is seen: at 50 ms each of five slots stood idle for a fifth of its time.
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.005}
CELERY_BEAT_SCHEDULE = {}
RECONCILE_SECONDS = 4
REFIT_INTERVAL_SECONDS = env.integer("REFIT_INTERVAL_SECONDS", 10, minimum=1)
# More threads than calls in flight: one stores an answer while another waits for the next.
WORKER_THREADS = env.integer("WORKER_THREADS", 40, minimum=1)
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT
ALLOW_PRIVATE_ENDPOINTS = env.flag("ALLOW_PRIVATE_ENDPOINTS", default=True)
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
# WhiteNoise warns of a folder that is not there; files come from the finders.
STATIC_ROOT = _data / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
