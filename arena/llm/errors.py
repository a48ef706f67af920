"""The one exception of the wire layer, and the cleaning of everything a provider says before it enters it."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from urllib.parse import quote

from arena.llm.messages import Usage

MESSAGE_LIMIT = 500
RETRY_AFTER_LIMIT_S = 86_400.0
REDACTED = "[key removed]"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Zero-width characters and direction marks: they hide or reorder what a reader sees.
# The words behind it say the same.
_ERRNO = re.compile(r"\[Errno -?\d+\] ")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")


class ErrorCode(StrEnum):
    RATE_LIMITED = "RATE_LIMITED"
    SERVER_ERROR = "SERVER_ERROR"
    TIMEOUT = "TIMEOUT"
    CONNECTION = "CONNECTION"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    UNSUPPORTED_PARAMETER = "UNSUPPORTED_PARAMETER"
    UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
    REFUSED = "REFUSED"
    AUTH = "AUTH"
    NOT_FOUND = "NOT_FOUND"
    BAD_REQUEST = "BAD_REQUEST"
    REDIRECT = "REDIRECT"
    BLOCKED_ADDRESS = "BLOCKED_ADDRESS"
    TOO_LARGE = "TOO_LARGE"
    OTHER = "OTHER"


class LLMError(Exception):
    """A call without a usable answer: why, whether trying again can help, and what was received."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        transient: bool = False,
        counts_as_wait: bool = False,
        retry_after_s: float | None = None,
        http_status: int | None = None,
        parameter: str | None = None,
        partial_text: str = "",
        partial_reasoning: str = "",
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.transient = transient
        self.counts_as_wait = counts_as_wait
        self.retry_after_s = retry_after_s
        self.http_status = http_status
        self.parameter = parameter
        self.partial_text = partial_text
        self.partial_reasoning = partial_reasoning
        self.usage = usage or Usage()
        self.ttft_ms: float | None = None
        # False where it is known that no byte of the request left.
        self.sent = True
        self.duration_ms: float | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __repr__(self) -> str:
        return f"LLMError({self.code}, {self.message!r}, transient={self.transient})"


def clean_message(text: str, api_key: str | None, limit: int = MESSAGE_LIMIT) -> str:
    # Invisible characters first, which could hide a key; cutting last, which could halve it.
    cleaned = _ERRNO.sub("", redact(_INVISIBLE.sub("", text), api_key))
    cleaned = " ".join(_CONTROL.sub(" ", cleaned).split())
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1].rstrip() + "…"


def redact(text: str, api_key: str | None) -> str:
    key = (api_key or "").strip()
    if not key:
        return text
    for form in {key, quote(key, safe="")}:
        text = text.replace(form, REDACTED)
    return text


def retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds from a `Retry-After` header, which holds seconds or an HTTP date. Nonsense is no advice."""
    if not value or not (value := value.strip()):
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT_S)
