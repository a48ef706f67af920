"""The wire formats by kind of endpoint. A new one is a `WireFormat` and a line in `_FORMATS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from arena.llm import openai
from arena.llm.classify import Sent
from arena.llm.messages import ChatRequest, Endpoint, Usage


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
    def path(self, request: ChatRequest) -> str: ...
    def headers(self, api_key: str | None) -> Mapping[str, str]: ...
    def payload(self, request: ChatRequest) -> dict[str, object]: ...
    def reader(self, sent: Sent) -> AnswerReader: ...


_OPENAI = openai.OpenAIFormat()
# The demo endpoint speaks the same language, so that nothing about it is a special case.
_FORMATS: dict[str, WireFormat] = {"openai": _OPENAI, "demo": _OPENAI}


def wire_format(endpoint: Endpoint) -> WireFormat:
    try:
        return _FORMATS[endpoint.kind]
    except KeyError:
        known = ", ".join(sorted(_FORMATS))
        raise ValueError(f"Unknown kind of endpoint {endpoint.kind!r}; known are {known}.") from None


def known_kinds() -> frozenset[str]:
    return frozenset(_FORMATS)
