"""From a provider's error, in whatever shape, to an `LLMError` with a code that decides what happens next."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arena.llm.errors import ErrorCode, LLMError, clean_message, retry_after_seconds
from arena.llm.messages import ChatRequest, Endpoint

# Payload fields that can be wrong but not left out.
_STRUCTURE = frozenset({"model", "messages", "stream"})
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})

_CONTEXT = re.compile(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size|string_above_max_length"
    r"|maximum context length|max(?:imum)? (?:model )?(?:context|input|prompt) (?:length|size|tokens?)"
    r"|(?:prompt|input).{0,40}too (?:long|many tokens)|too many (?:input )?tokens"
    r"|(?:exceed|larger than|longer than|over).{0,60}(?:context (?:length|window|size|limit)|max_model_len)"
    r"|context (?:length|window|size).{0,40}(?:exceed|too)|input token count.{0,60}exceeds"
    r"|max_tokens must be at least 1, got -|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE | re.DOTALL,
)
_FILES = re.compile(
    r"\bfiles?\b|\bpdfs?\b|\bimages?\b|image_url|\bdocuments?\b|multi-?modal|\bvision\b|\bmime\b|media type"
    r"|content (?:part|type|block|must be a string)|(?:unknown|unsupported|invalid).{0,30}content"
    r"|expected a string",
    re.IGNORECASE,
)
_FILE_SIZE = re.compile(
    r"too large|too big|too many pages|exceeds? .{0,40}(?:size|pages|\bMB\b|bytes)|maximum of \d+ (?:PDF )?pages",
    re.IGNORECASE,
)
_PAYLOAD_SIZE = re.compile(
    r"(?:payload|request|body)(?: body)? (?:size|length) exceeds|request_too_large", re.IGNORECASE
)
# Said with a plain 400 by some.
_KEY = re.compile(r"api[ _]key (?:not valid|expired|not found)|credit balance is too low", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:currently )?(?:supported|available|permitted|allowed|recogni[sz]ed|enabled)"
    r"|(?:does|do)(?: not|n't) (?:currently )?(?:support|accept|allow|have)|unrecogni[sz]ed|unknown"
    r"|unexpected|not compatible|deprecated"
    r"|cannot (?:both )?be (?:used|set|specified)|(?:can|may) only be|only .{0,30}(?:supported|allowed)|unavailable"
    r"|extra (?:inputs|fields)|additional propert|cannot find field|no longer|incompatible|extra_forbidden",
    re.IGNORECASE,
)
SCHEMA_WORDS = re.compile(
    r"response_format|json[_ ]?schema|json[_ ]?(?:mode|object)|structured[_ ]outputs?|guided|grammar"
    r"|strict mode|invalid schema",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content_filter|content_policy|content management policy|responsible_?ai", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing_hard_limit", re.IGNORECASE)
_WORD_CODES: tuple[tuple[re.Pattern[str], int], ...] = (
    (
        re.compile(r"rate.?limit|too.?many.?requests|resource.?exhausted|insufficient_quota", re.IGNORECASE),
        429,
    ),
    (re.compile(r"overloaded", re.IGNORECASE), 529),
    (re.compile(r"authentication|invalid.?api.?key|unauthori[sz]ed", re.IGNORECASE), 401),
    (re.compile(r"permission", re.IGNORECASE), 403),
    (re.compile(r"not.?found", re.IGNORECASE), 404),
    (re.compile(r"invalid.?request|invalid.?argument|bad.?request", re.IGNORECASE), 400),
    (re.compile(r"timeout|deadline.?exceeded", re.IGNORECASE), 504),
    (re.compile(r"too.?large", re.IGNORECASE), 413),
    (re.compile(r"billing", re.IGNORECASE), 402),
)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a call carried, as far as reading its error needs it."""

    api_key: str | None
    # With `response_format` among them where a form of structured reply was asked for, by whatever fields.
    parameters: frozenset[str]
    has_files: bool
    # What an error speaks of that refuses this form.
    form_words: re.Pattern[str] = SCHEMA_WORDS

    @classmethod
    def of(cls, endpoint: Endpoint, request: ChatRequest, parameters: Iterable[str]) -> Sent:
        return cls(endpoint.api_key, frozenset(parameters) - _STRUCTURE, request.has_files)


