"""The button that tests a model: tiny calls that find out whether it answers and what it takes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from arena.llm.client import complete
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.fallbacks import adapted, weaker
from arena.llm.messages import (
    ChatMessage,
    ChatRequest,
    Completion,
    Endpoint,
    FilePart,
    Structured,
    TextPart,
    Usage,
)
from arena.llm.wire import wire_format

MAX_ATTEMPTS = 8
# Room for models that think before they say anything; only what they say is paid for.
PROBE_MAX_TOKENS = 2048
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_PROMPT = 'Reply with the JSON object {"ok": true} and nothing else.'
_PDF_PROMPT = "Reply with the single word that is written in the attached document."

_SENTENCES = {
    ErrorCode.RATE_LIMITED: "The provider is limiting the rate of calls or the quota is used up.",
    ErrorCode.SERVER_ERROR: "The provider reported an error of its own.",
    ErrorCode.TIMEOUT: "No answer came in time.",
    ErrorCode.CONNECTION: "The connection failed.",
    ErrorCode.CONTEXT_OVERFLOW: "Even the tiny test prompt is too long for this model.",
    ErrorCode.UNSUPPORTED_PARAMETER: "The provider refuses a parameter.",
    ErrorCode.UNSUPPORTED_INPUT: "The model does not take this kind of file.",
    ErrorCode.REFUSED: "The provider's filter refused the test prompt.",
    ErrorCode.AUTH: "The provider refused the key, or the account behind it.",
    ErrorCode.NOT_FOUND: "The provider does not know this model, or the base URL is wrong.",
    ErrorCode.BAD_REQUEST: "The provider refused the request.",
    ErrorCode.REDIRECT: "The base URL redirects elsewhere, and redirects are never followed.",
    ErrorCode.BLOCKED_ADDRESS: "The base URL points to an address that must not be called.",
    ErrorCode.TOO_LARGE: "The provider says the request is too large.",
    ErrorCode.OTHER: "The call failed.",
}


_FORMS: dict[Structured, str] = {
    "schema": "It follows a JSON schema.",
    "tool": "It follows a JSON schema by calling a tool with its reply.",
    "openapi": "It follows a JSON schema in the smaller language of OpenAPI.",
    "json": "It knows JSON mode, but no schema.",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP call of a probe, as it is to be recorded."""

    purpose: str
    started_at: datetime
    ended_at: datetime
    usage: Usage
    outcome: Completion | LLMError

    @property
    def error(self) -> LLMError | None:
        return self.outcome if isinstance(self.outcome, LLMError) else None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    ok: bool
    sentence: str
    error_code: ErrorCode | None = None
    latency_ms: float | None = None
    ttft_ms: float | None = None
    streaming: bool | None = None
    # The strongest form that worked; None with `structured_known` means plain text only.
    structured: Structured | None = None
    structured_known: bool = False
    pdf_accepted: bool | None = None
    # Whether the answer shows that the document was read, not only let through.
    pdf_read: bool | None = None
    changes: tuple[str, ...] = ()
    host: str | None = None
    model_reported: str | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass
class _Prober:
    endpoint: Endpoint
    deadline_s: float
    attempts: list[Attempt] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    @property
    def forms(self) -> tuple[Structured, ...]:
        return wire_format(self.endpoint).forms

    def call(self, request: ChatRequest, purpose: str) -> tuple[ChatRequest, Completion | LLMError]:
        """One answer, after as many refused parameters as there are."""
        while True:
            outcome = self._attempt(request, purpose)
            if isinstance(outcome, Completion) or len(self.attempts) >= MAX_ATTEMPTS:
                return request, outcome
            step = adapted(request, outcome, self.forms)
            if step is None:
                return request, outcome
            request, change = step
            self.changes.append(change)

    def _attempt(self, request: ChatRequest, purpose: str) -> Completion | LLMError:
        started_at = datetime.now(UTC)
        try:
            outcome: Completion | LLMError = complete(self.endpoint, request, deadline_s=self.deadline_s)
        except LLMError as error:
            outcome = error
        ended_at = datetime.now(UTC)
        self.attempts.append(Attempt(purpose, started_at, ended_at, outcome.usage, outcome))
        return outcome


