from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from arena.llm.sse import EventStream


def _events(*chunks: bytes) -> list[str]:
    stream = EventStream()
    return [event for chunk in chunks for event in stream.feed(chunk)] + list(stream.close())


def test_line_ends_of_all_kinds() -> None:
    assert _events(b"data: a\n\ndata: b\r\n\r\ndata: c\r\r") == ["a", "b", "c"]


def test_fields_that_carry_nothing() -> None:
    assert _events(b": hi\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\ndatabase: no\n\n") == ["a"]


def test_data_lines_are_joined_and_one_space_is_dropped() -> None:
    assert _events(b"data:a\ndata:  b\ndata\ndata: \n\n") == ["a\n b\n"]


def test_byte_order_mark_and_missing_end() -> None:
    assert _events(b"\xef\xbb\xbfdata: a\n\ndata: b") == ["a", "b"]


def test_carriage_return_and_line_feed_apart() -> None:
    assert _events(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == ["a\nb"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([b"data: \xc3\xa9", b"data: b", b": c", b"", b"\r", b"\n", b"\r\n"])), st.data())
def test_cuts_change_nothing(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert _events(*parts) == _events(whole)
