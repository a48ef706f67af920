from __future__ import annotations

import json
from collections.abc import Iterator

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.forms.task_sets import SampleFilter
from arena.ingest import export_zip, list_starters, read_pdf, write_jsonl
from arena.models import Attachment, Role, Sample, TaskSet
from arena.selectors.task_sets import (
    attachments_by_path,
    categories_of,
    files_of,
    neighbours_of,
    samples_of,
    stream_samples,
    task_sets_of,
    versions_of,
)
from arena.services.rendered import SHOWN_CHARACTERS, html_of
from arena.services.task_set_files import on_disk, upload_limits
from arena.services.task_sets import TaskSetError, delete_task_set
from arena.views.access import TeamRequest, team_view
from arena.views.responses import download, see_other
from arena.views.transcripts import transcript_of

PAGE_SIZE = 50
# Types that ingest lets in, found by content; anything else would be sent as bytes without meaning.
SUFFIXES = {
    "application/pdf": "pdf",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}


def _task_set(request: TeamRequest, public_id: str) -> TaskSet:
    return get_object_or_404(TaskSet.objects.select_related("team"), team=request.team, public_id=public_id)


def _attachment(request: TeamRequest, public_id: str) -> Attachment:
    return get_object_or_404(Attachment, team=request.team, public_id=public_id)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def task_set_list(request: TeamRequest) -> HttpResponse:
    page = Paginator(task_sets_of(request.team), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav_section": "task-sets",
        "page_obj": page,
        "writes": request.membership.at_least(Role.ADMIN),
        "starters": list_starters(),
    }
    return render(request, "arena/task_sets/list.html", context)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def task_set_detail(request: TeamRequest, task_set: str) -> HttpResponse:
    found = _task_set(request, task_set)
    versions = list(versions_of(found))
    categories = categories_of(found)
    form = SampleFilter(request.GET, categories=categories)
    page = Paginator(samples_of(found, **form.filters()), PAGE_SIZE).get_page(request.GET.get("page"))
    this = next(version for version in versions if version.pk == found.pk)
    context = {
        "nav_section": "task-sets",
        "task_set": this,
        "versions": versions,
        "newest": versions[0],
        "category_count": sum(1 for name, _count in categories if name),
        "form": form,
        "page_obj": page,
        "writes": request.membership.at_least(Role.ADMIN),
    }
    return render(request, "arena/task_sets/detail.html", context)


@team_view(Role.ADMIN)
def task_set_delete(request: TeamRequest, task_set: str) -> HttpResponse:
    found = _task_set(request, task_set)
    tournaments = found.tournaments.count()
    if request.method != "POST":
        context = {"nav_section": "task-sets", "task_set": found, "tournament_count": tournaments}
        return render(request, "arena/task_sets/delete.html", context)
    try:
        delete_task_set(task_set=found, actor=request.user)
    except TaskSetError as error:
        messages.error(request, str(error))
        return see_other("arena:task-set-detail", team=request.team.public_id, task_set=found.public_id)
    message = ngettext(
        "“%(name)s” is deleted, with %(count)d sample.",
        "“%(name)s” is deleted, with %(count)d samples.",
        found.sample_count,
    )
    messages.success(request, message % {"name": found, "count": found.sample_count})
    return see_other("arena:task-set-list", team=request.team.public_id)


def _filename(task_set: TaskSet, suffix: str) -> str:
    name = slugify(task_set.name, allow_unicode=True) or "task-set"
    return f"{name}-v{task_set.version}.{suffix}"


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def task_set_jsonl(request: TeamRequest, task_set: str) -> HttpResponseBase:
    found = _task_set(request, task_set)
    lines = write_jsonl(stream_samples(found))
    return download(lines, filename=_filename(found, "jsonl"), content_type="application/x-ndjson; charset=utf-8")


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def task_set_zip(request: TeamRequest, task_set: str) -> HttpResponseBase:
    found = _task_set(request, task_set)
    chunks = export_zip(stream_samples(found), files_of(found))
    return download(chunks, filename=_filename(found, "zip"), content_type="application/zip")


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def sample_detail(request: TeamRequest, task_set: str, sample: str) -> HttpResponse:
    found = get_object_or_404(
        Sample.objects.select_related("task_set").defer("search_text"),
        task_set__team=request.team,
        task_set__public_id=task_set,
        public_id=sample,
    )
    turns = transcript_of(team=request.team, messages=found.messages, files=attachments_by_path(found))
    labels = [found.reference[:SHOWN_CHARACTERS], found.criteria[:SHOWN_CHARACTERS]]
    reference, criteria = html_of(team=request.team, texts=labels)
    before, after = neighbours_of(found)
    context = {
        "nav_section": "task-sets",
        "sample": found,
        "task_set": found.task_set,
        "turns": turns,
        "reference": reference,
        "criteria": criteria,
        "metadata": _pretty(found.metadata)[:SHOWN_CHARACTERS] if found.metadata else "",
        "json_schema": _pretty(found.json_schema)[:SHOWN_CHARACTERS] if found.json_schema is not None else "",
        "before": before,
        "after": after,
    }
    return render(request, "arena/task_sets/sample.html", context)


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _chunks(attachment: Attachment) -> Iterator[bytes]:
    # Opened when the first byte is asked for: a response that nobody reads holds no file.
    with attachment.file.open("rb") as file:
        yield from file.chunks()


def file_response(attachment: Attachment, *, name: str, cache: str) -> StreamingHttpResponse:
    """A file of unknown origin: shown by its own type alone, without scripts, forms or our origin."""
    suffix = SUFFIXES.get(attachment.content_type)
    response = StreamingHttpResponse(
        _chunks(attachment), content_type=attachment.content_type if suffix else "application/octet-stream"
    )
    filename = f"{name}.{suffix or 'bin'}"
    response["Content-Disposition"] = content_disposition_header(suffix is None, filename) or "inline"
    response["Content-Length"] = str(attachment.size)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; frame-ancestors 'self'"
    response["Cache-Control"] = cache
    return response


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def attachment_file(request: TeamRequest, attachment: str) -> HttpResponseBase:
    found = _attachment(request, attachment)
    return file_response(found, name=found.public_id, cache="private, max-age=600")


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def attachment_text(request: TeamRequest, attachment: str) -> HttpResponse:
    """What is written in a PDF, for browsers that cannot show one and for readers that are read to."""
    found = _attachment(request, attachment)
    text, problem = "", _("Pictures have no text to show.")
    if found.content_type == "application/pdf":
        with found.file.open("rb") as file, on_disk(file) as path:
            report = read_pdf(path, limits=upload_limits())
        text, problem = report.text.strip(), report.problem or _("This PDF holds no text, only pictures.")
    context = {"nav_section": "task-sets", "attachment": found, "text": text, "problem": problem}
    return render(request, "arena/task_sets/attachment_text.html", context)
