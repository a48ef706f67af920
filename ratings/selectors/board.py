"""What a board shows, out of stored rows: the work grows with the candidates, never with the matches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from django.db.models import QuerySet

from arena.models import Candidate, Jury, Tally, Tournament
from ratings.dataset import Marks, decisions_of, juries_of, marks_of, votes_of
from ratings.models import Leaderboard, RatingRun
from ratings.selectors.findings import findings_of
from ratings.selectors.people import Session, SourceLine, busiest_text, sessions_of, source_lines
from ratings.selectors.rows import Row, Table
from ratings.selectors.verdict import Verdict, verdict_of

# The evidence is large and no page but its own shows it.
HEAVY = ("triples", "roster", "vector", "covariance", "ahead", "slices")


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
    # Before the first fit: what is counted so far.
    counts: list[Tally] = field(default_factory=list)
    # Whether a first fit may come while somebody looks.
    expected: bool = False

    @property
    def findings(self) -> list[str]:
        """What length and style have to do with the order, in words."""
        return findings_of(self.run, self.rows) if self.run else []

    @property
    def sources(self) -> list[SourceLine]:
        """On a mixed board each source by itself."""
        return source_lines(self.rows, self.run) if self.run else []

    @property
    def sessions(self) -> list[Session]:
        return sessions_of(self.run) if self.run else []

    @property
    def busiest(self) -> str:
        return busiest_text(self.run, self.rows) if self.run else ""

    @property
    def rows(self) -> list[Row]:
        return [*(row for table in self.tables for row in table.rows), *self.isolated]

    @property
    def since(self) -> int:
        """Matches decided after the fit, as far as a refit has looked."""
        if self.run is None or self.leaderboard.category or self.leaderboard.has_votes:
            return 0
        return max(0, self.marks.decided - self.run.comparisons - self.run.repeated)


def existing_board(tournament: Tournament, jury: Jury, ties: str | None) -> Leaderboard:
    """The stored board, or one in memory alone where no refit has made it yet: reading makes nothing."""
    plain = {"source": Leaderboard.Source.JURY, "ridge": None, "errors": Leaderboard.Errors.AUTO, "category": ""}
    boards = Leaderboard.objects.filter(jury=jury, **plain)
    board = boards.filter(**({"preferred": True} if ties is None else {"ties": ties})).first()
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
    marks = Marks.from_json(leaderboard.checked)
    return _view(leaderboard, run, marks, newest_converged=newest is None or newest.converged)


def reported_board(tournament: Tournament, jury: Jury) -> BoardView:
    """The board by the usual method, whatever the team prefers to see, and its run with all evidence.

    The run is the first on the results there are, with length and style where any run has looked at them: what the
    installation's settings have become since then may have been fitted too, and changes nothing here.
    """
    leaderboard = existing_board(tournament, jury, Leaderboard.Ties.HALF_WIN)
    newest = runs_of(leaderboard).filter(converged=True).first()
    run = None if newest is None else RatingRun.objects.get(pk=newest.pk)
    if run is not None:
        same = runs_of(leaderboard).filter(converged=True, comparisons=run.comparisons, samples=run.samples)
        alike = [one for one in RatingRun.objects.filter(pk__in=same.values("pk")) if one.triples == run.triples]
        run = min(alike, key=lambda one: (one.length is None, one.pk))
    last = runs_of(leaderboard).first()
    converged = last is None or last.converged or (run is not None and last.comparisons == run.comparisons)
    return _view(leaderboard, run, marks_of([jury])[jury.pk], newest_converged=converged)


def _view(leaderboard: Leaderboard, run: RatingRun | None, marks: Marks, *, newest_converged: bool) -> BoardView:
    tables, isolated = _tables(ratings_of(run) if run else [])
    verdict = verdict_of(
        leaderboard,
        run,
        [table.rows for table in tables],
        marks=marks,
        newest_converged=newest_converged,
        # Before the first refit looked, only the rows know whether anything is decided.
        waiting=run is None and _something_decided(leaderboard),
    )
    counts = [] if run else _counts(leaderboard)
    expected = run is None and (bool(counts) or leaderboard.checked_at is None)
    return BoardView(leaderboard, run, newest_converged, tables, isolated, marks, verdict, counts, expected)


def _counts(leaderboard: Leaderboard) -> list[Tally]:
    if leaderboard.is_wide or leaderboard.has_votes:
        return []
    tallies = Tally.objects.filter(jury=leaderboard.jury_id).select_related("candidate").order_by("candidate__position")
    return sorted(tallies, key=lambda tally: -tally.win_rate)


def ratings_of(run: RatingRun) -> list[Row]:
    """The rows of a run by component and rank, those without a comparison last."""
    stored = run.ratings.select_related("candidate", "language_model__provider")
    labels = Counter(row.subject.label for row in stored)
    full_ids = Counter(row.subject.full_id for row in stored)
    rows = [Row(row.subject, row, labels[row.subject.label] > 1, full_ids[row.subject.full_id] > 1) for row in stored]
    last = len(rows)
    return sorted(
        rows,
        key=lambda row: (
            last if row.stored.component_id is None else row.stored.component_id,
            row.stored.rank or 0,
            row.subject.position if isinstance(row.subject, Candidate) else row.subject.pk,
        ),
    )


def _tables(rows: list[Row]) -> tuple[list[Table], list[Row]]:
    grouped: dict[int, list[Row]] = {}
    isolated = []
    for row in rows:
        if row.stored.component_id is None:
            isolated.append(row)
        else:
            grouped.setdefault(row.stored.component_id, []).append(row)
    return [Table(number + 1, found) for number, found in sorted(grouped.items())], isolated


def _something_decided(leaderboard: Leaderboard) -> bool:
    if leaderboard.has_votes and votes_of(leaderboard).exists():
        return True
    if not leaderboard.has_decisions:
        return False
    juries = list(juries_of(leaderboard).values_list("pk", flat=True))
    return decisions_of(leaderboard, juries).exists()
