from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile

from arena.models import Attachment, Role, Sample, SampleAttachment
from arena.services.task_sets import create_draft, save_draft
from tests.arena.ingest.builders import PNG, message_line
from tests.personas import Side
from tests.url_samples import UrlSample


def _upload(side: Side, name: str, text: str) -> ContentFile[bytes]:
    lines = [message_line(text, id=f"{side.canary}-sample", category=f"{side.canary}-category")]
    return ContentFile("\n".join(lines).encode(), name=name)


def extend(side: Side) -> None:
    actor = side.user(Role.OWNER)
    name = f"{side.canary}-set.jsonl"
    draft = create_draft(team=side.team, actor=actor, file=_upload(side, name, f"{side.canary} asks"), filename=name)
    task_set = save_draft(draft=draft, actor=actor)
    sample = Sample.objects.get(task_set=task_set)
    attachment = Attachment(team=side.team, sha256="0" * 64, content_type="image/png", size=len(PNG))
    attachment.file.save("attachment", ContentFile(PNG))
    SampleAttachment.objects.create(sample=sample, attachment=attachment, path=f"attachments/{side.canary}.png")
    side.objects["task_set"], side.objects["sample"], side.objects["attachment"] = task_set, sample, attachment
    side.objects["draft"] = create_draft(
        team=side.team,
        actor=actor,
        file=_upload(side, name, f"{side.canary} asks again"),
        filename=f"{side.canary}-draft.jsonl",
    )


def _team(side: Side) -> dict[str, Any]:
    return {"team": side.team_id}


def _draft(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "draft": side.objects["draft"].public_id}


def _task_set(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "task_set": side.objects["task_set"].public_id}


def _sample(side: Side) -> dict[str, Any]:
    return _task_set(side) | {"sample": side.objects["sample"].public_id}


def _attachment(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "attachment": side.objects["attachment"].public_id}


SAMPLES = {
    "arena:task-set-list": UrlSample(_team),
    "arena:task-set-upload": UrlSample(
        _team, post=lambda side: {"file": _upload(side, "new.jsonl", f"{side.canary} is new")}
    ),
    "arena:task-set-starter": UrlSample(
        lambda side: {"team": side.team_id, "starter": "support-en"}, get=False, post=lambda side: {}
    ),
    "arena:draft-detail": UrlSample(_draft),
    "arena:draft-save": UrlSample(
        _draft, get=False, post=lambda side: {"name": "Saved", "replaces": "new", "how": "all"}
    ),
    "arena:draft-discard": UrlSample(_draft, get=False, post=lambda side: {}),
    "arena:draft-problems": UrlSample(_draft),
    "arena:task-set-detail": UrlSample(_task_set),
    "arena:task-set-delete": UrlSample(_task_set, post=lambda side: {}),
    "arena:task-set-jsonl": UrlSample(_task_set),
    "arena:task-set-zip": UrlSample(_task_set),
    "arena:sample-detail": UrlSample(_sample),
    "arena:attachment-file": UrlSample(_attachment),
    "arena:attachment-text": UrlSample(_attachment),
}
