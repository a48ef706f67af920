"""Settings of the test suite: fast hashing, no mail, SQLite unless TEST_DATABASE_URL names PostgreSQL."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("SECRET_KEY", "a-key-for-tests-only-that-guards-nothing-at-all")
os.environ.setdefault("TILTYARD_FIELD_KEYS", "dGlsdHlhcmQtdGVzdHMtb25seS1ub3QtYS1zZWNyZXQ=")
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "sqlite:///:memory:")

from config.settings.base import *  # noqa: F403
from config.settings.base import STORAGES, database

EMBEDDED = True
DATA_DIR = Path(tempfile.mkdtemp(prefix="tiltyard-test-"))
MEDIA_ROOT = DATA_DIR / "media"
# WhiteNoise warns of a folder that is not there; files come from the finders.
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir()
DATABASES = {"default": database(os.environ["DATABASE_URL"])}
if DATABASES["default"]["ENGINE"] == "config.sqlite":
    # A file, since threads and live servers need one database between them.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
else:
    # A database that is thrown away need not be on the disk.
    DATABASES["default"].setdefault("OPTIONS", {})["options"] = "-c synchronous_commit=off"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CELERY_BROKER_URL = "memory://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.02}
CELERY_BEAT_SCHEDULE = {}
RECONCILE_SECONDS = 0.3
SECURE_SSL_REDIRECT = False
SECURE_HSTS_SECONDS = 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
ALLOW_PRIVATE_ENDPOINTS = True
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
