"""Running the endpoint, in a thread or in a process of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from arena.llm.demo.bank import load_bank
from arena.llm.demo.connection import Connection
from arena.llm.demo.engine import Engine
from arena.llm.demo.settings import DemoSettings
from arena.llm.demo.stats import Stats

HOST = "127.0.0.1"
BACKLOG = 1024
START_TIMEOUT_S = 30.0


class _Listener:
    def __init__(self, settings: DemoSettings, stats: Stats) -> None:
        self._engine = Engine(settings, stats)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def open(self, port: int) -> int:
        # Read before the first request, which would otherwise be slower than the rest.
        load_bank()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._engine, self._connections), HOST, port, backlog=BACKLOG
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._connections):
            connection.close()
        await self._server.wait_closed()
        # The transports report their end in the next round of the loop.
        while self._connections:
            await asyncio.sleep(0.001)


class DemoServer:
    """A running endpoint. `base_url` ends in /v1, as clients expect it."""

    def __init__(self, settings: DemoSettings) -> None:
        self.settings = settings
        self.port = 0
        self._stats = Stats()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def stats(self) -> dict[str, object]:
        return self._stats.snapshot()

    def reset(self) -> None:
        self._stats.reset()

    def start(self, port: int = 0) -> None:
        self._thread = threading.Thread(target=self._run, args=(port,), name="demo-endpoint", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise TimeoutError("The demo endpoint did not start.")
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, port: int) -> None:
        try:
            asyncio.run(self._serve(port))
        except OSError as error:
            # A port that is taken has to be reported to whoever starts the server.
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        listener = _Listener(self.settings, self._stats)
        self.port = await listener.open(port)
        self._ready.set()
        try:
            await self._stopping.wait()
        finally:
            await listener.close()


def serve_in_thread(port: int = 0, settings: DemoSettings | None = None) -> DemoServer:
    """Port 0 takes a free one."""
    server = DemoServer(settings or DemoSettings())
    server.start(port)
    return server


async def serve(port: int, settings: DemoSettings, *, on_open: Callable[[int], None]) -> None:
    """Until cancelled."""
    listener = _Listener(settings, Stats())
    on_open(await listener.open(port))
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await listener.close()
