from __future__ import annotations

from arena.urls import language_models, people

app_name = "arena"
urlpatterns = [*people.urlpatterns, *language_models.urlpatterns]
