"""The generateContent format of Gemini: payload out, stream or document in."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from arena.llm.classify import Sent, stream_error
from arena.llm.encoding import base64_text, inline_data
from arena.llm.errors import ErrorCode, LLMError, clean_message
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
from arena.llm.turns import Block, system_text, tool_calls, turns

# Fields of the request itself; every other parameter is one of `generationConfig`.
OUTER_PARAMETERS = frozenset(
    {"safetySettings", "tools", "toolConfig", "cachedContent", "labels", "serviceTier", "store"}
)
# `candidateCount` because only one answer is read, and all of them are paid for.
RESERVED_PARAMETERS = (
    "candidateCount",
    "contents",
    "generationConfig",
    "maxOutputTokens",
    "model",
    "responseFormat",
    "responseJsonSchema",
    "responseMimeType",
    "responseSchema",
    "systemInstruction",
)
_RESERVED = frozenset(name.lower() for name in RESERVED_PARAMETERS)
_FORM_WORDS = re.compile(
    r"response[_ ]?(?:json[_ ]?)?schema|response[_ ]?mime[_ ]?type|json[ _]mode|structured output"
    r"|controlled generation|\bschemas?\b|application/json",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v\d\w*")
# What a schema may say in the smaller language of OpenAPI that older models know.
_OPENAPI_WORDS = frozenset(
    {"description", "enum", "format", "items", "maxItems", "minItems", "nullable", "properties", "required", "type"}
)


class GeminiFormat:
    forms: tuple[Structured, ...] = ("schema", "openapi", "json")
    default_base_url = "https://generativelanguage.googleapis.com/v1beta"
    needs_max_tokens = False

    def path(self, endpoint: Endpoint, request: ChatRequest) -> str:
        # The key never stands here, where it would be logged on the way.
        return _versioned(endpoint, f"/{_resource(request.model_id)}:streamGenerateContent?alt=sse")

    def models_path(self, endpoint: Endpoint) -> str:
        return _versioned(endpoint, "/models?pageSize=1000")

    def listed_id(self, entry: Mapping[str, object]) -> object:
        methods = entry.get("supportedGenerationMethods")
        name = entry.get("name")
        if isinstance(methods, list) and "generateContent" not in methods:
            return None
        return name.removeprefix("models/") if isinstance(name, str) else None

    def headers(self, api_key: str | None) -> Mapping[str, str]:
        return {"x-goog-api-key": api_key} if api_key else {}

    def payload(self, request: ChatRequest) -> dict[str, object]:
        return build_payload(request)

    def sent(self, endpoint: Endpoint, request: ChatRequest, payload: Mapping[str, object]) -> Sent:
        names = frozenset(request.parameters)
        if request.structured is not None:
            names |= {"response_format"}
        return Sent(endpoint.api_key, names, request.has_files, _FORM_WORDS)

    def reader(self, request: ChatRequest, sent: Sent) -> GeminiReader:
        return GeminiReader(sent)

    def check_parameters(self, parameters: Mapping[str, object]) -> list[str]:
        return check_parameters(parameters)


def _versioned(endpoint: Endpoint, path: str) -> str:
    """The address is entered with its version or, as Google's own clients have it, without."""
    segments = urlsplit(endpoint.base_url).path.split("/")
    return path if any(_VERSION.fullmatch(segment) for segment in segments) else f"/v1beta{path}"


def _resource(model_id: str) -> str:
    collection, slash, name = model_id.partition("/")
    if not slash or collection not in {"models", "tunedModels"}:
        collection, name = "models", model_id
    return f"{collection}/{quote(name, safe='')}"


def check_parameters(parameters: Mapping[str, object]) -> list[str]:
    # The server takes either spelling, so both are looked for.
    return [reserved(name) for name in sorted(parameters) if name.replace("_", "").lower() in _RESERVED]


def build_payload(request: ChatRequest) -> dict[str, object]:
    if problems := check_parameters(request.parameters):
        raise LLMError(ErrorCode.BAD_REQUEST, " ".join(problems))
    parameters = request.parameters
    config: dict[str, object] = {name: value for name, value in parameters.items() if name not in OUTER_PARAMETERS}
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.structured is not None:
        config.update(_form(request))
    names = _names_of_calls(request)
    payload: dict[str, object] = {
        **{name: value for name, value in parameters.items() if name in OUTER_PARAMETERS},
        "contents": [
            {"role": "model" if is_own else "user", "parts": parts}
            for is_own, parts in turns(request.messages, lambda message: _parts(message, names))
        ],
    }
    if system := system_text(request.messages):
        payload["systemInstruction"] = {"parts": [{"text": system}]}
    if config:
        payload["generationConfig"] = config
    return payload


def _form(request: ChatRequest) -> dict[str, object]:
    as_json = {"responseMimeType": "application/json"}
    if request.structured == "schema":
        return {**as_json, "responseJsonSchema": request.schema}
    if request.structured == "openapi":
        return {**as_json, "responseSchema": openapi_schema(request.schema)}
    if request.structured == "json":
        return dict(as_json)
    raise ValueError(f"this format has no structured={request.structured!r}")


