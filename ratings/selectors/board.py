"""What a board shows, out of stored rows: the work grows with the candidates, never with the matches."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext

from arena.models import Candidate, Decision, Jury, Tournament
from ratings.dataset import Marks
from ratings.models import Leaderboard, Rating, RatingRun
from ratings.selectors import wording
from ratings.selectors.verdict import Verdict, verdict_of

# The evidence is large and no page but its own shows it.
HEAVY = ("triples", "roster", "vector", "covariance")


@dataclass(frozen=True)
class Row:
    """A candidate of a board. `rating` is None where the data support no number."""

    candidate: Candidate
    stored: Rating

    @property
    def label(self) -> str:
        return self.candidate.label

    @property
    def full_id(self) -> str:
        return self.candidate.full_id

    @property
    def rating(self) -> float | None:
        return self.stored.rating

    @property
    def lower(self) -> float | None:
        return self.stored.ci_lower

    @property
    def upper(self) -> float | None:
        return self.stored.ci_upper

    @property
    def places(self) -> str:
        """Places that the intervals of the differences leave open, such as "1 to 3"."""
        first, last = self.stored.rank_from, self.stored.rank_to
        if first is None or last is None:
            return "–"
        if first == last:
            return str(first)
        return gettext("{first} to {last}").format(first=first, last=last)

    @property
    def rating_text(self) -> str:
        return gettext("no number") if self.rating is None else wording.number(self.rating)

    @property
    def interval_text(self) -> str:
        return gettext("open") if self.rating is None else wording.limits(self.lower, self.upper)

    @property
    def win_share_text(self) -> str:
        return "–" if self.stored.win_share is None else wording.percent(self.stored.win_share)

    @property
    def cost_text(self) -> str:
        cost = self.stored.mean_cost_usd
        return gettext("unknown") if cost is None else wording.dollars(cost)

    @property
    def cost_note(self) -> str:
        """Said where the cost of some answers is not known."""
        priced, answers = self.stored.priced_answers, self.stored.answers
        if not 0 < priced < answers:
            return ""
        return gettext("known for {priced} of {answers} answers").format(
            priced=wording.number(priced), answers=wording.number(answers)
        )

    @property
    def latency_text(self) -> str:
        latency_ms = self.stored.median_latency_ms
        return gettext("unknown") if latency_ms is None else wording.seconds(latency_ms)


@dataclass(frozen=True)
class Table:
    """One connected component: within it ratings compare."""

    number: int
    rows: list[Row]

    @property
    def tier(self) -> list[Row]:
        """Those for whom the first place is open."""
        return [row for row in self.rows if row.stored.rank_from == 1]


@dataclass(frozen=True)
class BoardView:
    leaderboard: Leaderboard
    # The newest that converged.
    run: RatingRun | None
    newest_converged: bool
    tables: list[Table]
    # Without a comparison: counts, and no rating.
    isolated: list[Row]
    marks: Marks
    verdict: Verdict

    @property
    def rows(self) -> list[Row]:
        return [*(row for table in self.tables for row in table.rows), *self.isolated]

    @property
    def since(self) -> int:
        """Matches decided after the fit, as far as a refit has looked."""
        return max(0, self.marks.decided - self.run.comparisons) if self.run else 0


def existing_board(tournament: Tournament, jury: Jury, ties: str | None) -> Leaderboard:
    """The stored board, or one in memory alone where no refit has made it yet: reading makes nothing."""
    chosen = {"preferred": True} if ties is None else {"ties": ties}
    board = Leaderboard.objects.filter(jury=jury, **chosen).first()
    if board is None:
        chosen_ties = ties or Leaderboard.Ties.HALF_WIN
        preferred = chosen_ties == Leaderboard.Ties.HALF_WIN
        board = Leaderboard(
            team_id=tournament.team_id, tournament=tournament, jury=jury, ties=chosen_ties, preferred=preferred
        )
    board.tournament, board.jury = tournament, jury
    return board


def runs_of(board: Leaderboard) -> QuerySet[RatingRun]:
    """All runs, newest first, without their evidence."""
    if board._state.adding:
        return RatingRun.objects.none()
    return RatingRun.objects.filter(leaderboard=board).order_by("-id").defer(*HEAVY).select_related("leader")


def board_of(leaderboard: Leaderboard) -> BoardView:
    runs = runs_of(leaderboard)
    newest = runs.first()
    run = newest if newest is None or newest.converged else runs.filter(converged=True).first()
    stored = list(run.ratings.select_related("candidate")) if run else []
    tables, isolated = _tables(stored)
    marks = Marks.from_json(leaderboard.checked)
    newest_converged = newest is None or newest.converged
    verdict = verdict_of(
        leaderboard,
        run,
        [[row.stored for row in table.rows] for table in tables],
        marks=marks,
        newest_converged=newest_converged,
        # Before the first refit looked, only the rows know whether anything is decided.
        waiting=run is None and _something_decided(leaderboard),
    )
    return BoardView(leaderboard, run, newest_converged, tables, isolated, marks, verdict)


def _tables(stored: list[Rating]) -> tuple[list[Table], list[Row]]:
    grouped: dict[int, list[Rating]] = {}
    isolated = []
    for rating in stored:
        if rating.component_id is None:
            isolated.append(rating)
        else:
            grouped.setdefault(rating.component_id, []).append(rating)
    tables = [
        Table(number + 1, [Row(rating.candidate, rating) for rating in sorted(ratings, key=lambda row: row.rank or 0)])
        for number, ratings in sorted(grouped.items())
    ]
    isolated.sort(key=lambda rating: rating.candidate.position)
    return tables, [Row(rating.candidate, rating) for rating in isolated]


def _something_decided(leaderboard: Leaderboard) -> bool:
    return Decision.objects.rated().filter(jury=leaderboard.jury_id).exists()
