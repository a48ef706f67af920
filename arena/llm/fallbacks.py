"""What to try when an endpoint refuses a parameter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import ChatRequest

_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


def adapted(request: ChatRequest, error: LLMError) -> tuple[ChatRequest, str] | None:
    """The request to try next and the name of the change, to be remembered per model; None when none is left.

    The names are those that `with_changes` takes.
    """
    if error.code is not ErrorCode.UNSUPPORTED_PARAMETER or error.parameter is None:
        return None
    name = error.parameter
    if name == "response_format" and request.structured is not None:
        change = "no_schema" if request.structured == "schema" else "no_json"
    elif name == request.max_tokens_field and request.max_tokens is not None:
        # The cap itself is never dropped: a budget may rest on it.
        change = _OTHER_FIELD.get(name, "")
    elif name == "stream_options" and request.include_usage:
        change = "no_stream_options"
    elif name in request.parameters:
        change = f"no:{name}"
    else:
        return None
    return (_changed(request, change), change) if change else None


def with_changes(request: ChatRequest, changes: Iterable[str]) -> ChatRequest:
    """The request with what was learnt about its model before; changes that do not concern it do nothing."""
    for change in changes:
        request = _changed(request, change)
    return request


def _changed(request: ChatRequest, change: str) -> ChatRequest:
    if change == "no_schema":
        return replace(request, structured="json") if request.structured == "schema" else request
    if change == "no_json":
        return replace(request, structured=None)
    if change == "no_stream_options":
        return replace(request, include_usage=False)
    if change in _OTHER_FIELD:
        return replace(request, max_tokens_field=change)
    if change.startswith("no:"):
        name = change.removeprefix("no:")
        return replace(request, parameters={key: v for key, v in request.parameters.items() if key != name})
    raise ValueError(f"Unknown change {change!r}.")