def openapi_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """A JSON schema without what OpenAPI does not know, and with the order of its properties said aloud."""
    result: dict[str, object] = {name: value for name, value in schema.items() if name in _OPENAPI_WORDS}
    kind = schema.get("type")
    if isinstance(kind, str):
        result["type"] = kind.upper()
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {name: openapi_schema(of) for name, of in properties.items()}
        result["propertyOrdering"] = list(properties)
    inner = schema.get("items")
    if isinstance(inner, Mapping):
        result["items"] = openapi_schema(inner)
    return result


# Messages -----------------------------------------------------------------------------------------------------
def _names_of_calls(request: ChatRequest) -> dict[str, str]:
    """Results of tools are told by name here, and by the id of the call in a recording."""
    return {key: name for message in request.messages for key, name, _ in tool_calls(message)}


def _parts(message: ChatMessage, names: Mapping[str, str]) -> list[Block]:
    if message.role == "tool":
        key = str(message.extra.get("tool_call_id") or "")
        name = names.get(key) or str(message.extra.get("name") or "tool")
        return [{"functionResponse": {"name": name, "response": {"result": message.text}}}]
    parts = [block for part in message.parts if (block := _part(part)) is not None]
    calls = tool_calls(message) if message.role == "assistant" else []
    return parts + [{"functionCall": {"name": name, "args": values}} for _, name, values in calls]


def _part(part: Part) -> Block | None:
    if isinstance(part, FilePart):
        return _inline(part.content_type, base64_text(part.data, part.digest))
    if isinstance(part, ImagePart):
        return _image(part)
    return {"text": part.text} if part.text.strip() else None


def _image(part: ImagePart) -> Block:
    if part.data is not None:
        return _inline(part.content_type, base64_text(part.data, part.digest))
    if part.url is None:
        raise ValueError("an image needs an address or its bytes")
    if inline := inline_data(part.url):
        return _inline(*inline)
    guessed = mimetypes.guess_type(urlsplit(part.url).path)[0]
    return {"fileData": {"mimeType": guessed or part.content_type, "fileUri": part.url}}


def _inline(content_type: str, text: str) -> Block:
    return {"inlineData": {"mimeType": content_type, "data": text}}


# Answers ------------------------------------------------------------------------------------------------------
class GeminiReader(EventReader):
    """Each event is a whole response with the next piece. There is no end mark: a finish reason is the end."""

    def take(self, document: Mapping[str, object]) -> None:
        if document.get("error"):
            raise stream_error(document, self.sent)
        self.note_model(document.get("modelVersion"))
        candidates = items(document.get("candidates"))
        for candidate in candidates:
            if candidate.get("index") in {0, None}:
                self._take_candidate(candidate)
        blocked = inside(document, "promptFeedback", "blockReason")
        usage = document.get("usageMetadata")
        if isinstance(usage, dict):
            # Counts grow with the stream, so that those before its end say too little.
            self.usage = read_usage(usage, is_final=self.finish_reason is not None or bool(blocked))
        if isinstance(blocked, str) and blocked and not candidates:
            detail = clean_message(
                str(inside(document, "promptFeedback", "blockReasonMessage") or ""), self.sent.api_key
            )
            raise LLMError(ErrorCode.REFUSED, f"The provider blocked the prompt ({blocked[:60]}). {detail}".strip())

    def take_whole(self, document: object) -> None:
        # Without server-sent events a stream is a list of its events.
        documents = document if isinstance(document, list) else [document]
        for one in documents:
            if not {"candidates", "promptFeedback", "error"} & as_object(one).keys():
                if len(documents) == 1:
                    raise LLMError(ErrorCode.OTHER, "The reply is no answer of the generateContent format.")
                continue
            self.take(as_object(one))
        if self.finish_reason is None and not self.has_begun():
            raise LLMError(ErrorCode.SERVER_ERROR, "The server answered without any candidate.", transient=True)

    def _take_candidate(self, candidate: Mapping[str, object]) -> None:
        for part in items(inside(candidate, "content", "parts")):
            text = part.get("text")
            if isinstance(text, str) and text:
                (self.reasoning if part.get("thought") is True else self.text).append(text)
        reason = candidate.get("finishReason")
        if isinstance(reason, str):
            self.note_finish(reason.lower())


def read_usage(usage: Mapping[str, object], *, is_final: bool) -> Usage:
    prompt = count(usage.get("promptTokenCount"))
    if prompt is not None:
        # What tools of the provider brought in is input too.
        prompt += count(usage.get("toolUsePromptTokenCount")) or 0
    thoughts = count(usage.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=prompt,
        output_tokens=_output(usage, prompt, thoughts) if is_final else None,
        reasoning_tokens=thoughts,
        cached_tokens=count(usage.get("cachedContentTokenCount")),
    )


def _output(usage: Mapping[str, object], prompt: int | None, thoughts: int | None) -> int | None:
    """Answer and thoughts together. A count of nothing is left out of the document, so the total tells."""
    answer = count(usage.get("candidatesTokenCount"))
    total = count(usage.get("totalTokenCount"))
    if total is not None and prompt is not None and total - prompt >= (answer or 0):
        return total - prompt
    return None if answer is None else answer + (thoughts or 0)
