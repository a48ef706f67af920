"""A real server on a loopback port that says exactly what a test tells it to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from arena.llm import ChatMessage, ChatRequest, Endpoint

KEY = "sk-test-0123456789abcdef"


@dataclass
class Received:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, object]:
        document = json.loads(self.body)
        assert isinstance(document, dict)
        return document


Reply = Callable[[socket.socket, Received], None]


@dataclass
class Loopback:
    replies: list[Reply] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline().decode().strip():
                    headers = {}
                    while header := stream.readline().decode().strip():
                        name, _, value = header.partition(":")
                        headers[name.lower()] = value.strip()
                    request = Received(line, headers, stream.read(int(headers.get("content-length", 0))))
                    self.received.append(request)
                    # The last reply serves all further requests.
                    reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                    reply(connection, request)
        except OSError:
            return  # The client went away, as some tests make it do.

    def close(self) -> None:
        # Wakes the accepting thread, which closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # Closed by its own thread.
        for thread in self._threads:
            thread.join(2)

    def endpoint(self, **changes: object) -> Endpoint:
        values: dict[str, object] = {
            "key": "test",
            "kind": "openai",
            "base_url": f"http://127.0.0.1:{self.port}/v1",
            "api_key": KEY,
            "read_timeout_s": 5.0,
            "allow_private": True,
        }
        return Endpoint(**{**values, **changes})  # type: ignore[arg-type]


def question(text: str = "Hello?", **changes: object) -> ChatRequest:
    return ChatRequest("test-model", (ChatMessage.of("user", text),), **changes)  # type: ignore[arg-type]


def delta(content: str | None = None, *, finish: str | None = None, **fields: object) -> dict[str, object]:
    body = {**({} if content is None else {"content": content}), **fields}
    return {"model": "test-model-1", "choices": [{"index": 0, "delta": body, "finish_reason": finish}]}


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
USAGE = event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})
ANSWER = event(delta("Hel")) + event(delta("lo.")) + event(delta(finish="stop")) + USAGE + DONE


def head(status: int = 200, content_type: str = "text/event-stream", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"content-type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def chunked(
    *pieces: bytes, pause_s: float = 0.0, finish: bool = True, content_type: str = "text/event-stream"
) -> Reply:
    """A chunked body, piece by piece; without its end the connection is closed in the middle."""

    def reply(connection: socket.socket, _: Received) -> None:
        connection.sendall(head(content_type=content_type, transfer_encoding="chunked"))
        for piece in pieces:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            if pause_s:
                time.sleep(pause_s)
        if finish:
            connection.sendall(b"0\r\n\r\n")
        else:
            connection.shutdown(socket.SHUT_RDWR)

    return reply


def plain(body: object, status: int = 200, content_type: str = "application/json", **headers: str) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def reply(connection: socket.socket, _: Received) -> None:
        connection.sendall(head(status, content_type, content_length=str(len(data)), **headers) + data)

    return reply


def silent(pieces: Iterable[bytes] = (), seconds: float = 30) -> Reply:
    """Sends what it is given and then keeps the connection open without a word."""

    def reply(connection: socket.socket, _: Received) -> None:
        for piece in pieces:
            connection.sendall(piece)
        # Ends early when the client hangs up.
        connection.settimeout(seconds)
        try:
            connection.recv(1)
        except TimeoutError:
            return

    return reply


def as_chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)
