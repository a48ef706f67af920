"""The OpenAI-compatible chat format: payload out, stream or document in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from arena.llm.classify import Sent, stream_error
from arena.llm.encoding import data_url
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import (
    ChatMessage,
    ChatRequest,
    Endpoint,
    FilePart,
    ImagePart,
    Part,
    Structured,
    Usage,
)
from arena.llm.reading import EventReader, as_object, count, inside, items, reserved

# Set by us alone: `n` because only one answer is read, and all of them are paid for.
RESERVED_PARAMETERS = frozenset({"model", "messages", "stream", "stream_options", "n"})
MAX_TOKENS_FIELDS = frozenset({"max_tokens", "max_completion_tokens"})


class OpenAIFormat:
    forms: tuple[Structured, ...] = ("schema", "json")
    default_base_url = ""
    needs_max_tokens = False

    def path(self, endpoint: Endpoint, request: ChatRequest) -> str:
        return "/chat/completions"

    def models_path(self, endpoint: Endpoint) -> str:
        return "/models"

    def listed_id(self, entry: Mapping[str, object]) -> object:
        return entry.get("id") or entry.get("name")

    def headers(self, api_key: str | None) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def payload(self, request: ChatRequest) -> dict[str, object]:
        return build_payload(request)

    def sent(self, endpoint: Endpoint, request: ChatRequest, payload: Mapping[str, object]) -> Sent:
        return Sent.of(endpoint, request, payload)

    def reader(self, request: ChatRequest, sent: Sent) -> OpenAIReader:
        return OpenAIReader(sent)

    def check_parameters(self, parameters: Mapping[str, object]) -> list[str]:
        return check_parameters(parameters)


def check_parameters(parameters: Mapping[str, object]) -> list[str]:
    return [reserved(name) for name in sorted(RESERVED_PARAMETERS & parameters.keys())]


def build_payload(request: ChatRequest) -> dict[str, object]:
    if problems := check_parameters(request.parameters):
        raise LLMError(ErrorCode.BAD_REQUEST, " ".join(problems))
    payload: dict[str, object] = {
        "model": request.model_id,
        "messages": [_message(message) for message in request.messages],
        **request.parameters,
    }
    if request.max_tokens is not None:
        # The cap that a budget was reserved for; no second one under the other name beside it.
        for name in MAX_TOKENS_FIELDS:
            payload.pop(name, None)
        payload[request.max_tokens_field] = request.max_tokens
    if request.structured == "json":
        payload["response_format"] = {"type": "json_object"}
    elif request.structured == "schema":
        payload["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.schema_name, "strict": True, "schema": request.schema},
        }
    elif request.structured is not None:
        raise ValueError(f"this format has no structured={request.structured!r}")
    payload["stream"] = True
    if request.include_usage:
        payload["stream_options"] = {"include_usage": True}
    return payload


def _message(message: ChatMessage) -> dict[str, object]:
    # Plain text stays a plain string: many servers know no content parts.
    content: object = [_part(part) for part in message.parts] if message.has_files else message.text
    return {"role": message.role, "content": content, **message.extra}


def _part(part: Part) -> dict[str, object]:
    if isinstance(part, ImagePart):
        return _image(part)
    if isinstance(part, FilePart):
        if part.content_type.startswith("image/"):
            return _image(ImagePart(None, part.data, part.content_type, part.digest))
        encoded = data_url(part.content_type, part.data, part.digest)
        return {"type": "file", "file": {"filename": part.name, "file_data": encoded}}
    return {"type": "text", "text": part.text}


def _image(part: ImagePart) -> dict[str, object]:
    if part.data is not None:
        url = data_url(part.content_type, part.data, part.digest)
    elif part.url is not None:
        url = part.url
    else:
        raise ValueError("an image needs an address or its bytes")
    return {"type": "image_url", "image_url": {"url": url}}


class OpenAIReader(EventReader):
    def end_mark(self) -> None:
        self.done = True

    def take(self, document: Mapping[str, object]) -> None:
        self._take(document, "delta")

    def take_whole(self, document: object) -> None:
        self._take(as_object(document), "message")
        if isinstance(document, dict) and not document.get("choices"):
            # An empty list is an upstream failure; no list at all means that something else answers there.
            empty = "choices" in document
            message = "The server answered without any choice." if empty else "The reply is no chat completion."
            raise LLMError(ErrorCode.SERVER_ERROR if empty else ErrorCode.OTHER, message, transient=empty)

    def _take(self, document: Mapping[str, object], field: str) -> None:
        if document.get("error"):
            raise stream_error(document, self.sent)
        if document.get("object") == "error":
            raise stream_error({"error": document}, self.sent)
        if usage := document.get("usage"):
            self.usage = read_usage(usage)
        self.note_model(document.get("model"))
        for choice in items(document.get("choices")):
            if choice.get("index") in {0, None}:
                self._take_choice(choice, field)

    def _take_choice(self, choice: Mapping[str, object], field: str) -> None:
        delta = choice.get(field)
        if isinstance(delta, dict):
            content = delta.get("content")
            if isinstance(content, str):
                if content:
                    self.text.append(content)
            elif isinstance(content, list):
                self._take_parts(content)
            self._take_reasoning(delta)
            refusal = delta.get("refusal")
            if isinstance(refusal, str) and refusal:
                self.refused.append(refusal)
        finish_reason = choice.get("finish_reason")
        if finish_reason == "error":
            raise LLMError(ErrorCode.SERVER_ERROR, "The provider broke off with an error.", transient=True)
        self.note_finish(finish_reason)

    def _take_reasoning(self, delta: Mapping[str, object]) -> None:
        # Some servers send the same reasoning under several names.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self.reasoning.append(reasoning)
            return
        for detail in items(delta.get("reasoning_details")):
            piece = detail.get("text") or detail.get("summary")
            if isinstance(piece, str) and piece:
                self.reasoning.append(piece)

    def _take_parts(self, parts: Sequence[object]) -> None:
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str) and text:
                self.text.append(text)
            thinking = part.get("thinking")
            for piece in thinking if isinstance(thinking, list) else [{"text": thinking}]:
                if isinstance(piece, dict) and isinstance(text := piece.get("text"), str) and text:
                    self.reasoning.append(text)


def read_usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    output = count(usage.get("completion_tokens"))
    prompt = count(usage.get("prompt_tokens"))
    reasoning = count(inside(usage, "completion_tokens_details", "reasoning_tokens"))
    if reasoning is None:
        reasoning = count(usage.get("reasoning_tokens"))
    total = count(usage.get("total_tokens"))
    if output is not None and prompt is not None and reasoning and total == prompt + output + reasoning:
        # Some providers leave reasoning out of the completion; it is paid for all the same.
        output += reasoning
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_tokens=count(inside(usage, "prompt_tokens_details", "cached_tokens")),
        cost_usd=_cost(usage),
    )


def _cost(usage: Mapping[str, object]) -> Decimal | None:
    reported = usage.get("cost")
    if isinstance(reported, dict):
        reported = reported.get("total_cost")
    cost = _amount(reported)
    upstream = _amount(inside(usage, "cost_details", "upstream_inference_cost"))
    if cost is not None and upstream is not None and usage.get("is_byok") is True:
        # With the user's own key the router's cost is its fee alone.
        return cost + upstream
    return cost


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return None
    return amount if amount.is_finite() and 0 <= amount < 1_000_000 else None
