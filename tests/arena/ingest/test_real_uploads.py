from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from arena.ingest import inspect_upload, open_attachment

from .builders import inspect_bytes, sentences, shared, zip_bytes

UPLOADS = "data/juryarena_uploads"


@pytest.mark.parametrize(
    ("name", "samples"),
    [("test-a.jsonl", 3), ("basic20-jmtbench.jsonl", 20), ("basic20-jmtbench-en.jsonl", 20)],
)
def test_plain_files(name: str, samples: int) -> None:
    found = inspect_upload(shared(f"{UPLOADS}/{name}"), name)
    assert found.problems == ()
    assert (found.dialect, found.sample_count, found.good_count) == ("juryarena", samples, samples)


@pytest.mark.parametrize("top", ["", "test-h/"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_real_pdf_with_a_japanese_name(tmp_path: Path, top: str, form: str) -> None:
    root = shared(f"{UPLOADS}/test-h")
    files: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            name = path.relative_to(root).as_posix()
            normal = unicodedata.normalize("NFD", name) if form == "NFD" else unicodedata.normalize("NFC", name)
            files[top + normal] = path.read_bytes()
    assert len(files) == 2
    found = inspect_bytes(tmp_path, zip_bytes(files), "test-h.zip")
    assert found.clean
    assert (found.dialect, found.good_count) == ("juryarena", 3)
    (attachment,) = found.attachments
    assert attachment.pages == 4
    assert "コーポレートガバナンス" in attachment.text_excerpt
    assert sentences(found) == [f"{attachment.path}: has a permission password; some providers refuse it"]
    with open_attachment(tmp_path / "stored-upload", "test-h.zip", attachment.path) as stream:
        assert len(stream.read()) == attachment.size


def test_its_samples_alone_say_what_to_do() -> None:
    found = inspect_upload(shared(f"{UPLOADS}/test-h/test-h.jsonl"), "test-h.jsonl")
    assert found.good_count == 2
    assert [problem.line for problem in found.problems] == [2]
    assert "upload a ZIP" in found.problems[0].message
