"""What goes over the wire and what comes back, as plain values.

Unknown is `None`, never 0: a server that reports no usage has not used nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

# Forms of reply that are asked for on the wire: a JSON schema, a forced tool that takes it, the schema in the
# smaller language of OpenAPI, or JSON of any shape. Which of them there are depends on the wire format.
Structured = Literal["schema", "tool", "openapi", "json"]
Content = bytes | Callable[[], bytes]

# What the wire formats call an answer that the model or its provider withheld, in lower case.
REFUSAL_FINISH_REASONS = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "image_safety",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)
CUT_FINISH_REASONS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})


def content_bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where calls go. `key` names the provider, so that connections are never shared between two of them."""

    key: str
    kind: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    connect_timeout_s: float = 10.0
    # Measures silence between two chunks, not the length of the answer.
    read_timeout_s: float = 1200.0
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file sent with a message. With a `digest` of the bytes the encoded form is kept and reused."""

    data: Content = field(repr=False)
    content_type: str
    name: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image by address (fetched by the provider, not by us) or by its bytes."""

    url: str | None = None
    data: Content | None = field(default=None, repr=False)
    content_type: str = "image/png"
    digest: str | None = None


Part = TextPart | FilePart | ImagePart


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: str
    parts: Sequence[Part]
    # Wire fields beside role and content, such as `tool_call_id` of a recorded tool message.
    extra: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, role: str, text: str) -> ChatMessage:
        return cls(role, (TextPart(text),))

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def has_files(self) -> bool:
        return any(not isinstance(part, TextPart) for part in self.parts)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model_id: str
    messages: Sequence[ChatMessage]
    parameters: Mapping[str, object] = field(default_factory=dict)
    max_tokens: int | None = None
    structured: Structured | None = None
    json_schema: Mapping[str, object] | None = None
    schema_name: str = "reply"
    max_tokens_field: str = "max_tokens"
    include_usage: bool = True

    @property
    def has_files(self) -> bool:
        return any(message.has_files for message in self.messages)

    @property
    def schema(self) -> Mapping[str, object]:
        if self.json_schema is None:
            raise ValueError(f"structured={self.structured!r} needs a json_schema")
        return self.json_schema


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int | None = None
    # Includes reasoning tokens, which are paid for as output.
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    # Part of the input tokens.
    cached_tokens: int | None = None
    cost_usd: Decimal | None = None
    # The input as tokens of the full input price, where a provider's cache makes some of it cheaper or dearer by
    # factors that are the same for all its models.
    billed_input_tokens: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    reasoning: str
    finish_reason: str | None
    refusal: str | None
    usage: Usage
    # Unknown when the server sent the whole answer at once.
    ttft_ms: float | None
    duration_ms: float
    host: str
    model_reported: str | None
    streamed: bool

    @property
    def refused(self) -> bool:
        return bool(self.refusal) or (self.finish_reason or "").lower() in REFUSAL_FINISH_REASONS

    @property
    def truncated(self) -> bool:
        return (self.finish_reason or "").lower() in CUT_FINISH_REASONS
