from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from arena.llm.demo.server import DemoServer
    from arena.llm.demo.settings import DemoSettings
    from tests.arena.arena_world import ArenaWorld


@pytest.fixture
def demo_endpoint() -> Iterator[Callable[..., DemoServer]]:
    """Starts demo endpoints and stops them at the end; without arguments one without faults or latency."""
    from arena.llm.demo.server import serve_in_thread
    from arena.llm.demo.settings import DemoSettings

    servers: list[DemoServer] = []

    def start(settings: DemoSettings | None = None) -> DemoServer:
        servers.append(serve_in_thread(settings=settings or DemoSettings.quiet(2)))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def worker(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[Callable[..., Any]]:
    """Starts the embedded worker; it stops before the database is emptied."""
    from arena.embedded import EmbeddedWorker
    from arena.services.wire import forget_context

    settings.DATA_DIR = tmp_path
    forget_context()
    workers: list[EmbeddedWorker] = []

    def start(threads: int = 12) -> EmbeddedWorker:
        workers.append(EmbeddedWorker(threads=threads))
        workers[-1].start()
        return workers[-1]

    yield start
    for one in workers:
        one.stop()


@pytest.fixture
def arena_world(transactional_db: None, demo_endpoint: Callable[..., DemoServer]) -> ArenaWorld:
    from tests.arena.arena_world import make_arena_world

    return make_arena_world(demo_endpoint().base_url)


@pytest.fixture
def fresh_process(transactional_db: None) -> Iterator[None]:
    """No slot, claim or worker of an earlier test is remembered."""
    from tests.arena.call_world import forget_process

    forget_process()
    yield
    forget_process()
