from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from arena.ingest.paths import ATTACHMENTS, BadPath, clean_path, is_ignored, same_name, suffix_of
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.types import Limits

Entry = TypeVar("Entry")
SAMPLES_NAMES = ("samples.jsonl", "samples.csv", "samples.tsv")
SAMPLES_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv")


class Source(Protocol):
    """Where the bytes of an upload come from: one file, an archive or a folder."""

    samples_name: str
    holds_attachments: bool

    def open_samples(self) -> BinaryIO: ...

    def find(self, path: str) -> str | None:
        """The attachment's own path, which may be spelled otherwise than a sample spells it."""
        ...

    def paths(self) -> Iterable[str]: ...

    def open(self, path: str) -> BinaryIO: ...

    def close(self) -> None: ...


class PlainSource:
    holds_attachments = False

    def __init__(self, path: Path, name: str) -> None:
        self.samples_name = name
        self._path = path

    def open_samples(self) -> BinaryIO:
        return self._path.open("rb")

    def find(self, path: str) -> str | None:
        return None

    def paths(self) -> Iterable[str]:
        return ()

    def open(self, path: str) -> BinaryIO:
        raise FileNotFoundError(path)

    def close(self) -> None:
        pass


class FolderSource:
    holds_attachments = True

    def __init__(self, samples: Path, name: str, attachments: dict[str, Path]) -> None:
        self.samples_name = name
        self._samples = samples
        self._attachments = attachments

    def open_samples(self) -> BinaryIO:
        return self._samples.open("rb")

    def find(self, path: str) -> str | None:
        return path if path in self._attachments else None

    def paths(self) -> Iterable[str]:
        return self._attachments

    def open(self, path: str) -> BinaryIO:
        return self._attachments[path].open("rb")

    def close(self) -> None:
        pass


def open_folder(root: Path, limits: Limits, log: ProblemLog) -> FolderSource | None:
    files = folder_files(root, limits, log)
    chosen = None if files is None else choose_samples(files, log)
    if files is None or chosen is None:
        return None
    prefix, name = chosen
    return FolderSource(files[prefix + name], name, dict(attachments_of(files, prefix, name, log)))


def folder_files(root: Path, limits: Limits, log: ProblemLog) -> dict[str, Path] | None:
    """The files of a folder by their clean paths, or None after it was refused."""
    files: dict[str, Path] = {}
    names = NameRegister(log)
    total = 0
    for found in _walk(root):
        raw = found.relative_to(root).as_posix()
        if is_ignored(raw):
            continue
        mode = found.lstat()
        if not stat.S_ISREG(mode.st_mode):
            log.refuse("is a link or a special file", file=clip(raw, 200))
            continue
        total += mode.st_size
        path = names.admit(raw)
        if path is not None:
            files[path] = found
    if total > limits.unpacked_bytes:
        log.refuse(f"holds {total:,} bytes; the limit is {limits.unpacked_bytes:,}")
    return None if log.refused else files


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *links]):
            yield Path(folder) / name


class NameRegister:
    """Clean names of entries; refuses what leaves its place or would be one file with another."""

    def __init__(self, log: ProblemLog) -> None:
        self._seen: dict[str, str] = {}
        self._log = log

    def admit(self, raw: str, *, folder: bool = False) -> str | None:
        try:
            path = clean_path(raw.removesuffix("/") if folder else raw)
        except BadPath as bad:
            self._log.refuse(f"the path {bad}", file=clip(raw, 200))
            return None
        if folder or is_ignored(path):
            return None
        other = self._seen.setdefault(same_name(path), raw)
        if other is not raw:
            self._log.refuse(f"has the same name as {clip(other, 200)!r}", file=clip(path, 200))
            return None
        return path


def choose_samples(paths: Iterable[str], log: ProblemLog) -> tuple[str, str] | None:
    """(folder prefix, name) of the file that holds the samples."""
    everything = list(paths)
    tops = {path.split("/", 1)[0] for path in everything if "/" in path}
    only_top = len(tops) == 1 and all("/" in path for path in everything)
    prefixes = [""] + ([f"{next(iter(tops))}/"] if only_top else [])
    for prefix in prefixes:
        names = [p.removeprefix(prefix) for p in everything if p.startswith(prefix)]
        names = [name for name in names if "/" not in name and suffix_of(name) in SAMPLES_SUFFIXES]
        preferred = [name for name in SAMPLES_NAMES if name in names]
        if preferred or len(names) == 1:
            return prefix, (preferred or names)[0]
        if names:
            log.refuse(
                f"holds several files of samples ({clip(', '.join(sorted(names)), 200)}); "
                "name the one to use samples.jsonl"
            )
            return None
    log.refuse("holds no samples.jsonl (nor a single .jsonl, .csv or .tsv) at its top or in its only folder")
    return None


def attachments_of(files: Mapping[str, Entry], prefix: str, name: str, log: ProblemLog) -> Iterator[tuple[str, Entry]]:
    for path, file in files.items():
        inside = path.removeprefix(prefix)
        if path.startswith(f"{prefix}{ATTACHMENTS}/"):
            yield inside, file
        elif path != prefix + name:
            log.warn("is not under attachments/ and was left out", file=clip(path, 200))
