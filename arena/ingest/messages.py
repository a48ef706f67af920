from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from arena.ingest.paths import BadPath, clean_path, suffix_of
from arena.ingest.problems import Report, clip
from arena.ingest.sniff import HEAD_BYTES, IMAGE_TYPES, TYPE_BY_SUFFIX, describe, sniff
from arena.ingest.types import Message, Part

ROLES = ("system", "user", "assistant", "developer", "tool")
PART_TYPES = ("text", "file_ref", "image_url")
_TOOL_KEYS = ("name", "tool_calls", "tool_call_id")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)


class MessageReader:
    """Checks the messages of one sample, reporting everything that is wrong with them."""

    def __init__(self, *, error: Report, warn: Report, image_bytes: int) -> None:
        self.error = error
        self.warn = warn
        self.image_bytes = image_bytes
        self.paths: dict[str, str] = {}  # attachment path -> where it was first named
        self.extras: dict[str, Any] = {}

    def read(self, value: object, where: str, content_fields: Sequence[str] = ()) -> list[Message]:
        if not isinstance(value, list):
            self.error(where, "must be a list of messages")
            return []
        if not value:
            self.error(where, "is empty")
            return []
        messages = []
        for i, item in enumerate(value):
            at = f"{where}[{i}]"
            content_at = content_fields[i] if i < len(content_fields) else f"{at}.content"
            messages.append(self._message(item, at, content_at))
        roles = [message.get("role") for message in messages]
        if "user" not in roles:
            self.error(where, "has no user message")
        elif roles[-1] in ROLES and roles[-1] not in ("user", "tool"):
            self.error(f"{where}[{len(roles) - 1}].role", "the last message must be of the user (or a tool)")
        return messages

    def _message(self, item: object, where: str, content_at: str) -> Message:
        if not isinstance(item, dict):
            self.error(where, "must be an object with role and content")
            return {}
        message: Message = {"role": item.get("role")}
        role = item.get("role")
        if role not in ROLES:
            self.error(f"{where}.role", f"must be one of {', '.join(ROLES)}")
        for key, value in item.items():
            if key in _TOOL_KEYS and value is not None:
                wanted = list if key == "tool_calls" else str
                if isinstance(value, wanted):
                    message[key] = value
                else:
                    self.error(f"{where}.{key}", "must be a list" if wanted is list else "must be text")
            elif key not in ("role", "content", *_TOOL_KEYS):
                self.extras[f"{where}.{clip(key)}"] = value
        message["content"] = self._content(item.get("content"), content_at, message)
        return message

    def _content(self, value: object, where: str, message: Message) -> str | list[Part]:
        role = message["role"]
        if value is None and role == "assistant" and "tool_calls" in message:
            return ""
        if isinstance(value, str):
            if role == "user" and not value.strip():
                self.error(where, "is empty")
            return value
        if not isinstance(value, list):
            self.error(where, "must be text or a list of parts")
            return ""
        parts = [self._part(part, f"{where}[{i}]", role) for i, part in enumerate(value)]
        # A part that was refused has its own error and counts as content.
        if role == "user" and all(p.get("type") == "text" and not p["text"].strip() for p in parts):
            self.error(where, "is empty")
        return parts

    def _part(self, item: object, where: str, role: object) -> Part:
        if not isinstance(item, dict):
            self.error(where, f"must be an object with a type: {', '.join(PART_TYPES)}")
            return {}
        kind = item.get("type")
        known = {"text": ("text",), "file_ref": ("path",), "image_url": ("image_url",)}
        if not isinstance(kind, str) or kind not in known:
            self.error(f"{where}.type", f"must be one of {', '.join(PART_TYPES)}")
            return {}
        if kind != "text" and role != "user":
            self.error(where, "files and images can only stand in user messages")
            return {}
        for key, value in item.items():
            if key not in ("type", *known[kind]):
                self.extras[f"{where}.{clip(key)}"] = value
        if kind == "text":
            return self._text(item.get("text"), f"{where}.text")
        if kind == "file_ref":
            return self._file_ref(item.get("path"), f"{where}.path")
        return self._image(item.get("image_url"), f"{where}.image_url")

    def _text(self, value: object, where: str) -> Part:
        if not isinstance(value, str):
            self.error(where, "must be text")
            return {}
        return {"type": "text", "text": value}

    def _file_ref(self, value: object, where: str) -> Part:
        if not isinstance(value, str):
            self.error(where, "must be the path of a file under attachments/")
            return {}
        try:
            path = clean_path(value)
        except BadPath as bad:
            self.error(where, f"the path {clip(value)!r} {bad}")
            return {}
        if suffix_of(path) not in TYPE_BY_SUFFIX:
            self.error(where, f"{clip(path)!r} must be one of {', '.join(s[1:] for s in TYPE_BY_SUFFIX)}")
            return {}
        self.paths.setdefault(path, where)
        return {"type": "file_ref", "path": path}

    def _image(self, value: object, where: str) -> Part:
        options = {"url": value} if isinstance(value, str) else value
        if not isinstance(options, dict) or not isinstance(options.get("url"), str):
            self.error(where, "must be an object with a url")
            return {}
        image = {"url": options["url"]}
        for key, option in options.items():
            if key == "detail" and isinstance(option, str):
                image["detail"] = option
            elif key != "url":
                self.extras[f"{where}.{clip(key)}"] = option
        return {"type": "image_url", "image_url": image} if self._image_url(image["url"], f"{where}.url") else {}

    def _image_url(self, url: str, where: str) -> bool:
        if url[:5].lower() == "data:":
            return self._data_url(url, where)
        try:
            parts = urlsplit(url)
        except ValueError:
            self.error(where, "is not a valid URL")
            return False
        if parts.scheme != "https" or not parts.hostname:
            self.error(where, "must be an https URL or a data URL of an image")
            return False
        self.warn(where, "is a remote image: its URL is sent to the provider, it is never fetched or shown here")
        return True

    def _data_url(self, url: str, where: str) -> bool:
        match = _DATA_URL.match(url)
        if not match:
            self.error(where, "must be data:image/...;base64,...")
            return False
        try:
            data = base64.b64decode(url[match.end() :], validate=True)
        except (binascii.Error, ValueError):
            self.error(where, "is not valid base64")
            return False
        found = sniff(data[:HEAD_BYTES])
        if found not in IMAGE_TYPES:
            self.error(where, f"is {describe(data[:HEAD_BYTES])}; it must be a PNG, JPEG, GIF or WebP image")
        elif found != match[1].lower().replace("image/jpg", "image/jpeg"):
            self.error(where, f"says {match[1]} and is {describe(data[:HEAD_BYTES])}")
        elif len(data) > self.image_bytes:
            self.error(where, f"is {len(data):,} bytes large; the limit for an image is {self.image_bytes:,}")
        else:
            return True
        return False
