"""The wire formats by kind of endpoint. A new one is a `WireFormat` and a line in `_FORMATS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from arena.llm import anthropic, gemini, openai
from arena.llm.classify import Sent
from arena.llm.messages import ChatRequest, Endpoint, Structured, Usage


class AnswerReader(Protocol):
    """Collects one answer from the events of a stream or from one document."""

    finish_reason: str | None
    usage: Usage
    model_reported: str | None
    # The server said that nothing more comes.
    done: bool

    def feed(self, data: str) -> None: ...
    def read_document(self, text: str) -> None: ...
    def has_begun(self) -> bool: ...
    def answer(self) -> tuple[str, str]: ...
    def refusal(self) -> str | None: ...


class WireFormat(Protocol):
    # Forms of structured reply that it has, the strictest first: what follows one is tried where it is refused.
    forms: tuple[Structured, ...]
    # Where the maker of the format serves it; empty for a format that many serve.
    default_base_url: str
    needs_max_tokens: bool

    # Both stand behind the endpoint's base URL.
    def path(self, endpoint: Endpoint, request: ChatRequest) -> str: ...
    def models_path(self, endpoint: Endpoint) -> str: ...
    def listed_id(self, entry: Mapping[str, object]) -> object: ...
    def headers(self, api_key: str | None) -> Mapping[str, str]: ...
    def payload(self, request: ChatRequest) -> dict[str, object]: ...
    def sent(self, endpoint: Endpoint, request: ChatRequest, payload: Mapping[str, object]) -> Sent: ...
    def reader(self, request: ChatRequest, sent: Sent) -> AnswerReader: ...
    def check_parameters(self, parameters: Mapping[str, object]) -> list[str]: ...


_OPENAI = openai.OpenAIFormat()
_FORMATS: dict[str, WireFormat] = {
    "openai": _OPENAI,
    "anthropic": anthropic.AnthropicFormat(),
    "gemini": gemini.GeminiFormat(),
    # The demo endpoint speaks a language of the others, so that nothing about it is a special case.
    "demo": _OPENAI,
}


def wire_format(endpoint: Endpoint) -> WireFormat:
    return format_of(endpoint.kind)


def format_of(kind: str) -> WireFormat:
    try:
        return _FORMATS[kind]
    except KeyError:
        known = ", ".join(sorted(_FORMATS))
        raise ValueError(f"Unknown kind of endpoint {kind!r}; known are {known}.") from None


def known_kinds() -> frozenset[str]:
    return frozenset(_FORMATS)
