from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from decimal import Decimal

import pytest

from arena.llm import ChatMessage, ErrorCode, LLMError, complete
from arena.llm.transport import close_lines
from tests.arena.llm.loopback import (
    ANSWER,
    DONE,
    KEY,
    USAGE,
    Loopback,
    Reply,
    as_chunk,
    chunked,
    delta,
    event,
    head,
    plain,
    question,
    silent,
)


def document(content: object = "Hello.", **changes: object) -> dict[str, object]:
    message = {"role": "assistant", "content": content, **changes}
    return {
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


class TestStreams:
    def test_answer_usage_and_model(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        completion = complete(server.endpoint(), question())
        assert completion.text == "Hello."
        assert completion.reasoning == ""
        assert completion.finish_reason == "stop"
        assert completion.refusal is None
        assert not completion.refused
        assert (completion.usage.input_tokens, completion.usage.output_tokens) == (7, 3)
        assert completion.usage.reasoning_tokens is None
        assert completion.usage.cost_usd is None
        assert completion.model_reported == "test-model-1"
        assert completion.host == f"127.0.0.1:{server.port}"
        assert completion.streamed

    def test_request_on_the_wire(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(), question("日本", max_tokens=9, parameters={"temperature": 0}))
        request = server.received[0]
        assert request.line == "POST /v1/chat/completions HTTP/1.1"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["host"] == f"127.0.0.1:{server.port}"
        assert request.payload == {
            "model": "test-model",
            "messages": [{"role": "user", "content": "日本"}],
            "temperature": 0,
            "max_tokens": 9,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def test_key_may_be_absent(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(api_key=None), question())
        assert "authorization" not in server.received[0].headers

    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    def test_cut_anywhere(self, server: Loopback, size: int) -> None:
        body = event(delta("日本語 🎌")).replace(b"\n", b"\r\n") + b": ping\r\n\r\n" + ANSWER
        raw = json.dumps(delta("漢字"), ensure_ascii=False).encode()
        body = b"event: message\ndata:" + raw + b"\n\n" + body
        server.replies = [chunked(*(body[i : i + size] for i in range(0, len(body), size)))]
        assert complete(server.endpoint(), question()).text == "漢字日本語 🎌Hello."

    def test_data_over_several_lines(self, server: Loopback) -> None:
        pretty = json.dumps(delta("Hi"), indent=1).encode()
        body = b"".join(b"data: " + line + b"\n" for line in pretty.split(b"\n")) + b"\n"
        server.replies = [chunked(body, event(delta(finish="stop")), DONE)]
        assert complete(server.endpoint(), question()).text == "Hi"

    def test_blank_lines_forgotten_between_events(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER.replace(b"\n\n", b"\n"))]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.usage.output_tokens) == ("Hello.", 3)

    def test_end_mark_missing_after_finish_reason(self, server: Loopback) -> None:
        server.replies = [chunked(event(delta("Hi")), event(delta(finish="length")), finish=False)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.finish_reason) == ("Hi", "length")
        assert completion.truncated
        assert completion.usage.output_tokens is None

    def test_silence_after_finish_reason_loses_only_the_usage(self, server: Loopback) -> None:
        answered = as_chunk(event(delta("Hi", finish="stop")))
        server.replies = [silent([head(transfer_encoding="chunked"), answered])]
        completion = complete(server.endpoint(read_timeout_s=1), question())
        assert completion.text == "Hi"
        assert completion.duration_ms < 900

    def test_open_connection_after_end_mark_costs_no_time(self, server: Loopback) -> None:
        server.replies = [silent([head(transfer_encoding="chunked"), as_chunk(ANSWER)], seconds=60)]
        started = time.monotonic()
        completion = complete(server.endpoint(), question())
        assert time.monotonic() - started < 20
        assert completion.text == "Hello."

    def test_invalid_utf8_and_nul_become_replacement_characters(self, server: Loopback) -> None:
        raw = b'data: {"choices":[{"index":0,"delta":{"content":"a\xffb\\u0000c"},"finish_reason":"stop"}]}\n\n'
        server.replies = [chunked(raw + DONE)]
        assert complete(server.endpoint(), question()).text == "a\ufffdb\ufffdc"

    def test_surrogate_pair_cut_between_two_deltas(self, server: Loopback) -> None:
        halves = [event(delta("\ud83c")), event(delta("\udf8c and \ud83c alone", finish="stop"))]
        server.replies = [chunked(*halves, DONE)]
        assert complete(server.endpoint(), question()).text == "🎌 and \ufffd alone"

    @pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
    def test_reasoning_fields(self, server: Loopback, name: str) -> None:
        deltas = [delta(**{name: "Let me "}), delta(**{name: "think."}), delta("42", finish="stop")]
        server.replies = [chunked(*map(event, deltas), DONE)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.reasoning) == ("42", "Let me think.")

    def test_reasoning_in_details_stands_in(self, server: Loopback) -> None:
        details = [
            {"type": "reasoning.summary", "summary": "Hm, "},
            {"type": "reasoning.text", "text": "so."},
            {"data": "x"},
        ]
        deltas = [delta(reasoning_details=details), delta("42", finish="stop")]
        server.replies = [chunked(*map(event, deltas), DONE)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.reasoning) == ("42", "Hm, so.")

    def test_reasoning_under_both_names_is_taken_once(self, server: Loopback) -> None:
        deltas = [delta(reasoning="Hm.", reasoning_content="Hm."), delta("42", finish="stop")]
        server.replies = [chunked(*map(event, deltas), DONE)]
        assert complete(server.endpoint(), question()).reasoning == "Hm."

    def test_think_block_cut_between_deltas(self, server: Loopback) -> None:
        deltas = [delta("<th"), delta("ink>Hm"), delta("m.</thi"), delta("nk>\n\n42", finish="stop")]
        server.replies = [chunked(*map(event, deltas), DONE)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.reasoning) == ("42", "Hmm.")

    def test_content_in_parts(self, server: Loopback) -> None:
        thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
        text = [{"type": "text", "text": "42"}]
        server.replies = [plain(document([*thinking, *text]))]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.reasoning) == ("42", "Hm.")

    def test_refusal(self, server: Loopback) -> None:
        server.replies = [chunked(event(delta(refusal="I can")), event(delta(refusal="not.", finish="stop")), DONE)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.refusal, completion.refused) == ("", "I cannot.", True)

    def test_filtered_answer_counts_as_refused(self, server: Loopback) -> None:
        server.replies = [chunked(event(delta("", finish="content_filter")), DONE)]
        assert complete(server.endpoint(), question()).refused

    def test_time_to_first_token_counts_reasoning(self, server: Loopback) -> None:
        pieces = [b": wait\n\n", event(delta("", role="assistant")), event(delta(reasoning="Hm")), ANSWER]
        server.replies = [chunked(*pieces, pause_s=0.2)]
        completion = complete(server.endpoint(), question())
        assert completion.ttft_ms is not None
        assert 400 <= completion.ttft_ms < completion.duration_ms - 25

    def test_other_choices_are_left_alone(self, server: Loopback) -> None:
        other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
        server.replies = [chunked(event(other), ANSWER)]
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_ten_megabytes_are_quick(self, server: Loopback) -> None:
        piece = event(delta("x" * 10_000))
        server.replies = [chunked(*[piece * 10] * 100, ANSWER)]
        # Of this process, which the server is in as well: others may take their time of the machine.
        started = time.process_time()
        assert len(complete(server.endpoint(), question()).text) == 10_000_006
        assert time.process_time() - started < 3

    def test_line_of_a_million_characters_in_small_pieces(self, server: Loopback) -> None:
        body = event(delta("y" * 1_000_000)) + ANSWER
        server.replies = [chunked(*(body[i : i + 1000] for i in range(0, len(body), 1000)))]
        # Of this process, which the server is in as well: others may take their time of the machine.
        started = time.process_time()
        assert len(complete(server.endpoint(), question()).text) == 1_000_006
        assert time.process_time() - started < 3


