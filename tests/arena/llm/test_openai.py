from __future__ import annotations

from base64 import b64encode
from decimal import Decimal

import pytest

from arena.llm import ChatMessage, ChatRequest, FilePart, ImagePart, LLMError, TextPart, Usage
from arena.llm.encoding import _Cache
from arena.llm.openai import build_payload, check_parameters, read_usage
from tests.arena.llm.loopback import question


def _content(*parts: TextPart | FilePart | ImagePart) -> object:
    messages = build_payload(ChatRequest("m", (ChatMessage("user", parts),)))["messages"]
    assert isinstance(messages, list)
    return messages[0]["content"]


def test_text_stays_a_plain_string() -> None:
    assert _content(TextPart("a"), TextPart("b")) == "a\nb"
    assert _content() == ""


def test_file_part() -> None:
    data = b"%PDF-1.4 \x00\xff"
    assert _content(TextPart("Read."), FilePart(data, "application/pdf", "契約.pdf")) == [
        {"type": "text", "text": "Read."},
        {
            "type": "file",
            "file": {
                "filename": "契約.pdf",
                "file_data": "data:application/pdf;base64," + b64encode(data).decode(),
            },
        },
    ]


def test_images() -> None:
    encoded = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI="}}
    assert _content(FilePart(b"\x01\x02", "image/png", "a.png")) == [encoded]
    assert _content(ImagePart(data=b"\x01\x02")) == [encoded]
    by_address = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert _content(ImagePart("https://example.com/a.png")) == [by_address]
    with pytest.raises(ValueError, match="an image needs"):
        _content(ImagePart())


def test_file_with_a_digest_is_read_once() -> None:
    reads: list[None] = []

    def load() -> bytes:
        reads.append(None)
        return b"once"

    part = FilePart(load, "application/pdf", "a.pdf", digest="test-openai-read-once")
    assert _content(part) == _content(part)
    assert len(reads) == 1
    other_type = FilePart(load, "text/plain", "a.txt", digest="test-openai-read-once")
    assert "data:text/plain" in str(_content(other_type))


def test_file_without_a_digest_is_read_each_time() -> None:
    contents = iter([b"one", b"two"])
    part = FilePart(lambda: next(contents), "application/pdf", "a.pdf")
    assert _content(part) != _content(part)


def test_encoded_files_are_kept_within_a_limit() -> None:
    cache = _Cache(10)
    cache.put("a", "12345")
    cache.put("b", "12345")
    assert cache.get("a") == "12345"
    cache.put("c", "1234")
    assert [cache.get(name) for name in "abc"] == ["12345", None, "1234"]
    cache.put("d", "12345678901")
    assert cache.get("d") is None
    cache.put("a", "1")
    cache.put("e", "12345")
    assert [cache.get(name) for name in "ace"] == ["1", "1234", "12345"]


def test_structured_output() -> None:
    schema = {"type": "object"}
    payload = build_payload(question(structured="schema", json_schema=schema, schema_name="verdict"))
    assert payload["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": schema},
    }
    assert build_payload(question(structured="json"))["response_format"] == {"type": "json_object"}
    with pytest.raises(ValueError, match="needs a json_schema"):
        build_payload(question(structured="schema"))


def test_cap_of_the_request_wins_over_parameters() -> None:
    parameters = {"max_tokens": 9999, "top_p": 0.5}
    payload = build_payload(question(max_tokens=5, max_tokens_field="max_completion_tokens", parameters=parameters))
    assert "max_tokens" not in payload
    assert (payload["max_completion_tokens"], payload["top_p"]) == (5, 0.5)
    assert build_payload(question(parameters=parameters))["max_tokens"] == 9999


@pytest.mark.parametrize("name", ["model", "messages", "stream", "stream_options", "n"])
def test_reserved_parameters(name: str) -> None:
    assert check_parameters({"temperature": 0, name: 1}) == [
        f'The parameter "{name}" is set by the application and cannot be given.'
    ]
    with pytest.raises(LLMError, match=name):
        build_payload(question(parameters={name: 1}))


def test_usage_can_be_left_out() -> None:
    assert "stream_options" not in build_payload(question(include_usage=False))


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        ([], Usage()),
        ({"prompt_tokens": None, "completion_tokens": "3"}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": True}, Usage()),
        ({"prompt_tokens": 10**30, "completion_tokens": 3.0}, Usage(output_tokens=3)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 20,
                "total_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 15},
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(10, 20, 15, 4),
        ),
        # Reasoning left out of the completion, as the total shows.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 20,
                "total_tokens": 45,
                "completion_tokens_details": {"reasoning_tokens": 15},
                "prompt_tokens_details": None,
            },
            Usage(10, 35, 15),
        ),
        ({"prompt_tokens": 1, "completion_tokens": 9, "reasoning_tokens": 5}, Usage(1, 9, 5)),
        ({"cost": 0}, Usage(cost_usd=Decimal(0))),
        ({"cost": "0.25"}, Usage(cost_usd=Decimal("0.25"))),
        ({"cost": {"total_cost": 0.006}}, Usage(cost_usd=Decimal("0.006"))),
        ({"cost": -1}, Usage()),
        ({"cost": float("inf")}, Usage()),
        ({"cost": "much"}, Usage()),
        (
            {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}},
            Usage(cost_usd=Decimal("0.021")),
        ),
    ],
)
def test_usage(reported: object, usage: Usage) -> None:
    assert read_usage(reported) == usage