@dataclass(frozen=True, slots=True)
class Report:
    """A provider's error taken apart."""

    message: str
    code: str
    kind: str
    parameter: str | None
    retry_after_s: float | None = None
    # A quota that this day brings no more of.
    is_used_up: bool = False

    @property
    def everything(self) -> str:
        return f"{self.code} {self.kind} {self.message}"


def http_error(status: int, headers: Mapping[str, str], body: bytes, sent: Sent) -> LLMError:
    text = body.decode("utf-8", "replace")
    try:
        report = read_report(json.loads(text))
    except (ValueError, RecursionError):
        # Proxies answer in HTML or plain text.
        report = Report(re.sub(r"<[^>]{0,2000}>", " ", text), "", "", None)
    return _error(status, report, sent, _retry_after(headers))


def stream_error(document: object, sent: Sent) -> LLMError:
    """An error inside a stream that began with 200: a breakdown, unless it names a lasting cause."""
    report = read_report(document)
    status = int(report.code) if re.fullmatch(r"[45]\d\d", report.code) else None
    if status is None:
        words = f"{report.code} {report.kind}"
        status = next((known for pattern, known in _WORD_CODES if pattern.search(words)), 500)
    return _error(status, report, sent, None)


def read_report(document: object) -> Report:
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return Report(str(document), "", "", None)
    error = document.get("error", document)
    if not isinstance(error, dict):
        error = {**document, "message": str(error)}
    message = error.get("message") or error.get("msg") or error.get("detail") or error.get("error")
    if isinstance(message, list | dict):
        return _validation_report(message)
    if message is None:
        message = json.dumps(error, ensure_ascii=False)
    # Routers wrap what the provider behind them said.
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        message = f"{message}: {metadata['raw']}"
    parameter = error.get("param")
    return Report(
        str(message),
        str(error.get("code") or ""),
        str(error.get("type") or error.get("status") or ""),
        parameter if isinstance(parameter, str) and parameter else None,
        *_advice(error.get("details")),
    )


def _advice(details: object) -> tuple[float | None, bool]:
    """When to try again, as Google's errors say it, and whether a quota of the day is used up."""
    retry_after_s, is_used_up = None, False
    for detail in details if isinstance(details, list) else []:
        if not isinstance(detail, dict):
            continue
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            retry_after_s = retry_after_seconds(delay.removesuffix("s"))
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, dict) and "PerDay" in str(violation.get("quotaId")):
                is_used_up = True
    return retry_after_s, is_used_up


def _validation_report(detail: list[object] | dict[str, object]) -> Report:
    """`{"detail": [{"type": ..., "loc": ["body", "temperature"], "msg": ...}]}`, common in Python."""
    first = detail[0] if isinstance(detail, list) and detail else detail
    if not isinstance(first, dict):
        return Report(str(first), "", "", None)
    location = first.get("loc")
    names = [str(name) for name in location if name != "body"] if isinstance(location, list) else []
    message = f"{'.'.join(names)}: {first.get('msg', first)}" if names else str(first.get("msg", first))
    return Report(message, str(first.get("type") or ""), "", names[0] if names else None)