class TestDocuments:
    @pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
    def test_server_that_does_not_stream(self, server: Loopback, content_type: str) -> None:
        server.replies = [plain(document("<think>Hm.</think>42"), content_type=content_type)]
        completion = complete(server.endpoint(), question())
        assert (completion.text, completion.reasoning) == ("42", "Hm.")
        assert completion.usage.input_tokens == 7
        assert completion.ttft_ms is None
        assert not completion.streamed

    def test_white_space_before_the_document(self, server: Loopback) -> None:
        server.replies = [chunked(b"\n", b" \n", json.dumps(document()).encode())]
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_stream_called_json(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER, content_type="application/json")]
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_reported_cost(self, server: Loopback) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.00012}
        server.replies = [plain({**document(), "usage": usage})]
        assert complete(server.endpoint(), question()).usage.cost_usd == Decimal("0.00012")

    @pytest.mark.parametrize(
        ("body", "code", "transient"),
        [
            ({"choices": []}, ErrorCode.SERVER_ERROR, True),
            ({"message": "Welcome"}, ErrorCode.OTHER, False),
            (b'{"choices": [', ErrorCode.CONNECTION, True),
            (b"[" * 100_000, ErrorCode.CONNECTION, True),
            (b"<!doctype html><p>Sign in", ErrorCode.OTHER, False),
            (b"", ErrorCode.CONNECTION, True),
            ({"error": {"message": "slow down", "code": 429}}, ErrorCode.RATE_LIMITED, True),
        ],
    )
    def test_no_answer_in_it(self, server: Loopback, body: object, code: ErrorCode, transient: bool) -> None:
        server.replies = [plain(body)]
        with pytest.raises(LLMError) as caught:
            complete(server.endpoint(), question())
        assert (caught.value.code, caught.value.transient) == (code, transient)


