"""The Messages format of Anthropic: payload out, stream or document in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlsplit

from arena.llm.classify import Sent, stream_error
from arena.llm.encoding import base64_text, inline_data
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
from arena.llm.text import split_thinking, storable
from arena.llm.turns import Block, system_text, tool_calls, turns

VERSION = "2023-06-01"
RESERVED_PARAMETERS = frozenset({"model", "messages", "stream"})
# Not a parameter in the sense that it could be left out.
_STRUCTURE = RESERVED_PARAMETERS | {"system", "max_tokens"}
_FORM_WORDS = {
    "schema": re.compile(
        r"output_config(?!\.effort)|output[_ ]format|structured[ _-]outputs?|json[_ ]schema|\bschemas?\b|grammar",
        re.IGNORECASE,
    ),
    "tool": re.compile(r"tool_choice|\btools?\b|input_schema|\bschemas?\b", re.IGNORECASE),
}
# Of the input price, for every model: read from the cache, written to it for five minutes, and for an hour.
CACHE_READ = Decimal("0.1")
CACHE_WRITE = Decimal("1.25")
CACHE_WRITE_1H = Decimal(2)


class AnthropicFormat:
    forms: tuple[Structured, ...] = ("schema", "tool")
    default_base_url = "https://api.anthropic.com/v1"
    needs_max_tokens = True

    def path(self, endpoint: Endpoint, request: ChatRequest) -> str:
        return _versioned(endpoint, "/messages")

    def models_path(self, endpoint: Endpoint) -> str:
        return _versioned(endpoint, "/models?limit=1000")

    def listed_id(self, entry: Mapping[str, object]) -> object:
        return entry.get("id")

    def headers(self, api_key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": api_key} if api_key else {})}

    def payload(self, request: ChatRequest) -> dict[str, object]:
        return build_payload(request)

    def sent(self, endpoint: Endpoint, request: ChatRequest, payload: Mapping[str, object]) -> Sent:
        names = frozenset(payload) - _STRUCTURE
        if request.structured is None:
            return Sent(endpoint.api_key, names, request.has_files)
        return Sent(endpoint.api_key, names | {"response_format"}, request.has_files, _FORM_WORDS[request.structured])

    def reader(self, request: ChatRequest, sent: Sent) -> AnthropicReader:
        return AnthropicReader(sent, tool=request.schema_name if request.structured == "tool" else None)

    def check_parameters(self, parameters: Mapping[str, object]) -> list[str]:
        return check_parameters(parameters)


def _versioned(endpoint: Endpoint, path: str) -> str:
    """The address is entered with the version at its end or, as Anthropic's own clients have it, without."""
    has_version = urlsplit(endpoint.base_url).path.rstrip("/").endswith("/v1")
    return path if has_version else f"/v1{path}"


def check_parameters(parameters: Mapping[str, object]) -> list[str]:
    problems = [reserved(name) for name in sorted(RESERVED_PARAMETERS & parameters.keys())]
    config = parameters.get("output_config")
    if config is not None and not isinstance(config, Mapping):
        problems.append('The parameter "output_config" must be an object, such as {"effort": "low"}.')
    elif isinstance(config, Mapping) and "format" in config:
        problems.append(reserved("output_config.format"))
    return problems


def build_payload(request: ChatRequest) -> dict[str, object]:
    if problems := check_parameters(request.parameters):
        raise LLMError(ErrorCode.BAD_REQUEST, " ".join(problems))
    if request.max_tokens is None:
        raise LLMError(ErrorCode.BAD_REQUEST, "This format needs a limit for the answer. Enter one with the model.")
    payload: dict[str, object] = {
        **request.parameters,
        "model": request.model_id,
        "max_tokens": request.max_tokens,
        "messages": [
            {"role": "assistant" if is_own else "user", "content": blocks}
            for is_own, blocks in turns(request.messages, _blocks)
        ],
        "stream": True,
    }
    if system := system_text(request.messages):
        payload["system"] = system
    if request.structured is not None:
        _ask_for_form(payload, request)
    return payload


def _ask_for_form(payload: dict[str, object], request: ChatRequest) -> None:
    if request.structured == "schema":
        given = request.parameters.get("output_config")
        wanted = {"type": "json_schema", "schema": request.schema}
        payload["output_config"] = {**(given if isinstance(given, Mapping) else {}), "format": wanted}
    elif request.structured == "tool":
        tool = {
            "name": request.schema_name,
            "description": "Takes the reply. Call it once, with the whole reply.",
            "input_schema": request.schema,
        }
        given = request.parameters.get("tools")
        payload["tools"] = [*(given if isinstance(given, list) else []), tool]
        payload["tool_choice"] = {"type": "tool", "name": request.schema_name, "disable_parallel_tool_use": True}
    else:
        raise ValueError(f"this format has no structured={request.structured!r}")


# Messages -----------------------------------------------------------------------------------------------------
def _blocks(message: ChatMessage) -> list[Block]:
    if message.role == "tool":
        identifier = str(message.extra.get("tool_call_id") or "")
        return [{"type": "tool_result", "tool_use_id": identifier, "content": message.text}]
    blocks = [block for part in message.parts if (block := _block(part)) is not None]
    calls = tool_calls(message) if message.role == "assistant" else []
    return blocks + [{"type": "tool_use", "id": key, "name": name, "input": values} for key, name, values in calls]


