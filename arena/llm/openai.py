"""The OpenAI-compatible chat format: payload out, stream or document in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from arena.llm.classify import Sent, stream_error
from arena.llm.encoding import data_url
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import ChatMessage, ChatRequest, FilePart, ImagePart, Part, Usage
from arena.llm.text import split_thinking, storable

# Set by us alone: `n` because only one answer is read, and all of them are paid for.
RESERVED_PARAMETERS = frozenset({"model", "messages", "stream", "stream_options", "n"})
MAX_TOKENS_FIELDS = frozenset({"max_tokens", "max_completion_tokens"})


class OpenAIFormat:
    def path(self, request: ChatRequest) -> str:
        return "/chat/completions"

    def headers(self, api_key: str | None) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def payload(self, request: ChatRequest) -> dict[str, object]:
        return build_payload(request)

    def reader(self, sent: Sent) -> OpenAIReader:
        return OpenAIReader(sent)


def check_parameters(parameters: Mapping[str, object]) -> list[str]:
    return [
        f'The parameter "{name}" is set by the application and cannot be given.'
        for name in sorted(RESERVED_PARAMETERS & parameters.keys())
    ]


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
        if request.json_schema is None:
            raise ValueError("structured='schema' needs a json_schema")
        payload["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.schema_name, "strict": True, "schema": request.json_schema},
        }
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


class OpenAIReader:
    def __init__(self, sent: Sent) -> None:
        self._sent = sent
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self.finish_reason: str | None = None
        self.usage = Usage()
        self.model_reported: str | None = None
        self.done = False

    def has_begun(self) -> bool:
        return bool(self._text or self._reasoning or self._refusal)

    def answer(self) -> tuple[str, str]:
        text, thought = split_thinking(storable("".join(self._text)))
        reasoning = storable("".join(self._reasoning)).strip()
        return text, "\n\n".join(part for part in (reasoning, thought) if part)

    def refusal(self) -> str | None:
        return storable("".join(self._refusal)) or None

    def feed(self, data: str) -> None:
        if data == "[DONE]" or data.strip() == "[DONE]":
            self.done = True
            return
        try:
            documents = [json.loads(data)]
        except (ValueError, RecursionError):
            documents = self._line_by_line(data)
        for document in documents:
            self._take(document, "delta")

    def read_document(self, text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if document is None:
            raise _broken("The server's answer is not valid JSON.")
        self._take(document, "message")
        if isinstance(document, dict) and not document.get("choices"):
            # An empty list is an upstream failure; no list at all means that something else answers there.
            empty = "choices" in document
            message = "The server answered without any choice." if empty else "The reply is no chat completion."
            raise LLMError(ErrorCode.SERVER_ERROR if empty else ErrorCode.OTHER, message, transient=empty)
        self.done = True

    def _line_by_line(self, data: str) -> list[object]:
        """Servers that forget the blank line between events leave several documents in one."""
        lines = [line for line in data.split("\n") if line.strip() not in {"", "[DONE]"}]
        documents = []
        broken = len(lines) < 2 and "[DONE]" not in data
        for line in lines if not broken else ():
            try:
                documents.append(json.loads(line))
            except (ValueError, RecursionError):
                broken = True
                break
        if broken:
            # Going on would drop a piece of the answer without anyone noticing.
            raise _broken("The stream contains an event that is not valid JSON.")
        self.done = self.done or "[DONE]" in data
        return documents

    def _take(self, document: object, field: str) -> None:
        if not isinstance(document, dict):
            raise _broken("The server's answer is not a JSON object.")
        if document.get("error"):
            raise stream_error(document, self._sent)
        if document.get("object") == "error":
            raise stream_error({"error": document}, self._sent)
        if usage := document.get("usage"):
            self.usage = read_usage(usage)
        if self.model_reported is None and isinstance(document.get("model"), str):
            self.model_reported = storable(document["model"])[:300] or None
        choices = document.get("choices")
        if not isinstance(choices, list):
            return
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in {0, None}:
                self._take_choice(choice, field)

    def _take_choice(self, choice: Mapping[str, object], field: str) -> None:
        delta = choice.get(field)
        if isinstance(delta, dict):
            content = delta.get("content")
            if isinstance(content, str):
                if content:
                    self._text.append(content)
            elif isinstance(content, list):
                self._take_parts(content)
            # Some servers send the same reasoning under both names.
            reasoning = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(reasoning, str) and reasoning:
                self._reasoning.append(reasoning)
            refusal = delta.get("refusal")
            if isinstance(refusal, str) and refusal:
                self._refusal.append(refusal)
        finish_reason = choice.get("finish_reason")
        if isinstance(finish_reason, str) and finish_reason:
            if finish_reason == "error":
                raise LLMError(ErrorCode.SERVER_ERROR, "The provider broke off with an error.", transient=True)
            self.finish_reason = storable(finish_reason)[:100]

    def _take_parts(self, parts: Sequence[object]) -> None:
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str) and text:
                self._text.append(text)
            thinking = part.get("thinking")
            for piece in thinking if isinstance(thinking, list) else [{"text": thinking}]:
                if isinstance(piece, dict) and isinstance(text := piece.get("text"), str) and text:
                    self._reasoning.append(text)


def _broken(message: str) -> LLMError:
    return LLMError(ErrorCode.CONNECTION, message, transient=True)


def read_usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    output = _count(usage.get("completion_tokens"))
    prompt = _count(usage.get("prompt_tokens"))
    reasoning = _count(_inside(usage, "completion_tokens_details", "reasoning_tokens"))
    total = _count(usage.get("total_tokens"))
    if output is not None and prompt is not None and reasoning and total == prompt + output + reasoning:
        # Some providers leave reasoning out of the completion; it is paid for all the same.
        output += reasoning
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_tokens=_count(_inside(usage, "prompt_tokens_details", "cached_tokens")),
        cost_usd=_cost(usage),
    )


def _inside(usage: Mapping[str, object], outer: str, inner: str) -> object:
    details = usage.get(outer)
    return details.get(inner) if isinstance(details, dict) else None


def _count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    # More than a database's integer holds is nonsense, not a count.
    return value if 0 <= value < 2**31 else None


def _cost(usage: Mapping[str, object]) -> Decimal | None:
    reported = usage.get("cost")
    if isinstance(reported, dict):
        reported = reported.get("total_cost")
    cost = _amount(reported)
    upstream = _amount(_inside(usage, "cost_details", "upstream_inference_cost"))
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
