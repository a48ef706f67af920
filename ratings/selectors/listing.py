"""Which boards a team has, and which it may open."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext

from arena.models import TaskSet, Team, Tournament
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import wording


def title_of(board: Leaderboard) -> str:
    """What the board is of; its tournament must be selected along."""
    if board.tournament is not None:
        title = board.tournament.name
    elif board.task_set_lineage:
        title = name_of_task_set(board.team_id, board.task_set_lineage)
    else:
        title = gettext("All tournaments")
    return gettext("{title}, {category}").format(title=title, category=board.category) if board.category else title


def name_of_task_set(team_id: int, lineage: str) -> str:
    newest = TaskSet.objects.filter(team=team_id, lineage=lineage).order_by("-version").values_list("name", flat=True)
    return newest.first() or ""


def method_text(board: Leaderboard) -> str:
    parts = [str(board.get_ties_display())]
    if board.has_votes:
        parts.insert(0, str(board.get_source_display()))
        parts += [] if board.anomaly_filter else [gettext("no session screened out")]
        parts += [gettext("both bad left out")] if board.drop_both_bad else []
    if board.ridge is not None:
        parts.append(gettext("ridge {ridge}").format(ridge=wording.plain(board.ridge)))
    if board.errors != Leaderboard.Errors.AUTO:
        parts.append(gettext("errors {errors}").format(errors=board.get_errors_display()))
    return "; ".join(parts)


@dataclass(frozen=True)
class Listed:
    title: str
    note: str
    # Null: it comes to exist when somebody opens it.
    board: Leaderboard | None
    task_set_lineage: str = ""

    @property
    def scope(self) -> Leaderboard:
        """The board, or one in memory that reaches as far."""
        if self.board is not None:
            return self.board
        wide = Leaderboard.Scope.TASK_SET if self.task_set_lineage else Leaderboard.Scope.TEAM
        return Leaderboard(scope=wide, task_set_lineage=self.task_set_lineage)


def _with_newest_run(boards: QuerySet[Leaderboard]) -> QuerySet[Leaderboard]:
    newest = RatingRun.objects.filter(leaderboard=OuterRef("pk")).published()
    return boards.annotate(
        leader_label=Subquery(newest.values("leader_label")[:1]),
        run_comparisons=Subquery(newest.values("comparisons")[:1]),
        run_computed_at=Subquery(newest.values("computed_at")[:1]),
    )


def wide_boards_of(team: Team) -> list[Listed]:
    """The team's board and those of its task sets, then others that somebody opened."""
    boards = list(
        _with_newest_run(
            Leaderboard.objects.filter(team=team).exclude(scope=Leaderboard.Scope.TOURNAMENT).order_by("pk")
        )
    )
    played = (
        Tournament.objects.filter(team=team)
        .exclude(status=Tournament.Status.DRAFT)
        .order_by("task_set__version")
        .values_list("task_set__lineage", "task_set__name")
    )
    names = dict(played)
    listed = []
    for lineage, title in [("", gettext("All tournaments")), *sorted(names.items(), key=lambda item: item[1])]:
        found = [board for board in boards if board.task_set_lineage == lineage]
        plain = [board for board in found if not board.category and _usual(board)]
        if plain:
            listed += [Listed(title, method_text(board), board, lineage) for board in plain]
        elif names:
            listed.append(Listed(title, "", None, lineage))
        for board in found:
            if board not in plain:
                name = f"{title}, {board.category}" if board.category else title
                listed.append(Listed(name, method_text(board), board, lineage))
    return listed


def _usual(board: Leaderboard) -> bool:
    usual = board.ties == Leaderboard.Ties.RAO_KUPPER and board.ridge is None
    usual = usual and not board.has_votes
    return usual and board.errors == Leaderboard.Errors.AUTO


def tournament_boards_of(team: Team) -> QuerySet[Leaderboard]:
    boards = Leaderboard.objects.filter(Q(preferred=True), team=team, scope=Leaderboard.Scope.TOURNAMENT)
    return _with_newest_run(
        boards.select_related("tournament__task_set", "jury").order_by("-tournament__created_at", "-pk")
    )
