from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arena.ingest import jsontext
from arena.ingest.attachments import AttachmentReader, Unusable
from arena.ingest.dialects import TABLE, family, recognise
from arena.ingest.hashing import SetHash
from arena.ingest.lines import Line, WrongEncoding, read_lines
from arena.ingest.paths import suffix_of
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.samples import SampleReader
from arena.ingest.sources import Source
from arena.ingest.tables import read_table
from arena.ingest.types import AttachmentDraft, Limits, SampleDraft, SourceError


@dataclass(frozen=True, slots=True)
class _Record:
    line: int
    value: dict[str, Any] | None  # None: an error was reported


class UploadPass:
    """One streaming pass over the samples of an upload; it holds one sample at a time."""

    def __init__(self, source: Source, limits: Limits, log: ProblemLog, attachments: AttachmentReader) -> None:
        self.sample_count = 0
        self.good_count = 0
        self.dialects: Counter[str] = Counter()
        self.set_hash = SetHash()
        self.is_table = suffix_of(source.samples_name) in (".csv", ".tsv")
        self._source = source
        self._limits = limits
        self._log = log
        self._attachments = attachments
        self._lines_by_key: dict[str, int] = {}
        self._lines_by_input: dict[str, int] = {}
        self._families: dict[str, int] = {}

    def samples(self) -> Iterator[SampleDraft]:
        """The good samples; everything else goes to the log."""
        try:
            with self._source.open_samples() as stream:
                lines = read_lines(stream, line_bytes=self._limits.line_bytes)
                records = self._table(lines) if self.is_table else self._json_lines(lines)
                for record in records:
                    draft = self._sample(record)
                    if draft is not None:
                        self.good_count += 1
                        self.set_hash.add(draft.key, draft.content_hash)
                        yield draft
        except (SourceError, WrongEncoding) as bad:
            self._log.refuse(str(bad))
            return
        self._conclude()

    def _conclude(self) -> None:
        if self.sample_count == 0 and not self._log.refused:
            self._log.refuse("holds no samples")
        if self.sample_count > self._limits.samples:
            self._log.refuse(
                f"holds {self.sample_count:,} samples; the limit is {self._limits.samples:,} "
                "(those after it were counted, not checked)"
            )
        if len(self._families) > 1:
            names = ", ".join(self._families)
            self._log.warn(f"mixes dialects: {names}", line=list(self._families.values())[1])
        self._attachments.warn_unreferenced()

    def _counted(self) -> bool:
        """Whether the next sample is still to be checked."""
        self.sample_count += 1
        return self.sample_count <= self._limits.samples

    def _table(self, lines: Iterator[Line]) -> Iterator[_Record]:
        delimiter = "\t" if suffix_of(self._source.samples_name) == ".tsv" else None
        rows = read_table(lines, delimiter=delimiter, field_characters=self._limits.line_bytes, log=self._log)
        for row in rows:
            if self._counted():
                yield _Record(row.line, row.record)

    def _json_lines(self, lines: Iterator[Line]) -> Iterator[_Record]:
        for line in lines:
            text = line.text.strip()
            if not text and not line.problem:
                continue
            if not self._counted():
                continue
            if self.sample_count == 1 and (text == "{" or text.startswith("[")):
                self._log.refuse("is one JSON document; JSONL has one object on each line", line=line.number)
                return
            yield _Record(line.number, self._parse(line, text))

    def _parse(self, line: Line, text: str) -> dict[str, Any] | None:
        error, warn = self._reports(line.number)
        if line.problem:
            error(None, line.problem)
            return None
        errors_before = self._log.error_count
        value = jsontext.parse_json(text, error=error, warn=warn)
        if self._log.error_count > errors_before:
            return None
        if not isinstance(value, dict):
            error(None, "must be a JSON object")
            return None
        return value

    def _reports(self, line: int) -> tuple[Any, Any]:
        def error(field: str | None, message: str) -> None:
            self._log.error(message, line=line, field=field)

        def warn(field: str | None, message: str) -> None:
            self._log.warn(message, line=line, field=field)

        return error, warn

    def _sample(self, record: _Record) -> SampleDraft | None:
        if record.value is None:
            return None
        error, warn = self._reports(record.line)
        errors_before = self._log.error_count
        if not jsontext.check_values(record.value, error=error, warn=warn):
            return None
        raw = recognise(record.value, error=error, warn=warn)
        if raw is None:
            return None
        if self.is_table:
            raw.dialect = TABLE
        self.dialects[raw.dialect] += 1
        self._families.setdefault(family(raw.dialect), record.line)
        reader = SampleReader(raw, error=error, warn=warn, image_bytes=self._limits.image_bytes)
        attachments = self._attach(reader, record.line)
        key = self._key(reader.key, record.line)
        if self._log.error_count > errors_before:
            return None
        draft = reader.draft(position=self.sample_count, key=key, line=record.line, attachments=attachments)
        first = self._lines_by_input.setdefault(draft.input_hash, record.line)
        if first != record.line:
            warn(None, f"has the same input as line {first}")
        return draft

    def _attach(self, reader: SampleReader, line: int) -> dict[str, AttachmentDraft]:
        found: dict[str, AttachmentDraft] = {}
        for path, field in reader.paths.items():
            attachment = self._attachments.get(path)
            if isinstance(attachment, Unusable):
                self._log.error(f"{clip(path, 120)!r} {attachment.reason}", line=line, field=field)
            else:
                found[path] = attachment
        return found

    def _key(self, given: str | None, line: int) -> str:
        key = given or f"s{self.sample_count:04d}"
        first = self._lines_by_key.setdefault(key, line)
        if first != line:
            made = "" if given else " (made from its position, as it has none)"
            self._log.error(f"{clip(key)!r}{made} is taken by line {first}", line=line, field="id")
        return key
