from __future__ import annotations

from django.urls import path

from ratings.views import boards, juries, progress

app_name = "ratings"
_BOARD = "t/<str:team>/tournaments/<str:tournament>/board/"
urlpatterns = [
    path(_BOARD, boards.board, name="board"),
    path(f"{_BOARD}fragment/", boards.board_fragment, name="board-fragment"),
    path(f"{_BOARD}progress/", progress.progress, name="progress"),
    path(f"{_BOARD}progress/fragment/", progress.progress_fragment, name="progress-fragment"),
    path(f"{_BOARD}prefer/", boards.board_prefer, name="board-prefer"),
    path(f"{_BOARD}juries/", juries.jury_compare, name="jury-compare"),
    path(f"{_BOARD}board.csv", boards.board_csv, name="board-csv"),
    path(f"{_BOARD}board.json", boards.board_json, name="board-json"),
    path(f"{_BOARD}runs/", boards.run_list, name="run-list"),
    path(f"{_BOARD}runs/<str:run>.json", boards.run_evidence, name="run-evidence"),
]
