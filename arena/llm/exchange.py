"""One HTTP exchange. Everything that costs import time lives below here, so that `client` stays light."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import httpcore
import httpx

from arena.llm.classify import http_error
from arena.llm.errors import ErrorCode, LLMError, clean_message
from arena.llm.guard import BlockedAddressError
from arena.llm.messages import ChatRequest, Completion, Endpoint
from arena.llm.sse import EventStream
from arena.llm.transport import WRITE_SILENCE_S, Clock, line_for
from arena.llm.wire import AnswerReader, WireFormat, wire_format

ERROR_BODY_LIMIT = 64 * 1024
ERROR_BODY_SECONDS = 10.0
# After the finish reason only the usage is missing; a server that hangs there has answered.
TRAILER_SILENCE_S = 10.0
# After the end mark only the end of the body is missing, and without it the connection cannot be used again.
DRAIN_S = 0.05

_WIRE_ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError)

_PLAIN = frozenset({"", "identity"})
# One layer of these; several, one around the other, could grow a packet to gigabytes.
_COMPRESSED = frozenset({"gzip", "deflate"})

Progress = Callable[[], None]


class Exchange:
    def __init__(
        self,
        endpoint: Endpoint,
        request: ChatRequest,
        *,
        deadline_s: float | None,
        max_bytes: int,
        progress: Progress,
    ) -> None:
        self._endpoint = endpoint
        self._format: WireFormat = wire_format(endpoint)
        self._deadline_s = deadline_s
        self._max_bytes = max_bytes
        self._progress = progress
        self._line = line_for(endpoint)
        self._clock: Clock = self._line.clock
        self._request = request
        self._payload = self._format.payload(request)
        self._sent = self._format.sent(endpoint, request, self._payload)
        self._reader: AnswerReader = self._format.reader(request, self._sent)
        self._begun_at: float | None = None
        self._ended_at: float | None = None
        self._streamed = False
        self._host = ""
        # The first call of a process loads certificates, and files are encoded: neither is the server's time.
        self._started = time.monotonic()
        self._clock.start(None if deadline_s is None else self._started + deadline_s)

    def run(self) -> Completion | LLMError:
        """Failures are returned: raised here they would drag the request, and the key, along as context."""
        outcome = self._outcome()
        if isinstance(outcome, LLMError):
            outcome.sent = self._clock.left_at is not None
        return outcome

    def _outcome(self) -> Completion | LLMError:
        try:
            self._send()
        except LLMError as error:
            return self._with_partial(error)
        except BlockedAddressError as error:
            return LLMError(ErrorCode.BLOCKED_ADDRESS, clean_message(str(error), self._endpoint.api_key))
        except (httpcore.TimeoutException, httpx.TimeoutException) as error:
            return self._broken_off(self._timeout(error))
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.TransportError) as error:
            return self._broken_off(self._connection_error(error))
        except (httpx.InvalidURL, httpcore.UnsupportedProtocol):
            return LLMError(ErrorCode.BAD_REQUEST, "The base URL is not a valid address.")
        except httpx.DecodingError:
            return self._with_partial(self._connection_error("The answer's compression is broken."))
        return self._completion()

    def _send(self) -> None:
        request = self._http_request()
        if not request.url.host:
            raise httpx.InvalidURL("no host")
        self._host = request.url.netloc.decode("ascii")
        response = self._line.http.handle_request(request)
        try:
            self._receive(response)
        finally:
            response.close()

    def _http_request(self) -> httpx.Request:
        key = (self._endpoint.api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise LLMError(ErrorCode.AUTH, "The key contains characters that cannot be sent. Enter it again.")
        try:
            # Lone surrogates cannot be sent at all; NaN is no JSON.
            body = json.dumps(self._payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except ValueError:
            body = None
        if body is None:
            raise LLMError(ErrorCode.BAD_REQUEST, "A parameter is not a number that JSON knows.")
        endpoint = self._endpoint
        silence = endpoint.read_timeout_s
        return httpx.Request(
            "POST",
            endpoint.base_url.rstrip("/") + self._format.path(endpoint, self._request),
            headers={
                **self._format.headers(key),
                "content-type": "application/json",
                "accept": "text/event-stream, application/json",
                # Compression would only delay the chunks of a stream.
                "accept-encoding": "identity",
                "user-agent": "tiltyard",
            },
            content=body.encode("utf-8", "replace"),
            extensions={
                "timeout": {
                    "connect": endpoint.connect_timeout_s,
                    "pool": endpoint.connect_timeout_s,
                    "read": silence,
                    "write": min(silence, WRITE_SILENCE_S),
                }
            },
        )

    def _receive(self, response: httpx.Response) -> None:
        status = response.status_code
        if 300 <= status < 400:
            raise self._redirect(response)
        if status >= 400:
            raise http_error(status, response.headers, self._error_body(response), self._sent)
        chunks = self._chunks(response)
        head = b""
        for chunk in chunks:
            # Some servers send white space to keep the connection alive.
            if head := chunk.removeprefix(b"\xef\xbb\xbf").lstrip():
                break
        # The first character tells more than the content type, which many servers get wrong.
        first = head[:1]
        if first in {b"{", b"["}:
            self._reader.read_document((head + b"".join(chunks)).decode("utf-8", "replace"))
        elif first == b"<":
            raise LLMError(ErrorCode.OTHER, "The server answered with a web page, not as an API. Check the base URL.")
        else:
            self._streamed = True
            self._read_events(head, chunks)

    def _read_events(self, head: bytes, chunks: Iterator[bytes]) -> None:
        events = EventStream()
        reader = self._reader
        self._take(events.feed(head))
        while not reader.done:
            chunk = next(chunks, None)
            if chunk is None:
                break
            self._take(events.feed(chunk))
        if reader.done:
            self._drain(chunks)
            return
        self._take(events.close())
        if not reader.done and reader.finish_reason is None:
            raise LLMError(
                ErrorCode.CONNECTION,
                "The connection was closed before the answer was complete.",
                transient=True,
            )

    def _take(self, events: Iterator[str]) -> None:
        reader = self._reader
        for data in events:
            reader.feed(data)
            if self._begun_at is None and reader.has_begun():
                self._begun_at = time.monotonic()
            if self._ended_at is None and (reader.done or reader.finish_reason is not None):
                # The usage that follows is not the model's time.
                self._ended_at = time.monotonic()
                self._clock.silence_s = TRAILER_SILENCE_S
            if reader.done:
                return

    def _chunks(self, response: httpx.Response) -> Iterator[bytes]:
        encoding = _encoding(response)
        if encoding not in _PLAIN | _COMPRESSED:
            raise LLMError(ErrorCode.OTHER, "The server compressed its answer unasked.")
        received = 0
        for chunk in response.iter_raw() if encoding in _PLAIN else response.iter_bytes():
            received += len(chunk)
            if received > self._max_bytes:
                raise LLMError(
                    ErrorCode.OTHER,
                    f"The answer is larger than {self._max_bytes:,} bytes; it was not read any further.",
                )
            self._progress()
            yield chunk
            # A server that never falls silent is only stopped here.
            if self._clock.is_over():
                raise httpcore.ReadTimeout("deadline")

    def _drain(self, chunks: Iterator[bytes]) -> None:
        self._clock.no_later_than(DRAIN_S)
        try:
            for _ in chunks:
                pass
        except (*_WIRE_ERRORS, LLMError):
            # The answer is complete; only this connection is lost.
            return

    def _error_body(self, response: httpx.Response) -> bytes:
        self._clock.no_later_than(ERROR_BODY_SECONDS)
        body = b""
        try:
            compressed = _encoding(response) in _COMPRESSED
            for chunk in response.iter_bytes() if compressed else response.iter_raw():
                body += chunk
                if len(body) > ERROR_BODY_LIMIT:
                    break
        except _WIRE_ERRORS:
            # The status stands, whatever became of its explanation.
            return body
        return body[:ERROR_BODY_LIMIT]

    def _redirect(self, response: httpx.Response) -> LLMError:
        target = response.headers.get("location", "an unnamed address")
        message = (
            f"The server answered with a redirect ({response.status_code}) to {target[:2000]}. "
            "Redirects are never followed; enter the final address as the base URL."
        )
        return LLMError(
            ErrorCode.REDIRECT,
            clean_message(message, self._endpoint.api_key),
            http_status=response.status_code,
        )

    def _timeout(self, error: Exception) -> LLMError:
        if self._deadline_s is not None and time.monotonic() >= self._started + self._deadline_s:
            message = f"The answer was not complete after {self._deadline_s:g} seconds."
        elif isinstance(error, httpcore.ConnectTimeout):
            message = f"No connection within {self._endpoint.connect_timeout_s:g} seconds."
        elif isinstance(error, httpcore.WriteTimeout):
            message = "The server stopped taking the request."
        else:
            message = f"The server was silent for {self._endpoint.read_timeout_s:g} seconds."
        return LLMError(ErrorCode.TIMEOUT, message, transient=True)

    def _connection_error(self, error: Exception | str) -> LLMError:
        detail = clean_message(str(error), self._endpoint.api_key, limit=300)
        # A certificate does not mend itself between two tries.
        lasting = "CERTIFICATE_VERIFY_FAILED" in detail
        return LLMError(ErrorCode.CONNECTION, detail or "The connection was lost.", transient=not lasting)

    def _broken_off(self, error: LLMError) -> Completion | LLMError:
        # With a finish reason the answer is whole; what got lost is the usage at most.
        return self._completion() if self._reader.finish_reason is not None else self._with_partial(error)

    def _with_partial(self, error: LLMError) -> LLMError:
        error.partial_text, error.partial_reasoning = self._reader.answer()
        error.usage = self._reader.usage
        error.ttft_ms = self._since_left(self._begun_at)
        error.duration_ms = self._since_left(time.monotonic())
        return error

    def _since_left(self, moment: float | None) -> float | None:
        if moment is None or self._clock.left_at is None:
            return None
        return (moment - self._clock.left_at) * 1000

    def _completion(self) -> Completion:
        text, reasoning = self._reader.answer()
        ended = self._ended_at or time.monotonic()
        return Completion(
            text=text,
            reasoning=reasoning,
            finish_reason=self._reader.finish_reason,
            refusal=self._reader.refusal(),
            usage=self._reader.usage,
            ttft_ms=self._since_left(self._begun_at) if self._streamed else None,
            duration_ms=self._since_left(ended) or 0.0,
            host=self._host,
            model_reported=self._reader.model_reported,
            streamed=self._streamed,
        )


def _encoding(response: httpx.Response) -> str:
    value: str = response.headers.get("content-encoding", "")
    return value.strip().lower()
