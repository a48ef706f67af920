"""From a request to what is to be written when, faults included. Knows HTTP only by its words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from arena.llm.demo import completions
from arena.llm.demo.catalogue import DEMO_MODELS, MODELS_BY_ID, DemoModel
from arena.llm.demo.draws import digest, uniform
from arena.llm.demo.pairs import shown_pair
from arena.llm.demo.reading import ChatCall, RequestError, read_call
from arena.llm.demo.settings import DemoSettings
from arena.llm.demo.stats import Stats

# As it should, with nothing sent at all, silent or hung up after the first piece, hung up at once.
Ending = Literal["complete", "silent", "stall", "break", "disconnect"]
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    pieces: tuple[bytes, ...]
    content_type: str = "application/json"
    headers: Headers = ()
    latency_ms: float = 0.0
    first_piece_share: float = 1.0
    ending: Ending = "complete"
    is_stream: bool = False
    # Set on completions only: what they are counted under.
    key: str | None = None


class Engine:
    def __init__(self, settings: DemoSettings, stats: Stats) -> None:
        self.settings = settings
        self.stats = stats

    def reply(self, method: str, path: str, authorization: str, body: bytes) -> Reply:
        try:
            return self._route(method, path, authorization, body)
        except RequestError as error:
            return error_reply(error.status, error.message, error.code, parameter=error.parameter)

    def _route(self, method: str, path: str, authorization: str, body: bytes) -> Reply:
        if path not in _METHODS:
            raise RequestError(f"There is nothing at {path}.", status=404, code="not_found")
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or key.strip() != self.settings.api_key:
            raise RequestError("A valid API key is required.", status=401, code="invalid_api_key")
        if method != _METHODS[path]:
            raise RequestError(f"{path} takes {_METHODS[path]} only.", status=405, code="method_not_allowed")
        if path == "/v1/models":
            return _json_reply({"object": "list", "data": [_listing(model) for model in DEMO_MODELS]})
        if path == "/v1/stats":
            return _json_reply(self.stats.snapshot())
        if path == "/v1/reset":
            self.stats.reset()
            return _json_reply({"reset": True})
        return self._chat(body)

    def _chat(self, body: bytes) -> Reply:
        call = read_call(body)
        model = MODELS_BY_ID.get(call.model_id)
        if model is None:
            message = f"The model {call.model_id[:100]!r} does not exist."
            raise RequestError(message, status=404, parameter="model", code="model_not_found")
        is_verdict = completions.is_verdict_call(call)
        pair = shown_pair(call) if is_verdict else None
        # Two seats and a judge make a verdict, however the prompt around them is marked or repaired.
        key = digest(call.model_id, pair[0].identity, pair[1].identity) if pair else digest(body)
        attempt = self.stats.arrived(call.model_id, "verdict" if is_verdict else "answer", key)
        self._check_support(call, model)
        fault = self._fault(call.model_id, key, attempt)
        if fault is not None:
            return fault
        completion = completions.verdict_completion(call, pair) if is_verdict else completions.answer_completion(call)
        completion = self._spoiled(call, completion, key, is_verdict=is_verdict)
        return self._completion_reply(call, completion, key)

    def _check_support(self, call: ChatCall, model: DemoModel) -> None:
        refused = self.settings.faults.refused_parameters.get(call.model_id, frozenset())
        for name in sorted(refused & call.parameters):
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            raise RequestError(message, parameter=name, code="unsupported_parameter")
        support = self.settings.schema_support.get(call.model_id, model.schema_support)
        if (call.format == "schema" and support != "schema") or (call.format == "json" and support == "none"):
            name = "json_schema" if call.format == "schema" else "json_object"
            message = f"response_format of type '{name}' is not supported with this model."
            raise RequestError(message, parameter="response_format", code="unsupported_value")
        if call.pdf_pages and not self.settings.takes_pdf.get(call.model_id, model.takes_pdf):
            message = "This model does not support file inputs (PDF)."
            raise RequestError(message, parameter="messages", code="unsupported_file")

    def _fault(self, model_id: str, key: str, attempt: int) -> Reply | None:
        faults = self.settings.faults
        if model_id in faults.always_fail:
            return error_reply(faults.always_fail_status, "This model is out of order.", "server_error")
        if model_id in faults.silent:
            return Reply(200, (), ending="silent")
        if attempt > faults.faulty_attempts:
            return None
        content = (key, str(attempt))
        if uniform("rate_limit", *content) < faults.rate_limit_share:
            options = faults.retry_after_s or (0,)
            wait_s = options[int(uniform("retry_after", *content) * len(options))]
            return error_reply(
                429, "Rate limit reached.", "rate_limit_exceeded", headers=(("Retry-After", str(wait_s)),)
            )
        if uniform("server_error", *content) < faults.server_error_share:
            return error_reply(503, "The server is overloaded.", "server_error")
        if uniform("disconnect", *content) < faults.disconnect_share:
            return Reply(200, (), ending="disconnect")
        return None

    def _spoiled(
        self, call: ChatCall, completion: completions.Completion, key: str, *, is_verdict: bool
    ) -> completions.Completion:
        faults = self.settings.faults
        kind = faults.forced_replies.get(call.model_id)
        if kind is not None:
            return completions.forced(completion, kind, faults)
        # Counted apart from attempts: a verdict that met a 429 first may still come out malformed.
        if not is_verdict or self.stats.served(key) > 1:
            return completion
        if faults.malformed_judges is not None and call.model_id not in faults.malformed_judges:
            return completion
        is_malformed = uniform("malformed", key) < faults.malformed_share
        return completions.malformed(completion) if is_malformed else completion

    def _completion_reply(self, call: ChatCall, completion: completions.Completion, key: str) -> Reply:
        latency = self.settings.latency
        span_ms = latency.high_ms - latency.low_ms
        latency_ms = latency.low_ms + (completions.latency_share(call, key) * span_ms if span_ms else 0.0)
        if not call.stream:
            pieces: tuple[bytes, ...] = (completions.document(call, completion, key),)
        else:
            pieces = completions.stream(call, completion, key)
        return Reply(
            status=200,
            pieces=pieces,
            content_type="text/event-stream" if call.stream else "application/json",
            latency_ms=latency_ms,
            first_piece_share=latency.first_piece_share if call.stream else 1.0,
            ending=self._ending(call.model_id),
            is_stream=call.stream,
            key=key,
        )

    def _ending(self, model_id: str) -> Ending:
        if model_id in self.settings.faults.stalling:
            return "stall"
        return "break" if model_id in self.settings.faults.breaking else "complete"


_METHODS: Mapping[str, str] = {
    "/v1/models": "GET",
    "/v1/stats": "GET",
    "/v1/reset": "POST",
    "/v1/chat/completions": "POST",
}


def error_reply(status: int, message: str, code: str, *, parameter: str | None = None, headers: Headers = ()) -> Reply:
    kind = "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    error = {"message": message, "type": kind, "param": parameter, "code": code}
    return Reply(status, (json.dumps({"error": error}).encode(),), headers=headers)


def _json_reply(payload: dict[str, object]) -> Reply:
    return Reply(200, (json.dumps(payload).encode(),))


def _listing(model: DemoModel) -> dict[str, object]:
    return {"id": model.model_id, "object": "model", "created": completions.CREATED, "owned_by": "demo"}
