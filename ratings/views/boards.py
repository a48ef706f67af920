from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.models import Rater
from arena.dispatch import send
from arena.models import Role
from arena.views.access import TeamRequest, team_view
from ratings import services
from ratings.dataset import campaigns_of
from ratings.models import Leaderboard
from ratings.selectors import (
    board_of,
    drawn_tables,
    source_choices,
    tournament_boards_of,
    veil_of,
    wide_boards_of,
    wording,
)
from ratings.views.access import about_board, board_by_id, board_of_tournament, opened_board, tournament_and_jury

READ = ("GET", "HEAD")
BOARDS_PER_PAGE = 30


def _context(request: TeamRequest, board: Leaderboard) -> dict[str, Any]:
    view = board_of(board)
    return about_board(board) | {
        "part": "board",
        "view": view,
        "tables": drawn_tables(view),
        "sources": source_choices(board, request.membership),
        "may_screen": board.has_votes and request.membership.at_least(Role.ADMIN),
        "tie_models": Leaderboard.Ties.choices,
        "error_methods": [
            choice
            for choice in Leaderboard.Errors.choices
            if board.has_votes or choice[0] != Leaderboard.Errors.TWO_WAY
        ],
        "ridges": [(f"{ridge:g}", wording.plain(ridge)) for ridge in services.RIDGES if ridge is not None],
        "chosen_ridge": "" if board.ridge is None else f"{board.ridge:g}",
        "may_prefer": not board.is_wide
        and request.membership.at_least(Role.ADMIN)
        and not board.preferred
        and services.is_plain(board),
    }


@team_view(Role.MEMBER, methods=READ)
def board(request: TeamRequest, tournament: str) -> HttpResponse:
    return render(request, "ratings/board.html", _context(request, board_of_tournament(request, tournament)))


@team_view(Role.MEMBER, methods=READ)
def board_fragment(request: TeamRequest, tournament: str) -> HttpResponse:
    """The board alone, for a page that loads it into itself; whoever follows the link gets the whole page."""
    if not request.htmx:
        return redirect("ratings:board", team=request.team.public_id, tournament=tournament)
    context = _context(request, board_of_tournament(request, tournament)) | {"is_fragment": True}
    return render(request, "ratings/board.html#board", context)


@team_view(Role.ADMIN, methods=("POST",))
def board_prefer(request: TeamRequest, tournament: str) -> HttpResponse:
    found, jury = tournament_and_jury(request, tournament)
    ties = request.POST.get("ties", "")
    if ties not in Leaderboard.Ties.values:
        raise Http404("no such tie model")
    services.prefer_ties(tournament=found, jury=jury, ties=ties, actor=request.user)
    address = reverse("ratings:board", kwargs={"team": request.team.public_id, "tournament": found.public_id})
    return redirect(address if jury.primary else f"{address}?jury={jury.public_id}")


@team_view(Role.MEMBER, methods=READ)
def board_list(request: TeamRequest) -> HttpResponse:
    veil = veil_of(request.membership)
    boards = tournament_boards_of(request.team).exclude(tournament__in=veil.concealed)
    page = Paginator(boards, BOARDS_PER_PAGE).get_page(request.GET.get("page"))
    wide = [listed for listed in wide_boards_of(request.team) if not veil.hides(listed.scope)]
    context = {"nav_section": "boards", "wide": wide, "page_obj": page}
    return render(request, "ratings/board_list.html", context)


@team_view(Role.MEMBER, methods=READ)
def board_open(request: TeamRequest) -> HttpResponse:
    """To the board of a scope and a method. Boards exist from their first opening, so that none is fitted in vain."""
    found = opened_board(request)
    if found.checked_at is None:
        send("ratings.tasks.refit_board_task", found.pk)
    return redirect("ratings:board-detail", team=request.team.public_id, board=found.public_id)


@team_view(Role.MEMBER, methods=READ)
def board_detail(request: TeamRequest, board: str) -> HttpResponse:
    found = board_by_id(request, board)
    context = _context(request, found)
    if request.htmx:
        return render(request, "ratings/board.html#board", context)
    return render(request, "ratings/board.html", context)


@team_view(Role.ADMIN, methods=("POST",))
def session_screening(request: TeamRequest, board: str, rater: str) -> HttpResponse:
    """Keep the votes of a session that the screen rejected, leave them out, or go by the screen again."""
    found = board_by_id(request, board)
    session = get_object_or_404(
        Rater.objects.select_related("campaign"),
        campaign__in=campaigns_of(found),
        open_link__isnull=False,
        public_id=rater,
    )
    screening = request.POST.get("screening", "")
    if screening not in Rater.Screening.values:
        raise Http404("no such screening")
    for touched in services.screen_session(rater=session, actor=request.user, screening=screening):
        send("ratings.tasks.refit_board_task", touched.pk)
    messages.success(request, _("Noted. The ratings follow with the next fit, within a minute."))
    return redirect("ratings:board-detail", team=request.team.public_id, board=found.public_id)
