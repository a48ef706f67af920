"""One small GET over the guarded connections. Imports httpx, so it is itself imported late."""

from __future__ import annotations

import time
from collections.abc import Mapping

import httpcore
import httpx

from arena.llm.errors import ErrorCode, LLMError, clean_message
from arena.llm.guard import BlockedAddressError
from arena.llm.messages import Endpoint
from arena.llm.transport import line_for
from arena.llm.wire import wire_format


def get_document(
    endpoint: Endpoint, path: str, *, deadline_s: float, max_bytes: int
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body of one GET. Failures come as `LLMError` without the request that they befell."""
    outcome = _attempt(endpoint, path, deadline_s=deadline_s, max_bytes=max_bytes)
    if isinstance(outcome, LLMError):
        # Whatever it was made from may hold the request's headers.
        outcome.__context__ = outcome.__cause__ = None
        raise outcome
    return outcome


def _attempt(
    endpoint: Endpoint, path: str, *, deadline_s: float, max_bytes: int
) -> tuple[int, Mapping[str, str], bytes] | LLMError:
    key = (endpoint.api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        return LLMError(ErrorCode.AUTH, "The key contains characters that cannot be sent. Enter it again.")
    line = line_for(endpoint)
    line.clock.start(time.monotonic() + deadline_s)
    timeout = {"connect": min(endpoint.connect_timeout_s, deadline_s), "read": deadline_s, "write": deadline_s}
    request = httpx.Request(
        "GET",
        endpoint.base_url.rstrip("/") + path,
        headers={
            **wire_format(endpoint).headers(key),
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": "tiltyard",
        },
        extensions={"timeout": {**timeout, "pool": deadline_s}},
    )
    try:
        response = line.http.handle_request(request)
        try:
            return _read(response, max_bytes)
        finally:
            response.close()
    except BlockedAddressError as error:
        return LLMError(ErrorCode.BLOCKED_ADDRESS, clean_message(str(error), key))
    except (httpcore.TimeoutException, httpx.TimeoutException):
        return LLMError(ErrorCode.TIMEOUT, f"No complete answer within {deadline_s:g} seconds.", transient=True)
    except (httpcore.NetworkError, httpcore.ProtocolError, httpx.TransportError) as error:
        return LLMError(ErrorCode.CONNECTION, clean_message(str(error), key) or "The connection failed.")
    except (httpx.InvalidURL, httpcore.UnsupportedProtocol):
        return LLMError(ErrorCode.BAD_REQUEST, "The base URL is not a valid address.")


def _read(response: httpx.Response, max_bytes: int) -> tuple[int, Mapping[str, str], bytes] | LLMError:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > max_bytes:
            return LLMError(ErrorCode.TOO_LARGE, f"The answer is larger than {max_bytes:,} bytes.")
    return response.status_code, response.headers, bytes(body)
