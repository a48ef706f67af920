from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from arena.ingest import Inspection, Limits

from .builders import GIF, PNG, attachment_line, inspect_bytes, message_line, pdf_bytes, sentences, zip_bytes


def inspect_attached(folder: Path, files: dict[str, bytes], limits: Limits | None = None) -> Inspection:
    lines = [attachment_line(*(f"attachments/{name}" for name in files)), message_line("No file.")]
    entries: dict[str, bytes | str] = {"samples.jsonl": "\n".join(lines)}
    entries.update({f"attachments/{name}": content for name, content in files.items()})
    return inspect_bytes(folder, zip_bytes(entries), "upload.zip", limits=limits or Limits())


def test_a_pdf_is_read_with_pages_and_text(tmp_path: Path) -> None:
    content = pdf_bytes(3, "Terms of delivery")
    found = inspect_attached(tmp_path, {"terms.pdf": content})
    assert found.problems == ()
    (attachment,) = found.attachments
    assert attachment.path == "attachments/terms.pdf"
    assert attachment.sha256 == hashlib.sha256(content).hexdigest()
    assert (attachment.size, attachment.content_type, attachment.pages) == (
        len(content),
        "application/pdf",
        3,
    )
    assert attachment.text_excerpt.split("\n\n") == ["Terms of delivery"] * 3
    assert attachment.has_text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", PNG, "is named .pdf and is a PNG file"),
        ("a.png", GIF, "is named .png and is a GIF file"),
        ("a.jpg", pdf_bytes(), "is named .jpg and is a PDF file"),
        ("a.pdf", b"", "is empty"),
        ("a.pdf", b"PK\x03\x04....", "is a ZIP archive or an Office document; it must be a PDF"),
        ("a.pdf", b"<!DOCTYPE html><script>", "is an HTML page; it must be a PDF"),
        ("a.pdf", b"hello", "is of an unknown kind; it must be a PDF"),
        ("a.pdf", b"%PDF-1.7\nnothing more", "is broken: it cannot be opened as a PDF"),
        ("a.pdf", pdf_bytes()[:200], "is broken: it cannot be opened as a PDF"),
        ("a.pdf", pdf_bytes(0), "is broken: it cannot be opened as a PDF"),
        ("a.pdf", pdf_bytes(encrypt=True), "is encrypted; remove its password"),
    ],
)
def test_content_counts_and_not_the_name(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    found = inspect_attached(tmp_path, {name: content})
    assert found.good_count == 1
    assert not found.refused
    assert sentences(found) == [
        f"samples.jsonl line 1: input.messages[0].content[1].path: 'attachments/{name}' {sentence}"
        + sentences(found)[0].partition(sentence)[2]
    ]
    assert found.attachments == ()


def test_limits_per_kind(tmp_path: Path) -> None:
    limits = Limits(pdf_pages=2, image_bytes=40)
    found = inspect_attached(tmp_path, {"long.pdf": pdf_bytes(3), "big.png": PNG}, limits)
    assert [problem.message for problem in found.problems] == [
        "'attachments/long.pdf' has 3 pages; the limit is 2",
        "'attachments/big.png' is larger than the limit of 40 bytes",
    ]
    big = inspect_attached(tmp_path, {"big.pdf": pdf_bytes(3)}, Limits(pdf_bytes=500, image_bytes=100))
    assert "'attachments/big.pdf' is larger than the limit of 500 bytes" in sentences(big)[0]


def test_a_pdf_without_text_is_a_warning(tmp_path: Path) -> None:
    found = inspect_attached(tmp_path, {"scan.pdf": pdf_bytes(1, "")})
    assert found.clean
    assert sentences(found) == ["attachments/scan.pdf: holds no text, only pictures"]
    assert not found.attachments[0].has_text


def test_one_bad_attachment_spoils_every_sample_that_names_it(tmp_path: Path) -> None:
    lines = [attachment_line("attachments/a.pdf"), attachment_line("attachments/a.pdf", category="x")]
    data = zip_bytes({"samples.jsonl": "\n".join(lines), "attachments/a.pdf": b"%PDF-broken"})
    found = inspect_bytes(tmp_path, data, "upload.zip")
    assert [problem.line for problem in found.problems] == [1, 2]
    assert found.good_count == 0


def test_the_input_is_the_bytes_of_a_file_and_not_its_name(tmp_path: Path) -> None:
    hashes = []
    for name, content in (("a.png", PNG), ("b.png", PNG), ("a.png", PNG + b"more")):
        sample = inspect_attached(tmp_path, {name: content}).preview[0]
        hashes.append((sample.input_hash, sample.content_hash))
    (first, renamed, changed) = hashes
    assert first[0] == renamed[0] != changed[0]
    assert len({first[1], renamed[1], changed[1]}) == 3
