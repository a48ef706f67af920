"""Samples between reading and storing: parsing PDFs takes longer than a transaction may last."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.db import connection

from arena.ingest import SampleDraft, read_samples
from arena.ingest.hashing import SetHash
from arena.models import Attachment, Sample, SampleAttachment, TaskSet
from arena.services.task_set_files import Upload, upload_limits

BATCH_SAMPLES = 250
BATCH_CHARACTERS = 8_000_000
SEARCH_CHARACTERS = 4_000
MEMORY_BYTES = 4 * 1024 * 1024
Progress = Callable[[int], None]


class Spool:
    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._hash = SetHash()
        self.sample_count = 0
        # Ordered, so that files are written in the order of the samples.
        self.paths: dict[str, None] = {}

    @property
    def content_hash(self) -> str:
        return self._hash.hexdigest()

    def add(self, draft: SampleDraft) -> None:
        self._file.write(json.dumps(_record(draft), ensure_ascii=False) + "\n")
        self._hash.add(draft.key, draft.content_hash)
        self.paths.update(dict.fromkeys(draft.attachment_paths))
        self.sample_count += 1

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        self._file.seek(0)
        batch: list[dict[str, Any]] = []
        characters = 0
        for line in self._file:
            batch.append(json.loads(line))
            characters += len(line)
            if len(batch) >= BATCH_SAMPLES or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch


@contextmanager
def spooled(upload: Upload, *, only_good: bool, progress: Progress | None = None) -> Iterator[Spool]:
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES, mode="w+", encoding="utf-8", newline="\n") as file:
        spool = Spool(file)
        for draft in read_samples(upload.path, upload.filename, limits=upload_limits(), only_good=only_good):
            spool.add(draft)
            if progress is not None:
                progress(spool.sample_count)
        yield spool


def insert_samples(task_set: TaskSet, spool: Spool, attachments: dict[str, Attachment]) -> None:
    for batch in spool.batches():
        paths = [record.pop("attachment_paths") for record in batch]
        samples = [Sample(task_set=task_set, **record) for record in batch]
        Sample.objects.bulk_create(samples, batch_size=_rows_per_insert(len(Sample._meta.fields)))
        SampleAttachment.objects.bulk_create(
            SampleAttachment(sample=sample, attachment=attachments[path], path=path)
            for sample, of_sample in zip(samples, paths, strict=True)
            for path in of_sample
        )


def _rows_per_insert(fields: int) -> int | None:
    most = connection.features.max_query_params
    return max(1, most // fields) if most else None


def _record(draft: SampleDraft) -> dict[str, Any]:
    return {
        "position": draft.position,
        "key": draft.key,
        "messages": draft.messages,
        "category": draft.category,
        "reference": draft.reference,
        "criteria": draft.criteria,
        "tags": list(draft.tags),
        "metadata": draft.metadata,
        "json_schema": draft.json_schema,
        "input_hash": draft.input_hash,
        "content_hash": draft.content_hash,
        "search_text": text_of(draft.messages, SEARCH_CHARACTERS),
        "attachment_paths": list(draft.attachment_paths),
    }


def text_of(messages: list[dict[str, Any]], characters: int) -> str:
    """What people wrote, cut, without roles, pictures and file names."""
    texts: list[str] = []
    left = characters
    for text in texts_of(messages):
        if left <= 0:
            break
        texts.append(text[:left])
        left -= len(texts[-1]) + 1
    return "\n".join(texts)


def texts_of(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (part["text"] for part in content if part.get("type") == "text")
