"""Events and documents as Anthropic and Google document them, with the fields that nobody reads left in."""

from __future__ import annotations

import json
from typing import Any

Document = dict[str, Any]


def sse(document: Document) -> bytes:
    """Anthropic names its events twice; Google's have data alone."""
    name = f"event: {document['type']}\n".encode() if "type" in document else b""
    return name + b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


# Anthropic ----------------------------------------------------------------------------------------------------
PING = sse({"type": "ping"})


def message_start(**usage: object) -> bytes:
    counts = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
        **usage,
    }
    message = {
        "id": "msg_01AbCd",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-1-20260101",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    return sse({"type": "message_start", "message": message})


def block(index: int, start: Document, *deltas: Document) -> bytes:
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    events.append({"type": "content_block_stop", "index": index})
    return b"".join(map(sse, events))


def text_block(*pieces: str, index: int = 0) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def thinking_block(*pieces: str, index: int = 0) -> bytes:
    deltas: list[Document] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    start = {"type": "thinking", "thinking": "", "signature": ""}
    return block(index, start, *deltas, {"type": "signature_delta", "signature": "EqQBCgIYAhIM"})


def tool_block(*pieces: str, name: str = "reply", index: int = 0) -> bytes:
    start = {"type": "tool_use", "id": "toolu_01T1x", "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def message_end(stop_reason: str | None = "end_turn", **usage: object) -> bytes:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    counts = {"output_tokens": 15, **usage}
    return sse({"type": "message_delta", "delta": delta, "usage": counts}) + sse({"type": "message_stop"})


def anthropic_error(kind: str, message: str) -> Document:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


# Gemini -------------------------------------------------------------------------------------------------------
def chunk(*parts: Document, finish: str | None = None, **usage: object) -> Document:
    candidate: Document = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 11,
            "totalTokenCount": 11,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
            **usage,
        },
        "modelVersion": "gemini-test-1",
        "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
    }


def google_error(code: int, status: str, message: str, *details: Document) -> Document:
    error: Document = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = list(details)
    return {"error": error}


def retry_info(delay: str) -> Document:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota_failure(quota_id: str) -> Document:
    violation = {"quotaMetric": "generate_content_requests", "quotaId": quota_id, "quotaValue": "5"}
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
