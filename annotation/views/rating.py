"""The rater's pages. All that a browser learns of a pair before the vote is one random token."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from annotation.models import Assignment, Vote
from annotation.selectors.campaigns import last_vote, own_votes
from annotation.services.raters import join_as_member
from annotation.services.serving import Nothing, next_assignment
from annotation.services.shown import sample_of
from annotation.services.votes import (
    KEY,
    Remarks,
    Said,
    Stored,
    assignment_of,
    cast_vote,
    draft_of,
    report_leak,
    save_draft,
    undo_vote,
)
from annotation.views.access import RaterRequest, rater_of, rater_view
from annotation.views.pairs import SENTENCES, files_in_order, guidelines_of, pair_shown, standing_vote
from arena.models import Role
from arena.selectors.task_sets import attachments_by_path
from arena.services.members import Refused
from arena.views.responses import see_other
from arena.views.task_sets import file_response

CONFLICT, UNPROCESSABLE = 409, 422
OWN_VOTES = 100
SECTIONS = {"rate": "pair", "rate-votes": "votes", "rate-pair": "votes", "rate-guidelines": "guidelines"}
POST = ("POST",)


def new_key() -> str:
    """Names one showing of a pair, so that a vote sent twice is stored once."""
    return secrets.token_urlsafe(16)


def _context(request: RaterRequest, **more: Any) -> dict[str, Any]:
    return {
        "campaign": request.campaign,
        "rater": request.rater,
        "is_guest": request.is_guest,
        "rating_section": SECTIONS.get(str(request.resolver_match.url_name) if request.resolver_match else "", ""),
        **more,
    }


@rater_view(before_joining=True)
def rate(request: RaterRequest) -> HttpResponse:
    """The pair that stands before the rater; before the first one what this is, after the last one that it is done."""
    if request.rater is None:
        sees = request.membership.at_least(Role.ADMIN)
        context = _context(request, guidelines=guidelines_of(request.campaign), membership_keeps_names=sees)
        return render(request, "annotation/rating/welcome.html", context)
    found = next_assignment(request.rater)
    if isinstance(found, Nothing):
        context = _context(request, reason=found.reason, last=_last(request), undo_key=new_key())
        return render(request, "annotation/rating/nothing.html", context)
    return render(request, "annotation/rating/pair.html", _pair_context(request, found, last=_last(request)))


def _last(request: RaterRequest) -> Any:
    rater = rater_of(request)
    vote = last_vote(rater)
    return None if vote is None else standing_vote(rater, vote.assignment, vote)


def _pair_context(request: RaterRequest, assignment: Assignment, **more: Any) -> dict[str, Any]:
    draft = assignment.draft
    sides = [
        {
            "side": side,
            "letter": letter,
            "tags": [(tag, label, tag in draft.get(f"{side}_tags", [])) for tag, label in Vote.Tag.choices],
            "comment": draft.get(f"{side}_comment", ""),
        }
        for side, letter in (("left", "A"), ("right", "B"))
    ]
    pair = pair_shown(request.campaign, assignment)
    return _context(
        request,
        pair=pair,
        sides=[{**side, "html": html} for side, html in zip(sides, (pair.left, pair.right), strict=True)],
        key=new_key(),
        undo_key=new_key(),
        skip_reasons=Vote.SkipReason.choices,
        reported=assignment.leak_reported_at is not None,
        **more,
    )


@rater_view(methods=POST, before_joining=True)
def rate_join(request: RaterRequest) -> HttpResponse:
    if request.rater is None:
        try:
            join_as_member(campaign=request.campaign, membership=request.membership)
        except Refused as refusal:
            messages.error(request, str(refusal))
    return see_other("annotation:rate", campaign=request.campaign.public_id)


def _remarks(request: RaterRequest, side: str) -> Remarks:
    return Remarks(tags=request.POST.getlist(f"{side}_tags"), comment=request.POST.get(f"{side}_comment", ""))


def _said(request: RaterRequest) -> Said:
    active = request.POST.get("active_ms", "")
    return Said(
        choice=request.POST.get("choice", ""),
        key=request.POST.get("key", ""),
        left=_remarks(request, "left"),
        right=_remarks(request, "right"),
        reason=request.POST.get("reason", ""),
        note=request.POST.get("note", ""),
        active_ms=int(active) if active.isascii() and active.isdigit() and len(active) < 12 else None,
        replaces=request.POST.get("replaces", ""),
    )


@rater_view(methods=POST)
def rate_vote(request: RaterRequest) -> HttpResponse:
    rater, token = rater_of(request), request.POST.get("token", "")
    try:
        stored = cast_vote(rater=rater, token=token, said=_said(request))
    except Refused as refusal:
        return _refused(request, token, str(refusal))
    if stored.how == "kept":
        sentence = _("This pair has a vote already: %(choice)s. That vote stands; nothing was changed.") % {
            "choice": SENTENCES[Vote.Choice(stored.vote.choice)]
        }
        messages.warning(request, sentence)
    return _answer(request, stored)


def _is_script(request: RaterRequest) -> bool:
    return request.headers.get("X-Requested-With") == "rating"


def _answer(request: RaterRequest, stored: Stored) -> HttpResponse:
    if _is_script(request):
        return JsonResponse({"state": stored.how}, status=CONFLICT if stored.how == "kept" else 200)
    return see_other("annotation:rate", campaign=request.campaign.public_id)


def _refused(request: RaterRequest, token: str, sentence: str) -> HttpResponse:
    """What was typed is kept: by the script in the page, or here as a draft and shown again."""
    if _is_script(request):
        return JsonResponse({"state": "refused", "message": sentence}, status=UNPROCESSABLE)
    save_draft(rater=rater_of(request), token=token, left=_remarks(request, "left"), right=_remarks(request, "right"))
    messages.error(request, sentence)
    return see_other("annotation:rate", campaign=request.campaign.public_id)


@rater_view(methods=POST)
def rate_undo(request: RaterRequest) -> HttpResponse:
    key = request.POST.get("key", "")
    try:
        if not KEY.fullmatch(key):
            raise Refused(_("The request was incomplete. Reload the page and try again."))
        undo_vote(rater=rater_of(request), token=request.POST.get("token", ""), key=key)
    except Refused as refusal:
        messages.error(request, str(refusal))
    return see_other("annotation:rate", campaign=request.campaign.public_id)


@rater_view(methods=POST)
def rate_draft(request: RaterRequest) -> HttpResponse:
    token = request.POST.get("token", "")
    save_draft(rater=rater_of(request), token=token, left=_remarks(request, "left"), right=_remarks(request, "right"))
    return HttpResponse(status=204)


@rater_view(methods=POST)
def rate_leak(request: RaterRequest) -> HttpResponse:
    report_leak(rater=rater_of(request), token=request.POST.get("token", ""), note=request.POST.get("note", ""))
    messages.success(request, _("Thank you: the admins see that something here names a model. You can still vote."))
    return see_other("annotation:rate", campaign=request.campaign.public_id)


@rater_view()
def rate_guidelines(request: RaterRequest) -> HttpResponse:
    context = _context(request, guidelines=guidelines_of(request.campaign))
    return render(request, "annotation/rating/guidelines.html", context)


@rater_view()
def rate_votes(request: RaterRequest) -> HttpResponse:
    """The rater's own votes, and nobody else's."""
    rater = rater_of(request)
    votes = own_votes(rater).select_related("assignment__match__first", "assignment__match__second")[:OWN_VOTES]
    rows = [standing_vote(rater, vote.assignment, vote) for vote in votes]
    return render(request, "annotation/rating/votes.html", _context(request, rows=rows))


@rater_view()
def rate_pair(request: RaterRequest, token: str) -> HttpResponse:
    """A pair that has a vote: what was said, and a way to say something else while that is allowed."""
    rater = rater_of(request)
    assignment = assignment_of(rater, token)
    if assignment is None:
        raise Http404("no such pair")
    standing = standing_vote(rater, assignment)
    if standing is None:
        # Open pairs are shown at one address, which names none of them.
        return see_other("annotation:rate", campaign=request.campaign.public_id)
    assignment.draft = draft_of(assignment, standing.vote)
    return render(request, "annotation/rating/pair.html", _pair_context(request, assignment, standing=standing))


@rater_view()
def rate_file(request: RaterRequest, token: str, number: int) -> HttpResponseBase:
    """A file of the prompt, for whoever was given the pair."""
    assignment = assignment_of(rater_of(request), token)
    files = files_in_order(attachments_by_path(sample_of(assignment))) if assignment is not None else []
    if not number < len(files):
        raise Http404("no such file")
    return file_response(files[number][1], name="document", cache="no-store, private")
