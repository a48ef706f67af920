from __future__ import annotations

import pytest

from arena.llm import ChatRequest, ErrorCode, LLMError
from arena.llm.fallbacks import adapted, with_changes
from tests.arena.llm.loopback import question

FULL = question(
    max_tokens=10,
    structured="schema",
    json_schema={"type": "object"},
    parameters={"temperature": 0, "top_k": 1},
)


def _refused(parameter: str | None) -> LLMError:
    return LLMError(ErrorCode.UNSUPPORTED_PARAMETER, "no", parameter=parameter)


def _step(request: ChatRequest, parameter: str) -> tuple[ChatRequest, str]:
    step = adapted(request, _refused(parameter))
    assert step is not None
    return step


def test_schema_falls_back_to_json_and_then_to_text() -> None:
    request, first = _step(FULL, "response_format")
    assert (request.structured, first) == ("json", "no_schema")
    request, second = _step(request, "response_format")
    assert (request.structured, second) == (None, "no_json")
    assert adapted(request, _refused("response_format")) is None


def test_forms_of_another_wire() -> None:
    forms = ("schema", "tool")
    step = adapted(FULL, _refused("response_format"), forms)
    assert step is not None
    assert (step[0].structured, step[1]) == ("tool", "no_schema")
    step = adapted(step[0], _refused("response_format"), forms)
    assert step is not None
    assert (step[0].structured, step[1]) == (None, "no_tool")


def test_refused_forms_are_skipped_in_whatever_order_they_were_learnt() -> None:
    forms = ("schema", "openapi", "json")
    assert with_changes(FULL, ["no_openapi", "no_schema"], forms).structured == "json"
    assert with_changes(FULL, ["no_openapi"], forms).structured == "schema"


def test_cap_moves_to_the_other_field_and_stays() -> None:
    request, change = _step(FULL, "max_tokens")
    assert (request.max_tokens, request.max_tokens_field) == (10, "max_completion_tokens")
    assert with_changes(FULL, [change]) == request


def test_parameter_is_dropped() -> None:
    request, change = _step(FULL, "temperature")
    assert (dict(request.parameters), change) == ({"top_k": 1}, "no:temperature")


def test_usage_is_not_asked_for_again() -> None:
    request, change = _step(FULL, "stream_options")
    assert (request.include_usage, change) == (False, "no_stream_options")


@pytest.mark.parametrize("parameter", ["seed", None, "model"])
def test_nothing_to_change(parameter: str | None) -> None:
    assert adapted(FULL, _refused(parameter)) is None


def test_other_errors_change_nothing() -> None:
    assert adapted(FULL, LLMError(ErrorCode.BAD_REQUEST, "no", parameter="temperature")) is None


def test_remembered_changes_lead_to_the_same_request() -> None:
    request, changes = FULL, []
    for parameter in ("response_format", "temperature", "max_tokens", "stream_options", "response_format"):
        request, change = _step(request, parameter)
        changes.append(change)
    assert with_changes(FULL, changes) == request


def test_changes_that_do_not_concern_a_request() -> None:
    assert with_changes(question(), ["no_schema", "no:temperature"]) == question()
    with pytest.raises(ValueError, match="Unknown change"):
        with_changes(FULL, ["louder"])
