from __future__ import annotations

import json

import pytest

from arena.llm import ErrorCode
from arena.llm.classify import Sent, http_error

SENT = Sent(
    "sk-secret-key",
    frozenset(
        {
            "stream_options",
            "temperature",
            "max_tokens",
            "response_format",
            "top_k",
            "reasoning_effort",
        }
    ),
    has_files=False,
)
WITH_FILES = Sent(None, SENT.parameters, has_files=True)


def _error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            _error(
                "This model's maximum context length is 8192 tokens. Your messages resulted in 9000.",
                code="context_length_exceeded",
                param="messages",
            ),
        ),
        (400, _error("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")),
        (
            400,
            _error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        ),
        (400, _error("the request exceeds the available context size", type="exceed_context_size_error")),
        (
            400,
            {"object": "error", "message": "max_tokens must be at least 1, got -12.", "code": 400},
        ),
        (400, _error("Please reduce the length of the messages or completion.")),
        (413, _error("Input is too long for requested model.")),
        (422, _error("Prompt contains too many tokens")),
        (500, _error("the request exceeds the available context size. try increasing the context size")),
    ],
)
def test_context_overflow(status: int, body: object) -> None:
    error = http_error(status, {}, json.dumps(body).encode(), SENT)
    assert (error.code, error.transient) == (ErrorCode.CONTEXT_OVERFLOW, False)


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        (
            _error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                code="unsupported_parameter",
                param="max_tokens",
            ),
            "max_tokens",
        ),
        (
            _error(
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1).",
                code="unsupported_value",
                param="temperature",
            ),
            "temperature",
        ),
        (_error("`temperature` is deprecated for this model."), "temperature"),
        (_error("Unrecognized request argument supplied: top_k"), "top_k"),
        (_error('Invalid JSON payload received. Unknown name "top_k": Cannot find field.'), "top_k"),
        (_error("This response_format type is unavailable now"), "response_format"),
        (_error("Invalid schema for response_format 'reply'", param="response_format"), "response_format"),
        (_error("json_schema is not supported by this engine"), "response_format"),
        (_error("Unknown field", param="response_format.json_schema"), "response_format"),
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs"}]},
            "stream_options",
        ),
        (_error("Thinking: reasoning_effort is not supported."), "reasoning_effort"),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_unsupported_parameter(status: int, body: object, parameter: str) -> None:
    error = http_error(status, {}, json.dumps(body).encode(), SENT)
    assert (error.code, error.parameter) == (ErrorCode.UNSUPPORTED_PARAMETER, parameter)
    assert not error.transient


@pytest.mark.parametrize(
    "body",
    [
        # A value out of range is for the user to mend; dropping it would hide it.
        _error("max_tokens is too large: 200000. This model supports at most 16384.", param="max_tokens"),
        _error("temperature must be between 0 and 2", param="temperature"),
        _error("Unsupported role 'developer'", param="messages[0].role"),
        _error("Unsupported model: it does not support temperature", param="model"),
        _error("seed is not supported"),
        "plain words",
        ["list"],
        [],
        None,
        {"detail": "Not what we expected"},
    ],
)
def test_plain_bad_request(body: object) -> None:
    error = http_error(400, {}, json.dumps(body).encode(), SENT)
    assert (error.code, error.transient, error.http_status) == (ErrorCode.BAD_REQUEST, False, 400)
    assert error.message


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "unknown variant `file`, expected `text`"),
        (404, "No endpoints found that support image input"),
        (415, "Unsupported media type"),
        (422, "messages[0].content must be a string"),
        (400, "This model does not support PDF documents"),
    ],
)
def test_unsupported_input_only_when_files_were_sent(status: int, message: str) -> None:
    body = json.dumps(_error(message)).encode()
    assert http_error(status, {}, body, WITH_FILES).code is ErrorCode.UNSUPPORTED_INPUT
    assert http_error(status, {}, body, SENT).code in {ErrorCode.BAD_REQUEST, ErrorCode.NOT_FOUND}


def test_file_that_is_too_large() -> None:
    body = json.dumps(_error("The PDF has too many pages")).encode()
    assert http_error(400, {}, body, WITH_FILES).code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize(
    ("status", "code", "transient", "counts_as_wait"),
    [
        (401, ErrorCode.AUTH, False, False),
        (402, ErrorCode.AUTH, False, False),
        (403, ErrorCode.AUTH, False, False),
        (404, ErrorCode.NOT_FOUND, False, False),
        (408, ErrorCode.TIMEOUT, True, False),
        (409, ErrorCode.SERVER_ERROR, True, False),
        (413, ErrorCode.TOO_LARGE, False, False),
        (418, ErrorCode.BAD_REQUEST, False, False),
        (425, ErrorCode.SERVER_ERROR, True, False),
        (429, ErrorCode.RATE_LIMITED, True, True),
        (500, ErrorCode.SERVER_ERROR, True, False),
        (503, ErrorCode.SERVER_ERROR, True, False),
        (529, ErrorCode.SERVER_ERROR, True, True),
        (599, ErrorCode.SERVER_ERROR, True, False),
    ],
)
def test_statuses(status: int, code: ErrorCode, transient: bool, counts_as_wait: bool) -> None:
    error = http_error(status, {}, b'{"error": {"message": "no"}}', SENT)
    assert (error.code, error.transient, error.counts_as_wait) == (code, transient, counts_as_wait)


def test_overload_that_names_a_time_is_a_wait() -> None:
    error = http_error(503, {"retry-after": "3"}, b"", SENT)
    assert (error.counts_as_wait, error.retry_after_s) == (True, 3)


def test_exhausted_quota_is_no_wait() -> None:
    body = json.dumps(_error("You exceeded your current quota", code="insufficient_quota")).encode()
    error = http_error(429, {}, body, SENT)
    assert (error.code, error.transient, error.counts_as_wait) == (ErrorCode.RATE_LIMITED, True, False)


def test_filtered_prompt() -> None:
    body = json.dumps(_error("The response was filtered", code="content_filter")).encode()
    assert http_error(400, {}, body, SENT).code is ErrorCode.REFUSED


def test_words_of_the_provider_behind_a_router() -> None:
    body = json.dumps(_error("Provider returned error", metadata={"raw": "temperature: unsupported"})).encode()
    error = http_error(400, {}, body, SENT)
    assert error.message == "Provider returned error: temperature: unsupported"
    assert error.parameter == "temperature"


def test_body_of_nonsense() -> None:
    assert http_error(400, {}, b"\xff\xfe" + b"[" * 5000, SENT).code is ErrorCode.BAD_REQUEST
