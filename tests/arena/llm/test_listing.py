from __future__ import annotations

import pytest

from arena.llm.errors import ErrorCode, LLMError
from arena.llm.families import KNOWN_FAMILIES, guess_family
from arena.llm.listing import MAX_BYTES, MAX_MODELS, list_models
from tests.arena.llm.loopback import KEY, Loopback, plain, silent


def listing(*ids: object) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name} for name in ids]}


def test_the_ids_are_sorted_and_the_key_goes_along(server: Loopback) -> None:
    server.replies = [plain(listing("b", "A", "b", "", None, 7, "c" * 300))]
    assert list_models(server.endpoint()) == ["A", "b"]
    assert server.received[0].line == "GET /v1/models HTTP/1.1"
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("body", [["x", "y"], {"models": [{"name": "x"}, {"name": "y"}]}])
def test_other_shapes_of_the_list(server: Loopback, body: object) -> None:
    server.replies = [plain(body)]
    assert list_models(server.endpoint()) == ["x", "y"]


def test_a_redirect_is_not_followed(server: Loopback) -> None:
    target = f"http://127.0.0.1:{server.port}/elsewhere"
    server.replies = [plain(b"", status=302, location=target), plain(listing("stolen"))]
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint())
    assert error.value.code is ErrorCode.REDIRECT
    assert len(server.received) == 1


@pytest.mark.parametrize(("status", "code"), [(401, ErrorCode.AUTH), (404, ErrorCode.NOT_FOUND)])
def test_errors_have_their_code_and_no_key(server: Loopback, status: int, code: ErrorCode) -> None:
    server.replies = [plain({"error": {"message": f"Bad key {KEY}"}}, status=status)]
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint())
    assert error.value.code is code
    assert KEY not in f"{error.value!r} {error.value}"
    assert error.value.__context__ is None


@pytest.mark.parametrize("body", [b"<html>", b'{"data": "x"}', b"[" * 100_000])
def test_what_is_no_list_is_said_to_be_none(server: Loopback, body: bytes) -> None:
    server.replies = [plain(body)]
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint())
    assert error.value.code is ErrorCode.OTHER


def test_the_list_is_bounded(server: Loopback) -> None:
    server.replies = [plain(listing(*(f"m{n}" for n in range(MAX_MODELS + 500)))), plain(b" " * (MAX_BYTES + 1))]
    assert len(list_models(server.endpoint())) == MAX_MODELS
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint())
    assert error.value.code is ErrorCode.TOO_LARGE


def test_a_silent_server_is_given_up(server: Loopback) -> None:
    server.replies = [silent(seconds=2)]
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint(), deadline_s=0.2)
    assert error.value.code is ErrorCode.TIMEOUT


def test_loopback_is_blocked_where_private_addresses_are(server: Loopback) -> None:
    server.replies = [plain(listing("x"))]
    with pytest.raises(LLMError) as error:
        list_models(server.endpoint(allow_private=False))
    assert error.value.code is ErrorCode.BLOCKED_ADDRESS
    assert server.connections == 0


@pytest.mark.parametrize(
    ("model_id", "family"),
    [
        ("gpt-4o-mini", "openai"),
        ("openai/gpt-oss-120b", "openai"),
        ("o3-mini", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("anthropic/claude-sonnet-4.5", "anthropic"),
        ("gemini-2.5-pro", "google"),
        ("gemma3:27b", "google"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta"),
        ("llama3.1:8b", "meta"),
        ("mixtral-8x7b", "mistral"),
        ("mistralai/Mistral-Small-24B", "mistral"),
        ("qwen3:32b", "qwen"),
        ("Qwen/QwQ-32B", "qwen"),
        ("deepseek-r1-distill-llama-70b", "deepseek"),
        ("nvidia/llama-3.1-nemotron-70b", "nvidia"),
        ("x-ai/grok-4", "xai"),
        ("phi-4", "microsoft"),
        ("house-model-7", ""),
        ("supernova-1", ""),
    ],
)
def test_the_family_is_guessed_from_the_id(model_id: str, family: str) -> None:
    assert guess_family(model_id) == family
    assert not family or family in KNOWN_FAMILIES
