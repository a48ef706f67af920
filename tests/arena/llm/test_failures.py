from __future__ import annotations

import gzip
import os
import socket
import time
import traceback

import pytest

from arena.llm import ErrorCode, LLMError, complete
from tests.arena.llm.loopback import (
    ANSWER,
    DONE,
    KEY,
    USAGE,
    Loopback,
    Received,
    as_chunk,
    chunked,
    delta,
    event,
    head,
    plain,
    question,
    silent,
)


def failure(server: Loopback, deadline_s: float | None = None, **changes: object) -> LLMError:
    with pytest.raises(LLMError) as caught:
        complete(server.endpoint(**changes), question(), deadline_s=deadline_s)
    return caught.value


STREAM = head(transfer_encoding="chunked")


class TestTime:
    def test_silence_before_headers(self, server: Loopback) -> None:
        server.replies = [silent()]
        error = failure(server, read_timeout_s=0.05)
        assert (error.code, error.transient, error.counts_as_wait) == (ErrorCode.TIMEOUT, True, False)
        assert "silent" in error.message
        assert error.ttft_ms is None
        assert error.duration_ms is not None

    def test_silence_in_the_middle_keeps_what_came(self, server: Loopback) -> None:
        pieces = [event(delta(reasoning="Hm.")), event(delta("Half an"))]
        server.replies = [silent([STREAM, *map(as_chunk, pieces)])]
        error = failure(server, read_timeout_s=0.5)
        assert error.code is ErrorCode.TIMEOUT
        assert (error.partial_text, error.partial_reasoning) == ("Half an", "Hm.")

    def test_slow_drip_is_not_silence(self, server: Loopback) -> None:
        server.replies = [chunked(*[event(delta("x"))] * 15, ANSWER, pause_s=0.08)]
        assert complete(server.endpoint(read_timeout_s=1), question()).text == "x" * 15 + "Hello."

    def test_deadline_ends_a_stream_that_never_falls_silent(self, server: Loopback) -> None:
        server.replies = [chunked(*[event(delta("x"))] * 3000, pause_s=0.01)]
        started = time.monotonic()
        error = failure(server, deadline_s=0.5)
        assert time.monotonic() - started < 20
        assert error.code is ErrorCode.TIMEOUT
        assert "0.5 seconds" in error.message
        assert error.partial_text.startswith("xx")

    def test_deadline_ends_silence_before_the_read_timeout(self, server: Loopback) -> None:
        server.replies = [silent([STREAM])]
        started = time.monotonic()
        assert failure(server, deadline_s=0.05, read_timeout_s=60).code is ErrorCode.TIMEOUT
        assert time.monotonic() - started < 20

    def test_deadline_holds_for_a_drip_of_headers(self, server: Loopback) -> None:
        def drip(connection: socket.socket, _: Received) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            for _number in range(50):
                connection.sendall(b"x-a: b\r\n")
                time.sleep(0.01)

        server.replies = [drip]
        assert failure(server, deadline_s=0.08).code is ErrorCode.TIMEOUT

    def test_an_earlier_deadline_does_not_linger(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER), chunked(*[b": ping\n\n"] * 6, ANSWER, pause_s=0.2)]
        complete(server.endpoint(), question(), deadline_s=1)
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_slow_explanation_of_an_error_obeys_the_deadline(self, server: Loopback) -> None:
        server.replies = [silent([head(503, "text/plain", content_length="50"), b"half a"])]
        error = failure(server, deadline_s=0.5)
        assert (error.code, error.http_status) == (ErrorCode.SERVER_ERROR, 503)
        assert error.message == "half a"


