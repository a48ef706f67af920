"""Connections: one small pool per thread and endpoint, to checked addresses only, under the call's deadline.

A shared pool is not used because httpx searches it for every request, which costs the square of its size.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore
import httpx

from arena.llm.guard import Resolver, checked_addresses, resolve
from arena.llm.messages import Endpoint

CLIENTS_PER_THREAD = 8
# Common servers close an idle connection after five seconds; a request should not meet that.
KEEPALIVE_EXPIRY_S = 4.0
WRITE_SILENCE_S = 60.0


class Clock:
    """The limits and marks of the one call that a thread's connection is serving.

    httpx has no total timeout and looks at the others once per response; here each read asks again.
    """

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.silence_s: float | None = None
        self.left_at: float | None = None

    def start(self, deadline: float | None) -> None:
        self.deadline = deadline
        self.silence_s = None
        self.left_at = None

    def no_later_than(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        self.deadline = limit if self.deadline is None else min(self.deadline, limit)

    def is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def limit(self, timeout: float | None) -> float | None:
        limits = [timeout, self.silence_s]
        if self.deadline is not None:
            remaining = self.deadline - time.monotonic()
            if remaining <= 0:
                raise httpcore.ReadTimeout("deadline")
            limits.append(remaining)
        return min((limit for limit in limits if limit is not None), default=None)


class TimedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._clock.limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._clock.left_at is None:
            self._clock.left_at = time.monotonic()
        self._inner.write(buffer, self._clock.limit(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, self._clock.limit(timeout))
        return TimedStream(secured, self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore.NetworkBackend):
    """Resolves and checks a host, and connects to what it checked. TLS and the Host header keep the name."""

    def __init__(
        self,
        clock: Clock,
        *,
        allow_private: bool,
        resolver: Resolver = resolve,
        connector: httpcore.NetworkBackend | None = None,
    ) -> None:
        self._clock = clock
        self._allow_private = allow_private
        self._resolver = resolver
        self._connector = connector or httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        until = None if timeout is None else time.monotonic() + timeout
        addresses = self._addresses(host, port)
        while True:
            address = addresses.pop(0)
            share = None if until is None else max(until - time.monotonic(), 0.001) / (len(addresses) + 1)
            try:
                stream = self._connector.connect_tcp(
                    address, port, self._clock.limit(share), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return TimedStream(stream, self._clock)

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return checked_addresses(host, port, allow_private=self._allow_private, resolver=self._resolver)
        except (OSError, UnicodeError):
            error = httpcore.ConnectError(f"The host name {host} could not be resolved.")
        raise error


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class GuardedTransport(httpx.BaseTransport):
    def __init__(self, backend: GuardedBackend) -> None:
        self.is_closed = False
        self._pool = httpcore.ConnectionPool(
            ssl_context=shared_ssl_context(),
            max_connections=2,
            max_keepalive_connections=1,
            keepalive_expiry=KEEPALIVE_EXPIRY_S,
            http1=True,
            http2=False,
            retries=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response.stream))

    def close(self) -> None:
        self.is_closed = True
        self._pool.close()


@cache
def shared_ssl_context() -> ssl.SSLContext:
    """Reading the certificates takes longer than a short call. SSL_CERT_FILE, the operator's, is honoured."""
    return httpx.create_ssl_context(trust_env=True)


@dataclass(frozen=True, slots=True)
class Line:
    """A connection, and the clock of the call that it is serving.

    No `httpx.Client` stands between: it would look for cookies, credentials and redirects, of which there are none
    here, at a third of what a request costs.
    """

    http: GuardedTransport
    clock: Clock


def open_line(endpoint: Endpoint, resolver: Resolver = resolve) -> Line:
    clock = Clock()
    backend = GuardedBackend(clock, allow_private=endpoint.allow_private, resolver=resolver)
    # Neither proxies nor credentials from the environment: the guard must see the real address.
    return Line(GuardedTransport(backend), clock)


Lines = OrderedDict[tuple[str, str, bool], Line]


class _ThreadLines(threading.local):
    def __init__(self) -> None:
        self.lines: Lines = OrderedDict()
        # Lives as long as its thread, and takes the connections along.
        self._owner = _Owner()
        weakref.finalize(self._owner, _close, self.lines).atexit = False


class _Owner:
    """Can be watched, which `threading.local` cannot."""


def _close(lines: Lines) -> None:
    while lines:
        lines.popitem(last=False)[1].http.close()


_here = _ThreadLines()
_left_behind: list[_ThreadLines] = []


def line_for(endpoint: Endpoint) -> Line:
    lines = _here.lines
    key = (endpoint.key, endpoint.base_url, endpoint.allow_private)
    line = lines.get(key)
    if line is None:
        line = lines[key] = open_line(endpoint)
        while len(lines) > CLIENTS_PER_THREAD:
            lines.popitem(last=False)[1].http.close()
    else:
        lines.move_to_end(key)
    return line


def close_lines() -> None:
    """Close this thread's idle connections."""
    _close(_here.lines)


def _after_fork() -> None:
    # The child must not speak on the parent's sockets, nor wait for locks that the parent's threads held.
    global _here
    _left_behind.append(_here)
    _here = _ThreadLines()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def open_lines() -> Iterator[None]:
    """For short-lived threads and tests: whatever is opened inside is closed at the end."""
    try:
        yield
    finally:
        close_lines()
