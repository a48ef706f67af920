from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from arena.ingest.paths import BadPath, clean_path, is_ignored, suffix_of
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.sniff import ARCHIVE_SUFFIXES
from arena.ingest.sources import NameRegister, attachments_of, choose_samples
from arena.ingest.streams import RATIO_FLOOR_BYTES, Allowance, UnpackedEntry, buffered
from arena.ingest.types import Limits, SourceError

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF8 = 0x800
_UNICODE_PATH_FIELD = 0x7075
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
# A directory entry is 46 bytes, a name and a few fields.
_DIRECTORY_BYTES_PER_ENTRY = 1024


class ZipSource:
    holds_attachments = True

    def __init__(
        self,
        archive: zipfile.ZipFile,
        samples: zipfile.ZipInfo,
        name: str,
        attachments: dict[str, zipfile.ZipInfo],
        limits: Limits,
    ) -> None:
        self.samples_name = name
        self._archive = archive
        self._samples = samples
        self._attachments = attachments
        self._by_alias = _aliases(attachments)
        self._allowance = Allowance(limits.unpacked_bytes, limits.ratio)

    def open_samples(self) -> BinaryIO:
        return self._unpack(self._samples)

    def find(self, path: str) -> str | None:
        return path if path in self._attachments else self._by_alias.get(path)

    def paths(self) -> Iterable[str]:
        return self._attachments

    def open(self, path: str) -> BinaryIO:
        return self._unpack(self._attachments[path])

    def close(self) -> None:
        self._archive.close()

    def _unpack(self, info: zipfile.ZipInfo) -> BinaryIO:
        return unpack(self._archive, info, self._allowance)


def unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, allowance: Allowance) -> BinaryIO:
    """One entry as a stream that is measured while it is read. Raises SourceError."""
    try:
        stream = archive.open(info)
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, RuntimeError) as bad:
        raise SourceError("is damaged: its header cannot be read") from bad
    return buffered(UnpackedEntry(stream, info, allowance))


def open_zip(path: Path, limits: Limits, log: ProblemLog) -> ZipSource | None:
    """The archive after every check that needs no unpacking, or None after it was refused."""
    opened = open_entries(path, limits, log)
    if opened is None:
        return None
    archive, files = opened
    chosen = choose_samples(files, log)
    if chosen is None:
        archive.close()
        return None
    prefix, name = chosen
    attachments = dict(attachments_of(files, prefix, name, log))
    return ZipSource(archive, files[prefix + name], name, attachments, limits)


def open_entries(
    path: Path, limits: Limits, log: ProblemLog
) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]] | None:
    """The archive and its files by their clean paths, or None after it was refused. The caller closes it."""
    try:
        _check_directory_size(path, limits)
        archive = zipfile.ZipFile(path)
    except SourceError as bad:
        log.refuse(str(bad))
        return None
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError):
        log.refuse("is not a readable ZIP archive; it may be damaged or cut off")
        return None
    files = _admit_all(archive, path.stat().st_size, limits, log)
    if files is None:
        archive.close()
        return None
    return archive, files


def _admit_all(
    archive: zipfile.ZipFile, packed_bytes: int, limits: Limits, log: ProblemLog
) -> dict[str, zipfile.ZipInfo] | None:
    files: dict[str, zipfile.ZipInfo] = {}
    names = NameRegister(log)
    for info in archive.infolist():
        name = entry_name(info)
        path = names.admit(name, folder=name.endswith("/"))
        _check_entry(info, name, limits, log)
        if path is not None:
            files[path] = info
    _check_sizes(archive, packed_bytes, limits, log)
    return None if log.refused else files


def _check_entry(info: zipfile.ZipInfo, name: str, limits: Limits, log: ProblemLog) -> None:
    if is_ignored(name):
        return
    file = clip(name, 200)
    # Only Unix stores a file mode there, and some writers leave it out.
    mode = info.external_attr >> 16
    if info.flag_bits & _ENCRYPTED:
        log.refuse("is encrypted; make the archive without a password", file=file)
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        log.refuse("is a link or a special file", file=file)
    elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        log.refuse("is packed by an unusual method; use Deflate", file=file)
    elif suffix_of(name) in ARCHIVE_SUFFIXES:
        log.refuse("is an archive inside the archive", file=file)
    elif info.file_size > max(RATIO_FLOOR_BYTES, limits.ratio * info.compress_size):
        log.refuse(f"unpacks to more than {limits.ratio} times its packed size", file=file)


