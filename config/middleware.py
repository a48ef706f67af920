from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase


def keep_out_of_caches(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """What somebody who is signed in gets is for them alone; a view that knows better says so itself."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.user.is_authenticated and not response.has_header("Cache-Control"):
            response["Cache-Control"] = "private, no-store"
        return response

    return middleware
