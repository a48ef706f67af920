"""Calls to language models. Light to import: httpx and the price data come with their first use."""

from arena.llm.client import (
    ChatMessage,
    ChatRequest,
    Completion,
    Endpoint,
    ErrorCode,
    FilePart,
    ImagePart,
    LLMError,
    Part,
    TextPart,
    Usage,
    complete,
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
