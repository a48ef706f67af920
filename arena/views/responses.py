from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import resolve_url
from django.utils.http import content_disposition_header


class SeeOther(HttpResponseRedirect):
    """After a POST: the browser goes on by GET, so that a reload sends nothing twice."""

    status_code = 303


def see_other(to: Any, *args: Any, fragment: str = "", **kwargs: Any) -> SeeOther:
    return SeeOther(resolve_url(to, *args, **kwargs) + (f"#{fragment}" if fragment else ""))


def download(chunks: Iterable[str | bytes], *, filename: str, content_type: str) -> StreamingHttpResponse:
    """Streamed, so that memory does not grow with what is sent."""
    response = StreamingHttpResponse(chunks, content_type=content_type)
    response["Content-Disposition"] = content_disposition_header(True, filename)  # noqa: FBT003 - Django's own
    response["Cache-Control"] = "private, no-store"
    return response
