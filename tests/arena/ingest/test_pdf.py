from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from arena.ingest import Limits, PdfReader, pdf, read_pdf

from .builders import pdf_bytes


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "a name with spaces é.pdf"
    path.write_bytes(pdf_bytes(2, "Board minutes"))
    return path


def fake_worker(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    script = folder / "worker of a test.py"
    head = "import json, os, sys, time\nprint('ready', flush=True)\nfor line in sys.stdin:\n"
    script.write_text(f"{head}    {body}\n    sys.stdout.flush()\n")
    monkeypatch.setattr(pdf, "WORKER", script)


def test_a_path_with_spaces(document: Path) -> None:
    report = read_pdf(document)
    assert report.problem is None
    assert (report.pages, report.restricted) == (2, False)
    assert report.text == "Board minutes\n\nBoard minutes"


def test_text_is_cut_at_its_limit(document: Path) -> None:
    assert read_pdf(document, limits=Limits(pdf_text_characters=15)).text == "Board minutes\n\nBo"


def test_a_broken_file_does_not_stop_the_next(tmp_path: Path, document: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 broken")
    with PdfReader() as reader:
        assert reader.read(broken).problem == "is broken: it cannot be opened as a PDF"
        assert reader.read(document).pages == 2


def test_a_reader_that_died_is_started_again(document: Path) -> None:
    with PdfReader() as reader:
        assert reader.read(document).pages == 2
        process = reader._process
        assert process is not None
        process.kill()
        process.wait()
        assert reader.read(document).pages == 2


def test_a_file_that_kills_the_reader_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: Path) -> None:
    fake_worker(monkeypatch, tmp_path, "os.abort()")
    assert read_pdf(document).problem == "cannot be read: the reader stopped on it, or ran out of memory"


def test_a_file_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: Path) -> None:
    fake_worker(monkeypatch, tmp_path, "time.sleep(60)")
    with PdfReader(Limits(pdf_seconds=0.1)) as reader:
        assert reader.read(document).problem == "takes too long to read"
        assert reader._process is None


def test_a_reader_that_does_not_start_is_no_endless_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: Path
) -> None:
    script = tmp_path / "silent.py"
    script.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(pdf, "WORKER", script)
    monkeypatch.setattr(pdf, "START_SECONDS", 0.1)
    assert read_pdf(document).problem == "takes too long to read"


def test_memory_is_limited(tmp_path: Path, document: Path) -> None:
    page = zlib.compress(b"BT /F1 9 Tf (x) Tj ET " * 100_000, 1)
    greedy = tmp_path / "greedy.pdf"
    greedy.write_bytes(pdf_bytes(packed_page=page))
    with PdfReader(Limits(pdf_memory_bytes=64 * 1024 * 1024)) as reader:
        assert reader.read(greedy).problem in (pdf._REASONS["memory"], pdf._REASONS["crash"])
        assert reader.read(document).pages == 2


def test_secrets_of_the_server_do_not_reach_the_reader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: Path
) -> None:
    monkeypatch.setenv("TILTYARD_KEY_OPENAI", "secret")
    reply = "print(json.dumps({'pages': 1, 'restricted': False, 'text': json.dumps(sorted(os.environ))}))"
    fake_worker(monkeypatch, tmp_path, reply)
    seen = json.loads(read_pdf(document).text)
    assert "PATH" in seen
    assert set(seen) <= {*pdf._ENVIRONMENT, "LC_CTYPE"}
