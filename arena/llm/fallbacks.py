"""What to try when an endpoint refuses a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import ChatRequest, Structured

FORMS: tuple[Structured, ...] = ("schema", "json")
_FORM_CHANGES = {f"no_{form}": form for form in get_args(Structured)}
_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


def adapted(
    request: ChatRequest, error: LLMError, forms: Sequence[Structured] = FORMS
) -> tuple[ChatRequest, str] | None:
    """The request to try next and the name of the change, to be remembered per model; None when none is left.

    The names are those that `with_changes` takes; `forms` are those of the wire format, the strictest first.
    """
    if error.code is not ErrorCode.UNSUPPORTED_PARAMETER or error.parameter is None:
        return None
    name = error.parameter
    if name == "response_format" and request.structured is not None:
        change = f"no_{request.structured}"
    elif name == request.max_tokens_field and request.max_tokens is not None:
        # The cap itself is never dropped: a budget may rest on it.
        change = _OTHER_FIELD.get(name, "")
    elif name == "stream_options" and request.include_usage:
        change = "no_stream_options"
    elif name in request.parameters:
        change = f"no:{name}"
    else:
        return None
    return (with_changes(request, [change], forms), change) if change else None


def with_changes(request: ChatRequest, changes: Iterable[str], forms: Sequence[Structured] = FORMS) -> ChatRequest:
    """The request with what was learnt about its model before; changes that do not concern it do nothing."""
    refused: set[str] = set()
    for change in changes:
        if change in _FORM_CHANGES:
            refused.add(_FORM_CHANGES[change])
        else:
            request = _changed(request, change)
    while request.structured in refused:
        request = weaker(request, forms)
    return request


def weaker(request: ChatRequest, forms: Sequence[Structured] = FORMS) -> ChatRequest:
    """With the next form of structured reply that the wire format has; at the end the prompt alone asks for it."""
    left = list(forms)[forms.index(request.structured) + 1 :] if request.structured in forms else []
    return replace(request, structured=left[0] if left else None)


def _changed(request: ChatRequest, change: str) -> ChatRequest:
    if change == "no_stream_options":
        return replace(request, include_usage=False)
    if change in _OTHER_FIELD:
        return replace(request, max_tokens_field=change)
    if change.startswith("no:"):
        name = change.removeprefix("no:")
        return replace(request, parameters={key: v for key, v in request.parameters.items() if key != name})
    raise ValueError(f"Unknown change {change!r}.")
