"""Task sets: drafts of uploads, and sets saved from them, as new lineages or new versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.ingest import AttachmentDraft, Inspection, UploadError, list_starters, starter_path
from arena.llm.text import storable
from arena.models import Attachment, TaskSet, Team, UploadDraft, User
from arena.services import audit
from arena.services.rendered import forget
from arena.services.task_set_errors import (
    DraftGone,
    NameTaken,
    NothingChanged,
    TaskSetError,
    UploadRefused,
)
from arena.services.task_set_files import (
    AttachmentFiles,
    AttachmentVanished,
    Upload,
    drop_files,
    inspect_path,
    on_disk,
)
from arena.services.task_set_preview import inspection_json
from arena.services.task_set_spool import Progress, Spool, insert_samples, spooled, texts_of

__all__ = [
    "DraftGone",
    "NameTaken",
    "NothingChanged",
    "TaskSetError",
    "UploadRefused",
    "create_draft",
    "delete_task_set",
    "discard_draft",
    "import_path",
    "import_starter",
    "save_draft",
]
MAX_NAME = 200
TIMES_TO_TRY = 3


def create_draft(
    *, team: Team, actor: User | None, file: File[Any], filename: str, name: str = "", replaces: TaskSet | None = None
) -> UploadDraft:
    """Inspect an upload and keep it until it is saved, discarded or expired; one that is of no use is not kept."""
    original = storable(filename)[-255:] or "upload"
    draft = UploadDraft(
        team=team,
        created_by=actor,
        original_name=original,
        name=_clean_name(name) or (replaces.name if replaces else _name_from(original)),
        replaces=replaces,
        expires_at=timezone.now() + dt.timedelta(hours=settings.UPLOAD_DRAFT_HOURS),
    )
    with on_disk(file) as path:
        inspection = inspect_path(path, original)
        draft.inspection = inspection_json(inspection)
        if inspection.usable:
            # The name says nothing of the upload's own.
            draft.file.save(f"{get_random_string(32)}.upload", file, save=False)
    try:
        draft.save()
    except BaseException:
        drop_files([draft.file.name] if draft.file.name else [])
        raise
    return draft


def discard_draft(*, draft: UploadDraft) -> None:
    with transaction.atomic():
        _take(draft)


def save_draft(*, draft: UploadDraft, actor: User | None, name: str = "", only_good: bool = False) -> TaskSet:
    """As a new version of `draft.replaces`, or a new task set. Of two at once, one saves; the other gets DraftGone."""
    if not draft.file or not UploadDraft.objects.filter(pk=draft.pk).exists():
        raise DraftGone
    attachments = [AttachmentDraft(**stored) for stored in draft.inspection["attachments"]]
    plan = _Plan(
        team=draft.team,
        actor=actor,
        name=name or draft.name,
        replaces=draft.replaces,
        only_good=only_good,
        source_name=draft.original_name,
        draft=draft,
    )
    try:
        with draft.file.open("rb") as file, on_disk(file) as path:
            return _save(plan, Upload.of(path, draft.original_name, attachments))
    except FileNotFoundError as error:
        raise DraftGone from error


def import_path(
    *,
    team: Team,
    path: Path,
    actor: User | None,
    name: str = "",
    only_good: bool = False,
    replaces: TaskSet | None = None,
    description: str = "",
    inspection: Inspection | None = None,
    progress: Progress | None = None,
) -> TaskSet:
    """A folder, file or archive of this machine as a task set. UploadRefused says all that is wrong with it."""
    inspection = inspection or inspect_path(path)
    if not (inspection.usable if only_good else inspection.clean):
        raise UploadRefused(inspection)
    filename = storable(path.resolve().name)[-255:]
    plan = _Plan(
        team=team,
        actor=actor,
        name=name or (replaces.name if replaces else _name_from(filename)),
        replaces=replaces,
        only_good=only_good,
        source_name=filename,
        description=description,
        progress=progress,
    )
    return _save(plan, Upload.of(path, path.name, inspection.attachments))


def import_starter(*, team: Team, starter_id: str, actor: User | None) -> TaskSet:
    """One of our own sets to begin with. NothingChanged names the set where the team has it already."""
    starter = {starter.id: starter for starter in list_starters()}[starter_id]
    path = starter_path(starter_id)
    inspection = inspect_path(path)
    newest = TaskSet.objects.filter(team=team).newest_versions()
    same = newest.filter(content_hash=inspection.content_hash).first()
    if same is not None:
        raise NothingChanged(same)
    names = {name.casefold() for name in newest.values_list("name", flat=True)}
    numbered = (f"{starter.title} ({number})" for number in range(2, len(names) + 3))
    name = next(name for name in (starter.title, *numbered) if name.casefold() not in names)
    return import_path(
        team=team, path=path, actor=actor, name=name, description=starter.description, inspection=inspection
    )


def delete_task_set(*, task_set: TaskSet, actor: User | None) -> None:
    """Refused once a tournament used it: its matches would lose the prompts they were fought over."""
    try:
        with transaction.atomic():
            _delete(task_set, actor)
    except (ProtectedError, IntegrityError) as error:
        raise TaskSetError([_("A tournament uses this version now, so it stays.")]) from error


def _delete(task_set: TaskSet, actor: User | None) -> None:
    team = _locked(task_set.team)
    tournaments = task_set.tournaments.count()
    if tournaments:
        raise TaskSetError(
            [
                ngettext(
                    "%(count)d tournament uses this version, so it stays.",
                    "%(count)d tournaments use this version, so it stays.",
                    tournaments,
                )
                % {"count": tournaments}
            ]
        )
    for draft in UploadDraft.objects.filter(replaces=task_set):
        _take(draft)
    audit.record(
        team=team,
        actor=actor,
        action="task_set.delete",
        target=str(task_set),
        old={"samples": task_set.sample_count, "content_hash": task_set.content_hash},
    )
    forget(team=team, texts=_texts(task_set))
    mine = list(Attachment.objects.filter(samples__task_set=task_set).distinct().values_list("pk", flat=True))
    task_set.delete()
    orphans = Attachment.objects.filter(pk__in=mine, sample_links=None)
    names = list(orphans.values_list("file", flat=True))
    orphans.delete()
    transaction.on_commit(lambda: drop_files(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    team: Team
    actor: User | None
    name: str
    replaces: TaskSet | None
    only_good: bool
    source_name: str
    description: str = ""
    draft: UploadDraft | None = None
    progress: Progress | None = None


def _save(plan: _Plan, upload: Upload) -> TaskSet:
    files = AttachmentFiles(plan.team, upload)
    try:
        with spooled(upload, only_good=plan.only_good, progress=plan.progress) as spool:
            for attempt in range(TIMES_TO_TRY):
                files.write_missing(spool.paths)
                try:
                    return _insert(plan, spool, files)
                except AttachmentVanished:
                    if attempt == TIMES_TO_TRY - 1:
                        raise
            raise AssertionError("the loop returns or raises")
    except UploadError as error:
        raise TaskSetError([str(error)]) from error
    finally:
        files.drop_unused()


@transaction.atomic
def _insert(plan: _Plan, spool: Spool, files: AttachmentFiles) -> TaskSet:
    # Names, versions and shared attachments of a team change one after another.
    team = _locked(plan.team)
    if plan.draft is not None:
        _take(plan.draft)
    task_set = _place(plan, team, spool)
    task_set.save()
    insert_samples(task_set, spool, files.rows(spool.paths))
    audit.record(
        team=team,
        actor=plan.actor,
        action="task_set.create" if task_set.version == 1 else "task_set.version",
        target=str(task_set),
        new={"samples": task_set.sample_count, "content_hash": task_set.content_hash, "source": plan.source_name},
    )
    return task_set


def _place(plan: _Plan, team: Team, spool: Spool) -> TaskSet:
    """Where the set goes: the next version of a lineage, or the first of a new one."""
    name = _clean_name(plan.name)
    if not name:
        raise TaskSetError([_("Give the task set a name.")])
    task_set = TaskSet(
        team=team,
        name=name,
        description=plan.description,
        source_name=plan.source_name,
        content_hash=spool.content_hash,
        sample_count=spool.sample_count,
        created_by=plan.actor,
    )
    others = TaskSet.objects.filter(team=team).newest_versions()
    if plan.replaces is not None:
        newest = TaskSet.objects.filter(team=team, lineage=plan.replaces.lineage).order_by("-version").first()
        if newest is None:
            raise TaskSetError([_("The task set of which this was to become a new version was deleted.")])
        if newest.content_hash == task_set.content_hash:
            raise NothingChanged(newest)
        task_set.lineage, task_set.version = newest.lineage, newest.version + 1
        task_set.description = plan.description or newest.description
        others = others.exclude(lineage=newest.lineage)
    if others.filter(name__iexact=name).exists():
        raise NameTaken(name)
    return task_set


def _texts(task_set: TaskSet) -> Iterator[str]:
    samples = task_set.samples.order_by().values_list("messages", "reference", "criteria")
    for messages, reference, criteria in samples.iterator(chunk_size=50):
        yield from (*texts_of(messages), reference, criteria)


def _locked(team: Team) -> Team:
    return Team.objects.select_for_update().get(pk=team.pk)


def _take(draft: UploadDraft) -> None:
    """Remove the draft, and its file once that is certain."""
    taken, _rows = UploadDraft.objects.filter(pk=draft.pk).delete()
    if not taken:
        raise DraftGone
    if draft.file.name:
        name = draft.file.name
        transaction.on_commit(lambda: drop_files([name]))


def _clean_name(name: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]


def _name_from(filename: str) -> str:
    return _clean_name(Path(filename).stem) or _("Task set")
