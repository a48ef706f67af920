from __future__ import annotations

from django.http import HttpResponseRedirect
from django.urls import reverse


class HttpResponseSeeOther(HttpResponseRedirect):
    """After a POST: whatever is there is fetched by GET."""

    status_code = 303


def see_other(name: str, *, fragment: str = "", **kwargs: str) -> HttpResponseSeeOther:
    return HttpResponseSeeOther(reverse(name, kwargs=kwargs) + (f"#{fragment}" if fragment else ""))
