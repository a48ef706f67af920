from ratings.selectors.board import BoardView, board_of, existing_board, ratings_of, reported_board, runs_of
from ratings.selectors.drawn import DrawnScatter, DrawnTable, drawn_scatter, drawn_tables
from ratings.selectors.listing import (
    Listed,
    method_text,
    name_of_task_set,
    title_of,
    tournament_boards_of,
    wide_boards_of,
)
from ratings.selectors.parts import (
    Comparison,
    History,
    Matrix,
    Meeting,
    Offer,
    Slice,
    comparisons_of,
    history_of,
    matrix_of,
    offers_of,
    slices_of,
)
from ratings.selectors.people import Veil, source_choices, veil_of
from ratings.selectors.progress import Course, Progress, Standing, progress_of
from ratings.selectors.rows import Row, Table
from ratings.selectors.verdict import Verdict

__all__ = [
    "BoardView",
    "Comparison",
    "Course",
    "DrawnScatter",
    "DrawnTable",
    "History",
    "Listed",
    "Matrix",
    "Meeting",
    "Offer",
    "Progress",
    "Row",
    "Slice",
    "Standing",
    "Table",
    "Veil",
    "Verdict",
    "board_of",
    "comparisons_of",
    "drawn_scatter",
    "drawn_tables",
    "existing_board",
    "history_of",
    "matrix_of",
    "method_text",
    "name_of_task_set",
    "offers_of",
    "progress_of",
    "ratings_of",
    "reported_board",
    "runs_of",
    "slices_of",
    "source_choices",
    "title_of",
    "tournament_boards_of",
    "veil_of",
    "wide_boards_of",
]
