from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol

from arena.ingest.lines import CHUNK
from arena.ingest.types import Message

SAMPLES_NAME = "samples.jsonl"
# The same set makes the same bytes, whenever it is exported.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16


class WritableSample(Protocol):
    """What a draft and a stored sample have in common."""

    @property
    def key(self) -> str: ...
    @property
    def messages(self) -> list[Message]: ...
    @property
    def category(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def criteria(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def json_schema(self) -> Mapping[str, Any] | None: ...


def write_jsonl(samples: Iterable[WritableSample]) -> Iterator[str]:
    """One line per sample, with its line end; reading them again gives the same content hashes."""
    for sample in samples:
        record: dict[str, Any] = {"id": sample.key, "input": {"messages": sample.messages}}
        labels = {
            "category": sample.category,
            "reference": sample.reference,
            "criteria": sample.criteria,
            "tags": list(sample.tags),
            "metadata": dict(sample.metadata),
            "json_schema": sample.json_schema,
        }
        # An empty schema is a schema; everything else that is empty was absent.
        record.update({key: value for key, value in labels.items() if value or key == "json_schema"})
        if sample.json_schema is None:
            del record["json_schema"]
        yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def export_zip(
    samples: Iterable[WritableSample], attachments: Iterable[tuple[str, Callable[[], IO[bytes]]]]
) -> Iterator[bytes]:
    """A ZIP of samples.jsonl and attachments (path, opener), streamed without a file in between."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        with archive.open(_entry(SAMPLES_NAME), "w") as target:
            for line in write_jsonl(samples):
                target.write(line.encode())
                yield from sink.take()
        for path, opener in attachments:
            with opener() as source, archive.open(_entry(path), "w") as target:
                while chunk := source.read(CHUNK):
                    target.write(chunk)
                    yield from sink.take()
    yield from sink.take()


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIMESTAMP)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = _REGULAR_FILE
    return info


class _Sink:
    """A file that can only be written, and forgets what was taken from it."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> Iterator[bytes]:
        chunks, self._chunks = self._chunks, []
        if chunks:
            yield b"".join(chunks)
