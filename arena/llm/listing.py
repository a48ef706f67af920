"""Which models an endpoint offers. The list is a help for filling in a form, so it is bounded and never trusted."""

from __future__ import annotations

import json

from arena.llm.classify import Sent, http_error
from arena.llm.errors import ErrorCode, LLMError, clean_message
from arena.llm.messages import Endpoint
from arena.llm.wire import WireFormat, wire_format

MAX_BYTES = 4 * 1024 * 1024
MAX_MODELS = 2000
ID_LIMIT = 200


def list_models(endpoint: Endpoint, *, deadline_s: float = 15.0) -> list[str]:
    """The ids from the endpoint's list of models, sorted. Raises `LLMError`; redirects are never followed."""
    # httpx takes a good part of a second to import.
    from arena.llm.get import get_document

    wire = wire_format(endpoint)
    path = wire.models_path(endpoint)
    status, headers, body = get_document(endpoint, path, deadline_s=deadline_s, max_bytes=MAX_BYTES)
    if 300 <= status < 400:
        message = "The server answered with a redirect, and redirects are never followed. Enter the final address."
        raise LLMError(ErrorCode.REDIRECT, message, http_status=status)
    if status >= 400:
        raise http_error(status, headers, body, Sent(endpoint.api_key, frozenset(), has_files=False))
    return _ids(body, endpoint.api_key, wire)


def _ids(body: bytes, api_key: str | None, wire: WireFormat) -> list[str]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise LLMError(ErrorCode.OTHER, "The server's list of models is not valid JSON.") from None
    entries = document.get("data", document.get("models")) if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise LLMError(ErrorCode.OTHER, "The server's answer is no list of models.")
    found = set()
    for entry in entries:
        name = wire.listed_id(entry) if isinstance(entry, dict) else entry
        if isinstance(name, str) and name.strip():
            name = clean_message(name, api_key, limit=ID_LIMIT + 1)
            # An id that had to be cut would name nothing.
            if name and len(name) <= ID_LIMIT:
                found.add(name)
        if len(found) >= MAX_MODELS:
            break
    return sorted(found, key=str.casefold)
