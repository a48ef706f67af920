from __future__ import annotations

import io
import struct
import zipfile
from html import unescape
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from arena.models import Attachment, Role, Sample, TaskSet, UploadDraft
from tests.arena.ingest.builders import (
    PNG,
    attachment_line,
    message_line,
    patch_directory,
    pdf_bytes,
    shared,
    zip_bytes,
)
from tests.personas import World


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def url(world: World, name: str, **kwargs: Any) -> str:
    return reverse(f"arena:{name}", kwargs={"team": world.own.team_id} | kwargs)


def upload(world: World, client: Client, content: bytes | str, name: str = "new.jsonl", **data: Any) -> Any:
    file = ContentFile(content.encode() if isinstance(content, str) else content, name=name)
    return client.post(url(world, "task-set-upload"), {"file": file, **data})


def page(client: Client, response: Any) -> str:
    assert response.status_code == HTTPStatus.SEE_OTHER
    return unescape(client.get(response["Location"]).content.decode())


def encrypted_zip() -> bytes:
    data = zip_bytes({"samples.jsonl": message_line()})
    return patch_directory(data, "samples.jsonl", 8, struct.pack("<H", 1))


def bomb() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples.jsonl", b" " * 20_000_000)
    return target.getvalue()


def zip_of(line: str, **attachments: bytes) -> bytes:
    files: dict[str, bytes | str] = {"samples.jsonl": line}
    return zip_bytes(files | {f"attachments/{name}.pdf": data for name, data in attachments.items()})


PDF_LINE = attachment_line("attachments/a.pdf")
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "path escape": ("a.zip", zip_bytes({"samples.jsonl": message_line(), "../evil.txt": b"x"}), "leaves its folder"),
    "absolute path": ("a.zip", zip_bytes({"samples.jsonl": message_line(), "/etc/x": b"x"}), "is absolute"),
    "bomb": ("a.zip", bomb(), "100 times its packed size"),
    "encrypted archive": ("a.zip", encrypted_zip(), "is encrypted; make the archive without a password"),
    "not an archive": ("a.zip", b"PK but not really", "is not a ZIP archive"),
    "wrong encoding": ("a.jsonl", '{"prompt": "héllo"}\n'.encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
    "old encoding": ("a.jsonl", '{"prompt": "日本語のテキスト"}\n'.encode("cp932"), "UTF-8"),
    "too many samples": ("a.jsonl", (message_line() + "\n").encode() * 5001, "holds 5,001 samples; the limit is 5,000"),
    "picture as PDF": ("a.zip", zip_of(PDF_LINE, a=PNG), "is named .pdf and is"),
    "encrypted PDF": ("a.zip", zip_of(PDF_LINE, a=pdf_bytes(encrypt=True)), "is encrypted; remove its password"),
    "missing attachment": ("a.zip", zip_of(PDF_LINE), "is not in the upload"),
    "empty": ("a.jsonl", b"", "is empty"),
    "blank": ("a.jsonl", b"\n\n", "holds no samples"),
    "executable": ("a.exe", b"MZ\0\0", "is not a kind of file that can be read here"),
    "unstorable text": (
        "a.jsonl",
        b'{"prompt": "a\\u0000b"}\n{"prompt": "\\ud800"}\n',
        "a NUL character at character 2",
    ),
    "deep nesting": ("a.jsonl", b'{"prompt":"x","m":' + b"[" * 5000 + b"]" * 5000 + b"}\n", "levels deep"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_upload_shows_its_sentence_and_stores_nothing(
    case: str, world: World, admin: Client, media: Path
) -> None:
    before = [model.objects.count() for model in (TaskSet, Sample, Attachment)]
    files = sorted(media.rglob("*"))
    name, content, sentence = HOSTILE[case]
    response = upload(world, admin, content, name)
    assert sentence in page(admin, response)
    draft = UploadDraft.objects.get(original_name=name)
    for how in ("all", "only_good"):
        saved = admin.post(
            url(world, "draft-save", draft=draft.public_id), {"replaces": "new", "name": "Evil", "how": how}
        )
        assert saved.status_code in (HTTPStatus.SEE_OTHER, HTTPStatus.UNPROCESSABLE_ENTITY)
    assert [model.objects.count() for model in (TaskSet, Sample, Attachment)] == before
    if not draft.inspection["usable"]:
        assert sorted(media.rglob("*")) == files


def test_a_line_that_is_too_long_is_named(world: World, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from arena.services import task_set_files

    limits = task_set_files.upload_limits()
    monkeypatch.setattr(
        task_set_files, "upload_limits", lambda: type(limits)(**{**_fields(limits), "line_bytes": 1000})
    )
    text = page(admin, upload(world, admin, message_line("x" * 2000) + "\n" + message_line("short")))
    assert "the limit for one line is 1,000" in text
    assert "Import the good one (1 of 2)" in text


def _fields(limits: Any) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in type(limits).__dataclass_fields__}


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + message_line("Hi").encode() + b"\n",
        message_line("Hi").encode() + b"\r\n" + message_line("Ho").encode() + b"\r\n",
    ],
    ids=["BOM", "CRLF"],
)
def test_marks_of_other_systems_do_no_harm(content: bytes, world: World, admin: Client) -> None:
    text = page(admin, upload(world, admin, content))
    assert "All is well" in text