class TestConnections:
    def test_one_connection_serves_many_calls(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        for _ in range(3):
            complete(server.endpoint(), question())
        assert (len(server.received), server.connections) == (3, 1)

    def test_connection_survives_an_error(self, server: Loopback) -> None:
        server.replies = [plain({"error": "no"}, status=500), chunked(ANSWER)]
        with pytest.raises(LLMError):
            complete(server.endpoint(), question())
        complete(server.endpoint(), question())
        assert server.connections == 1

    def test_providers_share_no_connection(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(key="one"), question())
        complete(server.endpoint(key="two"), question())
        assert server.connections == 2

    def test_threads_share_no_connection_and_close_theirs(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        texts: list[str] = []
        threads = [
            threading.Thread(target=lambda: texts.append(complete(server.endpoint(), question()).text))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["Hello."] * 4
        assert server.connections == 4

    def test_stale_connection_is_replaced(self, server: Loopback) -> None:
        def once(connection: object, request: object) -> None:
            chunked(ANSWER)(connection, request)  # type: ignore[arg-type]
            connection.close()  # type: ignore[attr-defined]

        server.replies = [once, chunked(ANSWER)]
        complete(server.endpoint(), question())
        time.sleep(0.05)
        assert complete(server.endpoint(), question()).text == "Hello."

    def test_close_lines_ends_idle_connections(self, server: Loopback) -> None:
        server.replies = [chunked(ANSWER)]
        complete(server.endpoint(), question())
        close_lines()
        complete(server.endpoint(), question())
        assert server.connections == 2


class TestProgress:
    def test_keep_alive_comments_count(self, server: Loopback) -> None:
        calls: list[None] = []
        server.replies = [chunked(*[b": ping\n\n"] * 4, ANSWER, pause_s=0.01)]
        complete(server.endpoint(), question(), on_progress=lambda: calls.append(None))
        assert len(calls) >= 5

    def test_what_progress_raises_ends_the_call(self, server: Loopback) -> None:
        def lost() -> None:
            raise KeyError("claim lost")

        server.replies = [chunked(*[event(delta("x"))] * 20, pause_s=0.01)]
        with pytest.raises(KeyError):
            complete(server.endpoint(), question(), on_progress=lost)


def test_messages_keep_their_wire_fields(server: Loopback) -> None:
    server.replies = [chunked(ANSWER)]
    request = question()
    tool = ChatMessage("tool", ChatMessage.of("tool", "12").parts, {"tool_call_id": "call_1"})
    complete(server.endpoint(), type(request)(request.model_id, (*request.messages, tool)))
    messages = server.received[0].payload["messages"]
    assert messages == [
        {"role": "user", "content": "Hello?"},
        {"role": "tool", "content": "12", "tool_call_id": "call_1"},
    ]


def test_demo_speaks_the_same_language(server: Loopback) -> None:
    server.replies = [chunked(ANSWER)]
    assert complete(server.endpoint(kind="demo"), question()).text == "Hello."


def test_unknown_kind_is_a_mistake_of_the_caller(server: Loopback) -> None:
    with pytest.raises(ValueError, match="Unknown kind"):
        complete(server.endpoint(kind="telepathy"), question())


def test_import_is_light() -> None:
    code = (
        "import sys, arena.llm, arena.llm.pricing, arena.llm.probe, arena.llm.guard; "
        "print(sorted({'httpx', 'httpcore', 'genai_prices', 'django', 'pydantic'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_usage_event_is_not_an_answer(server: Loopback) -> None:
    pieces: list[Reply] = [chunked(USAGE, DONE)]
    server.replies = pieces
    completion = complete(server.endpoint(), question())
    assert (completion.text, completion.finish_reason, completion.ttft_ms) == ("", None, None)
    assert completion.usage.input_tokens == 7
