from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest

from arena.llm import ChatMessage, ChatRequest, Completion, ErrorCode, FilePart, ImagePart, LLMError, TextPart, complete
from arena.llm.anthropic import build_payload, check_parameters
from arena.llm.listing import list_models
from arena.llm.pricing import Price, cost_usd
from arena.llm.probe import probe
from tests.arena.llm.loopback import KEY, Loopback, as_chunk, chunked, event, head, plain, question, silent
from tests.arena.llm.vendor_shapes import (
    PING,
    anthropic_error,
    message_end,
    message_start,
    sse,
    text_block,
    thinking_block,
    tool_block,
)

SCHEMA: dict[str, object] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
HELLO = (message_start(), PING, text_block("Hel", "lo."), message_end())


def ask(text: str = "Hello?", **changes: Any) -> ChatRequest:
    return question(text, **{"max_tokens": 100, **changes})


def answer(server: Loopback, request: ChatRequest | None = None, **changes: object) -> Completion:
    return complete(server.endpoint(kind="anthropic", **changes), request or ask())


def failure(server: Loopback, request: ChatRequest | None = None, **changes: object) -> LLMError:
    with pytest.raises(LLMError) as caught:
        answer(server, request, **changes)
    return caught.value


class TestRequest:
    def test_what_leaves(self, server: Loopback) -> None:
        server.replies = [chunked(*HELLO)]
        messages = (
            ChatMessage.of("system", "Be brief."),
            ChatMessage.of("developer", "Be kind."),
            ChatMessage.of("user", "One."),
            ChatMessage.of("user", "Two."),
            ChatMessage.of("assistant", ""),
            ChatMessage.of("user", "Three."),
        )
        answer(server, ChatRequest("claude-test", messages, parameters={"top_k": 5, "max_tokens": 9}, max_tokens=100))
        (received,) = server.received
        assert received.line.split()[:2] == ["POST", "/v1/messages"]
        assert (received.headers["x-api-key"], received.headers["anthropic-version"]) == (KEY, "2023-06-01")
        assert "authorization" not in received.headers
        texts = [{"type": "text", "text": text} for text in ("One.", "Two.", "Three.")]
        assert received.payload == {
            "model": "claude-test",
            "max_tokens": 100,
            "system": "Be brief.\n\nBe kind.",
            "messages": [{"role": "user", "content": texts}],
            "top_k": 5,
            "stream": True,
        }

    @pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/proxy", "/proxy/v1"])
    def test_address_with_and_without_version(self, server: Loopback, path: str) -> None:
        server.replies = [chunked(*HELLO)]
        answer(server, base_url=f"http://127.0.0.1:{server.port}{path}")
        prefix = "/proxy" if "proxy" in path else ""
        assert server.received[0].line.split()[1] == f"{prefix}/v1/messages"

    def test_files(self) -> None:
        pdf = b"%PDF-1.4 \x00\xff"
        parts = (
            TextPart("Read."),
            FilePart(pdf, "application/pdf", "契約.pdf"),
            FilePart(b"\x01", "image/jpeg", "a.jpg"),
            ImagePart(data=b"\x02"),
            ImagePart("https://example.com/a.png"),
            ImagePart("data:image/gif;base64,QUJD"),
        )
        payload: Any = build_payload(ChatRequest("m", (ChatMessage("user", parts),), max_tokens=1))
        encoded = b64encode(pdf).decode()
        assert payload["messages"][0]["content"] == [
            {"type": "text", "text": "Read."},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": encoded},
                "title": "契約.pdf",
            },
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AQ=="}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Ag=="}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QUJD"}},
        ]

    def test_recorded_tools(self) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
        messages = (
            ChatMessage.of("user", "Rain?"),
            ChatMessage("assistant", (), {"tool_calls": [call, {"id": "c2", "function": {"arguments": "no"}}]}),
            ChatMessage("tool", (TextPart("Yes."),), {"tool_call_id": "c1"}),
            ChatMessage.of("user", "So?"),
        )
        payload: Any = build_payload(ChatRequest("m", messages, max_tokens=1))
        assert [turn["role"] for turn in payload["messages"]] == ["user", "assistant", "user"]
        assert payload["messages"][1]["content"] == [
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bonn"}},
            {"type": "tool_use", "id": "c2", "name": "", "input": {"arguments": "no"}},
        ]
        assert payload["messages"][2]["content"] == [
            {"type": "tool_result", "tool_use_id": "c1", "content": "Yes."},
            {"type": "text", "text": "So?"},
        ]

    def test_forms(self) -> None:
        effort = {"output_config": {"effort": "low"}, "tools": [{"name": "own"}]}
        payload: Any = build_payload(ask(structured="schema", json_schema=SCHEMA, parameters=effort))
        assert payload["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
        payload = build_payload(ask(structured="tool", json_schema=SCHEMA, schema_name="verdict", parameters=effort))
        assert [tool["name"] for tool in payload["tools"]] == ["own", "verdict"]
        assert payload["tools"][1]["input_schema"] == SCHEMA
        assert payload["tool_choice"] == {"type": "tool", "name": "verdict", "disable_parallel_tool_use": True}
        assert "format" not in payload["output_config"]
        with pytest.raises(ValueError, match="structured='json'"):
            build_payload(ask(structured="json"))

    def test_a_limit_is_needed(self, server: Loopback) -> None:
        error = failure(server, question())
        assert (error.code, error.transient) == (ErrorCode.BAD_REQUEST, False)
        assert server.received == []

    def test_reserved_parameters(self) -> None:
        given = {"temperature": 0, "stream": False, "output_config": {"effort": "low", "format": {}}}
        assert len(check_parameters(given)) == 2
        assert "must be an object" in check_parameters({"output_config": "low"})[0]
        assert check_parameters({"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}) == []
        with pytest.raises(LLMError, match="stream"):
            build_payload(ask(parameters={"stream": False}))


class TestAnswer:
    def test_stream(self, server: Loopback) -> None:
        server.replies = [chunked(*HELLO)]
        completion = answer(server)
        assert (completion.text, completion.reasoning, completion.finish_reason) == ("Hello.", "", "end_turn")
        assert (completion.usage.input_tokens, completion.usage.output_tokens) == (25, 15)
        assert completion.usage.billed_input_tokens is None
        assert completion.model_reported == "claude-test-1-20260101"
        assert completion.streamed
        assert completion.ttft_ms is not None
        assert not completion.refused
        assert not completion.truncated

    def test_any_cut_of_the_bytes_says_the_same(self, server: Loopback) -> None:
        whole = b"".join([message_start(), thinking_block("考える"), text_block("答え", index=1), message_end()])
        server.replies = [chunked(*(whole[at : at + 7] for at in range(0, len(whole), 7)))]
        completion = answer(server)
        assert (completion.text, completion.reasoning) == ("答え", "考える")

    def test_thinking_stays_apart(self, server: Loopback) -> None:
        counts = {"output_tokens": 90, "output_tokens_details": {"thinking_tokens": 60}}
        redacted = {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "x"},
        }
        end = message_end(**counts)
        server.replies = [
            chunked(message_start(), thinking_block("Hm, ", "so."), sse(redacted), text_block("Yes."), end)
        ]
        completion = answer(server)
        assert (completion.text, completion.reasoning) == ("Yes.", "Hm, so.")
        assert (completion.usage.output_tokens, completion.usage.reasoning_tokens) == (90, 60)

    def test_reply_by_tool(self, server: Loopback) -> None:
        stream = (
            message_start(),
            thinking_block("Hm."),
            text_block("Here it is.", index=1),
            tool_block('{"ok"', ": true}", index=2),
            message_end("tool_use"),
        )
        server.replies = [chunked(*stream)]
        completion = answer(server, ask(structured="tool", json_schema=SCHEMA))
        assert (completion.text, completion.reasoning) == ('{"ok": true}', "Hm.\n\nHere it is.")
        assert completion.ttft_ms is not None

    def test_a_tool_of_the_model_is_no_answer(self, server: Loopback) -> None:
        server.replies = [chunked(message_start(), tool_block('{"q": 1}', name="search"), message_end("tool_use"))]
        assert answer(server, ask(parameters={"tools": [{"name": "search"}]})).text == ""

    def test_whole_document(self, server: Loopback) -> None:
        document = {
            "type": "message",
            "model": "m-1",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "name": "reply", "input": {"ok": True}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }
        server.replies = [plain(document)]
        completion = answer(server, ask(structured="tool", json_schema=SCHEMA))
        assert (json.loads(completion.text), completion.reasoning) == ({"ok": True}, "Hm.")
        assert (completion.usage.input_tokens, completion.usage.output_tokens) == (3, 4)
        assert not completion.streamed

    @pytest.mark.parametrize(
        ("reason", "refused", "truncated"),
        [
            ("refusal", True, False),
            ("max_tokens", False, True),
            ("model_context_window_exceeded", False, True),
            ("stop_sequence", False, False),
            ("pause_turn", False, False),
        ],
    )
    def test_stop_reasons(self, server: Loopback, reason: str, refused: bool, truncated: bool) -> None:
        server.replies = [chunked(message_start(), text_block("I"), message_end(reason))]
        completion = answer(server)
        assert (completion.finish_reason, completion.refused, completion.truncated) == (reason, refused, truncated)

    def test_events_of_tomorrow_are_passed_over(self, server: Loopback) -> None:
        odd = [
            {"type": "message_note", "note": 1},
            {"type": "content_block_delta", "index": [], "delta": None},
            {"type": None},
        ]
        server.replies = [chunked(message_start(), *map(event, odd), text_block("Hi."), message_end())]
        assert answer(server).text == "Hi."


class TestCost:
    PRICE = Price(Decimal(3), Decimal(15))

    def test_the_cache_is_counted_and_priced_apart(self, server: Loopback) -> None:
        counts = {
            "input_tokens": 100,
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
        }
        server.replies = [chunked(message_start(**counts), text_block("Hi."), message_end(output_tokens=10))]
        usage = answer(server).usage
        assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1400, 1000, 10)
        # 100 + 1000 / 10 + 200 * 1.25 + 100 * 2 tokens of the full price.
        assert usage.billed_input_tokens == 650
        assert cost_usd(usage, self.PRICE) == (650 * Decimal(3) + 10 * Decimal(15)) / 1_000_000

    def test_later_counts_replace_earlier_ones(self, server: Loopback) -> None:
        more = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 4}}
        end = message_end(input_tokens=40, output_tokens=9, cache_read_input_tokens=None)
        server.replies = [chunked(message_start(), sse(more), text_block("Hi."), end)]
        usage = answer(server).usage
        assert (usage.input_tokens, usage.output_tokens) == (40, 9)

    def test_a_broken_stream_does_not_say_what_it_cost(self, server: Loopback) -> None:
        server.replies = [chunked(message_start(), text_block("Half an ans"), finish=False)]
        error = failure(server)
        assert (error.usage.input_tokens, error.usage.output_tokens) == (25, None)
        assert cost_usd(error.usage, self.PRICE) is None


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "kind", "message", "code", "transient", "waits"),
        [
            (401, "authentication_error", "invalid x-api-key", ErrorCode.AUTH, False, False),
            (402, "billing_error", "Check your billing.", ErrorCode.AUTH, False, False),
            (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API.",
                ErrorCode.AUTH,
                False,
                False,
            ),
            (403, "permission_error", "Your key may not use this.", ErrorCode.AUTH, False, False),
            (404, "not_found_error", "model: claude-nil", ErrorCode.NOT_FOUND, False, False),
            (413, "request_too_large", "Request exceeds the maximum size", ErrorCode.TOO_LARGE, False, False),
            (429, "rate_limit_error", "This would exceed your rate limit.", ErrorCode.RATE_LIMITED, True, True),
            (500, "api_error", "Internal server error", ErrorCode.SERVER_ERROR, True, False),
            (504, "timeout_error", "Timed out.", ErrorCode.SERVER_ERROR, True, False),
            (529, "overloaded_error", "Overloaded", ErrorCode.SERVER_ERROR, True, True),
            (
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                ErrorCode.CONTEXT_OVERFLOW,
                False,
                False,
            ),
            (
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
                ErrorCode.CONTEXT_OVERFLOW,
                False,
                False,
            ),
            (
                400,
                "invalid_request_error",
                "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m",
                ErrorCode.BAD_REQUEST,
                False,
                False,
            ),
        ],
    )
    def test_documented_errors(
        self, server: Loopback, status: int, kind: str, message: str, code: ErrorCode, *, transient: bool, waits: bool
    ) -> None:
        server.replies = [plain(anthropic_error(kind, message), status)]
        error = failure(server)
        assert (error.code, error.transient, error.counts_as_wait) == (code, transient, waits)
        assert error.http_status == status
        assert message in error.message

    def test_time_to_wait(self, server: Loopback) -> None:
        server.replies = [plain(anthropic_error("rate_limit_error", "Slow down."), 429, retry_after="17")]
        assert failure(server).retry_after_s == 17

    @pytest.mark.parametrize(
        ("message", "parameter"),
        [
            ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
            ("`temperature` is deprecated for this model.", "temperature"),
            ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "temperature"),
            ("top_k: Extra inputs are not permitted", "top_k"),
            ("output_config.effort: This model does not support the effort parameter.", "output_config"),
            ("output_config.format: Extra inputs are not permitted", "response_format"),
            ("This model does not support structured outputs.", "response_format"),
        ],
    )
    def test_refused_parameters(self, server: Loopback, message: str, parameter: str) -> None:
        server.replies = [plain(anthropic_error("invalid_request_error", message), 400)]
        given = {"temperature": 0, "top_p": 1, "top_k": 3, "output_config": {"effort": "low"}}
        error = failure(server, ask(structured="schema", json_schema=SCHEMA, parameters=given))
        assert error.parameter == parameter
        assert error.code is ErrorCode.UNSUPPORTED_PARAMETER

    def test_a_forced_tool_beside_thinking(self, server: Loopback) -> None:
        message = "Thinking may not be enabled when tool_choice forces tool use."
        server.replies = [plain(anthropic_error("invalid_request_error", message), 400)]
        given = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        error = failure(server, ask(structured="tool", json_schema=SCHEMA, parameters=given))
        assert (error.code, error.parameter) == (ErrorCode.UNSUPPORTED_PARAMETER, "response_format")

    @pytest.mark.parametrize(
        ("message", "code"),
        [
            ("'claude-old' does not support PDF input.", ErrorCode.UNSUPPORTED_INPUT),
            (
                "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.",
                ErrorCode.UNSUPPORTED_INPUT,
            ),
            ("A maximum of 100 PDF pages may be provided.", ErrorCode.TOO_LARGE),
        ],
    )
    def test_refused_files(self, server: Loopback, message: str, code: ErrorCode) -> None:
        server.replies = [plain(anthropic_error("invalid_request_error", message), 400)]
        parts = (FilePart(b"%PDF-1.4", "application/pdf", "a.pdf"),)
        assert failure(server, ChatRequest("m", (ChatMessage("user", parts),), max_tokens=5)).code is code

    @pytest.mark.parametrize(
        ("kind", "code", "waits"),
        [
            ("overloaded_error", ErrorCode.SERVER_ERROR, True),
            ("rate_limit_error", ErrorCode.RATE_LIMITED, True),
            ("api_error", ErrorCode.SERVER_ERROR, False),
        ],
    )
    def test_error_inside_a_stream(self, server: Loopback, kind: str, code: ErrorCode, *, waits: bool) -> None:
        server.replies = [chunked(message_start(), text_block("Half"), sse(anthropic_error(kind, "No more.")))]
        error = failure(server)
        assert (error.code, error.transient, error.counts_as_wait) == (code, True, waits)
        assert (error.partial_text, error.message) == ("Half", "No more.")

    def test_the_key_is_taken_out_of_what_is_said(self, server: Loopback) -> None:
        server.replies = [plain(anthropic_error("authentication_error", f"invalid x-api-key {KEY}"), 401)]
        error = failure(server)
        assert KEY not in str(error)
        assert "[key removed]" in error.message


