from __future__ import annotations

import os
import threading
import time

import httpcore
import pytest

from arena.llm import complete
from arena.llm.transport import CLIENTS_PER_THREAD, Clock, close_lines, line_for, shared_ssl_context
from tests.arena.llm.loopback import ANSWER, Loopback, chunked, question


class TestClock:
    def test_smallest_limit_counts(self) -> None:
        clock = Clock()
        assert clock.limit(None) is None
        assert clock.limit(3.0) == 3.0
        clock.silence_s = 2.0
        assert clock.limit(3.0) == 2.0
        clock.start(time.monotonic() + 1)
        assert clock.limit(3.0) == pytest.approx(1, abs=0.1)

    def test_no_read_after_the_deadline(self) -> None:
        clock = Clock()
        clock.start(time.monotonic() - 1)
        assert clock.is_over()
        with pytest.raises(httpcore.ReadTimeout):
            clock.limit(3.0)

    def test_deadline_only_moves_closer(self) -> None:
        clock = Clock()
        clock.no_later_than(60)
        clock.no_later_than(600)
        assert clock.limit(None) == pytest.approx(60, abs=1)


def test_lines_are_kept_per_endpoint_and_bounded(server: Loopback) -> None:
    first = line_for(server.endpoint(key="0"))
    assert line_for(server.endpoint(key="0", api_key="other")) is first
    assert line_for(server.endpoint(key="0", allow_private=False)) is not first
    for number in range(CLIENTS_PER_THREAD):
        line_for(server.endpoint(key=str(number)))
    closed = [first.http.is_closed]
    for number in range(CLIENTS_PER_THREAD):
        line_for(server.endpoint(key=f"other {number}"))
    closed.append(first.http.is_closed)
    assert closed == [False, True]
    assert line_for(server.endpoint(key="0")) is not first


def test_end_of_a_thread_closes_its_lines(server: Loopback) -> None:
    server.replies = [chunked(ANSWER)]
    lines = []

    def work() -> None:
        complete(server.endpoint(), question())
        lines.append(line_for(server.endpoint()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert lines[0].http.is_closed


def test_certificates_are_read_once() -> None:
    assert shared_ssl_context() is shared_ssl_context()


def test_environment_does_not_divert_calls(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    close_lines()
    server.replies = [chunked(ANSWER)]
    assert complete(server.endpoint(), question()).text == "Hello."


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_child_process_opens_its_own_connections(server: Loopback) -> None:
    server.replies = [chunked(ANSWER)]
    complete(server.endpoint(), question())
    child = os.fork()
    if child == 0:
        try:
            answered = complete(server.endpoint(), question()).text == "Hello."
        finally:
            os._exit(0 if answered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.connections == 2
    assert complete(server.endpoint(), question()).text == "Hello."
    assert server.connections == 2
