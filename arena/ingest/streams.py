from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from arena.ingest.types import MEGABYTE, SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Under this size a high ratio is no attack: short repetitive text packs very well.
RATIO_FLOOR_BYTES = MEGABYTE


@dataclass(slots=True)
class Allowance:
    """What may still be unpacked of one archive, over all its entries."""

    total: int
    ratio: int
    used: int = 0


class UnpackedEntry(io.RawIOBase):
    """One entry of an archive, measured while it is read: what its header says is not trusted."""

    def __init__(self, stream: IO[bytes], info: zipfile.ZipInfo, allowance: Allowance) -> None:
        self._stream = stream
        self._info = info
        self._allowance = allowance
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            data = self._stream.read(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as bad:
            reason = "its checksum is wrong" if "CRC" in str(bad) else "its data cannot be unpacked"
            raise SourceError(f"is damaged: {reason}") from bad
        except RuntimeError as bad:  # how zipfile says that a password is needed
            raise SourceError("is encrypted") from bad
        if not data and self._read != self._info.file_size:
            raise SourceError(f"is damaged: the archive says {self._info.file_size:,} bytes and it has {self._read:,}")
        view[: len(data)] = data
        self._count(len(data))
        return len(data)

    def _count(self, size: int) -> None:
        self._read += size
        self._allowance.used += size
        if self._allowance.used > self._allowance.total:
            raise SourceError(f"unpacks to more than {self._allowance.total:,} bytes together with the others")
        if self._read > max(RATIO_FLOOR_BYTES, self._allowance.ratio * self._info.compress_size):
            raise SourceError(f"unpacks to more than {self._allowance.ratio} times its packed size")

    def close(self) -> None:
        self._stream.close()
        super().close()


def buffered(raw: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(raw, 64 * 1024)
