from ratings.selectors.board import BoardView, board_of, existing_board, ratings_of, runs_of
from ratings.selectors.rows import Row, Table
from ratings.selectors.verdict import Verdict

__all__ = ["BoardView", "Row", "Table", "Verdict", "board_of", "existing_board", "ratings_of", "runs_of"]
