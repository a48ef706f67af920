"""For admins: how far the votes can be relied on, what the jury makes of them, and taking them along."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.forms import ExportForm
from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.selectors.anchor import Anchor, anchor_of, campaigns_over
from annotation.selectors.campaigns import rows_of
from annotation.selectors.exports import ExportFilter, pseudonym
from annotation.selectors.quality import RaterRow, adjudication_queue, quality_of
from annotation.services.exports import BY_NAME, FILES
from annotation.services.quality import (
    adjudicate,
    adjudication_token,
    leave_out_match,
    left_side,
    queue_row,
    set_screening,
    switch_screen,
)
from annotation.views.pairs import SENTENCES, pair_shown
from annotation.views.words import CODINGS, Cell, estimate_cell, percent, rank_cell, share_cell
from arena.models import Attachment, Role
from arena.services.members import Refused
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other
from arena.views.tournaments import tournament_or_404
from ratings.engine.agreement import Agreement

READ, POST = ("GET", "HEAD"), ("POST",)
UNPROCESSABLE = 422


def campaign_or_404(request: TeamRequest, public_id: str) -> Campaign:
    campaigns = Campaign.objects.select_related("team").exclude(status=Campaign.Status.DRAFT)
    return get_object_or_404(campaigns, team=request.team, public_id=public_id)


def _back(request: TeamRequest, campaign: Campaign, name: str = "campaign-quality") -> HttpResponse:
    return see_other(f"annotation:{name}", team=request.team.public_id, campaign=campaign.public_id)


@dataclass(frozen=True)
class RaterCells:
    row: RaterRow
    cells: list[tuple[Any, Cell]]


@team_view(Role.ADMIN, methods=READ)
def campaign_quality(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    row = rows_of([found])[0]
    quality = quality_of(found, wanted=row.wanted, counted=row.counted)
    context = {
        "nav_section": "campaigns",
        "campaign": found,
        "row": row,
        "quality": quality,
        "agreement": [(CODINGS[coding], _agreement(figures)) for coding, figures in quality.agreement.items()],
        "raters": [_rater(one) for one in quality.raters],
        "gold": [(one.gold, share_cell(one.right, interval=False)) for one in quality.gold],
        "most_on_a_day": max(n for _day, n in quality.pace.days),
        "queue": sum(one.decided is None for one in adjudication_queue(found)),
    }
    return render(request, "annotation/quality/quality.html", context)


def _agreement(figures: Agreement) -> list[tuple[str, Cell]]:
    return [
        (_("Most frequent answer"), estimate_cell(figures.modal_share)),
        (_("Krippendorff's alpha"), estimate_cell(figures.alpha)),
        (_("Fleiss' kappa"), estimate_cell(figures.fleiss_gaps)),
        (_("Gwet's AC1"), estimate_cell(figures.ac1)),
    ]


def _rater(row: RaterRow) -> RaterCells:
    figures = row.figures
    active = figures.median_active_ms
    return RaterCells(
        row,
        [
            (_("Votes"), Cell(str(figures.votes), "", figures.is_thin)),
            (_("Kappa with the others"), estimate_cell(figures.kappa)),
            (_("Left"), share_cell(figures.left)),
            (_("Ties"), share_cell(figures.ties, interval=False)),
            (_("Skips"), share_cell(figures.skips, interval=False)),
            (_("Changed on repeats"), share_cell(figures.flips)),
            (_("Gold right"), share_cell(figures.gold)),
            (_("Median time"), Cell("–" if active is None else _("%(n)s s") % {"n": round(active / 1000)})),
        ],
    )


# Sessions and matches ----------------------------------------------------------------------------------------
@team_view(Role.ADMIN, methods=POST)
def campaign_screen(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    switch_screen(campaign=found, actor=request.user, on=request.POST.get("on") == "1")
    return _back(request, found)


@team_view(Role.ADMIN, methods=POST)
def rater_screen(request: TeamRequest, campaign: str, rater: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    target = get_object_or_404(Rater.objects.select_related("campaign__team"), campaign=found, public_id=rater)
    try:
        set_screening(rater=target, actor=request.user, screening=request.POST.get("screening", ""))
    except Refused as refusal:
        messages.error(request, str(refusal))
    return _back(request, found)


@team_view(Role.ADMIN, methods=POST)
def campaign_leave_out(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    reported = Assignment.objects.filter(campaign=found, leak_reported_at__isnull=False)
    token = request.POST.get("token", "")
    target = get_object_or_404(reported.select_related("campaign__team", "item"), token=token)
    try:
        leave_out_match(assignment=target, actor=request.user)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("No rater is given this match any more. Votes on it stand."))
    return _back(request, found)


# Adjudication ------------------------------------------------------------------------------------------------
@team_view(Role.ADMIN, methods=READ)
def campaign_adjudication(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    rows = [
        {
            "token": adjudication_token(found, row.item.pk),
            "votes": row.found.votes,
            "share": percent(row.found.share),
            "decided": row.decided,
            "sentence": SENTENCES[Vote.Choice(row.decided.choice)] if row.decided else "",
        }
        for row in adjudication_queue(found)
    ]
    context = {"nav_section": "campaigns", "campaign": found, "rows": rows}
    return render(request, "annotation/quality/adjudication.html", context)


@never_cache
@team_view(Role.ADMIN)
def adjudication_pair(request: TeamRequest, campaign: str, pair: str) -> HttpResponse:
    """The two answers without names. Whoever is here may open the names elsewhere; this page does not show them."""
    found = campaign_or_404(request, campaign)
    row = queue_row(found, pair)
    if row is None:
        raise Http404("no such pair in the queue")
    if request.method == "POST":
        choice, note = request.POST.get("choice", ""), request.POST.get("note", "")
        try:
            adjudicate(campaign=found, token=pair, actor=request.user, choice=choice, note=note)
        except Refused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.success(request, _("The decision is kept beside the votes."))
        return _back(request, found, "campaign-adjudication")
    left = left_side(found, row.item.pk, request.user.pk)
    shown = Assignment(campaign=found, item=row.item, match=row.item.match, left=left, token=pair)

    def file_url(_number: int, file: Attachment) -> str:
        kwargs = {"team": request.team.public_id, "attachment": file.public_id}
        return reverse("arena:attachment-file", kwargs=kwargs)

    context = {
        "nav_section": "campaigns",
        "campaign": found,
        "pair": pair_shown(found, shown, file_url),
        "votes": row.found.votes,
        "decided": row.decided,
    }
    return render(request, "annotation/quality/adjudication_pair.html", context)


# Anchor ------------------------------------------------------------------------------------------------------
@team_view(Role.ADMIN, methods=READ)
def campaign_anchor(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    context = {"nav_section": "campaigns", "campaign": found, "with_raters": True, **_anchor(anchor_of([found]))}
    return render(request, "annotation/quality/anchor.html", context)


@team_view(Role.MEMBER, methods=READ)
def people(request: TeamRequest, tournament: str) -> HttpResponse:
    """What people say of a tournament's matches, for all who may see its board; raters see no names."""
    found = tournament_or_404(request, tournament)
    campaigns = list(campaigns_over(found))
    is_admin = request.membership.at_least(Role.ADMIN)
    context: dict[str, Any] = {"nav_section": "tournaments", "tournament": found, "campaigns": campaigns}
    context |= {"with_raters": is_admin, "is_admin": is_admin, **_anchor(anchor_of(campaigns, found))}
    return render(request, "annotation/quality/people.html", context)


