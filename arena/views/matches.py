from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString

from arena.forms.matches import MatchFilter
from arena.models import Candidate, Match, Role, Tournament, Trial, TrialRequest, Verdict
from arena.selectors.matches import (
    JuryView,
    categories_played,
    costs_by,
    error_codes_of,
    filtered_matches,
    for_list,
    judges_of,
    juries_on,
    match_in_full,
    neighbours,
    row_of,
)
from arena.selectors.task_sets import attachments_by_path
from arena.services.rendered import SHOWN_CHARACTERS, html_of
from arena.views.access import TeamRequest, team_view
from arena.views.tournaments import tournament_or_404
from arena.views.transcripts import transcript_of

PAGE_SIZE = 50
REASONING_CHARACTERS = 50_000


@dataclass(frozen=True)
class AnswerView:
    side: str
    candidate: Candidate
    trial: Trial | None
    # Of the answer, or of what was received before it failed.
    html: SafeString | str
    shown: str
    is_partial: bool
    is_cut: bool
    reasoning: str
    reasoning_is_cut: bool
    is_cached: bool
    cost_usd: Decimal | None


def _filter(request: TeamRequest, tournament: Tournament) -> MatchFilter:
    return MatchFilter(
        request.GET,
        candidates=list(tournament.candidates.only("position", "label", "tournament_id")),
        categories=categories_played(tournament),
        errors=error_codes_of(tournament),
        judges=judges_of(tournament),
    )


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def match_list(request: TeamRequest, tournament: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    form = _filter(request, found)
    page = Paginator(for_list(filtered_matches(found, form.criteria())), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav_section": "tournaments",
        "tournament": found,
        "form": form,
        "page_obj": page,
        "rows": [row_of(match) for match in page.object_list],
        "query": _query(request),
    }
    return render(request, "arena/matches/list.html", context)


def _query(request: TeamRequest) -> str:
    """The filter of the list, which the pages of its matches keep."""
    query = request.GET.copy()
    query.pop("page", None)
    return f"?{query.urlencode()}" if query else ""


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def match_detail(request: TeamRequest, tournament: str, match: str) -> HttpResponse:
    found = tournament_or_404(request, tournament)
    this = _match(found, match)
    form = _filter(request, found)
    before, after = neighbours(filtered_matches(found, form.criteria()), this)
    juries = juries_on(this)
    context: dict[str, Any] = {
        "nav_section": "tournaments",
        "tournament": found,
        "match": this,
        "before": before,
        "after": after,
        "query": _query(request),
        "turns": transcript_of(
            team=request.team, messages=this.sample.messages, files=attachments_by_path(this.sample)
        ),
        "answers": _answers(request, this),
        "juries": juries,
        "winner": _winner(juries),
    }
    return render(request, "arena/matches/detail.html", context)


def _match(tournament: Tournament, public_id: str) -> Match:
    match = match_in_full(tournament, public_id)
    if match is None:
        raise Http404("no such match")
    return match


def _winner(juries: list[JuryView]) -> str:
    current = juries[0].current if juries else None
    return current.decision.outcome if current is not None else ""


def _answers(request: TeamRequest, match: Match) -> list[AnswerView]:
    trials = [match.first_trial, match.second_trial]
    texts = [(trial.answer or trial.partial_answer) if trial is not None else "" for trial in trials]
    shown = [text[:SHOWN_CHARACTERS] for text in texts]
    html = html_of(team=request.team, texts=shown)
    keys = [trial.pk for trial in trials if trial is not None]
    cached = set(
        TrialRequest.objects.filter(tournament=match.tournament_id, trial__in=keys, cached=True).values_list(
            "trial_id", flat=True
        )
    )
    costs = costs_by("trial", keys)
    return [
        AnswerView(
            side=side,
            candidate=candidate,
            trial=trial,
            html=html[place],
            shown=shown[place],
            is_partial=trial is not None and not trial.answer and bool(trial.partial_answer),
            is_cut=len(texts[place]) > SHOWN_CHARACTERS,
            reasoning=trial.reasoning[:REASONING_CHARACTERS] if trial is not None else "",
            reasoning_is_cut=trial is not None and len(trial.reasoning) > REASONING_CHARACTERS,
            is_cached=trial is not None and trial.pk in cached,
            cost_usd=None if trial is None else costs.get(trial.pk) if trial.cost_usd is None else trial.cost_usd,
        )
        for place, (side, candidate, trial) in enumerate(
            zip(("first", "second"), (match.first, match.second), trials, strict=True)
        )
    ]


def _plain(text: str) -> HttpResponse:
    """Text that others wrote, which no browser may take for anything else."""
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def match_answer(request: TeamRequest, tournament: str, match: str, side: str) -> HttpResponse:
    """An answer as it came: whole, and as text. `first-reasoning` is what the first model thought before it."""
    this = _match(tournament_or_404(request, tournament), match)
    name, _dash, kind = side.partition("-")
    trial = {"first": this.first_trial, "second": this.second_trial}.get(name)
    if trial is None or kind not in {"", "reasoning"}:
        raise Http404("no such answer")
    return _plain(trial.reasoning if kind else trial.answer or trial.partial_answer)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def verdict_raw(request: TeamRequest, tournament: str, match: str, verdict: int) -> HttpResponse:
    this = _match(tournament_or_404(request, tournament), match)
    return _plain(get_object_or_404(Verdict, match=this, pk=verdict).raw)
