"""Base64 of attachments, made once while in use: every trial and verdict of a sample sends the same file."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections import OrderedDict

from arena.llm.messages import Content, content_bytes

CACHE_LIMIT = 64 * 1024 * 1024


class _Cache:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> str | None:
        with self._lock:
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
            return text

    def put(self, key: str, text: str) -> None:
        if len(text) > self._limit:
            return
        with self._lock:
            self._size += len(text) - len(self._texts.pop(key, ""))
            self._texts[key] = text
            while self._size > self._limit:
                self._size -= len(self._texts.popitem(last=False)[1])


_cache = _Cache(CACHE_LIMIT)


def base64_text(data: Content, digest: str | None) -> str:
    """A file known by its digest is not even read again while its encoded form is kept."""
    if digest and (kept := _cache.get(digest)):
        return kept
    text = b64encode(content_bytes(data)).decode("ascii")
    if digest:
        _cache.put(digest, text)
    return text


def data_url(content_type: str, data: Content, digest: str | None) -> str:
    return f"data:{content_type};base64,{base64_text(data, digest)}"


def inline_data(url: str) -> tuple[str, str] | None:
    """(content type, base64) of a data URL; None for an address."""
    head, comma, text = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64").split(";")[0], text
