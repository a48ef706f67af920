"""Boards and their refits. What is due is derived from rows; a signal only makes it happen sooner."""

from ratings.services.boards import (
    RIDGES,
    Method,
    board_of_jury,
    boards_of_jury,
    has_category,
    is_plain,
    leaderboard_for,
    prefer_ties,
    screen_session,
    usual_ties,
    want_refit,
    wide_board,
)
from ratings.services.fitting import COVARIANCE_UP_TO
from ratings.services.refits import Refit, boards_due, evidence_hash, refit, refit_due_boards

__all__ = [
    "COVARIANCE_UP_TO",
    "RIDGES",
    "Method",
    "Refit",
    "board_of_jury",
    "boards_due",
    "boards_of_jury",
    "evidence_hash",
    "has_category",
    "is_plain",
    "leaderboard_for",
    "prefer_ties",
    "refit",
    "refit_due_boards",
    "screen_session",
    "usual_ties",
    "want_refit",
    "wide_board",
]
