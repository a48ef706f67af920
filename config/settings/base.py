"""Settings of a team installation. Everything here is safe in production; the rest is relaxed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from config import env

BASE_DIR = Path(__file__).resolve().parents[2]
env.load_dotenv(BASE_DIR / ".env")

# How it runs -----------------------------------------------------------------------------------------------
EMBEDDED = False
DEMO = False
SECRET_KEY = env.secret("SECRET_KEY")
# Comma-separated Fernet keys; the first encrypts, all decrypt, so that keys rotate without a rewrite.
FIELD_KEYS = env.secret("TILTYARD_FIELD_KEYS").split(",")
DEBUG = False
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
SITE_URL = env.url("SITE_URL", schemes=("http", "https"))

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "rest_framework",
    "template_partials",
    "arena",
    "annotation",
    "ratings",
    "config.apps.ConfigConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.middleware.keep_out_of_caches",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.context.navigation",
            ],
        },
    }
]

# Data ------------------------------------------------------------------------------------------------------
DATA_DIR = Path(env.text("TILTYARD_DATA_DIR") or BASE_DIR / "var")
SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
}


def database(default: str) -> dict[str, Any]:
    config: dict[str, Any] = {**dj_database_url.parse(env.secret("DATABASE_URL", default))}
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "config.sqlite"
        config["OPTIONS"] = {**config.get("OPTIONS", {}), **SQLITE_OPTIONS}
    else:
        # Workers give their connection back before each network call; the pool makes that cheap.
        size = env.integer("DATABASE_POOL_SIZE", 16, minimum=2)
        # A restarted database leaves dead connections in the pool; nobody should be handed one.
        config["CONN_HEALTH_CHECKS"] = True
        config["OPTIONS"] = {
            **config.get("OPTIONS", {}),
            "pool": {"min_size": 1, "max_size": size, "timeout": 30},
        }
    return config


DATABASES = {"default": database("postgres://tiltyard@localhost/tiltyard")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Installations that share one Redis need a prefix each.
LIMITS_PREFIX = env.text("LIMITS_PREFIX", "tiltyard")
CACHE_URL = env.url("CACHE_URL", "redis://localhost:6379/1", schemes=("redis", "rediss", "unix"))
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": CACHE_URL,
        "KEY_PREFIX": LIMITS_PREFIX,
    }
}
MEDIA_ROOT = DATA_DIR / "media"
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT") or BASE_DIR / "staticfiles")
STATICFILES_DIRS = [BASE_DIR / "static"]
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

# People ----------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "arena.User"
LOGIN_URL = "arena:login"
LOGIN_REDIRECT_URL = "arena:home"
LOGOUT_REDIRECT_URL = "arena:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_FAILURES_PER_ACCOUNT = env.integer("LOGIN_FAILURES_PER_ACCOUNT", 8, minimum=1)
LOGIN_FAILURES_PER_ADDRESS = env.integer("LOGIN_FAILURES_PER_ADDRESS", 40, minimum=1)
LOGIN_LOCK_SECONDS = env.integer("LOGIN_LOCK_SECONDS", 900, minimum=1)
INVITATION_DAYS = 7
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", 587)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=True)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "tiltyard@localhost")

# Safety ----------------------------------------------------------------------------------------------------
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=True)
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 3600, minimum=0)
SECURE_REFERRER_POLICY = "same-origin"
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
# `check --deploy` advises these; each is left out on purpose.
SILENCED_SYSTEM_CHECKS = [
    # HSTS for subdomains and preloading bind hosts that are not ours: the operator of the domain decides.
    "security.W005",
    "security.W021",
    # Attached PDFs are shown in frames of the same origin. The policy below keeps other origins out.
    "security.W019",
]
if not SECURE_SSL_REDIRECT:
    # A choice made aloud in the environment, for a trial on loopback. The cookies follow it.
    SILENCED_SYSTEM_CHECKS += ["security.W008", "security.W012", "security.W016"]
if SECURE_HSTS_SECONDS == 0:
    SILENCED_SYSTEM_CHECKS += ["security.W004"]
if env.flag("BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "SAMEORIGIN"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [SELF],
    }
}
# Calls to private, link-local and loopback addresses need the operator's word.
ALLOW_PRIVATE_ENDPOINTS = env.flag("ALLOW_PRIVATE_ENDPOINTS", default=False)

# Language and time -----------------------------------------------------------------------------------------
LANGUAGE_CODE = env.text("LANGUAGE_CODE", "en")
LANGUAGES = [("en", _("English")), ("ja", _("Japanese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True

# Work ------------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = env.secret("CELERY_BROKER_URL", "redis://localhost:6379/0")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    # Longer than any task: a shorter one would hand a running task to a second worker.
    "visibility_timeout": 3600,
    "unacked_restore_interval": 10,
    "socket_keepalive": True,
    "global_keyprefix": f"{LIMITS_PREFIX}:",
}
RECONCILE_SECONDS: float = env.integer("RECONCILE_SECONDS", 5, minimum=1)
# Boards whose input changed are fitted again this often; a tournament's own after each of its steps besides.
REFIT_INTERVAL_SECONDS = env.integer("REFIT_INTERVAL_SECONDS", 300, minimum=1)
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "reconcile": {
        "task": "arena.tasks.reconcile_task",
        "schedule": float(RECONCILE_SECONDS),
        "options": {"expires": RECONCILE_SECONDS},
    },
    "refit-due-boards": {
        "task": "ratings.tasks.refit_due_boards_task",
        "schedule": float(REFIT_INTERVAL_SECONDS),
        "options": {"expires": REFIT_INTERVAL_SECONDS},
    },
    "drop-expired": {
        "task": "arena.tasks.drop_expired_task",
        "schedule": 3600.0,
        "options": {"expires": 3000},
    },
}
WORKER_THREADS = env.integer("WORKER_THREADS", 32, minimum=1)
# A row is free again this long after its worker was last heard of, a slot at a provider this long after its call was.
LEASE_SECONDS = env.integer("LEASE_SECONDS", 60, minimum=2)
LEASE_RENEW_SECONDS = env.integer("LEASE_RENEW_SECONDS", 15, minimum=1)
WORKER_BEAT_SECONDS = env.integer("WORKER_BEAT_SECONDS", 5, minimum=1)
WORKER_DEAD_SECONDS = env.integer("WORKER_DEAD_SECONDS", 30, minimum=2)
# A message that woke nobody for this long is taken for lost and sent again.
RESEND_SECONDS = env.integer("RESEND_SECONDS", 30, minimum=1)

# Uploads ---------------------------------------------------------------------------------------------------
UPLOAD_MAX_PACKED_BYTES = env.integer("UPLOAD_MAX_PACKED_BYTES", 200 * 1024**2, minimum=1)
UPLOAD_MAX_UNPACKED_BYTES = env.integer("UPLOAD_MAX_UNPACKED_BYTES", 1024**3, minimum=1)
UPLOAD_MAX_SAMPLES = env.integer("UPLOAD_MAX_SAMPLES", 5000, minimum=1)
UPLOAD_MAX_PDF_BYTES = env.integer("UPLOAD_MAX_PDF_BYTES", 50 * 1024**2, minimum=1)
UPLOAD_MAX_PDF_PAGES = env.integer("UPLOAD_MAX_PDF_PAGES", 500, minimum=1)
UPLOAD_DRAFT_HOURS = 24

# Ratings ---------------------------------------------------------------------------------------------------
# Of a board's written fits the 1st, 13th, 25th ... start from nothing and check the others; 0: only the first.
FULL_REFIT_EVERY = env.integer("FULL_REFIT_EVERY", 12, minimum=0)
RATING_RIDGE = env.number("RATING_RIDGE", 0.01)
# Whether too many votes alone leave an anonymous session out; otherwise that is only said.
ANOMALY_VOLUME_EXCLUDES = env.flag("ANOMALY_VOLUME_EXCLUDES", default=False)

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO")},
    # httpx logs whole URLs at INFO; query strings of some vendors carry keys.
    # Celery tells of every task at INFO, which is every model call.
    "loggers": {name: {"level": "WARNING"} for name in ("httpx", "httpcore", "celery", "kombu")},
}