class TestBrokenConnections:
    def test_nobody_listens(self, server: Loopback) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        error = failure(server, base_url=f"http://127.0.0.1:{port}/v1")
        assert (error.code, error.transient) == (ErrorCode.CONNECTION, True)

    def test_unknown_host(self, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        error = failure(server, base_url="http://models.example/v1")
        assert (error.code, error.transient) == (ErrorCode.CONNECTION, True)
        assert error.message == "The host name models.example could not be resolved."

    def test_closed_without_a_word(self, server: Loopback) -> None:
        server.replies = [lambda connection, _: connection.shutdown(socket.SHUT_RDWR)]
        assert failure(server).code is ErrorCode.CONNECTION

    def test_reset(self, server: Loopback) -> None:
        def reset(connection: socket.socket, _: Received) -> None:
            connection.sendall(STREAM + as_chunk(event(delta("Half"))))
            # What was not read before the reset is lost.
            time.sleep(0.5)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            os.close(connection.detach())

        server.replies = [reset]
        error = failure(server)
        assert (error.code, error.transient, error.partial_text) == (ErrorCode.CONNECTION, True, "Half")

    def test_not_http(self, server: Loopback) -> None:
        server.replies = [lambda connection, _: connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")]
        assert failure(server).code is ErrorCode.CONNECTION

    @pytest.mark.parametrize("finish", [True, False])
    def test_closed_before_any_finish_reason(self, server: Loopback, finish: bool) -> None:
        server.replies = [chunked(event(delta("Half")), USAGE, finish=finish)]
        error = failure(server)
        assert (error.code, error.transient, error.partial_text) == (ErrorCode.CONNECTION, True, "Half")
        assert error.usage.output_tokens == 3

    def test_next_call_after_a_broken_one(self, server: Loopback) -> None:
        server.replies = [chunked(event(delta("Half")), finish=False), chunked(ANSWER)]
        failure(server)
        assert complete(server.endpoint(), question()).text == "Hello."


class TestBadAnswers:
    @pytest.mark.parametrize("broken", [b'data: {"choices": [{"de\n\n', b"data: null\n\n", b"data: 7\n\n"])
    def test_event_that_is_no_object(self, server: Loopback, broken: bytes) -> None:
        server.replies = [chunked(event(delta("Half")), broken, ANSWER)]
        error = failure(server)
        assert (error.code, error.transient, error.partial_text) == (ErrorCode.CONNECTION, True, "Half")

    @pytest.mark.parametrize(
        ("document", "code", "transient"),
        [
            ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, ErrorCode.SERVER_ERROR, True),
            (
                {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}},
                ErrorCode.RATE_LIMITED,
                True,
            ),
            ({"error": {"message": "Upstream died", "code": 502}}, ErrorCode.SERVER_ERROR, True),
            ({"error": "boom"}, ErrorCode.SERVER_ERROR, True),
            (
                {"error": {"code": "context_length_exceeded", "message": "x"}},
                ErrorCode.CONTEXT_OVERFLOW,
                False,
            ),
            ({"object": "error", "message": "Bad model", "code": 404}, ErrorCode.NOT_FOUND, False),
            (delta("", finish="error"), ErrorCode.SERVER_ERROR, True),
        ],
    )
    def test_error_inside_the_stream(
        self, server: Loopback, document: object, code: ErrorCode, transient: bool
    ) -> None:
        server.replies = [chunked(event(delta("Half")), event(document), DONE)]
        error = failure(server)
        assert (error.code, error.transient, error.partial_text) == (code, transient, "Half")

    def test_answer_over_the_limit_is_cut_off(self, server: Loopback) -> None:
        server.replies = [chunked(*[event(delta("x" * 1000))] * 100)]
        with pytest.raises(LLMError) as caught:
            complete(server.endpoint(), question(), max_bytes=20_000)
        assert (caught.value.code, caught.value.transient) == (ErrorCode.OTHER, False)
        assert 10_000 < len(caught.value.partial_text) < 20_000

    def test_endless_line_is_cut_off(self, server: Loopback) -> None:
        server.replies = [chunked(b'data: {"choices": "', *[b"x" * 10_000] * 50)]
        with pytest.raises(LLMError, match="larger than 100,000 bytes"):
            complete(server.endpoint(), question(), max_bytes=100_000)

    def test_unasked_compression(self, server: Loopback) -> None:
        server.replies = [plain({"choices": []}, content_encoding="gzip, gzip")]
        assert failure(server).code is ErrorCode.OTHER

    def test_simple_compression_is_read_all_the_same(self, server: Loopback) -> None:
        server.replies = [plain(gzip.compress(ANSWER), content_type="text/event-stream", content_encoding="gzip")]
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_compressed_explanation(self, server: Loopback) -> None:
        body = gzip.compress(b'{"error": {"message": "packed"}}')
        server.replies = [plain(body, 400, content_encoding="gzip")]
        assert failure(server).message == "packed"

    def test_explanation_packed_several_times_is_not_unpacked(self, server: Loopback) -> None:
        body = gzip.compress(gzip.compress(b"x" * 1_000_000))
        server.replies = [plain(body, 400, content_encoding="gzip, gzip")]
        assert "xx" not in failure(server).message

    def test_broken_compression(self, server: Loopback) -> None:
        server.replies = [plain({"choices": []}, content_encoding="gzip")]
        assert failure(server).code is ErrorCode.CONNECTION


