from __future__ import annotations

from django.urls import URLPattern, path

from arena.views import going_on, juries, matches, plans, recorded_runs, rejudges, tournaments

_ONE = "t/<str:team>/tournaments/<str:tournament>/"
_MATCH = f"{_ONE}matches/<str:match>/"

urlpatterns: list[URLPattern] = [
    path("t/<str:team>/tournaments/", tournaments.tournament_list, name="tournament-list"),
    path("t/<str:team>/tournaments/plan/", plans.tournament_plan, name="tournament-plan"),
    path("t/<str:team>/tournaments/import/", recorded_runs.run_import, name="run-import"),
    path("t/<str:team>/tournaments/plan/test/", plans.tournament_plan_test, name="tournament-plan-test"),
    path(_ONE, tournaments.tournament_detail, name="tournament-detail"),
    path(f"{_ONE}start/", tournaments.tournament_start, name="tournament-start"),
    path(f"{_ONE}pause/", tournaments.tournament_pause, name="tournament-pause"),
    path(f"{_ONE}resume/", tournaments.tournament_resume, name="tournament-resume"),
    path(f"{_ONE}stop/", tournaments.tournament_stop, name="tournament-stop"),
    path(f"{_ONE}budget/", tournaments.tournament_budget, name="tournament-budget"),
    path(f"{_ONE}delete/", tournaments.tournament_delete, name="tournament-delete"),
    path(f"{_ONE}continue/", going_on.tournament_extend, name="tournament-extend"),
    path(f"{_ONE}retry/", going_on.tournament_retry, name="tournament-retry"),
    path(f"{_ONE}manifest/", going_on.tournament_manifest, name="tournament-manifest"),
    path(f"{_ONE}manifest.json", going_on.tournament_manifest_json, name="tournament-manifest-json"),
    path(f"{_ONE}rejudge/", rejudges.rejudge_create, name="rejudge-create"),
    path(f"{_ONE}rejudges/<str:jury>/", rejudges.rejudge_detail, name="rejudge-detail"),
    path(f"{_ONE}rejudges/<str:jury>/<slug:action>/", rejudges.rejudge_act, name="rejudge-act"),
    path(f"{_ONE}jury/", juries.jury_audit, name="jury"),
    path(f"{_ONE}jury/audit.json", juries.jury_json, name="jury-json"),
    path(f"{_ONE}jury/<slug:table>.csv", juries.jury_table, name="jury-table"),
    path(f"{_ONE}matches/", matches.match_list, name="match-list"),
    path(_MATCH, matches.match_detail, name="match-detail"),
    path(f"{_MATCH}answers/<str:side>/", matches.match_answer, name="match-answer"),
    path(f"{_MATCH}verdicts/<int:verdict>/raw/", matches.verdict_raw, name="verdict-raw"),
]
