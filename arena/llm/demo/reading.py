"""A chat request, checked and taken apart."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Format = Literal["text", "json", "schema"]

_PDF_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
PDF_PAGE_TOKENS = 700
IMAGE_TOKENS = 300


class RequestError(Exception):
    """Something the client has to change; `parameter` names what."""

    def __init__(
        self, message: str, *, status: int = 400, parameter: str | None = None, code: str = "invalid_request"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.parameter = parameter
        self.code = code


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatCall:
    model_id: str
    turns: tuple[Turn, ...]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    format: Format
    schema: Mapping[str, object] | None
    pdf_pages: int
    images: int
    parameters: frozenset[str]

    def texts(self, *roles: str) -> list[str]:
        return [turn.text for turn in self.turns if turn.role in roles]

    @property
    def input_tokens(self) -> int:
        words = sum(count_tokens(turn.text) + 4 for turn in self.turns)
        return words + self.pdf_pages * PDF_PAGE_TOKENS + self.images * IMAGE_TOKENS


def count_tokens(text: str) -> int:
    """About four letters of Latin script, or one and a half of others, to a token."""
    extra_bytes = len(text.encode("utf-8", "surrogatepass")) - len(text)
    wide = min(len(text), extra_bytes // 2)
    return (len(text) - wide + 3) // 4 + (wide * 2 + 2) // 3


def read_call(body: bytes) -> ChatCall:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError("The request body is not valid JSON.") from None
    if not isinstance(document, dict):
        raise RequestError("The request body must be a JSON object.")
    model_id = document.get("model")
    if not isinstance(model_id, str) or not model_id:
        raise RequestError("A model is required.", parameter="model")
    reader = _MessageReader()
    turns = reader.read(document.get("messages"))
    format_, schema = _response_format(document.get("response_format"))
    options = document.get("stream_options")
    return ChatCall(
        model_id=model_id,
        turns=turns,
        stream=document.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=_max_tokens(document),
        format=format_,
        schema=schema,
        pdf_pages=reader.pdf_pages,
        images=reader.images,
        parameters=frozenset(document),
    )


def _max_tokens(document: Mapping[str, object]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = document.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise RequestError(f"{name} must be a whole number of at least 1.", parameter=name)
        return value
    return None


def _response_format(value: object) -> tuple[Format, Mapping[str, object] | None]:
    if value is None:
        return "text", None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return "text", None
    if kind == "json_object":
        return "json", None
    wrapper = value.get("json_schema") if isinstance(value, dict) and kind == "json_schema" else None
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    if not isinstance(schema, dict):
        raise RequestError(
            "response_format must be text, json_object, or json_schema with a schema.",
            parameter="response_format",
        )
    return "schema", schema


class _MessageReader:
    def __init__(self) -> None:
        self.pdf_pages = 0
        self.images = 0

    def read(self, messages: object) -> tuple[Turn, ...]:
        if not isinstance(messages, list) or not messages:
            raise RequestError("messages must be a list with at least one message.", parameter="messages")
        return tuple(self._turn(index, message) for index, message in enumerate(messages))

    def _turn(self, index: int, message: object) -> Turn:
        where = f"messages[{index}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f"{where} must be an object with a role.", parameter=where)
        content = message.get("content")
        if content is None or isinstance(content, str):
            return Turn(message["role"], content or "")
        if not isinstance(content, list):
            raise RequestError(f"{where}.content must be a text or a list of parts.", parameter=where)
        texts = [self._part(f"{where}.content[{number}]", part) for number, part in enumerate(content)]
        return Turn(message["role"], "\n\n".join(text for text in texts if text))

    def _part(self, where: str, part: object) -> str:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict):
            if kind == "text" and isinstance(part.get("text"), str):
                return str(part["text"])
            if kind == "file":
                self.pdf_pages += _pdf_pages(where, part.get("file"))
                return ""
            if kind == "image_url":
                self.images += 1
                return ""
        raise RequestError(f"{where}: unsupported content part of type {kind!r}.", parameter=where)


def _pdf_pages(where: str, file: object) -> int:
    data = file.get("file_data") if isinstance(file, dict) else None
    prefix = "data:application/pdf;base64,"
    if not isinstance(data, str) or not data.startswith(prefix):
        raise RequestError(f"{where}: file_data must be a base64 data URL of a PDF.", parameter=where)
    try:
        content = base64.b64decode(data[len(prefix) :], validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"{where}: the file is not valid base64.", parameter=where) from None
    if not content.startswith(b"%PDF-"):
        raise RequestError(f"{where}: the file is not a PDF.", parameter=where)
    # Compressed object streams hide their pages, so one is the least that is counted.
    return max(1, len(_PDF_PAGE.findall(content)))
