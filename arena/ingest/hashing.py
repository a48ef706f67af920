from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from arena.ingest.types import Message


def canonical_json(value: object) -> str:
    return json.dumps(_canonical(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _canonical(value: object) -> object:
    # Databases hand back 1e5 as 100000: a whole number must hash alike however it was written.
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return value


def hash_json(value: object) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def hash_input(messages: Sequence[Message], sha256_by_path: Mapping[str, str]) -> str:
    """What a candidate is sent: an attachment counts by its bytes, not by its name."""
    return hash_json([_hashed(message, sha256_by_path) for message in messages])


def _hashed(message: Message, sha256_by_path: Mapping[str, str]) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return message
    parts = [
        {"type": "file_ref", "sha256": sha256_by_path[part["path"]]} if part["type"] == "file_ref" else part
        for part in content
    ]
    return {**message, "content": parts}


def hash_content(
    *,
    input_hash: str,
    attachment_paths: Sequence[str],
    category: str,
    reference: str,
    criteria: str,
    tags: Sequence[str],
    metadata: Mapping[str, Any],
    json_schema: Mapping[str, Any] | None,
) -> str:
    return hash_json(
        {
            "input": input_hash,
            "attachments": list(attachment_paths),
            "category": category,
            "reference": reference,
            "criteria": criteria,
            "tags": list(tags),
            "metadata": dict(metadata),
            "json_schema": json_schema,
        }
    )


class SetHash:
    """The hash of a task set, fed sample by sample in order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, key: str, content_hash: str) -> None:
        self._digest.update(canonical_json([key, content_hash]).encode() + b"\n")

    def hexdigest(self) -> str:
        return self._digest.hexdigest()
