from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.ingest import Limits, Starter, UploadError, inspect_upload, list_starters, open_attachment
from arena.ingest import starter_path as path_of_starter
from arena.ingest.starter import STARTER_FOLDER

from .builders import PNG, attachment_line, inspect_bytes, message_line, sentences, zip_bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "my set"
    (root / "attachments").mkdir(parents=True)
    (root / "samples.jsonl").write_text(attachment_line("attachments/a.png"))
    (root / "attachments" / "a.png").write_bytes(PNG)
    (root / ".DS_Store").write_bytes(b"junk")
    return root


def test_a_folder_is_read_like_its_archive(tmp_path: Path, folder: Path) -> None:
    found = inspect_upload(folder, folder.name)
    data = zip_bytes({"samples.jsonl": attachment_line("attachments/a.png"), "attachments/a.png": PNG})
    packed = inspect_bytes(tmp_path, data, "upload.zip")
    assert found.problems == packed.problems == ()
    assert found.content_hash == packed.content_hash
    assert found.attachments == packed.attachments
    with open_attachment(folder, folder.name, "attachments/a.png") as stream:
        assert stream.read() == PNG


def test_links_are_refused(tmp_path: Path, folder: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.png").write_bytes(PNG)
    (folder / "attachments" / "link.png").symlink_to(secret / "key.png")
    (folder / "attachments" / "linked").symlink_to(secret)
    found = inspect_upload(folder, folder.name)
    assert found.refused
    assert sentences(found) == [
        "attachments/link.png: is a link or a special file",
        "attachments/linked: is a link or a special file",
    ]


def test_size_names_and_samples_are_checked(folder: Path) -> None:
    (folder / "attachments" / "A.png").write_bytes(PNG)
    found = inspect_upload(folder, folder.name, limits=Limits(unpacked_bytes=100))
    assert "attachments/a.png: has the same name as 'attachments/A.png'" in sentences(found)
    assert any("the limit is 100" in text for text in sentences(found))
    (folder / "samples.jsonl").unlink()
    (folder / "attachments" / "A.png").unlink()
    assert "holds no samples.jsonl" in sentences(inspect_upload(folder, folder.name))[0]


def test_an_attachment_of_a_refused_folder_cannot_be_opened(folder: Path) -> None:
    (folder / "samples.jsonl").unlink()
    with (
        pytest.raises(UploadError, match=r"holds no samples\.jsonl"),
        open_attachment(folder, folder.name, "attachments/a.png"),
    ):
        pytest.fail("opened")


def test_starters_are_listed_and_read(tmp_path: Path) -> None:
    entry = {"id": "mail", "title": "Mail", "description": "Letters.", "language": "en", "folder": "mail-en"}
    (tmp_path / "index.json").write_text(json.dumps([entry]))
    (tmp_path / "mail-en").mkdir()
    (tmp_path / "mail-en" / "samples.jsonl").write_text(message_line("Write a letter.", category="mail"))
    assert list_starters(tmp_path) == (Starter("mail", "Mail", "Letters.", "en", "mail-en"),)
    found = inspect_upload(path_of_starter("mail", tmp_path), "mail")
    assert found.clean
    assert found.categories == {"mail": 1}
    with pytest.raises(KeyError):
        path_of_starter("none", tmp_path)


def test_the_starters_of_the_project_are_clean() -> None:
    if not (STARTER_FOLDER / "index.json").exists():
        pytest.skip("the starters are not in this checkout")
    starters = list_starters()
    assert starters
    for starter in starters:
        found = inspect_upload(path_of_starter(starter.id), starter.folder)
        assert found.clean, (starter.id, sentences(found))
        assert found.problems == (), (starter.id, sentences(found))
