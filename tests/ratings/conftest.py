from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings


@pytest.fixture
def endpoint() -> Iterator[DemoServer]:
    with serve_in_thread(settings=DemoSettings.quiet()) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the configuration and its task set lie."""
    samples = "\n".join(
        f'{{"id": "s{n}", "input": {{"messages": [{{"role": "user", "content": "Question {n}: say why."}}]}}, '
        f'"category": "{"odd" if n % 2 else "even"}"}}'
        for n in range(6)
    )
    (tmp_path / "samples.jsonl").write_text(samples + "\n", encoding="utf-8")
    return tmp_path
