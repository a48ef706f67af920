"""HTTP/1.1 with keep-alive around the engine."""

from __future__ import annotations

import asyncio
from typing import cast

import h11

from arena.llm.demo.engine import Engine, Reply, error_reply

MOST_HEADER_BYTES = 32 * 1024
MOST_PIPELINED_BYTES = 1024 * 1024


class Connection(asyncio.Protocol):
    def __init__(self, engine: Engine, open_connections: set[Connection]) -> None:
        self._engine = engine
        self._open = open_connections
        self._loop = asyncio.get_running_loop()
        self._wire = _new_wire()
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open.add(self)
        self._engine.stats.connected()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._engine.stats.disconnected()
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        if self._task is None:
            self._advance()
        elif len(self._wire.trailing_data[0]) > MOST_PIPELINED_BYTES:
            self._transport.abort()

    def eof_received(self) -> bool:
        # A client that has closed its side waits for nothing any more.
        return False

    def _advance(self) -> None:
        try:
            while self._take(self._wire.next_event()):
                pass
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))

    def _take(self, event: object) -> bool:
        """Whether another event may follow."""
        if isinstance(event, h11.Request):
            self._request, self._body = event, bytearray()
            if _content_length(event) > self._engine.settings.max_body_bytes:
                self._refuse(413, "The request body is too large.")
                return False
            if self._wire.they_are_waiting_for_100_continue:
                self._write(self._wire.send(h11.InformationalResponse(status_code=100, headers=[])))
            return True
        if isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > self._engine.settings.max_body_bytes:
                self._refuse(413, "The request body is too large.")
                return False
            return True
        if isinstance(event, h11.EndOfMessage):
            self._task = self._loop.create_task(self._respond())
        elif isinstance(event, h11.ConnectionClosed):
            self._transport.close()
        return False

    async def _respond(self) -> None:
        started = self._loop.time()
        request = self._request
        if request is None:
            raise RuntimeError("a message ended that had not begun")
        path = request.target.split(b"?", 1)[0].decode("latin-1")
        authorization = _header(request, b"authorization").decode("latin-1")
        body, self._body = bytes(self._body), bytearray()
        is_chat = path == "/v1/chat/completions"
        if is_chat:
            self._engine.stats.started()
        try:
            reply = self._engine.reply(request.method.decode("latin-1"), path, authorization, body)
            is_complete = await self._send(reply, started)
        finally:
            # The counter goes down before the next request of this connection can raise it.
            if is_chat:
                self._engine.stats.ended()
        if is_complete:
            self._next_request()

    async def _send(self, reply: Reply, started: float) -> bool:
        if reply.ending == "silent":
            await self._loop.create_future()
        if reply.ending == "disconnect":
            self._transport.abort()
            return False
        count = len(reply.pieces)
        data = self._head(reply)
        for number, piece in enumerate(reply.pieces):
            share = reply.first_piece_share + (1 - reply.first_piece_share) * number / max(1, count - 1)
            await self._wait_until(started + reply.latency_ms * (share if count > 1 else 1.0) / 1000)
            data += self._wire.send(h11.Data(data=piece)) or b""
            if number == 0 and reply.ending != "complete":
                self._write(data)
                return await self._fail_after_first_piece(reply)
            if number == count - 1:
                data += self._wire.send(h11.EndOfMessage()) or b""
                # Counted before it is written, so that whoever has read the answer finds it in the figures.
                self._engine.stats.answered(reply.status, reply.key)
            self._write(data)
            data = b""
        return True

    async def _wait_until(self, due: float) -> None:
        remaining = due - self._loop.time()
        if remaining > 0:
            await asyncio.sleep(remaining)

    async def _fail_after_first_piece(self, reply: Reply) -> bool:
        if reply.ending == "stall":
            await self._loop.create_future()
        # close, not abort: what was written before still has to arrive.
        self._transport.close()
        return False

    def _head(self, reply: Reply) -> bytes:
        headers = [("Content-Type", reply.content_type), *reply.headers]
        if reply.is_stream:
            headers.append(("Cache-Control", "no-cache"))
        else:
            headers.append(("Content-Length", str(sum(map(len, reply.pieces)))))
        return self._wire.send(h11.Response(status_code=reply.status, headers=headers)) or b""

    def _next_request(self) -> None:
        self._task = None
        if self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE:
            self._wire.start_next_cycle()
            self._advance()
        else:
            self._transport.close()

    def _refuse(self, status: int, message: str) -> None:
        if self._wire.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            reply = error_reply(status, message, "bad_http_request", headers=(("Connection", "close"),))
            self._engine.stats.answered(status, None)
            self._write(self._head(reply) + (self._wire.send(h11.Data(data=reply.pieces[0])) or b""))
        self._transport.close()

    def _write(self, data: bytes | None) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)


def _new_wire() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADER_BYTES)


def _header(request: h11.Request, name: bytes) -> bytes:
    return next((value for key, value in request.headers if key == name), b"")


def _content_length(request: h11.Request) -> int:
    # h11 has checked that it is a number.
    return int(_header(request, b"content-length") or b"0")
