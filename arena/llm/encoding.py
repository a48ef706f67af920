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
        self._urls: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> str | None:
        with self._lock:
            url = self._urls.get(key)
            if url is not None:
                self._urls.move_to_end(key)
            return url

    def put(self, key: tuple[str, str], url: str) -> None:
        if len(url) > self._limit:
            return
        with self._lock:
            self._size += len(url) - len(self._urls.pop(key, ""))
            self._urls[key] = url
            while self._size > self._limit:
                self._size -= len(self._urls.popitem(last=False)[1])


_cache = _Cache(CACHE_LIMIT)


def data_url(content_type: str, data: Content, digest: str | None) -> str:
    """A file known by its digest is not even read again while its encoded form is kept."""
    key = (content_type, digest or "")
    if digest and (kept := _cache.get(key)):
        return kept
    url = f"data:{content_type};base64,{b64encode(content_bytes(data)).decode('ascii')}"
    if digest:
        _cache.put(key, url)
    return url
