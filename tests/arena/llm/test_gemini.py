from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from arena.llm import ChatMessage, ChatRequest, Completion, ErrorCode, FilePart, ImagePart, LLMError, TextPart, complete
from arena.llm.gemini import build_payload, check_parameters, openapi_schema
from arena.llm.listing import list_models
from arena.llm.probe import probe
from tests.arena.llm.loopback import KEY, Loopback, as_chunk, chunked, head, plain, question, silent
from tests.arena.llm.vendor_shapes import chunk, google_error, quota_failure, retry_info, sse

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "b": {"type": "string", "description": "Why"},
        "a": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
    },
    "required": ["b", "a"],
    "additionalProperties": False,
}
TEXT = {"text": "Hel"}
COUNTS = {"candidatesTokenCount": 4, "totalTokenCount": 15}
HELLO = (sse(chunk(TEXT)), sse(chunk({"text": "lo."}, finish="STOP", **COUNTS)))


def answer(server: Loopback, request: ChatRequest | None = None, **changes: object) -> Completion:
    base_url = f"http://127.0.0.1:{server.port}/v1beta"
    return complete(server.endpoint(**{"kind": "gemini", "base_url": base_url, **changes}), request or question())


def failure(server: Loopback, request: ChatRequest | None = None, **changes: object) -> LLMError:
    with pytest.raises(LLMError) as caught:
        answer(server, request, **changes)
    return caught.value


class TestRequest:
    def test_what_leaves(self, server: Loopback) -> None:
        server.replies = [chunked(*HELLO)]
        messages = (
            ChatMessage.of("system", "Be brief."),
            ChatMessage.of("user", "One."),
            ChatMessage.of("assistant", "Two."),
            ChatMessage.of("user", "Three."),
        )
        safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
        parameters = {"temperature": 0, "thinkingConfig": {"includeThoughts": True}, "safetySettings": safety}
        answer(server, ChatRequest("gemini-test", messages, parameters=parameters, max_tokens=100))
        (received,) = server.received
        assert received.line.split()[:2] == ["POST", "/v1beta/models/gemini-test:streamGenerateContent?alt=sse"]
        assert received.headers["x-goog-api-key"] == KEY
        assert KEY not in received.line
        assert "authorization" not in received.headers
        assert received.payload == {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "One."}]},
                {"role": "model", "parts": [{"text": "Two."}]},
                {"role": "user", "parts": [{"text": "Three."}]},
            ],
            "generationConfig": {
                "temperature": 0,
                "thinkingConfig": {"includeThoughts": True},
                "maxOutputTokens": 100,
            },
            "safetySettings": safety,
        }

    @pytest.mark.parametrize(
        ("model_id", "path"),
        [
            ("models/gemini-test", "/v1beta/models/gemini-test"),
            ("tunedModels/mine", "/v1beta/tunedModels/mine"),
            ("../../v1/keys?x=1#", "/v1beta/models/..%2F..%2Fv1%2Fkeys%3Fx%3D1%23"),
        ],
    )
    def test_ids_of_models_stay_in_their_place(self, server: Loopback, model_id: str, path: str) -> None:
        server.replies = [chunked(*HELLO)]
        answer(server, ChatRequest(model_id, question().messages))
        assert server.received[0].line.split()[1] == f"{path}:streamGenerateContent?alt=sse"

    @pytest.mark.parametrize(
        ("path", "prefix"), [("", "/v1beta"), ("/v1", "/v1"), ("/v1/projects/p/google", "/v1/projects/p/google")]
    )
    def test_address_with_and_without_version(self, server: Loopback, path: str, prefix: str) -> None:
        server.replies = [chunked(*HELLO)]
        answer(server, base_url=f"http://127.0.0.1:{server.port}{path}")
        assert server.received[0].line.split()[1].startswith(f"{prefix}/models/")

    def test_files(self) -> None:
        pdf = b"%PDF-1.4 \x00\xff"
        parts = (
            FilePart(pdf, "application/pdf", "a.pdf"),
            TextPart("Read."),
            TextPart(""),
            ImagePart(data=b"\x02"),
            ImagePart("https://example.com/a.webp?size=2"),
            ImagePart("data:image/gif;base64,QUJD"),
        )
        payload: Any = build_payload(ChatRequest("m", (ChatMessage("user", parts),)))
        assert payload["contents"][0]["parts"] == [
            {"inlineData": {"mimeType": "application/pdf", "data": b64encode(pdf).decode()}},
            {"text": "Read."},
            {"inlineData": {"mimeType": "image/png", "data": "Ag=="}},
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.com/a.webp?size=2"}},
            {"inlineData": {"mimeType": "image/gif", "data": "QUJD"}},
        ]
        assert "generationConfig" not in payload

    def test_recorded_tools(self) -> None:
        call = {"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
        messages = (
            ChatMessage.of("user", "Rain?"),
            ChatMessage("assistant", (), {"tool_calls": [call]}),
            ChatMessage("tool", (TextPart("Yes."),), {"tool_call_id": "c1"}),
        )
        payload: Any = build_payload(ChatRequest("m", messages))
        assert payload["contents"][1:] == [
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Bonn"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": "Yes."}}}]},
        ]

    def test_forms(self) -> None:
        def config(form: str) -> Any:
            return build_payload(question(structured=form, json_schema=SCHEMA))["generationConfig"]

        assert config("schema") == {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
        assert config("openapi") == {"responseMimeType": "application/json", "responseSchema": openapi_schema(SCHEMA)}
        assert config("json") == {"responseMimeType": "application/json"}
        with pytest.raises(ValueError, match="structured='tool'"):
            config("tool")

    def test_schema_in_the_language_of_openapi(self) -> None:
        assert openapi_schema(SCHEMA) == {
            "type": "OBJECT",
            "properties": {
                "b": {"type": "STRING", "description": "Why"},
                "a": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["x"]}},
            },
            "required": ["b", "a"],
            "propertyOrdering": ["b", "a"],
        }

    @pytest.mark.parametrize(
        "name", ["contents", "generationConfig", "generation_config", "candidateCount", "maxOutputTokens"]
    )
    def test_reserved_parameters(self, name: str) -> None:
        assert check_parameters({"topK": 1, name: {}}) == [
            f'The parameter "{name}" is set by the application and cannot be given.'
        ]
        with pytest.raises(LLMError, match=name):
            build_payload(question(parameters={name: {}}))


