from __future__ import annotations

from django.urls import path

from ratings.views import boards, juries, parts, progress, reports

app_name = "ratings"
_OF_TOURNAMENT = "t/<str:team>/tournaments/<str:tournament>/board/"
_BOARDS = "t/<str:team>/boards/"
_BOARD = f"{_BOARDS}<str:board>/"
urlpatterns = [
    path(_OF_TOURNAMENT, boards.board, name="board"),
    path(f"{_OF_TOURNAMENT}fragment/", boards.board_fragment, name="board-fragment"),
    path(f"{_OF_TOURNAMENT}prefer/", boards.board_prefer, name="board-prefer"),
    path(f"{_OF_TOURNAMENT}juries/", juries.jury_compare, name="jury-compare"),
    path(f"{_OF_TOURNAMENT}progress/", progress.progress, name="progress"),
    path(f"{_OF_TOURNAMENT}progress/fragment/", progress.progress_fragment, name="progress-fragment"),
    path("t/<str:team>/tournaments/<str:tournament>/report/", reports.report, name="report"),
    path(_BOARDS, boards.board_list, name="board-list"),
    path(f"{_BOARDS}open/", boards.board_open, name="board-open"),
    path(_BOARD, boards.board_detail, name="board-detail"),
    path(f"{_BOARD}head-to-head/", parts.head_to_head, name="board-head-to-head"),
    path(f"{_BOARD}compare/", parts.compare, name="board-compare"),
    path(f"{_BOARD}over-time/", parts.over_time, name="board-over-time"),
    path(f"{_BOARD}cost/", parts.cost, name="board-cost"),
    path(f"{_BOARD}categories/", parts.categories, name="board-categories"),
    path(f"{_BOARD}sessions/<str:rater>/", boards.session_screening, name="session-screening"),
    path(f"{_BOARD}runs/", parts.run_list, name="board-runs"),
    path(f"{_BOARD}runs/<str:run>.json", parts.run_evidence, name="run-evidence"),
    path(f"{_BOARD}<slug:table>.csv", parts.table_csv, name="board-csv"),
    path(f"{_BOARD}<slug:table>.json", parts.table_json, name="board-json"),
]
