"""From a file in the browser to a task set: upload, preview, save."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from arena.forms.task_sets import SaveDraftForm, UploadForm
from arena.ingest import list_starters
from arena.models import Role, TaskSet, UploadDraft
from arena.services import task_sets as service
from arena.services.rendered import fresh_html
from arena.views.access import TeamRequest, team_view
from arena.views.responses import download, see_other

logger = logging.getLogger(__name__)
# What a form holds beside its file.
FORM_BYTES = 64 * 1024
CHUNK = 64 * 1024
SHOWN_PROBLEMS = 200


def limits() -> dict[str, Any]:
    return {
        "packed_bytes": settings.UPLOAD_MAX_PACKED_BYTES,
        "samples": settings.UPLOAD_MAX_SAMPLES,
        "pdf_bytes": settings.UPLOAD_MAX_PDF_BYTES,
        "pdf_pages": settings.UPLOAD_MAX_PDF_PAGES,
    }


# The handlers must be chosen before anything reads the body, and the check of the token reads it: so the check
# comes after the choice, around the view inside.
@csrf_exempt
@team_view(Role.ADMIN)
def task_set_upload(request: TeamRequest) -> HttpResponseBase:
    if request.method == "POST":
        if int(request.META.get("CONTENT_LENGTH") or 0) > settings.UPLOAD_MAX_PACKED_BYTES + FORM_BYTES:
            return _too_large(request)
        request.upload_handlers = [TemporaryFileUploadHandler(request)]
    return _upload(request)


def _too_large(request: TeamRequest) -> HttpResponse:
    # A browser shows no answer to a body that it could not send to its end.
    try:
        while request.read(CHUNK):
            pass
    except UnreadablePostError:
        logger.info("An upload that is too large was broken off.")
    form = UploadForm()
    problem = _("The file is larger than the limit.")
    return render(request, "arena/task_sets/upload.html", _upload_context(form, None, problem), status=413)


def _upload_context(form: UploadForm, replaces: TaskSet | None, problem: str = "") -> dict[str, Any]:
    return {
        "nav_section": "task-sets",
        "form": form,
        "replaces": replaces,
        "problem": problem,
        "limits": limits(),
        "starters": list_starters(),
    }


def _newest_or_404(request: TeamRequest, public_id: str) -> TaskSet | None:
    if not public_id:
        return None
    return get_object_or_404(TaskSet.objects.newest_versions(), team=request.team, public_id=public_id)


def _upload_checked(request: HttpRequest) -> HttpResponseBase:
    team_request: TeamRequest = request  # type: ignore[assignment]
    if request.method != "POST":
        replaces = _newest_or_404(team_request, request.GET.get("new_version_of", ""))
        form = UploadForm(initial={"new_version_of": replaces.public_id if replaces else ""})
        return render(request, "arena/task_sets/upload.html", _upload_context(form, replaces))
    form = UploadForm(request.POST, request.FILES)
    valid = form.is_valid()
    replaces = _newest_or_404(team_request, form.cleaned_data.get("new_version_of", ""))
    if not valid:
        return render(request, "arena/task_sets/upload.html", _upload_context(form, replaces), status=422)
    file = form.cleaned_data["file"]
    draft = service.create_draft(
        team=team_request.team, actor=team_request.user, file=file, filename=file.name, replaces=replaces
    )
    return see_other("arena:draft-detail", team=team_request.team.public_id, draft=draft.public_id)


_upload: Callable[[HttpRequest], HttpResponseBase] = csrf_protect(_upload_checked)


@team_view(Role.ADMIN, methods=("POST",))
def task_set_starter(request: TeamRequest, starter: str) -> HttpResponse:
    if starter not in {known.id for known in list_starters()}:
        raise Http404
    try:
        task_set = service.import_starter(team=request.team, starter_id=starter, actor=request.user)
    except service.NothingChanged as unchanged:
        task_set = unchanged.task_set
        messages.info(request, _("Your team has this template already, unchanged."))
    else:
        messages.success(request, _("“%(name)s” is ready.") % {"name": task_set.name})
    return see_other("arena:task-set-detail", team=request.team.public_id, task_set=task_set.public_id)


def _draft(request: TeamRequest, public_id: str) -> UploadDraft:
    return get_object_or_404(
        UploadDraft.objects.select_related("team", "replaces"), team=request.team, public_id=public_id
    )


def _draft_page(
    request: TeamRequest, draft: UploadDraft, form: SaveDraftForm | None = None, status: int = 200
) -> HttpResponse:
    inspection = draft.inspection
    for sample in inspection["preview"]:
        for message in sample["messages"]:
            message["html"] = fresh_html(message["text"])
    task_sets = list(TaskSet.objects.filter(team=request.team).newest_versions().order_by("name"))
    context = {
        "nav_section": "task-sets",
        "draft": draft,
        "inspection": inspection,
        "left_out": inspection["sample_count"] - inspection["good_count"],
        "problems": inspection["problems"][:SHOWN_PROBLEMS],
        "problem_count": inspection["error_count"] + inspection["warning_count"],
        "form": form or SaveDraftForm(draft=draft, task_sets=task_sets),
    }
    return render(request, "arena/task_sets/draft.html", context, status=status)


@team_view(Role.ADMIN, methods=("GET", "HEAD"))
def draft_detail(request: TeamRequest, draft: str) -> HttpResponse:
    return _draft_page(request, _draft(request, draft))


@team_view(Role.ADMIN, methods=("POST",))
def draft_save(request: TeamRequest, draft: str) -> HttpResponse:
    found = _draft(request, draft)
    task_sets = list(TaskSet.objects.filter(team=request.team).newest_versions().order_by("name"))
    form = SaveDraftForm(request.POST, draft=found, task_sets=task_sets)
    if not form.is_valid():
        return _draft_page(request, found, form, status=422)
    found.replaces = form.replaced()
    name = found.replaces.name if found.replaces else form.cleaned_data["name"]
    try:
        task_set = service.save_draft(
            draft=found, actor=request.user, name=name, only_good=request.POST.get("how") == "only_good"
        )
    except service.DraftGone as gone:
        messages.info(request, str(gone))
        return see_other("arena:task-set-list", team=request.team.public_id)
    except service.NameTaken as taken:
        form.add_error("name", str(taken))
        return _draft_page(request, found, form, status=422)
    except service.TaskSetError as error:
        for problem in error.problems:
            form.add_error(None, problem)
        return _draft_page(request, found, form, status=422)
    messages.success(request, _("“%(name)s” is saved.") % {"name": task_set})
    return see_other("arena:task-set-detail", team=request.team.public_id, task_set=task_set.public_id)


@team_view(Role.ADMIN, methods=("POST",))
def draft_discard(request: TeamRequest, draft: str) -> HttpResponse:
    try:
        service.discard_draft(draft=_draft(request, draft))
    except service.DraftGone as gone:
        messages.info(request, str(gone))
    else:
        messages.success(request, _("The upload is discarded; nothing of it was kept."))
    return see_other("arena:task-set-list", team=request.team.public_id)


@team_view(Role.ADMIN, methods=("GET", "HEAD"))
def draft_problems(request: TeamRequest, draft: str) -> HttpResponseBase:
    found = _draft(request, draft)
    problems = found.inspection["problems"]
    lines = [f"{problem['severity']}: {problem['text']}\n" for problem in problems]
    hidden = found.inspection["error_count"] + found.inspection["warning_count"] - len(problems)
    if hidden:
        lines.append(_("... and %(count)d more problems.") % {"count": hidden} + "\n")
    return download(lines, filename="problems.txt", content_type="text/plain; charset=utf-8")