def test_from_the_file_to_the_task_set(world: World, admin: Client) -> None:
    response = upload(world, admin, message_line("Say *hello*.", category="greetings"))
    text = page(admin, response)
    assert "<em>hello</em>" in text
    assert not TaskSet.objects.filter(name="new").exists()
    draft = UploadDraft.objects.get(original_name="new.jsonl")
    saved = admin.post(url(world, "draft-save", draft=draft.public_id), {"replaces": "new", "name": "Greetings"})
    task_set = TaskSet.objects.get(name="Greetings")
    assert saved.status_code == HTTPStatus.SEE_OTHER
    assert saved["Location"] == url(world, "task-set-detail", task_set=task_set.public_id)
    assert task_set.created_by == world.own.user(Role.ADMIN)
    again = admin.post(url(world, "draft-save", draft=draft.public_id), {"replaces": "new", "name": "Twice"})
    assert again.status_code == HTTPStatus.NOT_FOUND


def test_a_new_version_keeps_the_name(world: World, admin: Client) -> None:
    old: TaskSet = world.own.objects["task_set"]
    response = upload(world, admin, message_line("Changed"), new_version_of=old.public_id)
    draft = UploadDraft.objects.get(original_name="new.jsonl")
    assert f'value="{old.public_id}" selected' in page(admin, response)
    data = {"replaces": old.public_id, "name": "ignored"}
    admin.post(url(world, "draft-save", draft=draft.public_id), data)
    newest = TaskSet.objects.newest_versions().get(lineage=old.lineage)
    assert (newest.version, newest.name) == (2, old.name)


def test_the_other_teams_task_set_gets_no_version(world: World, admin: Client) -> None:
    other: TaskSet = world.other.objects["task_set"]
    assert upload(world, admin, message_line(), new_version_of=other.public_id).status_code == HTTPStatus.NOT_FOUND
    draft: UploadDraft = world.own.objects["draft"]
    data = {"replaces": other.public_id, "name": "x"}
    response = admin.post(url(world, "draft-save", draft=draft.public_id), data)
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert TaskSet.objects.filter(lineage=other.lineage).count() == 1


def test_errors_stand_beside_the_field_and_nothing_typed_is_lost(world: World, admin: Client) -> None:
    draft: UploadDraft = world.own.objects["draft"]
    save = url(world, "draft-save", draft=draft.public_id)
    empty = admin.post(save, {"replaces": "new", "name": " "})
    assert empty.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Give the task set a name." in empty.content.decode()
    taken = admin.post(save, {"replaces": "new", "name": world.own.objects["task_set"].name})
    assert taken.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "choose another name" in taken.content.decode()
    assert f'value="{world.own.objects["task_set"].name}"' in taken.content.decode()


def test_the_same_content_says_that_nothing_changed(world: World, admin: Client) -> None:
    task_set: TaskSet = world.own.objects["task_set"]
    lines = b"".join(admin.get(url(world, "task-set-jsonl", task_set=task_set.public_id)))
    draft_page = upload(world, admin, lines, new_version_of=task_set.public_id)
    draft = UploadDraft.objects.get(original_name="new.jsonl")
    data = {"replaces": task_set.public_id, "name": "x"}
    response = admin.post(url(world, "draft-save", draft=draft.public_id), data)
    assert draft_page.status_code == HTTPStatus.SEE_OTHER
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Nothing changed" in response.content.decode()


