"""What boards read of decisions and votes, by aggregate queries."""

from ratings.dataset.evidence import Evidence, FineRow, Triple, evidence_of
from ratings.dataset.figures import AnswerFigures, answer_figures
from ratings.dataset.marks import LOOK_AGAIN, Marks, juries_to_look_at, last_step_of, marks_of, marks_of_boards
from ratings.dataset.scope import candidates_of, decisions_of, juries_of, tournaments_of
from ratings.dataset.style import StyleRow, style_rows
from ratings.dataset.votes import Screened, ScreenedSession, VoteRow, campaigns_of, votes_of

__all__ = [
    "LOOK_AGAIN",
    "AnswerFigures",
    "Evidence",
    "FineRow",
    "Marks",
    "Screened",
    "ScreenedSession",
    "StyleRow",
    "Triple",
    "VoteRow",
    "answer_figures",
    "campaigns_of",
    "candidates_of",
    "decisions_of",
    "evidence_of",
    "juries_of",
    "juries_to_look_at",
    "last_step_of",
    "marks_of",
    "marks_of_boards",
    "style_rows",
    "tournaments_of",
    "votes_of",
]
