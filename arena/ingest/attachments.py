from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from arena.ingest.lines import CHUNK
from arena.ingest.paths import suffix_of
from arena.ingest.pdf import PdfReader
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.sniff import HEAD_BYTES, PDF, TYPE_BY_SUFFIX, describe, sniff
from arena.ingest.sources import Source
from arena.ingest.types import AttachmentDraft, Limits, SourceError


@dataclass(frozen=True, slots=True)
class Unusable:
    reason: str


class AttachmentReader:
    """Reads every attachment once, when the first sample names it."""

    def __init__(self, source: Source, limits: Limits, log: ProblemLog, pdf_reader: PdfReader) -> None:
        self._source = source
        self._limits = limits
        self._log = log
        self._pdf_reader = pdf_reader
        self._by_path: dict[str, AttachmentDraft | Unusable] = {}

    def get(self, path: str) -> AttachmentDraft | Unusable:
        if path not in self._by_path:
            self._by_path[path] = self._read(path)
        return self._by_path[path]

    def drafts(self) -> tuple[AttachmentDraft, ...]:
        return tuple(draft for draft in self._by_path.values() if isinstance(draft, AttachmentDraft))

    def warn_unreferenced(self) -> None:
        used = {self._source.find(path) for path in self._by_path}
        for path in self._source.paths():
            if path not in used:
                self._log.warn("no sample refers to it; it was left out", file=clip(path, 200))

    def _read(self, path: str) -> AttachmentDraft | Unusable:
        if not self._source.holds_attachments:
            return Unusable("is a file of its own: upload a ZIP with the samples and their attachments/")
        real = self._source.find(path)
        if real is None:
            folder = f"attachments/{path}"
            hint = f"; did you mean {clip(folder)!r}?" if self._source.find(folder) else ""
            return Unusable(f"is not in the upload{hint}")
        with tempfile.NamedTemporaryFile(prefix="attachment-", suffix=".bin") as copy:
            try:
                with self._source.open(real) as stream:
                    digest, size, head = self._copy(stream, copy)
            except SourceError as bad:
                self._log.refuse(str(bad), file=clip(real, 200))
                return Unusable(str(bad))
            return self._check(path, Path(copy.name), digest, size, head)

    def _copy(self, stream: BinaryIO, copy: IO[bytes]) -> tuple[str, int, bytes]:
        digest = hashlib.sha256()
        size, head = 0, b""
        most = max(self._limits.pdf_bytes, self._limits.image_bytes)
        while size <= most and (chunk := stream.read(CHUNK)):
            head = head or chunk[:HEAD_BYTES]
            size += len(chunk)
            digest.update(chunk)
            copy.write(chunk)
        copy.flush()
        return digest.hexdigest(), size, head

    def _check(self, path: str, copy: Path, digest: str, size: int, head: bytes) -> AttachmentDraft | Unusable:
        found = sniff(head)
        if size == 0 or found is None:
            return Unusable(f"is {describe(head)}; it must be a PDF, PNG, JPEG, GIF or WebP file")
        if found != TYPE_BY_SUFFIX[suffix_of(path)]:
            return Unusable(f"is named {suffix_of(path)} and is {describe(head)}")
        limit = self._limits.pdf_bytes if found == PDF else self._limits.image_bytes
        if size > limit:
            return Unusable(f"is larger than the limit of {limit:,} bytes")
        if found != PDF:
            return AttachmentDraft(path, digest, size, found)
        report = self._pdf_reader.read(copy)
        if report.problem:
            return Unusable(report.problem)
        if report.restricted:
            self._log.warn("has a permission password; some providers refuse it", file=clip(path, 200))
        if not report.text.strip():
            self._log.warn("holds no text, only pictures", file=clip(path, 200))
        return AttachmentDraft(
            path,
            digest,
            size,
            found,
            pages=report.pages,
            text_excerpt=report.text[: self._limits.excerpt_characters],
            has_text=bool(report.text.strip()),
        )