def test_no_file_is_an_error_beside_the_field(world: World, admin: Client) -> None:
    response = admin.post(url(world, "task-set-upload"), {})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "This field is required." in response.content.decode()


def test_a_body_over_the_limit_gets_a_page(world: World, admin: Client, settings: Any) -> None:
    settings.UPLOAD_MAX_PACKED_BYTES = 1000
    response = upload(world, admin, b"x" * 200_000)
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert "larger than the limit" in response.content.decode()
    assert "up to 1000\xa0bytes" in response.content.decode()
    assert not UploadDraft.objects.filter(original_name="new.jsonl").exists()


def test_a_file_over_the_limit_is_named(world: World, admin: Client, settings: Any) -> None:
    settings.UPLOAD_MAX_PACKED_BYTES = 1000
    assert "the limit is 1,000" in page(admin, upload(world, admin, b"x" * 2000))


def test_the_limit_of_samples_is_a_setting(world: World, admin: Client, settings: Any) -> None:
    settings.UPLOAD_MAX_SAMPLES = 1
    lines = message_line("One") + "\n" + message_line("Two")
    assert "holds 2 samples; the limit is 1" in page(admin, upload(world, admin, lines))


def test_an_upload_goes_to_disk_and_not_to_memory(world: World, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from arena.services import task_sets as service

    seen = []
    create = service.create_draft
    monkeypatch.setattr(service, "create_draft", lambda **given: (seen.append(given["file"]), create(**given))[1])
    upload(world, admin, message_line("Hi"))
    assert [hasattr(file, "temporary_file_path") for file in seen] == [True]


def test_an_upload_without_the_token_is_refused(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.own.user(Role.OWNER))
    assert upload(world, client, message_line("Hi")).status_code == HTTPStatus.FORBIDDEN
    client.get(url(world, "task-set-upload"))
    token = client.cookies["csrftoken"].value
    response = upload(world, client, message_line("Hi"), csrfmiddlewaretoken=token)
    assert response.status_code == HTTPStatus.SEE_OTHER


def test_problems_can_be_downloaded_whole(world: World, admin: Client) -> None:
    upload(world, admin, '{"prompt": 1}\n' * 1500 + message_line("Hi"))
    draft = UploadDraft.objects.get(original_name="new.jsonl")
    shown = admin.get(url(world, "draft-detail", draft=draft.public_id)).content.decode()
    assert "The first 200 of 1,501." in shown
    response = admin.get(url(world, "draft-problems", draft=draft.public_id))
    text = b"".join(response).decode()
    assert text.startswith("error: new.jsonl line 1: prompt: must be text")
    assert text.count("\n") == 1001
    assert "... and 501 more problems." in text
    assert "attachment" in response["Content-Disposition"]


def test_a_template_is_taken_once(world: World, admin: Client) -> None:
    take = url(world, "task-set-starter", starter="support-en")
    first, second = admin.post(take), admin.post(take)
    assert first["Location"] == second["Location"]
    assert "has this template already" in admin.get(second["Location"]).content.decode()
    assert admin.post(url(world, "task-set-starter", starter="etc")).status_code == HTTPStatus.NOT_FOUND


def test_a_real_archive_with_a_japanese_name(world: World, admin: Client) -> None:
    folder = shared("data/juryarena_uploads/test-h")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"test-h/{path.relative_to(folder).as_posix()}")
    assert "All is well" in page(admin, upload(world, admin, target.getvalue(), "test-h.zip"))
    draft = UploadDraft.objects.get(original_name="test-h.zip")
    admin.post(url(world, "draft-save", draft=draft.public_id), {"replaces": "new", "name": "test-h"})
    task_set = TaskSet.objects.get(name="test-h")
    assert task_set.sample_count == 3
    back = b"".join(admin.get(url(world, "task-set-zip", task_set=task_set.public_id)))
    assert "All is well" in page(admin, upload(world, admin, back, "back.zip", new_version_of=task_set.public_id))
    assert UploadDraft.objects.get(original_name="back.zip").inspection["content_hash"] == task_set.content_hash