class TestHostile:
    def test_cut_off(self, server: Loopback) -> None:
        server.replies = [chunked(message_start(), thinking_block("Hm."), text_block("Half"))]
        error = failure(server)
        assert (error.code, error.transient) == (ErrorCode.CONNECTION, True)
        assert (error.partial_text, error.partial_reasoning) == ("Half", "Hm.")

    @pytest.mark.parametrize("end", [sse({"type": "message_stop"}), b"data: [DONE]\n\n", message_end(None)])
    def test_an_end_without_a_reason_is_none(self, server: Loopback, end: bytes) -> None:
        server.replies = [chunked(message_start(), text_block("Half"), end)]
        assert failure(server).code is ErrorCode.CONNECTION

    def test_wrong_json(self, server: Loopback) -> None:
        server.replies = [chunked(message_start(), b'data: {"type": "content_bl\n\n', message_end())]
        assert failure(server).message == "The stream contains an event that is not valid JSON."

    @pytest.mark.parametrize("document", [[], 7, {"choices": []}, {"content": "text"}])
    def test_documents_of_others(self, server: Loopback, document: object) -> None:
        server.replies = [plain(document)]
        assert failure(server).code in {ErrorCode.OTHER, ErrorCode.CONNECTION}

    def test_ten_megabytes(self, server: Loopback) -> None:
        piece = "x" * 1_000_000
        server.replies = [chunked(message_start(), *(text_block(piece) for _ in range(10)), message_end())]
        assert len(answer(server).text) == 10_000_000
        with pytest.raises(LLMError, match="larger than"):
            complete(server.endpoint(kind="anthropic"), ask(), max_bytes=2_000_000)

    def test_silence(self, server: Loopback) -> None:
        pieces = [head(transfer_encoding="chunked"), as_chunk(message_start() + text_block("Half"))]
        server.replies = [silent(pieces)]
        error = failure(server, read_timeout_s=0.1)
        assert (error.code, error.partial_text) == (ErrorCode.TIMEOUT, "Half")

    def test_redirects_are_not_followed(self, server: Loopback) -> None:
        server.replies = [plain(b"", 307, location="http://127.0.0.1:1/")]
        assert failure(server).code is ErrorCode.REDIRECT
        assert len(server.received) == 1

    def test_private_addresses_are_blocked(self, server: Loopback) -> None:
        assert failure(server, allow_private=False).code is ErrorCode.BLOCKED_ADDRESS
        assert server.connections == 0


