from __future__ import annotations

from arena.urls import people

app_name = "arena"
urlpatterns = [*people.urlpatterns]