class TestAnswer:
    def test_stream(self, server: Loopback) -> None:
        server.replies = [chunked(*HELLO)]
        completion = answer(server)
        assert (completion.text, completion.reasoning, completion.finish_reason) == ("Hello.", "", "stop")
        assert (completion.usage.input_tokens, completion.usage.output_tokens) == (11, 4)
        assert completion.usage.reasoning_tokens is None
        assert completion.model_reported == "gemini-test-1"
        assert completion.streamed
        assert completion.ttft_ms is not None

    def test_thoughts_stay_apart(self, server: Loopback) -> None:
        counts = {
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 30,
            "totalTokenCount": 45,
            "cachedContentTokenCount": 8,
        }
        last = chunk({"text": "", "thoughtSignature": "EjQKMgEM"}, finish="STOP", **counts)
        thought = chunk({"text": "Hm, so.", "thought": True})
        server.replies = [chunked(sse(thought), sse(chunk({"text": "Yes."})), sse(last))]
        completion = answer(server)
        assert (completion.text, completion.reasoning) == ("Yes.", "Hm, so.")
        usage = completion.usage
        assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens) == (11, 34, 30, 8)

    @pytest.mark.parametrize(
        ("counts", "tokens"),
        [
            ({"totalTokenCount": 11}, (11, 0)),
            ({"promptTokenCount": None, "candidatesTokenCount": 3}, (None, 3)),
            ({"candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": None}, (11, 5)),
            ({"candidatesTokenCount": 3, "totalTokenCount": 1}, (11, 3)),
            ({"toolUsePromptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 23}, (20, 3)),
            ({"promptTokenCount": "11", "totalTokenCount": -1}, (None, None)),
        ],
    )
    def test_counts(self, server: Loopback, counts: dict[str, object], tokens: tuple[int | None, int | None]) -> None:
        server.replies = [chunked(sse(chunk({"text": "Hi."}, finish="STOP", **counts)))]
        usage = answer(server).usage
        assert (usage.input_tokens, usage.output_tokens) == tokens

    @pytest.mark.parametrize(
        ("reason", "refused", "truncated"),
        [
            ("MAX_TOKENS", False, True),
            ("SAFETY", True, False),
            ("RECITATION", True, False),
            ("PROHIBITED_CONTENT", True, False),
            ("SPII", True, False),
            ("BLOCKLIST", True, False),
            ("LANGUAGE", False, False),
            ("OTHER", False, False),
        ],
    )
    def test_finish_reasons(self, server: Loopback, reason: str, *, refused: bool, truncated: bool) -> None:
        nothing = {"candidates": [{"finishReason": reason, "index": 0, "safetyRatings": []}]}
        server.replies = [chunked(sse(chunk({"text": "I"})), sse(nothing))]
        completion = answer(server)
        assert (completion.text, completion.finish_reason) == ("I", reason.lower())
        assert (completion.refused, completion.truncated) == (refused, truncated)

    def test_a_blocked_prompt(self, server: Loopback) -> None:
        feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": f"Not {KEY} this.", "safetyRatings": []}
        counts = {"promptTokenCount": 11, "totalTokenCount": 11}
        server.replies = [chunked(sse({"promptFeedback": feedback, "usageMetadata": counts, "modelVersion": "m"}))]
        error = failure(server)
        assert (error.code, error.transient) == (ErrorCode.REFUSED, False)
        assert error.message == "The provider blocked the prompt (PROHIBITED_CONTENT). Not [key removed] this."
        assert (error.usage.input_tokens, error.usage.output_tokens) == (11, 0)

    def test_whole_document_and_a_list_of_events(self, server: Loopback) -> None:
        one = chunk({"text": "Hello."}, finish="STOP", **COUNTS)
        two = [chunk(TEXT), {"usageMetadata": {}}, chunk({"text": "lo."}, finish="STOP", **COUNTS)]
        server.replies = [plain(one), plain(two)]
        for _ in range(2):
            completion = answer(server)
            assert (completion.text, completion.streamed) == ("Hello.", False)
            assert completion.usage.output_tokens == 4

    def test_only_the_first_candidate_is_read(self, server: Loopback) -> None:
        document = chunk({"text": "One"}, {"functionCall": {"name": "f"}}, {"inlineData": {}}, finish="STOP")
        document["candidates"].append({"content": {"parts": [{"text": "Two"}]}, "index": 1})
        server.replies = [chunked(sse(document))]
        assert answer(server).text == "One"


class TestErrors:
    @pytest.mark.parametrize(
        ("code", "status", "message", "expected", "transient"),
        [
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", ErrorCode.AUTH, False),
            (403, "PERMISSION_DENIED", "Your API key was reported as leaked.", ErrorCode.AUTH, False),
            (404, "NOT_FOUND", "models/nil is not found for API version v1beta.", ErrorCode.NOT_FOUND, False),
            (
                400,
                "FAILED_PRECONDITION",
                "User location is not supported for the API use.",
                ErrorCode.BAD_REQUEST,
                False,
            ),
            (500, "INTERNAL", "An internal error has occurred.", ErrorCode.SERVER_ERROR, True),
            (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ErrorCode.SERVER_ERROR, True),
            (504, "DEADLINE_EXCEEDED", "Deadline expired.", ErrorCode.SERVER_ERROR, True),
            (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1091639) exceeds the maximum number of tokens allowed (1048576).",
                ErrorCode.CONTEXT_OVERFLOW,
                False,
            ),
            (
                400,
                "INVALID_ARGUMENT",
                "Request payload size exceeds the limit: 20971520 bytes.",
                ErrorCode.TOO_LARGE,
                False,
            ),
            (
                400,
                "INVALID_ARGUMENT",
                "Budget 0 is invalid. This model only works in thinking mode.",
                ErrorCode.BAD_REQUEST,
                False,
            ),
        ],
    )
    def test_documented_errors(
        self, server: Loopback, code: int, status: str, message: str, expected: ErrorCode, *, transient: bool
    ) -> None:
        server.replies = [
            plain(google_error(code, status, message), code),
            plain([google_error(code, status, message)], code),
        ]
        for _ in range(2):
            error = failure(server)
            assert (error.code, error.transient, error.http_status) == (expected, transient, code)
            assert error.message == message

    @pytest.mark.parametrize(
        ("details", "retry_after_s", "waits"),
        [
            ([quota_failure("RequestsPerMinutePerProject-FreeTier"), retry_info("26s")], 26, True),
            ([retry_info("0.478s")], 0.478, True),
            ([quota_failure("RequestsPerDayPerProject-FreeTier"), retry_info("26s")], 26, False),
            ([{"retryDelay": "soon"}, {"violations": "all"}, 7], None, False),
        ],
    )
    def test_used_up_quotas(
        self, server: Loopback, details: list[Any], retry_after_s: float | None, *, waits: bool
    ) -> None:
        message = "You exceeded your current quota, please check your plan and billing details."
        server.replies = [plain(google_error(429, "RESOURCE_EXHAUSTED", message, *details), 429)]
        error = failure(server)
        assert (error.code, error.retry_after_s, error.counts_as_wait) == (ErrorCode.RATE_LIMITED, retry_after_s, waits)

    @pytest.mark.parametrize(
        ("message", "parameter"),
        [
            ("Unknown name \"topK\" at 'generation_config': Cannot find field.", "topK"),
            ("top_k is not supported by this model", "topK"),
            ("presence_penalty is not enabled for this model", "presencePenalty"),
            ("Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.", "response_format"),
            ("JSON mode is not enabled for this model", "response_format"),
            ("Function calling with a response mime type: 'application/json' is unsupported", "response_format"),
        ],
    )
    def test_refused_parameters(self, server: Loopback, message: str, parameter: str) -> None:
        server.replies = [plain(google_error(400, "INVALID_ARGUMENT", message), 400)]
        given = {"topK": 3, "presencePenalty": 1}
        error = failure(server, question(structured="schema", json_schema=SCHEMA, parameters=given))
        assert (error.code, error.parameter) == (ErrorCode.UNSUPPORTED_PARAMETER, parameter)

    def test_a_level_of_thought_that_a_model_does_not_have(self, server: Loopback) -> None:
        message = "Thinking level is not supported for this model."
        server.replies = [plain(google_error(400, "INVALID_ARGUMENT", message), 400)]
        error = failure(server, question(parameters={"thinkingConfig": {"thinkingLevel": "low"}}))
        assert (error.code, error.parameter) == (ErrorCode.UNSUPPORTED_PARAMETER, "thinkingConfig")

    def test_refused_files(self, server: Loopback) -> None:
        message = "Unsupported MIME type: application/pdf"
        server.replies = [plain(google_error(400, "INVALID_ARGUMENT", message), 400)]
        parts = (FilePart(b"%PDF-1.4", "application/pdf", "a.pdf"),)
        assert failure(server, ChatRequest("m", (ChatMessage("user", parts),))).code is ErrorCode.UNSUPPORTED_INPUT

    def test_error_inside_a_stream(self, server: Loopback) -> None:
        error_event = google_error(503, "UNAVAILABLE", "The model is overloaded.", retry_info("3s"))
        server.replies = [chunked(sse(chunk({"text": "Half"})), sse(error_event))]
        error = failure(server)
        assert (error.code, error.transient, error.retry_after_s) == (ErrorCode.SERVER_ERROR, True, 3)
        assert error.partial_text == "Half"
        # What a stream counts before its end is not what it costs.
        assert error.usage.output_tokens is None


class TestHostile:
    def test_cut_off(self, server: Loopback) -> None:
        server.replies = [chunked(sse(chunk({"text": "Half"}, candidatesTokenCount=1)))]
        error = failure(server)
        assert (error.code, error.transient, error.partial_text) == (ErrorCode.CONNECTION, True, "Half")

    def test_end_mark_without_a_reason(self, server: Loopback) -> None:
        server.replies = [chunked(sse(chunk({"text": "Half"})), b"data: [DONE]\n\n")]
        assert failure(server).code is ErrorCode.CONNECTION

    def test_wrong_json(self, server: Loopback) -> None:
        server.replies = [chunked(HELLO[0], b'data: {"candidates": [\n\n')]
        assert failure(server).message == "The stream contains an event that is not valid JSON."

    @pytest.mark.parametrize(
        "document", [[], [7], {}, {"choices": []}, {"candidates": []}, {"candidates": [{"content": {"parts": "x"}}]}]
    )
    def test_documents_of_others(self, server: Loopback, document: object) -> None:
        server.replies = [plain(document)]
        assert failure(server).code in {ErrorCode.OTHER, ErrorCode.SERVER_ERROR, ErrorCode.CONNECTION}

    def test_ten_megabytes(self, server: Loopback) -> None:
        piece = sse(chunk({"text": "x" * 1_000_000}))
        server.replies = [chunked(*[piece] * 10, HELLO[1])]
        assert len(answer(server).text) == 10_000_003
        with pytest.raises(LLMError, match="larger than"):
            complete(server.endpoint(kind="gemini"), question(), max_bytes=2_000_000)

    def test_silence(self, server: Loopback) -> None:
        server.replies = [silent([head(transfer_encoding="chunked"), as_chunk(HELLO[0])])]
        error = failure(server, read_timeout_s=0.1)
        assert (error.code, error.partial_text) == (ErrorCode.TIMEOUT, "Hel")

    def test_redirects_and_private_addresses(self, server: Loopback) -> None:
        server.replies = [plain(b"", 302, location="http://127.0.0.1:1/")]
        assert failure(server).code is ErrorCode.REDIRECT
        assert failure(server, allow_private=False).code is ErrorCode.BLOCKED_ADDRESS
        assert len(server.received) == 1


def test_probe_finds_the_form_that_is_followed(server: Loopback) -> None:
    unknown = google_error(400, "INVALID_ARGUMENT", 'Unknown name "responseJsonSchema": Cannot find field.')
    ok = chunked(sse(chunk({"text": json.dumps({"ok": True})}, finish="STOP", **COUNTS)))
    word = chunked(sse(chunk({"text": "PELICAN"}, finish="STOP", **COUNTS)))
    server.replies = [plain(unknown, 400), ok, word]
    endpoint = server.endpoint(kind="gemini", base_url=f"http://127.0.0.1:{server.port}/v1beta")
    result = probe(endpoint, "m", parameters={"temperature": 0}, pdf=b"%PDF-1.4", pdf_word="PELICAN")
    assert (result.ok, result.structured, result.changes) == (True, "openapi", ("no_schema",))
    assert (result.streaming, result.pdf_accepted, result.pdf_read) == (True, True, True)
    config: Any = server.received[1].payload["generationConfig"]
    assert config["responseSchema"]["type"] == "OBJECT"
    assert config["temperature"] == 0


def test_list_of_models(server: Loopback) -> None:
    models = [
        {"name": "models/gemini-b", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/gemini-a"},
        {"name": 7},
        "models/odd",
    ]
    server.replies = [plain({"models": models, "nextPageToken": "x"})]
    endpoint = server.endpoint(kind="gemini", base_url=f"http://127.0.0.1:{server.port}/v1beta")
    assert list_models(endpoint) == ["gemini-a", "gemini-b", "models/odd"]
    (received,) = server.received
    assert received.line.split()[1] == "/v1beta/models?pageSize=1000"
    assert received.headers["x-goog-api-key"] == KEY
