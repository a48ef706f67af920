from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


urlpatterns = [
    path("healthz", healthz),
    path("", include("arena.urls")),
    path("", include("annotation.urls")),
    path("", include("ratings.urls")),
]