def _anchor(found: Anchor) -> dict[str, Any]:
    pooled, best = found.pooled, found.best
    rows = [(_("All people"), found.votes, pooled)]
    judges = [(one.full_id, one.found.rounds, one.found) for one in found.judges]
    raters = [(str(one.rater), one.votes, one.found) for one in found.raters]
    return {
        "anchor": found,
        "pooled": _likeness(rows)[0] if pooled.rounds else None,
        "judges": _likeness(judges),
        "rater_rows": _likeness(raters),
        "best": best.full_id if best else "",
        "best_kappa": estimate_cell(best.found.kappa) if best else None,
        "places": [(place, _points(place.people), _points(place.jury)) for place in pooled.places],
    }


def _points(value: float) -> str:
    return "–" if math.isnan(value) else number_format(round(value), 0)


def _likeness(rows: list[tuple[str, int, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "votes": votes,
            "rounds": found.rounds,
            "level": found.level,
            "cells": [
                (_("Same outcome"), share_cell(found.same)),
                (_("Kappa"), estimate_cell(found.kappa)),
                (_("Kappa without ties"), estimate_cell(found.kappa_decisive)),
                (_("Spearman"), rank_cell(found.ranks.spearman, found.ranks)),
                (_("Kendall"), rank_cell(found.ranks.kendall, found.ranks)),
            ],
        }
        for name, votes, found in rows
    ]


# Exports -----------------------------------------------------------------------------------------------------
@team_view(Role.ADMIN, methods=READ)
def campaign_export(request: TeamRequest, campaign: str) -> HttpResponse:
    found = campaign_or_404(request, campaign)
    raters = [(pseudonym(found, "r", rater.pk), str(rater)) for rater in found.raters.select_related("user")]
    form = ExportForm(request.GET or None, campaign=found, raters=raters)
    is_valid = not form.is_bound or form.is_valid()
    context = {
        "nav_section": "campaigns",
        "campaign": found,
        "form": form,
        "files": [file.name for file in FILES] if is_valid else [],
        "query": request.GET.urlencode(),
    }
    return render(request, "annotation/quality/export.html", context, status=200 if is_valid else UNPROCESSABLE)


@team_view(Role.ADMIN, methods=READ)
def campaign_export_file(request: TeamRequest, campaign: str, name: str) -> HttpResponseBase:
    found = campaign_or_404(request, campaign)
    file = BY_NAME.get(name)
    form = ExportForm(request.GET, campaign=found, raters=[])
    if file is None or not form.is_valid():
        raise Http404("no such file or filter")
    chosen: ExportFilter = form.chosen()
    lines: Iterator[str] = file.lines(found, chosen)
    response = StreamingHttpResponse(lines, content_type=f"{file.content_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store, private"
    return response
