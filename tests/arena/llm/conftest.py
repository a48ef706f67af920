from __future__ import annotations

from collections.abc import Iterator

import pytest

from arena.llm.transport import open_lines
from tests.arena.llm.loopback import Loopback


@pytest.fixture
def server() -> Iterator[Loopback]:
    loopback = Loopback()
    with open_lines():
        yield loopback
    loopback.close()