def _check_sizes(archive: zipfile.ZipFile, packed_bytes: int, limits: Limits, log: ProblemLog) -> None:
    total = sum(info.file_size for info in archive.infolist())
    if total > limits.unpacked_bytes:
        log.refuse(f"unpacks to {total:,} bytes; the limit is {limits.unpacked_bytes:,}")
    if total > max(RATIO_FLOOR_BYTES, limits.ratio * packed_bytes):
        log.refuse(f"unpacks to more than {limits.ratio} times its packed size")
    # Entries that share bytes are how a small archive unpacks to a huge one without nesting.
    end = 0
    for start, stop in sorted(_spans(archive)):
        if start < end or stop > archive.start_dir:
            log.refuse("has entries that overlap")
            return
        end = stop


def _spans(archive: zipfile.ZipFile) -> Iterator[tuple[int, int]]:
    stream = archive.fp
    if stream is None:
        return
    for info in archive.infolist():
        inside = 0 <= info.header_offset < archive.start_dir
        head = b""
        if inside:
            stream.seek(info.header_offset)
            head = stream.read(30)
        if len(head) < 30:
            yield info.header_offset, archive.start_dir + 1
            continue
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        stop = info.header_offset + 30 + name_length + extra_length + info.compress_size
        yield info.header_offset, stop


def entry_name(info: zipfile.ZipInfo) -> str:
    return _name_candidates(info)[0]


def _name_candidates(info: zipfile.ZipInfo) -> list[str]:
    """Readings of an entry's name, the likeliest first: old writers do not say which code page it is."""
    name = info.orig_filename
    if info.flag_bits & _UTF8 or name.isascii():
        return [name]
    raw = name.encode("cp437")
    found = [_unicode_path(info, raw)]
    for codec in ("utf-8", "cp932"):
        try:
            found.append(raw.decode(codec))
        except UnicodeDecodeError:
            continue
    return [candidate for candidate in [*found, name] if candidate is not None]


def _unicode_path(info: zipfile.ZipInfo, raw: bytes) -> str | None:
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        data = extra[4 : 4 + size]
        if kind == _UNICODE_PATH_FIELD and len(data) > 5 and data[1:5] == struct.pack("<L", zlib.crc32(raw)):
            return data[5:].decode(errors="replace")
        extra = extra[4 + size :]
    return None


def _aliases(attachments: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, info in attachments.items():
        names = [path]
        for candidate in _name_candidates(info)[1:]:
            try:
                names.append(clean_path(candidate))
            except BadPath:
                continue  # only a second reading of a name that was admitted under its first
        for name in names[1:]:
            inside = name[name.find("attachments/") :] if "attachments/" in name else name
            found.setdefault(inside, path)
    return found


def _check_directory_size(path: Path, limits: Limits) -> None:
    """Refuse a huge directory before zipfile loads it whole. Finds the records where zipfile finds them."""
    count, size = _directory(path)
    if count > limits.archive_entries:
        raise SourceError(f"has {count:,} entries; the limit is {limits.archive_entries:,}")
    if size > limits.archive_entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise SourceError("has a directory that is far too large")


def _directory(path: Path) -> tuple[int, int]:
    with path.open("rb") as stream:
        length = stream.seek(0, 2)
        start = max(0, length - 65_557)
        stream.seek(start)
        tail = stream.read()
        plain = tail[-22:-18] == _END and tail[-2:] == b"\0\0"
        at = len(tail) - 22 if plain else tail.rfind(_END)
        if at < 0 or len(tail) - at < 22:
            raise zipfile.BadZipFile
        count, size = struct.unpack("<HL", tail[at + 10 : at + 16])
        position = start + at
        if position >= 76:
            stream.seek(position - 76)
            record = stream.read(76)
            if record[56:60] == _LOCATOR64 and record[:4] == _END64:
                count, size = struct.unpack("<QQ", record[32:48])
    return count, size