class TestProbe:
    def test_the_schema_is_followed(self, server: Loopback) -> None:
        server.replies = [chunked(message_start(), text_block('{"ok": true}'), message_end())]
        result = probe(server.endpoint(kind="anthropic"), "m")
        assert (result.ok, result.structured, result.streaming, result.changes) == (True, "schema", True, ())

    def test_from_the_schema_to_the_tool(self, server: Loopback) -> None:
        refusal = anthropic_error("invalid_request_error", "output_config.format: Extra inputs are not permitted")
        by_tool = chunked(message_start(), tool_block('{"ok": true}'), message_end("tool_use"))
        word = chunked(message_start(), text_block("PELICAN"), message_end())
        server.replies = [plain(refusal, 400), by_tool, word]
        result = probe(server.endpoint(kind="anthropic"), "m", pdf=b"%PDF-1.4", pdf_word="PELICAN")
        assert (result.structured, result.changes) == ("tool", ("no_schema",))
        assert (result.pdf_accepted, result.pdf_read) == (True, True)
        assert "calling a tool" in result.sentence
        assert "tools" not in server.received[2].payload

    def test_neither(self, server: Loopback) -> None:
        schema = anthropic_error("invalid_request_error", "output_config: Extra inputs are not permitted")
        tool = anthropic_error("invalid_request_error", "tools: this model does not take tools")
        word = chunked(message_start(), text_block('{"ok": true}'), message_end())
        server.replies = [plain(schema, 400), plain(tool, 400), word]
        result = probe(server.endpoint(kind="anthropic"), "m")
        assert (result.ok, result.structured, result.changes) == (True, None, ("no_schema", "no_tool"))


def test_list_of_models(server: Loopback) -> None:
    data = [{"type": "model", "id": "claude-b", "display_name": "B"}, {"type": "model", "id": "claude-a"}]
    server.replies = [plain({"data": data, "has_more": False, "first_id": "claude-b", "last_id": "claude-a"})]
    assert list_models(server.endpoint(kind="anthropic")) == ["claude-a", "claude-b"]
    (received,) = server.received
    assert received.line.split()[1] == "/v1/models?limit=1000"
    assert (received.headers["x-api-key"], received.headers["anthropic-version"]) == (KEY, "2023-06-01")
