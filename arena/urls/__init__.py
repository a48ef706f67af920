from __future__ import annotations

from arena.urls import language_models, people, task_sets, tournaments

app_name = "arena"
urlpatterns = [
    *people.urlpatterns,
    *task_sets.urlpatterns,
    *language_models.urlpatterns,
    *tournaments.urlpatterns,
]
