"""What the pages about people share."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest
from django.urls import reverse

from arena.models import User

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


def this_user(request: HttpRequest) -> User:
    """The person behind a request that `login_required` let through."""
    if not isinstance(request.user, User):
        raise TypeError("this page needs login_required")
    return request.user


def log_in(request: HttpRequest, user: User) -> None:
    login(request, user, backend=MODEL_BACKEND)


def site_root(request: HttpRequest) -> str:
    """Where links in mails begin: the operator's word, or else the host that ALLOWED_HOSTS let through."""
    return (settings.SITE_URL or request.build_absolute_uri("/")).rstrip("/")


def absolute_link(request: HttpRequest, name: str, token: str) -> str:
    return site_root(request) + reverse(name, kwargs={"token": token})