def _error(status: int, report: Report, sent: Sent, retry_after_s: float | None) -> LLMError:
    code, parameter = _code(status, report, sent)
    transient = code not in _LASTING and (status in TRANSIENT_STATUSES or status >= 500)
    if retry_after_s is None:
        retry_after_s = report.retry_after_s
    waits = status in {429, 529} or (status == 503 and retry_after_s is not None)
    # An exhausted quota is answered with 429 too, but no wait mends it. With a time to wait it is a limit of rate.
    exhausted = report.is_used_up or (report.retry_after_s is None and _QUOTA.search(report.everything))
    counts_as_wait = transient and waits and not exhausted
    message = clean_message(report.message, sent.api_key)
    return LLMError(
        code,
        message or f"The server answered with status {status} and no explanation.",
        transient=transient,
        counts_as_wait=counts_as_wait,
        retry_after_s=retry_after_s if transient else None,
        http_status=status,
        parameter=clean_message(parameter, sent.api_key, limit=100) if parameter else None,
    )


_LASTING = frozenset(
    {
        ErrorCode.CONTEXT_OVERFLOW,
        ErrorCode.UNSUPPORTED_PARAMETER,
        ErrorCode.UNSUPPORTED_INPUT,
        ErrorCode.REFUSED,
        ErrorCode.TOO_LARGE,
        ErrorCode.AUTH,
    }
)
_PLAIN_CODES = {
    401: ErrorCode.AUTH,
    402: ErrorCode.AUTH,
    403: ErrorCode.AUTH,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.NOT_FOUND,
    408: ErrorCode.TIMEOUT,
    409: ErrorCode.SERVER_ERROR,
    413: ErrorCode.TOO_LARGE,
    425: ErrorCode.SERVER_ERROR,
    429: ErrorCode.RATE_LIMITED,
}


def _code(status: int, report: Report, sent: Sent) -> tuple[ErrorCode, str | None]:
    plain = _PLAIN_CODES.get(status) or (ErrorCode.SERVER_ERROR if status >= 500 else ErrorCode.BAD_REQUEST)
    everything = report.everything
    if status not in {401, 402, 403, 404, 429} and _CONTEXT.search(everything):
        return ErrorCode.CONTEXT_OVERFLOW, None
    if status in {400, 403, 422} and _REFUSED.search(everything):
        return ErrorCode.REFUSED, None
    if status == 400 and _KEY.search(everything):
        return ErrorCode.AUTH, None
    if status == 400 and _PAYLOAD_SIZE.search(everything):
        return ErrorCode.TOO_LARGE, None
    if status in {400, 422}:
        parameter = refused_parameter(report, sent)
        if parameter:
            return ErrorCode.UNSUPPORTED_PARAMETER, parameter
    if sent.has_files and status in {400, 404, 415, 422} and _FILES.search(everything):
        return (ErrorCode.TOO_LARGE if _FILE_SIZE.search(everything) else ErrorCode.UNSUPPORTED_INPUT), None
    return plain, report.parameter


def refused_parameter(report: Report, sent: Sent) -> str | None:
    """The sent parameter that the endpoint does not know. A value out of range is the user's to mend."""
    named = (report.parameter or "").split(".")[0].split("[")[0]
    if named and named not in sent.parameters:
        # Says what is wrong, and it is not a parameter: the messages, or the model.
        return None
    if "response_format" in sent.parameters and (
        named == "response_format" or (not named and sent.form_words.search(report.everything))
    ):
        return "response_format"
    if not _UNSUPPORTED.search(report.everything):
        return None
    if named:
        return named
    # The name that comes first is refused, a later one is advice: "no max_tokens, use max_completion_tokens".
    found = [(match.start(), name) for name in sent.parameters if (match := _name_pattern(name).search(report.message))]
    return min(found)[1] if found else None


def _name_pattern(name: str) -> re.Pattern[str]:
    # Servers that take camelCase may complain in snake_case.
    snake = _CAMEL.sub("_", name).lower()
    spoken = "|[Tt]hinking (?:level|budget)" if name == "thinkingConfig" else ""
    return re.compile(rf"(?<![\w.-])(?:{re.escape(name)}|{re.escape(snake)}{spoken})(?![\w-])")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = retry_after_seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    return retry_after_seconds(headers.get("retry-after"))
