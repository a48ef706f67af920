"""Server-sent events, from chunks of bytes to the data of each event."""

from __future__ import annotations

from collections.abc import Iterator


class EventStream:
    """Linear in the bytes received, however they are cut: a line is joined once, when it ends."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[str]:
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if not chunk:
            return
        self._after_cr = chunk[-1:] == b"\r"
        lines = chunk.splitlines()
        # An unfinished last line waits for the next chunk.
        rest = b"" if chunk[-1:] in (b"\n", b"\r") else lines.pop()
        for line in lines:
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)
                self._line = []
            event = self._take(line)
            if event is not None:
                yield event
        if rest:
            self._line.append(rest)

    def close(self) -> Iterator[str]:
        """What the connection's end leaves: servers that forget the last blank line are common."""
        if self._line:
            event = self._take(b"".join(self._line))
            self._line = []
            if event is not None:
                yield event
        event = self._take(b"")
        if event is not None:
            yield event

    def _take(self, line: bytes) -> str | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if not self._data:
                return None
            data = b"\n".join(self._data)
            self._data = []
            return data.decode("utf-8", "replace")
        if line.startswith(b"data:"):
            # Comments, event names, ids and retry hints carry nothing that we use.
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        return None