def probe(
    endpoint: Endpoint,
    model_id: str,
    *,
    parameters: dict[str, object] | None = None,
    pdf: bytes | None = None,
    pdf_word: str | None = None,
    max_tokens: int = PROBE_MAX_TOKENS,
    deadline_s: float = 60.0,
) -> ProbeResult:
    """Asks for JSON under a schema and falls back as judges do; with a PDF, one more call carries it."""
    prober = _Prober(endpoint, deadline_s)
    request = ChatRequest(
        model_id,
        (ChatMessage.of("user", _PROMPT),),
        parameters=parameters or {},
        max_tokens=max_tokens,
        structured="schema",
        json_schema=_SCHEMA,
    )
    request, outcome = prober.call(request, "probe")
    if isinstance(outcome, LLMError):
        return _failed(prober, outcome)
    first = outcome
    request, structured, known = _structured(prober, request, first)
    accepted, read = _pdf(prober, request, pdf, pdf_word) if pdf is not None else (None, None)
    return ProbeResult(
        ok=True,
        sentence=_sentence(first, structured, known=known, pdf_accepted=accepted, pdf_read=read),
        latency_ms=first.duration_ms,
        ttft_ms=first.ttft_ms,
        streaming=first.streamed,
        structured=structured,
        structured_known=known,
        pdf_accepted=accepted,
        pdf_read=read,
        changes=tuple(prober.changes),
        host=first.host,
        model_reported=first.model_reported,
        attempts=tuple(prober.attempts),
    )


def _failed(prober: _Prober, error: LLMError) -> ProbeResult:
    return ProbeResult(
        ok=False,
        sentence=f"{_SENTENCES[error.code]} {error.message}",
        error_code=error.code,
        latency_ms=error.duration_ms,
        changes=tuple(prober.changes),
        attempts=tuple(prober.attempts),
    )


def _structured(
    prober: _Prober, request: ChatRequest, completion: Completion
) -> tuple[ChatRequest, Structured | None, bool]:
    """(request, form, known): a server may take a schema without a word and then not follow it."""
    while request.structured is not None:
        if _obeys(completion, request.structured):
            return request, request.structured, True
        if completion.truncated or completion.refused:
            # Says nothing about the format.
            return request, None, False
        prober.changes.append(f"no_{request.structured}")
        request = weaker(request, prober.forms)
        if request.structured is None or len(prober.attempts) >= MAX_ATTEMPTS:
            break
        request, outcome = prober.call(request, "probe")
        if isinstance(outcome, LLMError):
            return request, None, False
        completion = outcome
    return request, None, True


def _obeys(completion: Completion, structured: Structured) -> bool:
    try:
        reply = json.loads(completion.text)
    except (ValueError, RecursionError):
        return False
    if structured == "json":
        return isinstance(reply, dict)
    return isinstance(reply, dict) and set(reply) == {"ok"} and isinstance(reply["ok"], bool)


def _pdf(prober: _Prober, request: ChatRequest, pdf: bytes, word: str | None) -> tuple[bool | None, bool | None]:
    parts = (TextPart(_PDF_PROMPT), FilePart(pdf, "application/pdf", "probe.pdf"))
    request = replace(request, messages=(ChatMessage("user", parts),), structured=None, json_schema=None)
    _, outcome = prober.call(request, "probe-pdf")
    if isinstance(outcome, Completion):
        return True, None if word is None else word.casefold() in outcome.text.casefold()
    # Anything else, a timeout say, does not answer the question.
    return (False if outcome.code is ErrorCode.UNSUPPORTED_INPUT else None), None


def _sentence(
    completion: Completion,
    structured: Structured | None,
    *,
    known: bool,
    pdf_accepted: bool | None,
    pdf_read: bool | None,
) -> str:
    sentences = [f"The model answered in {completion.duration_ms:,.0f} ms."]
    if not completion.streamed:
        sentences.append("It does not stream.")
    if known:
        sentences.append(_FORMS[structured] if structured else "It knows neither JSON schema nor JSON mode.")
    if pdf_accepted:
        sentences.append("It takes PDFs." if pdf_read is not False else "It accepts PDFs, but did not read one.")
    elif pdf_accepted is False:
        sentences.append("It takes no PDFs.")
    return " ".join(sentences)


def one_page_pdf(word: str) -> bytes:
    """The smallest document that a reader accepts, with one word of ASCII letters on it."""
    if not (word.isascii() and word.isalnum()):
        raise ValueError("the word must consist of ASCII letters and digits")
    content = f"BT /F1 48 Tf 60 120 Td ({word}) Tj ET".encode()
    bodies = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    document = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(bodies) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(document))
    return document + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table) + trailer
