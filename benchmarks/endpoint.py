"""A lean endpoint of fixed latency, so that the measured machine spends its time on the worker.

It speaks the OpenAI-compatible stream: an answer carries a grade, and a verdict names the higher grade of the
two answers it is shown. `GET /stats` tells how many calls came and how many were in flight at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import zlib
from typing import cast

GRADE = re.compile(rb"grade (\d+)")
MODEL = re.compile(rb'"model":\s*"([^"]+)"')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
# When the parts of a stream leave, as shares of the latency.
SHARES = (0.4, 0.6, 0.8, 1.0)
PARAGRAPH = "The measure holds for each of the four quarters, and the reasons are given in the order of their weight. "
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Figures:
    def __init__(self) -> None:
        self.calls = self.in_flight = self.peak_in_flight = 0

    def begin(self) -> None:
        self.calls += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def end(self) -> None:
        self.in_flight -= 1

    def as_json(self) -> bytes:
        used = resource.getrusage(resource.RUSAGE_SELF)
        figures = {"calls": self.calls, "peak_in_flight": self.peak_in_flight, "cpu_s": used.ru_utime + used.ru_stime}
        return json.dumps(figures).encode()


class Connection(asyncio.Protocol):
    def __init__(self, latency_s: float, figures: Figures) -> None:
        self._latency_s, self._figures = latency_s, figures
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._busy = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._busy:
            self._figures.end()
        self._busy = False

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        found = LENGTH.search(head)
        length = int(found[1]) if found else 0
        if len(body) < length:
            return
        self._received = body[length:]
        if head.startswith(b"GET /stats"):
            figures = self._figures.as_json()
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(figures), figures))
        else:
            self._answer(body[:length])

    def _answer(self, body: bytes) -> None:
        begun = self._loop.time()
        self._busy = True
        self._figures.begin()
        parts = stream(body)
        for share, part in zip(SHARES, parts, strict=True):
            self._loop.call_at(begun + share * self._latency_s, self._send, part, part is parts[-1])

    def _send(self, part: bytes, last: bool) -> None:
        if self._transport.is_closing():
            return
        if last:
            # Before it is written: whoever has read the answer may call again at once.
            self._busy = False
            self._figures.end()
        self._transport.write(part)


def stream(body: bytes) -> list[bytes]:
    """The parts of the reply, each as one chunk of HTTP."""
    text = verdict(body) if b'"winner"' in body else answer(body)
    size = len(text) // len(SHARES) + 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events = [_event({"delta": {"content": piece}, "finish_reason": None}) for piece in pieces]
    usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(text) // 4}
    events[-1] += _event({"delta": {}, "finish_reason": "stop"}) + _data({"choices": [], "usage": usage})
    events[-1] += b"data: [DONE]\n\n"
    parts = [b"%x\r\n%s\r\n" % (len(event), event) for event in events]
    return [HEAD + parts[0], *parts[1:-1], parts[-1] + b"0\r\n\r\n"]


def _event(choice: dict[str, object]) -> bytes:
    return _data({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]})


def _data(document: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def answer(body: bytes) -> str:
    named = MODEL.search(body)
    strength = named[1][0] if named else 0
    return f"This answer has the grade {(strength + zlib.crc32(body)) % 7}.\n\n" + PARAGRAPH * 12


def verdict(body: bytes) -> str:
    grades = [int(grade) for grade in GRADE.findall(body)]
    first, second = grades[-2:] if len(grades) > 1 else (0, 0)
    winner = "tie" if first == second else "A" if first > second else "B"
    comment = PARAGRAPH * 2
    return json.dumps({"A": comment, "B": comment, "reason": "The grades decide.", "winner": winner})


async def serve(latency_ms: float) -> None:
    figures = Figures()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency_ms / 1000, figures), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency-ms", type=float, default=200.0)
    asyncio.run(serve(parser.parse_args().latency_ms))
