"""A server that plays a candidate and a judge on each of the three wires, over real HTTP with streams."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.arena.llm.loopback import DONE, USAGE, delta, event
from tests.arena.llm.vendor_shapes import (
    PING,
    anthropic_error,
    chunk,
    google_error,
    message_end,
    message_start,
    sse,
    text_block,
    thinking_block,
    tool_block,
)

KEYS = {"openai": "sk-openai-1", "anthropic": "sk-ant-1", "gemini": "AIza-1"}
QUALITY = re.compile(r"quality=(\d+)")
WORD_OF_PDF = re.compile(rb"\((\w+)\) Tj")


class VendorServer:
    """What was asked is counted as (wire, model, form of reply); `refused` names forms that answer 400."""

    def __init__(self, refused: frozenset[str] = frozenset()) -> None:
        self.refused = refused
        self.asked: Counter[tuple[str, str, str]] = Counter()
        self.problems: list[str] = []
        server = self

        class Handler(_Handler):
            vendor = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def base_url(self, wire: str) -> str:
        return f"http://127.0.0.1:{self.port}/{'v1beta' if wire == 'gemini' else 'v1'}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def vendor_server(*refused: str) -> Iterator[VendorServer]:
    server = VendorServer(frozenset(refused))
    try:
        yield server
    finally:
        server.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    vendor: VendorServer

    def log_message(self, *_: object) -> None:
        """Not on the tests' output."""

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v1/chat/completions":
            self._openai(payload)
        elif self.path == "/v1/messages":
            self._anthropic(payload)
        elif match := re.fullmatch(r"/v1beta/models/([\w.-]+):streamGenerateContent\?alt=sse", self.path):
            self._gemini(match[1], payload)
        else:
            self._answer(404, b"{}")

    def _openai(self, payload: dict[str, Any]) -> None:
        form = payload.get("response_format", {}).get("type", "text")
        self._expect(self.headers["authorization"] == f"Bearer {KEYS['openai']}", "key")
        if not self._note("openai", payload["model"], form):
            refusal = {
                "error": {"message": f"response_format {form} is not supported", "type": "invalid_request_error"}
            }
            self._answer(400, json.dumps(refusal).encode())
            return
        text = _reply(payload["model"], payload["messages"], form != "text")
        self._stream(
            event(delta(reasoning_content="Hm.")), event(delta(text)), event(delta(finish="stop")), USAGE, DONE
        )

    def _anthropic(self, payload: dict[str, Any]) -> None:
        form = "schema" if "format" in payload.get("output_config", {}) else "tool" if "tools" in payload else "text"
        self._expect(self.headers["x-api-key"] == KEYS["anthropic"], "key")
        self._expect(self.headers["anthropic-version"] == "2023-06-01", "version")
        self._expect(payload["max_tokens"] > 0, "max_tokens")
        roles = [turn["role"] for turn in payload["messages"]]
        self._expect(roles == (["user", "assistant"] * len(roles))[: len(roles)], f"roles {roles}")
        if not self._note("anthropic", payload["model"], form):
            words = (
                "output_config.format: Extra inputs are not permitted" if form == "schema" else "tools: not permitted"
            )
            self._answer(400, json.dumps(anthropic_error("invalid_request_error", words)).encode())
            return
        text = _reply(payload["model"], payload["messages"], form != "text")
        answer = (
            tool_block(text, name=payload["tools"][0]["name"], index=1) if form == "tool" else text_block(text, index=1)
        )
        self._stream(message_start(), PING, thinking_block("Hm."), answer, message_end())

    def _gemini(self, model: str, payload: dict[str, Any]) -> None:
        config = payload.get("generationConfig", {})
        forms = {"schema": "responseJsonSchema", "openapi": "responseSchema", "json": "responseMimeType"}
        form = next((form for form, field in forms.items() if field in config), "text")
        self._expect(self.headers["x-goog-api-key"] == KEYS["gemini"], "key")
        if not self._note("gemini", model, form):
            words = f"Unknown name \"{forms[form]}\" at 'generation_config': Cannot find field."
            self._answer(400, json.dumps(google_error(400, "INVALID_ARGUMENT", words)).encode())
            return
        text = _reply(model, payload["contents"], form != "text")
        counts = {"candidatesTokenCount": 8, "thoughtsTokenCount": 5, "totalTokenCount": 24}
        events = [chunk({"text": "Hm.", "thought": True}), chunk({"text": text[:9]})]
        self._stream(*map(sse, events), sse(chunk({"text": text[9:]}, finish="STOP", **counts)))

    def _note(self, wire: str, model: str, form: str) -> bool:
        self.vendor.asked[wire, model, form] += 1
        return f"{wire}:{form}" not in self.vendor.refused

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.vendor.problems.append(f"{self.path}: {what}")

    def _stream(self, *pieces: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _reply(model: str, messages: object, in_form: bool) -> str:
    """A judge prefers the answer of the higher quality; a candidate's is the number at the end of its name."""
    told = json.dumps(messages)
    if found := _word_of_pdf(told):
        return found
    marks = [int(mark) for mark in QUALITY.findall(told)]
    if len(marks) >= 2:
        first, second = marks[-2:]
        winner = "tie" if first == second else "A" if first > second else "B"
        return json.dumps({"A": "One.", "B": "Two.", "reason": "Quality.", "winner": winner})
    return '{"ok": true}' if in_form else f"An answer of quality={model.rpartition('-')[2]}."


def _word_of_pdf(told: str) -> str:
    for encoded in re.findall(r"JVBERi[\w+/=]+", told):
        if match := WORD_OF_PDF.search(b64decode(encoded)):
            return match[1].decode()
    return ""
