from __future__ import annotations

from django.urls import URLPattern, path

from arena.views import juries, matches, plans, recorded_runs, tournaments

_ONE = "t/<str:team>/tournaments/<str:tournament>/"
_MATCH = f"{_ONE}matches/<str:match>/"

urlpatterns: list[URLPattern] = [
    path("t/<str:team>/tournaments/", tournaments.tournament_list, name="tournament-list"),
    path("t/<str:team>/tournaments/plan/", plans.tournament_plan, name="tournament-plan"),
    path("t/<str:team>/tournaments/import/", recorded_runs.run_import, name="run-import"),
    path(_ONE, tournaments.tournament_detail, name="tournament-detail"),
    path(f"{_ONE}start/", tournaments.tournament_start, name="tournament-start"),
    path(f"{_ONE}pause/", tournaments.tournament_pause, name="tournament-pause"),
    path(f"{_ONE}resume/", tournaments.tournament_resume, name="tournament-resume"),
    path(f"{_ONE}stop/", tournaments.tournament_stop, name="tournament-stop"),
    path(f"{_ONE}budget/", tournaments.tournament_budget, name="tournament-budget"),
    path(f"{_ONE}delete/", tournaments.tournament_delete, name="tournament-delete"),
    path(f"{_ONE}jury/", juries.jury_audit, name="jury"),
    path(f"{_ONE}jury/audit.json", juries.jury_json, name="jury-json"),
    path(f"{_ONE}jury/<slug:table>.csv", juries.jury_table, name="jury-table"),
    path(f"{_ONE}matches/", matches.match_list, name="match-list"),
    path(_MATCH, matches.match_detail, name="match-detail"),
    path(f"{_MATCH}answers/<str:side>/", matches.match_answer, name="match-answer"),
    path(f"{_MATCH}verdicts/<int:verdict>/raw/", matches.verdict_raw, name="verdict-raw"),
]
