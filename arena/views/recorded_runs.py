"""A recorded run from the browser: everything of it is taken, or nothing with all that is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from arena.forms.recorded_runs import RunForm
from arena.ingest import Problem
from arena.models import Role
from arena.services import recorded_runs as service
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other

logger = logging.getLogger(__name__)
# What a form holds beside its files.
FORM_BYTES = 64 * 1024
CHUNK = 64 * 1024
SHOWN_PROBLEMS = 200
UNPROCESSABLE = 422
TOO_LARGE = 413


# The handlers must be chosen before anything reads the body, and the check of the token reads it: so the check
# comes after the choice, around the view inside.
@csrf_exempt
@team_view(Role.ADMIN)
def run_import(request: TeamRequest) -> HttpResponseBase:
    if request.method == "POST":
        if int(request.META.get("CONTENT_LENGTH") or 0) > settings.UPLOAD_MAX_PACKED_BYTES + FORM_BYTES:
            return _too_large(request)
        request.upload_handlers = [TemporaryFileUploadHandler(request)]
    return _import(request)


def _too_large(request: TeamRequest) -> HttpResponse:
    # A browser shows no answer to a body that it could not send to its end.
    try:
        while request.read(CHUNK):
            pass
    except UnreadablePostError:
        logger.info("An upload that is too large was broken off.")
    return _page(request, RunForm(), errors=[_("The files are larger than the limit.")], status=TOO_LARGE)


def _page(
    request: TeamRequest,
    form: RunForm,
    *,
    problems: Sequence[Problem] = (),
    errors: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "nav_section": "tournaments",
        "form": form,
        "problems": problems[:SHOWN_PROBLEMS],
        "hidden_problems": max(0, len(problems) - SHOWN_PROBLEMS),
        "errors": errors,
        "max_bytes": settings.UPLOAD_MAX_PACKED_BYTES,
    }
    return render(request, "arena/tournaments/import.html", context, status=status)


def _import_checked(request: HttpRequest) -> HttpResponseBase:
    team_request: TeamRequest = request  # type: ignore[assignment]
    if request.method != "POST":
        return _page(team_request, RunForm())
    form = RunForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(team_request, form, status=UNPROCESSABLE)
    try:
        imported = service.import_uploaded(
            team=team_request.team, files=form.cleaned_data["record"], actor=team_request.user
        )
    except service.RunRefused as refused:
        return _page(team_request, form, problems=refused.reading.problems, status=UNPROCESSABLE)
    except service.RunError as error:
        return _page(team_request, form, errors=error.problems, status=UNPROCESSABLE)
    for one in imported:
        name = {"name": one.tournament.name}
        if one.is_new:
            messages.success(request, _("“%(name)s” is imported.") % name)
        else:
            messages.info(request, _("This run was imported before: it is “%(name)s”.") % name)
    team = team_request.team.public_id
    if len(imported) == 1:
        return see_other("arena:tournament-detail", team=team, tournament=imported[0].tournament.public_id)
    return see_other("arena:tournament-list", team=team)


_import: Callable[[HttpRequest], HttpResponseBase] = csrf_protect(_import_checked)
