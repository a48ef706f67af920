"""The files of a record, out of a folder, an archive or a single file, each read whole and within limits."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from arena.ingest import jsontext
from arena.ingest.archive import MAGIC, open_entries, unpack
from arena.ingest.lines import Line, WrongEncoding, read_lines
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.sources import folder_files
from arena.ingest.streams import Allowance
from arena.ingest.types import Limits, SourceError

# One JSON document is held in memory while it is read.
DOCUMENT_BYTES = 64 * 1024 * 1024


class Tree:
    """Files by their clean paths. What cannot be read goes to the log."""

    def __init__(self, limits: Limits, log: ProblemLog) -> None:
        self.limits = limits
        self.log = log

    def paths(self) -> list[str]:
        raise NotImplementedError

    def open(self, path: str) -> BinaryIO:
        raise NotImplementedError

    def lines(self, path: str) -> Iterator[Line]:
        try:
            with self.open(path) as stream:
                yield from read_lines(stream, line_bytes=self.limits.line_bytes)
        except (SourceError, WrongEncoding) as bad:
            self.log.refuse(str(bad), file=clip(path, 200))
        except OSError as bad:
            self.log.refuse(f"cannot be read: {bad.strerror}", file=clip(path, 200))

    def text(self, path: str) -> str | None:
        """A whole file as text, or None after the log was told."""
        file = clip(path, 200)
        try:
            with self.open(path) as stream:
                raw = stream.read(DOCUMENT_BYTES + 1)
        except SourceError as bad:
            self.log.refuse(str(bad), file=file)
            return None
        except OSError as bad:
            self.log.refuse(f"cannot be read: {bad.strerror}", file=file)
            return None
        if len(raw) > DOCUMENT_BYTES:
            self.log.error(f"is larger than {DOCUMENT_BYTES:,} bytes", file=file)
            return None
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError as bad:
            self.log.error(f"is not UTF-8 (byte {bad.start + 1})", file=file)
            return None

    def json(self, path: str) -> Any:
        """The document of a file, or None after the log was told."""
        text = self.text(path)
        return None if text is None else parse(text, self.log, file=clip(path, 200))


def parse(text: str, log: ProblemLog, *, file: str, line: int | None = None) -> Any:
    def error(field: str | None, message: str) -> None:
        log.error(message, file=file, line=line, field=field)

    def warn(field: str | None, message: str) -> None:
        log.warn(message, file=file, line=line, field=field)

    before = log.error_count
    value = jsontext.parse_json(text, error=error, warn=warn)
    if log.error_count > before:
        return None
    # Control characters in what models wrote are theirs, and no reason to speak.
    return value if jsontext.check_values(value, error=error, warn=lambda *_: None) else None


class FolderTree(Tree):
    def __init__(self, files: dict[str, Path], limits: Limits, log: ProblemLog) -> None:
        super().__init__(limits, log)
        self._files = files

    def paths(self) -> list[str]:
        return list(self._files)

    def open(self, path: str) -> BinaryIO:
        return self._files[path].open("rb")


class ZipTree(Tree):
    def __init__(
        self, archive: zipfile.ZipFile, files: dict[str, zipfile.ZipInfo], limits: Limits, log: ProblemLog
    ) -> None:
        super().__init__(limits, log)
        self._archive = archive
        self._files = files
        self._allowance = Allowance(limits.unpacked_bytes, limits.ratio)

    def paths(self) -> list[str]:
        return list(self._files)

    def open(self, path: str) -> BinaryIO:
        return unpack(self._archive, self._files[path], self._allowance)


@contextmanager
def opened(path: Path, limits: Limits, log: ProblemLog) -> Iterator[Tree | None]:
    """A folder, a ZIP archive, or one file with what lies beside it under the same name."""
    if path.is_dir():
        files = folder_files(path, limits, log)
        yield None if files is None else FolderTree(files, limits, log)
        return
    with path.open("rb") as stream:
        head = stream.read(4)
    if head not in MAGIC:
        yield FolderTree(_with_companions(path), limits, log)
        return
    if path.stat().st_size > limits.packed_bytes:
        log.refuse(f"is larger than {limits.packed_bytes:,} bytes")
        yield None
        return
    entries = open_entries(path, limits, log)
    if entries is None:
        yield None
        return
    archive, found = entries
    with archive:
        yield ZipTree(archive, found, limits, log)


def _with_companions(path: Path) -> dict[str, Path]:
    stem = path.name.removesuffix(".jsonl").removesuffix(".run.json")
    names = {path.name, f"{stem}.jsonl", f"{stem}.run.json"}
    return {name: path.with_name(name) for name in sorted(names) if path.with_name(name).is_file()}