def _block(part: Part) -> Block | None:
    if isinstance(part, ImagePart):
        return {"type": "image", "source": _image_source(part)}
    if isinstance(part, FilePart):
        return _file_block(part)
    # Empty text is refused.
    return {"type": "text", "text": part.text} if part.text.strip() else None


def _image_source(part: ImagePart) -> Block:
    if part.data is not None:
        return _base64(part.content_type, base64_text(part.data, part.digest))
    if part.url is None:
        raise ValueError("an image needs an address or its bytes")
    inline = inline_data(part.url)
    return _base64(*inline) if inline else {"type": "url", "url": part.url}


def _file_block(part: FilePart) -> Block:
    source = _base64(part.content_type, base64_text(part.data, part.digest))
    if part.content_type.startswith("image/"):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": part.name}


def _base64(content_type: str, text: str) -> Block:
    return {"type": "base64", "media_type": content_type, "data": text}


# Answers ------------------------------------------------------------------------------------------------------
class AnthropicReader(EventReader):
    def __init__(self, sent: Sent, *, tool: str | None) -> None:
        super().__init__(sent)
        self._tool = tool
        # By the index of their block: the input of the tool that takes the reply, piece by piece.
        self._inputs: dict[object, list[str]] = {}
        self._counts: dict[str, object] = {}

    def has_begun(self) -> bool:
        return super().has_begun() or any(self._inputs.values())

    def answer(self) -> tuple[str, str]:
        replies = ["".join(pieces) for pieces in self._inputs.values()]
        if not any(replies):
            return super().answer()
        text, reasoning = super().answer()
        # What stands beside the reply is thought aloud.
        spoken = "\n\n".join(part for part in (reasoning, text.strip()) if part)
        return split_thinking(storable("\n".join(replies)))[0], spoken

    def take(self, document: Mapping[str, object]) -> None:
        kind = document.get("type")
        if kind == "error" or document.get("error"):
            raise stream_error(document, self.sent)
        if kind == "message_start":
            message = document.get("message")
            self.note_model(inside(message, "model"))
            # The output that is counted here is only its beginning.
            self._count({**_counts(inside(message, "usage")), "output_tokens": None})
        elif kind == "content_block_start":
            self._start_block(document.get("index"), document.get("content_block"))
        elif kind == "content_block_delta":
            self._take_delta(document.get("index"), document.get("delta"))
        elif kind == "message_delta":
            self._count(_counts(document.get("usage")))
            self.note_finish(inside(document, "delta", "stop_reason"))
        elif kind == "message_stop":
            # An end without a reason is none: the answer may have been cut anywhere.
            self.done = self.finish_reason is not None

    def take_whole(self, document: object) -> None:
        message = as_object(document)
        if message.get("type") == "error" or message.get("error"):
            raise stream_error(message, self.sent)
        if not isinstance(message.get("content"), list):
            raise LLMError(ErrorCode.OTHER, "The reply is no message of the Messages format.")
        self.note_model(message.get("model"))
        for index, block in enumerate(items(message["content"])):
            self._start_block(index, block)
            if index in self._inputs:
                self._inputs[index].append(json.dumps(block.get("input"), ensure_ascii=False))
        self._count(_counts(message.get("usage")))
        self.note_finish(message.get("stop_reason"))

    def _start_block(self, index: object, block: object) -> None:
        kind = inside(block, "type")
        if kind == "text":
            _add(self.text, inside(block, "text"))
        elif kind == "thinking":
            _add(self.reasoning, inside(block, "thinking"))
        elif kind == "tool_use" and self._tool is not None and inside(block, "name") == self._tool:
            self._inputs[index if isinstance(index, int) else None] = []

    def _take_delta(self, index: object, delta: object) -> None:
        kind = inside(delta, "type")
        if kind == "text_delta":
            _add(self.text, inside(delta, "text"))
        elif kind == "thinking_delta":
            _add(self.reasoning, inside(delta, "thinking"))
        elif kind == "input_json_delta" and isinstance(index, int | None) and index in self._inputs:
            _add(self._inputs[index], inside(delta, "partial_json"))

    def _count(self, counts: Mapping[str, object]) -> None:
        # Counts of a stream are cumulative; a later event may leave some out.
        self._counts.update({name: value for name, value in counts.items() if value is not None})
        self.usage = read_usage(self._counts)


def _add(pieces: list[str], piece: object) -> None:
    if isinstance(piece, str) and piece:
        pieces.append(piece)


def _counts(usage: object) -> Mapping[str, object]:
    return usage if isinstance(usage, dict) else {}


def read_usage(usage: Mapping[str, object]) -> Usage:
    plain = count(usage.get("input_tokens"))
    read = count(usage.get("cache_read_input_tokens")) or 0
    written = count(usage.get("cache_creation_input_tokens")) or 0
    for_an_hour = min(count(inside(usage, "cache_creation", "ephemeral_1h_input_tokens")) or 0, written)
    billed = None
    if plain is not None and (read or written):
        billed = plain + read * CACHE_READ + (written - for_an_hour) * CACHE_WRITE + for_an_hour * CACHE_WRITE_1H
    return Usage(
        # The cache's share is counted apart from the rest.
        input_tokens=None if plain is None else plain + read + written,
        output_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(inside(usage, "output_tokens_details", "thinking_tokens")),
        cached_tokens=count(usage.get("cache_read_input_tokens")),
        billed_input_tokens=billed,
    )
