from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arena.ingest import SampleDraft, export_zip, inspect_upload, open_attachment, read_samples, write_jsonl

from .builders import PNG, attachment_line, inspect_bytes, inspect_lines, message_line, pdf_bytes, zip_bytes

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
FULL_TEXT = TEXT.filter(lambda text: bool(text.strip()))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
USER = st.fixed_dictionaries(
    {
        "role": st.just("user"),
        "content": FULL_TEXT
        | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": FULL_TEXT}), min_size=1, max_size=3),
    }
)
OTHER = st.fixed_dictionaries({"role": st.sampled_from(["system", "assistant", "developer"]), "content": TEXT})
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "category": TEXT,
        "reference": TEXT,
        "criteria": TEXT | st.lists(TEXT, max_size=3),
        "tags": st.lists(TEXT, max_size=3),
        "metadata": st.dictionaries(TEXT, VALUES, max_size=3),
        "json_schema": st.just({}) | st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
        "unknown to us": VALUES,
    },
)
RECORDS = st.builds(
    lambda before, user, labels: {"input": {"messages": [*before, user]}, **labels},
    st.lists(OTHER | USER, max_size=2),
    USER,
    LABELS,
)


def read_back(folder: Path, text: str) -> list[SampleDraft]:
    path = folder / "again"
    path.write_text(text, encoding="utf-8", newline="")
    return list(read_samples(path, "samples.jsonl"))


def essence(sample: SampleDraft) -> tuple[Any, ...]:
    return (sample.key, sample.messages, sample.metadata, sample.input_hash, sample.content_hash)


@settings(deadline=None, max_examples=40)
@given(records=st.lists(RECORDS, min_size=1, max_size=4), escape=st.booleans())
def test_what_is_written_reads_as_the_same(records: list[dict[str, Any]], escape: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "".join(json.dumps(record, ensure_ascii=escape) + "\n" for record in records)
        first = read_back(folder, text)
        assert len(first) == len(records)
        again = read_back(folder, "".join(write_jsonl(first)))
        assert [essence(sample) for sample in again] == [essence(sample) for sample in first]


@settings(deadline=None, max_examples=40)
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.jsonl", "a.csv", "a.tsv", "a.zip", "a.json"]))
def test_no_bytes_make_a_reader_fail(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = inspect_bytes(Path(folder), content, name)
        assert found.clean or found.problems


KEYS = [
    *("input", "messages", "role", "content", "type", "text", "path", "image_url", "url", "prompt", "turns"),
    *("reference", "ideal", "id", "uid", "question_id", "cluster", "category", "criteria", "tags"),
    *("metadata", "json_schema", "tool_calls", "usage_output"),
]
HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "text", "file_ref"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(records=st.lists(HOSTILE, min_size=1, max_size=5))
def test_no_record_makes_a_reader_fail(records: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = inspect_lines(Path(folder), *map(json.dumps, records))
        assert found.good_count + found.error_count > 0
        assert all(str(problem).isprintable() for problem in found.problems)


def test_all_labels_survive(tmp_path: Path) -> None:
    lines = [
        message_line("Eins", category="a", reference="r", criteria="c", tags=["t"], json_schema={}),
        '{"prompt": "zwei", "lang": "de"}',
        '{"question_id": 1, "turns": ["a", "b"], "category": "math"}',
    ]
    before = inspect_lines(tmp_path, *lines)
    after = inspect_bytes(tmp_path, "".join(write_jsonl(before.preview)))
    assert after.problems == ()
    assert after.content_hash == before.content_hash
    assert after.preview[0].json_schema == {}


def test_an_archive_with_attachments_survives(tmp_path: Path) -> None:
    names = ("attachments/Bericht für 2018.pdf", "attachments/sub/b.png")
    contents = dict(zip(names, (pdf_bytes(), PNG), strict=True))
    entries: dict[str, bytes | str] = {"samples.jsonl": attachment_line(*names, category="x"), **contents}
    before = inspect_bytes(tmp_path, zip_bytes(entries), "upload.zip")
    assert before.clean

    pairs = [(name, lambda name=name: io.BytesIO(contents[name])) for name in names]
    chunks = list(export_zip(before.preview, pairs))
    path = tmp_path / "exported.zip"
    path.write_bytes(b"".join(chunks))
    after = inspect_upload(path, "exported.zip")
    assert after.problems == ()
    assert after.content_hash == before.content_hash
    assert after.attachments == before.attachments
    with open_attachment(path, "exported.zip", names[0]) as stream:
        assert stream.read() == contents[names[0]]


def test_an_export_streams_and_is_the_same_every_time(tmp_path: Path) -> None:
    drafts = inspect_lines(tmp_path, message_line("a")).preview
    size = 5_000_000
    big = bytes(range(256)) * (size // 256)

    def export() -> list[bytes]:
        return list(export_zip(drafts, [("attachments/big.png", lambda: io.BytesIO(big))]))

    chunks = export()
    assert len(chunks) > 1
    assert b"".join(chunks) == b"".join(export())
    with zipfile.ZipFile(io.BytesIO(b"".join(chunks))) as archive:
        assert archive.testzip() is None
