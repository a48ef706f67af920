from ratings.selectors.board import BoardView, Row, Table, board_of, existing_board, runs_of
from ratings.selectors.progress import Course, Progress, Standing, progress_of
from ratings.selectors.verdict import Verdict

__all__ = [
    "BoardView",
    "Course",
    "Progress",
    "Row",
    "Standing",
    "Table",
    "Verdict",
    "board_of",
    "existing_board",
    "progress_of",
    "runs_of",
]
