from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from model_bakery import baker

from arena.ingest import export_zip, inspect_upload
from arena.models import Attachment, AuditLog, RenderedText, Sample, TaskSet, Team, Tournament, UploadDraft
from arena.selectors.task_sets import files_of, stream_samples
from arena.services import task_set_files
from arena.services import task_sets as service
from arena.services.reconcile import drop_expired
from arena.services.rendered import html_of
from tests.arena.ingest.builders import PNG, attachment_line, message_line, shared, zip_bytes

pytestmark = pytest.mark.django_db
OTHER_PNG = PNG + b"\1"


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Acme")


def stored(media: Path) -> list[str]:
    return sorted(path.relative_to(media).as_posix() for path in media.rglob("*") if path.is_file())


def draft_of(team: Team, content: bytes | str, name: str = "prompts.jsonl", **extra: Any) -> UploadDraft:
    data = content.encode() if isinstance(content, str) else content
    return service.create_draft(team=team, actor=None, file=ContentFile(data, name=name), filename=name, **extra)


def lines(*texts: str, **labels: Any) -> str:
    return "".join(message_line(text, **labels) + "\n" for text in texts)


def archive(*samples: str, **files: bytes) -> bytes:
    entries: dict[str, bytes | str] = {"samples.jsonl": "".join(f"{sample}\n" for sample in samples)}
    return zip_bytes(entries | {f"attachments/{name}.png": data for name, data in files.items()})


def saved(team: Team, content: bytes | str, name: str = "prompts.jsonl") -> TaskSet:
    return service.save_draft(draft=draft_of(team, content, name), actor=None)


def test_a_draft_keeps_what_its_page_shows(team: Team, media: Path) -> None:
    draft = draft_of(team, lines("One", "Two", category="greetings") + '{"prompt": 3}\n')
    assert draft.name == "prompts"
    assert draft.inspection["good_count"] == 2
    assert draft.inspection["categories"] == [{"name": "greetings", "samples": 2}]
    assert [sample["messages"][0]["text"] for sample in draft.inspection["preview"]] == ["One", "Two"]
    (problem,) = [problem for problem in draft.inspection["problems"] if problem["severity"] == "error"]
    assert (problem["file"], problem["line"], problem["field"]) == ("prompts.jsonl", 3, "prompt")
    (name,) = stored(media)
    assert "prompts" not in name


def test_a_useless_upload_leaves_no_file(team: Team, media: Path) -> None:
    draft = draft_of(team, b"\x89PNG\r\n")
    assert not draft.inspection["usable"]
    assert stored(media) == []


def test_a_saved_draft_becomes_samples_in_order(team: Team, media: Path) -> None:
    task_set = saved(team, lines("One", "Two", category="greetings", tags=["a"], reference="Hi"))
    assert (task_set.name, task_set.version, task_set.sample_count) == ("prompts", 1, 2)
    first = Sample.objects.filter(task_set=task_set).order_by("position")[0]
    assert first.messages == [{"role": "user", "content": "One"}]
    assert (first.category, first.tags, first.reference, first.search_text) == ("greetings", ["a"], "Hi", "One")
    assert AuditLog.objects.filter(action="task_set.create", target="prompts v1").exists()
    assert not UploadDraft.objects.exists()


def test_the_draft_file_goes_when_it_is_saved(team: Team, media: Path, django_capture_on_commit_callbacks: Any) -> None:
    draft = draft_of(team, lines("One"))
    with django_capture_on_commit_callbacks(execute=True):
        service.save_draft(draft=draft, actor=None)
    assert stored(media) == []


def test_a_discarded_draft_leaves_nothing(team: Team, media: Path, django_capture_on_commit_callbacks: Any) -> None:
    draft = draft_of(team, lines("One"))
    with django_capture_on_commit_callbacks(execute=True):
        service.discard_draft(draft=draft)
    assert stored(media) == []
    with pytest.raises(service.DraftGone):
        service.save_draft(draft=draft, actor=None)
    with pytest.raises(service.DraftGone):
        service.discard_draft(draft=draft)


def test_an_expired_draft_goes_with_its_file(team: Team, media: Path) -> None:
    draft = draft_of(team, lines("One"))
    drop_expired()
    assert UploadDraft.objects.exists()
    draft.expires_at = draft.created_at
    draft.save()
    drop_expired()
    assert not UploadDraft.objects.exists()
    assert stored(media) == []


