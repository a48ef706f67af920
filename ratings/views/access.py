"""A board by the address of a page. Every look-up starts from the team that the user may see."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404

from arena.models import Jury, Tournament
from arena.views.access import TeamRequest
from ratings import services
from ratings.models import Leaderboard
from ratings.selectors import existing_board, name_of_task_set, title_of, veil_of


def tournament_and_jury(request: TeamRequest, public_id: str) -> tuple[Tournament, Jury]:
    """The jury is the one that the address names, or else the tournament's own."""
    tournament = get_object_or_404(Tournament, team=request.team, public_id=public_id)
    wanted = request.GET.get("jury", "")
    chosen: dict[str, Any] = {"public_id": wanted} if wanted else {"primary": True}
    jury = Jury.objects.filter(tournament=tournament, **chosen).first()
    if jury is None:
        raise Http404("no jury")
    return tournament, jury


def board_of_tournament(request: TeamRequest, public_id: str) -> Leaderboard:
    """The board that the address asks for; without `ties`, the one that the team prefers."""
    tournament, jury = tournament_and_jury(request, public_id)
    ties = request.GET.get("ties") or None
    if ties is not None and ties not in Leaderboard.Ties.values:
        raise Http404("no such tie model")
    return existing_board(tournament, jury, ties)


def board_by_id(request: TeamRequest, public_id: str) -> Leaderboard:
    board = get_object_or_404(
        Leaderboard.objects.select_related("tournament", "jury"), team=request.team, public_id=public_id
    )
    return _shown(request, board)


def _shown(request: TeamRequest, board: Leaderboard) -> Leaderboard:
    """404 for a board that is kept from the member now."""
    if veil_of(request.membership).hides(board):
        raise Http404("kept from those who vote blind, or until voting ends")
    return board


def opened_board(request: TeamRequest) -> Leaderboard:
    """The board that a form asks for: a scope and a method. It is made where it does not exist yet."""
    asked = request.GET
    tournament_id, lineage = asked.get("tournament", ""), asked.get("task_set", "")
    source = asked.get("source") or Leaderboard.Source.JURY
    try:
        method = services.Method(
            ties=asked.get("ties") or services.usual_ties(source, wide=not tournament_id),
            source=source,
            anomaly_filter=asked.get("screen") != "off",
            drop_both_bad=asked.get("both_bad") == "dropped",
            ridge=float(asked["ridge"]) if asked.get("ridge") else None,
            errors=asked.get("errors") or Leaderboard.Errors.AUTO,
            category=asked.get("category", ""),
        )
    except ValueError as error:
        raise Http404("no board rates like this") from error
    if tournament_id:
        tournament, jury = tournament_and_jury(request, tournament_id)
        if not jury.primary and source != Leaderboard.Source.JURY:
            raise Http404("people's votes stand beside the tournament's own jury alone")
        _shown(request, Leaderboard(tournament=tournament, source=source))
        board = services.board_of_jury(tournament, jury, _known_category(method, tournament.task_set.lineage, request))
    else:
        if lineage and not name_of_task_set(request.team.pk, lineage):
            raise Http404("no such task set")
        scope = Leaderboard.Scope.TASK_SET if lineage else Leaderboard.Scope.TEAM
        _shown(request, Leaderboard(scope=scope, task_set_lineage=lineage, source=source))
        board = services.wide_board(request.team, _known_category(method, lineage, request), task_set_lineage=lineage)
    return board


def _known_category(method: services.Method, lineage: str, request: TeamRequest) -> services.Method:
    if method.category and not services.has_category(request.team, method.category, task_set_lineage=lineage):
        raise Http404("no such category")
    return method


def about_board(board: Leaderboard) -> dict[str, Any]:
    """What every page of a board says at its head."""
    # Of a rejudge; a board by the tournament's own jury, or over several, needs no name for it.
    other = board.jury if board.jury is not None and not board.jury.primary else None
    return {
        "nav_section": "boards" if board.is_wide else "tournaments",
        "other_jury": other,
        "jury_query": f"&jury={other.public_id}" if other else "",
        "tournament": board.tournament,
        "board": board,
        "title": title_of(board),
    }
