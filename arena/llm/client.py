"""The door to the wire: `complete` makes one call and returns its answer, or raises an `LLMError`."""

from __future__ import annotations

from collections.abc import Callable

from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import (
    ChatMessage,
    ChatRequest,
    Completion,
    Endpoint,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    Usage,
)

__all__ = [
    "ChatMessage",
    "ChatRequest",
    "Completion",
    "Endpoint",
    "ErrorCode",
    "FilePart",
    "ImagePart",
    "LLMError",
    "Part",
    "TextPart",
    "Usage",
    "complete",
]

MAX_RESPONSE_BYTES = 32 * 1024 * 1024


def complete(
    endpoint: Endpoint,
    request: ChatRequest,
    *,
    deadline_s: float | None = None,
    on_progress: Callable[[], None] | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> Completion:
    """One call, streamed. `on_progress` is called for every chunk, keep-alives too; raising there ends it.

    There is no retry here: whoever calls counts, waits and pays.
    """
    # httpx takes a good part of a second to import, which commands without a call should not pay.
    from arena.llm.exchange import Exchange

    exchange = Exchange(endpoint, request, deadline_s=deadline_s, max_bytes=max_bytes, progress=on_progress or _nothing)
    outcome = exchange.run()
    if isinstance(outcome, Completion):
        return outcome
    # Whatever it was made from may hold the request's headers.
    outcome.__context__ = outcome.__cause__ = None
    raise outcome


def _nothing() -> None:
    return None