def test_problems_are_saved_around_only_when_asked(team: Team) -> None:
    draft = draft_of(team, lines("One") + "nonsense\n" + lines("Two"))
    with pytest.raises(service.TaskSetError, match=r"prompts\.jsonl line 2"):
        service.save_draft(draft=draft, actor=None)
    assert not TaskSet.objects.exists()
    task_set = service.save_draft(draft=draft, actor=None, only_good=True)
    assert list(task_set.samples.values_list("position", flat=True)) == [1, 3]


def test_the_same_content_makes_no_new_version(team: Team) -> None:
    first = saved(team, lines("One"))
    draft = draft_of(team, lines("One"), replaces=first)
    with pytest.raises(service.NothingChanged, match="Nothing changed") as caught:
        service.save_draft(draft=draft, actor=None)
    assert caught.value.task_set == first
    second = service.save_draft(draft=draft_of(team, lines("Two"), replaces=first), actor=None)
    assert (second.lineage, second.version, second.name) == (first.lineage, 2, first.name)
    # It is the newest version that counts, whichever one the draft was begun from.
    third = service.save_draft(draft=draft_of(team, lines("One"), replaces=first), actor=None)
    assert third.version == 3
    assert third.content_hash == first.content_hash


def test_a_name_is_used_once_in_a_team(team: Team) -> None:
    saved(team, lines("One"))
    draft = draft_of(team, lines("Two"), name="Prompts.jsonl")
    with pytest.raises(service.NameTaken):
        service.save_draft(draft=draft, actor=None)
    assert service.save_draft(draft=draft, actor=None, name="Other").name == "Other"
    assert saved(Team.objects.create(name="Other team"), lines("One")).name == "prompts"


def test_attachments_are_stored_once_per_team(team: Team, media: Path) -> None:
    first = archive(attachment_line("attachments/a.png", id="1"), attachment_line("attachments/b.png"), a=PNG, b=PNG)
    saved(team, first, "one.zip")
    second = archive(attachment_line("attachments/c.png"), attachment_line("attachments/d.png"), c=PNG, d=OTHER_PNG)
    saved(team, second, "two.zip")
    assert Attachment.objects.count() == 2
    assert len([name for name in stored(media) if name.startswith("attachments/")]) == 2
    other = Team.objects.create(name="Other team")
    saved(other, first, "one.zip")
    assert Attachment.objects.filter(team=other).count() == 1


def test_a_failed_save_leaves_no_files(team: Team, media: Path) -> None:
    saved(team, lines("One"), "one.jsonl")
    content = archive(attachment_line("attachments/a.png"), a=PNG)
    draft = draft_of(team, content, "one.zip")
    with pytest.raises(service.NameTaken):
        service.save_draft(draft=draft, actor=None)
    assert [name for name in stored(media) if name.startswith("attachments/")] == []
    assert UploadDraft.objects.filter(pk=draft.pk).exists()


def test_an_attachment_that_goes_while_it_is_needed_is_written_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved(team, archive(attachment_line("attachments/a.png"), a=PNG), "old.zip")
    draft = draft_of(team, archive(attachment_line("attachments/b.png"), b=PNG), "new.zip")
    write = task_set_files.AttachmentFiles.write_missing

    def write_then_delete(files: Any, paths: Any) -> None:
        write(files, paths)
        if TaskSet.objects.filter(pk=old.pk).exists():
            service.delete_task_set(task_set=old, actor=None)

    monkeypatch.setattr(task_set_files.AttachmentFiles, "write_missing", write_then_delete)
    task_set = service.save_draft(draft=draft, actor=None)
    (attachment,) = Attachment.objects.filter(samples__task_set=task_set)
    with attachment.file.open("rb") as file:
        assert file.read() == PNG


