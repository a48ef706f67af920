from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from arena.llm.demo.catalogue import DEMO_KEY
from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings, Faults

StartServer = Callable[..., DemoServer]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    servers: list[DemoServer] = []

    def start(settings: DemoSettings | None = None, *, faults: Faults | None = None) -> DemoServer:
        settings = settings or DemoSettings.quiet()
        servers.append(serve_in_thread(0, settings.with_faults(faults) if faults else settings))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def server(start_server: StartServer) -> DemoServer:
    return start_server()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers={"Authorization": f"Bearer {DEMO_KEY}"}, timeout=20, trust_env=False) as client:
        yield client
