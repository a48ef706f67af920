from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 64 * 1024
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_WIDE_BOMS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class WrongEncoding(Exception):
    """The whole file is in an encoding that no line of it can be read by."""


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str  # without its line end; undecodable bytes appear as replacement characters
    problem: str | None = None
    too_long: bool = False


def read_lines(stream: BinaryIO, *, line_bytes: int) -> Iterator[Line]:
    """Every physical line, blank ones too, so that numbers are those of an editor."""
    number = 0
    while raw := stream.readline(line_bytes + 1):
        number += 1
        if number == 1:
            raw = _without_bom(raw)
        if len(raw) > line_bytes and not raw.endswith(b"\n"):
            size = len(raw) + _skip_line(stream)
            problem = f"is {size:,} bytes long; the limit for one line is {line_bytes:,}"
            yield Line(number, "", problem, too_long=True)
        else:
            yield _decode(number, raw.removesuffix(b"\n").removesuffix(b"\r"))


def _without_bom(first: bytes) -> bytes:
    for bom, name in _WIDE_BOMS:
        if first.startswith(bom):
            raise WrongEncoding(f"is written in {name}; save it as UTF-8")
    start = first[:200]
    # ASCII text in UTF-16 without a mark: every second byte is NUL.
    if len(start) >= 4 and start.count(0) >= len(start) // 2 - 1 and 0 in (start[0], start[1]):
        raise WrongEncoding("looks like UTF-16; save it as UTF-8")
    return first.removeprefix(codecs.BOM_UTF8)


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while chunk := stream.readline(CHUNK):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            return skipped - 1
    return skipped


def _decode(number: int, raw: bytes) -> Line:
    try:
        return Line(number, raw.decode())
    except UnicodeDecodeError as bad:
        problem = f"is not UTF-8 (byte {bad.start + 1}); {guess_encoding(raw)}"
        return Line(number, raw.decode(errors="replace"), problem)


def guess_encoding(raw: bytes) -> str:
    for codec, name in (("euc_jp", "EUC-JP"), ("cp932", "Shift_JIS")):
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            continue
        if _KANA.search(text):
            return f"it looks like {name}; save the file as UTF-8"
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return "save the file as UTF-8"
    return "it looks like Windows-1252 (Latin-1); save the file as UTF-8"