def test_deleting_takes_what_nobody_else_uses(team: Team, media: Path, django_capture_on_commit_callbacks: Any) -> None:
    first = saved(team, archive(attachment_line("attachments/a.png"), a=PNG), "one.zip")
    second = saved(team, archive(attachment_line("attachments/a.png"), message_line("Hi"), a=PNG), "two.zip")
    draft = draft_of(team, lines("Next"), replaces=second)
    html_of(team=team, texts=["Hi", "Elsewhere"])
    with django_capture_on_commit_callbacks(execute=True):
        service.delete_task_set(task_set=first, actor=None)
    assert Attachment.objects.count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        service.delete_task_set(task_set=second, actor=None)
    assert not Attachment.objects.exists()
    assert not UploadDraft.objects.filter(pk=draft.pk).exists()
    assert RenderedText.objects.count() == 1
    assert [name for name in stored(media) if name.startswith("attachments/")] == []
    assert AuditLog.objects.filter(action="task_set.delete").count() == 2


def test_a_used_version_stays(team: Team) -> None:
    task_set = saved(team, lines("One"))
    baker.make(Tournament, team=team, task_set=task_set, max_matches=1)
    with pytest.raises(service.TaskSetError, match="1 tournament uses this version"):
        service.delete_task_set(task_set=task_set, actor=None)
    assert task_set.samples.count() == 1


def test_export_and_import_give_the_same_hash(team: Team, tmp_path: Path) -> None:
    upload = archive(
        attachment_line("attachments/a.png", category="ä", metadata={"x": 1.0, "y": [1e5, None]}, json_schema={}),
        message_line("Zwei\u2028Zeilen", id="two", tags=["t"], criteria="short", reference="**no**"),
        a=PNG,
    )
    task_set = saved(team, upload, "one.zip")
    back = tmp_path / "back.zip"
    back.write_bytes(b"".join(export_zip(stream_samples(task_set), files_of(task_set))))
    inspection = inspect_upload(back, "back.zip")
    assert inspection.clean
    assert inspection.content_hash == task_set.content_hash
    with pytest.raises(service.NothingChanged):
        service.import_path(team=team, path=back, actor=None, replaces=task_set)


def test_starters_come_once(team: Team) -> None:
    task_set = service.import_starter(team=team, starter_id="support-en", actor=None)
    assert task_set.sample_count == 14
    assert task_set.description
    with pytest.raises(service.NothingChanged) as caught:
        service.import_starter(team=team, starter_id="support-en", actor=None)
    assert caught.value.task_set == task_set
    service.save_draft(draft=draft_of(team, lines("Mine"), replaces=task_set), actor=None)
    assert service.import_starter(team=team, starter_id="support-en", actor=None).name == "Customer support (2)"


def test_a_real_folder_with_a_japanese_pdf(team: Team, tmp_path: Path) -> None:
    folder = shared("data/juryarena_uploads/test-h")
    task_set = service.import_path(team=team, path=folder, actor=None)
    assert task_set.sample_count == 3
    attachment = Attachment.objects.get(samples__task_set=task_set)
    assert attachment.content_type == "application/pdf"
    assert attachment.pages
    assert default_storage.size(str(attachment.file.name)) == attachment.size
    back = tmp_path / "back.zip"
    back.write_bytes(b"".join(export_zip(stream_samples(task_set), files_of(task_set))))
    assert inspect_upload(back, "back.zip").content_hash == task_set.content_hash


def test_many_samples_are_saved_in_batches(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.services.task_set_spool.BATCH_SAMPLES", 7)
    task_set = saved(team, "".join(json.dumps({"prompt": f"Number {n}"}) + "\n" for n in range(50)))
    texts = task_set.samples.order_by("position").values_list("search_text", flat=True)
    assert list(texts) == [f"Number {n}" for n in range(50)]


@pytest.mark.django_db(transaction=True)
def test_two_saves_at_once_make_one_task_set(media: Path) -> None:
    team = Team.objects.create(name="Acme")
    draft = draft_of(team, archive(*[message_line(f"Hi {n}") for n in range(20)], a=PNG), "one.zip")
    start = threading.Barrier(2)
    outcomes: list[str] = []

    def save(name: str) -> None:
        try:
            mine = UploadDraft.objects.select_related("team", "replaces").get(pk=draft.pk)
            start.wait(60)
            outcomes.append(str(service.save_draft(draft=mine, actor=None, name=name)))
        except service.DraftGone:
            outcomes.append("gone")
        finally:
            connection.close()

    threads = [threading.Thread(target=save, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes)[0] == "gone"
    assert TaskSet.objects.count() == 1
    assert Sample.objects.count() == 20
    assert stored(media) == []
