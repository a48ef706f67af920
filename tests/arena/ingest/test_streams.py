from __future__ import annotations

import io
import zipfile

import pytest

from arena.ingest.streams import RATIO_FLOOR_BYTES, Allowance, UnpackedEntry, buffered
from arena.ingest.types import SourceError


def entry(content: bytes, packed: int, allowance: Allowance) -> io.BufferedReader:
    info = zipfile.ZipInfo("samples.jsonl")
    info.file_size = len(content)
    info.compress_size = packed
    return buffered(UnpackedEntry(io.BytesIO(content), info, allowance))


def test_what_is_read_is_what_is_there() -> None:
    allowance = Allowance(total=1_000, ratio=10)
    with entry(b"a\nb", 3, allowance) as stream:
        assert stream.readlines() == [b"a\n", b"b"]
    assert allowance.used == 3


def test_the_total_counts_over_entries() -> None:
    allowance = Allowance(total=1_500, ratio=10)
    with entry(b"x" * 1_000, 1_000, allowance) as stream:
        assert len(stream.read()) == 1_000
    with (
        entry(b"x" * 1_000, 1_000, allowance) as stream,
        pytest.raises(SourceError, match="to more than 1,500 bytes"),
    ):
        stream.read()


def test_the_ratio_is_measured_and_reading_stops_at_once() -> None:
    allowance = Allowance(total=10**9, ratio=100)
    with (
        entry(b"x" * 20_000_000, 1_000, allowance) as stream,
        pytest.raises(SourceError, match="more than 100 times"),
    ):
        stream.read()
    assert allowance.used <= RATIO_FLOOR_BYTES + 128 * 1024


def test_short_repetitive_content_may_pack_well() -> None:
    allowance = Allowance(total=10**9, ratio=100)
    with entry(b"x" * RATIO_FLOOR_BYTES, 10, allowance) as stream:
        assert len(stream.read()) == RATIO_FLOOR_BYTES