class TestStatuses:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirects_are_never_followed(self, server: Loopback, status: int) -> None:
        server.replies = [plain(b"", status, location=f"http://127.0.0.1:{server.port}/elsewhere?k={KEY}")]
        error = failure(server)
        assert (error.code, error.transient, error.http_status) == (ErrorCode.REDIRECT, False, status)
        assert "/elsewhere" in error.message
        assert KEY not in error.message
        assert len(server.received) == 1

    def test_rate_limit_with_seconds(self, server: Loopback) -> None:
        server.replies = [plain({"error": {"message": "Slow down"}}, 429, retry_after="7")]
        error = failure(server)
        assert (error.code, error.transient, error.counts_as_wait) == (ErrorCode.RATE_LIMITED, True, True)
        assert error.retry_after_s == 7
        assert error.message == "Slow down"

    def test_rate_limit_in_milliseconds(self, server: Loopback) -> None:
        server.replies = [plain({"error": "no"}, 429, retry_after_ms="250", retry_after="1")]
        assert failure(server).retry_after_s == 0.25

    def test_huge_explanation(self, server: Loopback) -> None:
        server.replies = [plain(b"no " * 1_000_000, 500, "text/plain")]
        error = failure(server)
        assert error.code is ErrorCode.SERVER_ERROR
        assert len(error.message) <= 500

    def test_page_of_a_proxy(self, server: Loopback) -> None:
        server.replies = [plain(b"<html><h1>502 Bad\x07 Gateway</h1></html>", 502, "text/html")]
        error = failure(server)
        assert (error.code, error.message) == (ErrorCode.SERVER_ERROR, "502 Bad Gateway")

    def test_error_without_a_body(self, server: Loopback) -> None:
        server.replies = [plain(b"", 529)]
        error = failure(server)
        assert (error.code, error.transient, error.counts_as_wait) == (ErrorCode.SERVER_ERROR, True, True)
        assert "529" in error.message


class TestKey:
    def test_key_is_nowhere_in_the_error(self, server: Loopback) -> None:
        server.replies = [plain({"error": {"message": f"Bad key {KEY}!", "param": KEY}}, 401)]
        error = failure(server)
        assert error.message == "Bad key [key removed]!"
        assert error.__cause__ is None
        assert error.__context__ is None
        text = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
        assert KEY not in text

    def test_key_is_not_in_the_trace_of_a_lost_connection(self, server: Loopback) -> None:
        server.replies = [lambda connection, _: connection.sendall(b"HTTP/1.1 999999 " + KEY.encode() + b"\r\n\r\n")]
        error = failure(server)
        assert error.code is ErrorCode.CONNECTION
        assert KEY not in "".join(traceback.format_exception(error)) + str(vars(error))
        assert error.__context__ is None

    @pytest.mark.parametrize("key", ["sk-one\r\nx-evil: 1", "sk-\u00fc", "sk-\x00"])
    def test_key_that_cannot_be_a_header(self, server: Loopback, key: str) -> None:
        server.replies = [chunked(ANSWER)]
        error = failure(server, api_key=key)
        assert error.code is ErrorCode.AUTH
        assert server.received == []
        assert key not in str(error)

    def test_line_end_after_the_key_is_dropped(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(api_key=f"{KEY}\n"), question())
        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"

    def test_endpoint_hides_the_key(self, server: Loopback) -> None:
        assert KEY not in repr(server.endpoint())


class TestBeforeSending:
    def test_local_address_is_refused(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        error = failure(server, allow_private=False)
        assert (error.code, error.transient) == (ErrorCode.BLOCKED_ADDRESS, False)
        assert "127.0.0.1" in error.message
        assert server.connections == 0

    def test_an_allowed_connection_is_not_lent_to_a_guarded_call(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(), question())
        assert failure(server, allow_private=False).code is ErrorCode.BLOCKED_ADDRESS

    @pytest.mark.parametrize("base_url", ["ftp://127.0.0.1/v1", "nonsense", "http://[::1/v1", "http:///v1"])
    def test_base_url_that_cannot_be_called(self, server: Loopback, base_url: str) -> None:
        error = failure(server, base_url=base_url)
        assert error.code is ErrorCode.BAD_REQUEST
        assert not error.transient

    def test_reserved_parameter(self, server: Loopback) -> None:
        with pytest.raises(LLMError) as caught:
            complete(server.endpoint(), question(parameters={"stream": False}))
        assert caught.value.code is ErrorCode.BAD_REQUEST

    def test_parameter_that_json_does_not_know(self, server: Loopback) -> None:
        with pytest.raises(LLMError) as caught:
            complete(server.endpoint(), question(parameters={"temperature": float("nan")}))
        assert caught.value.code is ErrorCode.BAD_REQUEST
