from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from arena.llm.demo.answers import bank_answer
from arena.llm.demo.catalogue import DEMO_MODELS
from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings
from tests.arena.llm.demo.conftest import StartServer
from tests.arena.llm.demo.conversations import (
    JSON_FORMAT,
    PROMPT,
    PROMPTS,
    SCHEMA_FORMAT,
    candidate_body,
    events_of,
    judge_body,
    pdf_part,
    post,
    text_of,
)
from tests.waiting import until

LARGE = bank_answer("lancer-large", "dat-churn").text
PAGE = bank_answer("page-mini", "dat-churn").text


def test_models_are_listed(server: DemoServer, client: httpx.Client) -> None:
    listed = client.get(f"{server.base_url}/models").json()["data"]
    assert [entry["id"] for entry in listed] == [model.model_id for model in DEMO_MODELS]


def test_same_request_gives_same_bytes(server: DemoServer, client: httpx.Client) -> None:
    body = candidate_body("squire-1", stream=True)
    assert post(client, server.base_url, body).content == post(client, server.base_url, body).content


def test_stream_has_role_text_reason_and_usage(server: DemoServer, client: httpx.Client) -> None:
    body = candidate_body("lancer-large", stream=True, stream_options={"include_usage": True})
    response = post(client, server.base_url, body)
    assert response.headers["content-type"] == "text/event-stream"
    *chunks, ending, last = events_of(response)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content", "") for delta in deltas) == LARGE
    assert "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert sum("content" in delta for delta in deltas) > 3
    assert ending["choices"][0]["finish_reason"] == "stop"
    assert last["choices"] == []
    usage = last["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] > usage["completion_tokens_details"]["reasoning_tokens"] > 0
    whole = post(client, server.base_url, candidate_body("lancer-large")).json()
    assert whole["usage"] == usage
    assert whole["choices"][0]["message"]["content"] == LARGE


def test_usage_comes_only_when_asked_for(server: DemoServer, client: httpx.Client) -> None:
    events = events_of(post(client, server.base_url, candidate_body("squire-1", stream=True)))
    assert not any("usage" in event for event in events)


def test_pieces_of_a_stream_come_over_time(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(DemoSettings.quiet(600))
    arrivals = []
    started = time.monotonic()
    url = f"{server.base_url}/chat/completions"
    with client.stream("POST", url, json=candidate_body("herald-x", stream=True)) as response:
        arrivals = [time.monotonic() - started for _ in response.iter_raw()]
    assert arrivals[-1] >= 0.6
    assert arrivals[0] >= 0.24
    assert arrivals[-1] - arrivals[0] > 0.08


@pytest.mark.parametrize("max_tokens", [1, 20, 60])
@pytest.mark.parametrize("model_id", ["lancer-large", "herald-x", "squire-1"])
def test_token_cap_is_kept(server: DemoServer, client: httpx.Client, model_id: str, max_tokens: int) -> None:
    for prompt in (PROMPT, PROMPTS["sup-ja-cancel"]):
        body = candidate_body(model_id, prompt, max_completion_tokens=max_tokens)
        document = post(client, server.base_url, body).json()
        assert 0 < document["usage"]["completion_tokens"] <= max_tokens
        assert document["choices"][0]["finish_reason"] == "length"


def test_verdict_is_json_in_order(server: DemoServer, client: httpx.Client) -> None:
    body = judge_body("magistrate-1", PROMPT, LARGE, PAGE, stream=True)
    events = events_of(post(client, server.base_url, body))
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
    verdict = json.loads(text)
    assert list(verdict) == ["A", "B", "reason", "winner"]
    assert verdict["winner"] == "A"


def test_a_candidate_that_judges_still_answers(server: DemoServer, client: httpx.Client) -> None:
    assert text_of(post(client, server.base_url, candidate_body("lancer-large"))) == LARGE
    verdict = text_of(post(client, server.base_url, judge_body("lancer-large", PROMPT, PAGE, LARGE)))
    assert json.loads(verdict)["winner"] == "B"
    assert server.stats()["calls"] == {"lancer-large": {"answer": 1, "verdict": 1}}


def test_candidate_fills_a_schema(server: DemoServer, client: httpx.Client) -> None:
    properties = {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["x", "y"]}}}
    schema = {"type": "object", "properties": properties}
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    answer = json.loads(text_of(post(client, server.base_url, candidate_body("squire-1", response_format=wanted))))
    assert set(answer) == {"name", "tags"}
    assert answer["tags"] == ["x"]
    free = post(client, server.base_url, candidate_body("squire-1", response_format=JSON_FORMAT))
    assert "answer" in json.loads(text_of(free))


@pytest.mark.parametrize(
    ("support", "wanted", "status"),
    [
        ("json", SCHEMA_FORMAT, 400),
        ("json", JSON_FORMAT, 200),
        ("none", JSON_FORMAT, 400),
        ("none", None, 200),
    ],
)
def test_schema_support(
    start_server: StartServer, client: httpx.Client, support: str, wanted: object, status: int
) -> None:
    server = start_server(DemoSettings(schema_support={"magistrate-1": support}))  # type: ignore[dict-item]
    body = judge_body("magistrate-1", PROMPT, LARGE, PAGE, response_format=wanted)
    response = post(client, server.base_url, body)
    assert response.status_code == status
    if status == 400:
        assert "response_format" in response.json()["error"]["message"]
    else:
        assert json.loads(text_of(response))["winner"] == "A"


def test_pdf_is_taken_by_all_but_one(server: DemoServer, client: httpx.Client) -> None:
    content = [{"type": "text", "text": PROMPTS["ops-pdf-supply"]}, pdf_part()]
    for model in DEMO_MODELS:
        body = {"model": model.model_id, "messages": [{"role": "user", "content": content}]}
        response = post(client, server.base_url, body)
        assert response.status_code == (200 if model.takes_pdf else 400), response.text
    answer = {"model": "lancer-large", "messages": [{"role": "user", "content": content}]}
    document = post(client, server.base_url, answer).json()
    assert document["choices"][0]["message"]["content"] == bank_answer("lancer-large", "ops-pdf-supply").text
    assert document["usage"]["prompt_tokens"] > 1400
    broken = [{"type": "text", "text": "x"}, pdf_part(b"no pdf")]
    response = post(client, server.base_url, {"model": "squire-1", "messages": [{"role": "user", "content": broken}]})
    assert response.status_code == 400


@pytest.mark.parametrize("key", ["", "Bearer wrong", "Basic demo"])
def test_wrong_key_is_refused(server: DemoServer, key: str) -> None:
    response = httpx.get(f"{server.base_url}/models", headers={"Authorization": key}, trust_env=False)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"


def test_unknown_model_and_path(server: DemoServer, client: httpx.Client) -> None:
    response = post(client, server.base_url, candidate_body("nobody"))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
    assert client.get(f"{server.base_url}/nothing").status_code == 404
    assert client.get(f"{server.base_url}/chat/completions").status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"model": "squire-1"}',
        b'{"model": "squire-1", "messages": []}',
        b'{"model": "squire-1", "messages": [7]}',
        b'{"model": "squire-1", "messages": [{"role": "user", "content": [{"type": "sound"}]}]}',
        b'{"model": "squire-1", "messages": [{"role": "user", "content": "x"}], "max_tokens": 0}',
        b'{"model": "squire-1", "messages": [{"role": "user", "content": "x"}], "response_format": 1}',
        b"[" * 100_000,
    ],
)
def test_malformed_body_is_named(server: DemoServer, client: httpx.Client, body: bytes) -> None:
    response = client.post(f"{server.base_url}/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"]
    assert post(client, server.base_url, candidate_body("squire-1")).status_code == 200


def test_ten_megabytes_are_answered(server: DemoServer, client: httpx.Client) -> None:
    response = post(client, server.base_url, candidate_body("squire-1", "tilt " * 2_000_000))
    assert response.status_code == 200
    assert response.json()["usage"]["prompt_tokens"] > 2_000_000


def test_too_large_a_body_is_refused(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(DemoSettings(max_body_bytes=1000))
    assert post(client, server.base_url, candidate_body("squire-1", "x" * 2000)).status_code == 413


def raw_exchange(server: DemoServer, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(data)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_oversize_headers_and_nonsense_end_the_connection(server: DemoServer) -> None:
    assert b" 431 " in raw_exchange(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000).split(b"\r\n")[0]
    assert b" 400 " in raw_exchange(server, b"nonsense\r\n\r\n").split(b"\r\n")[0]


def test_pipelined_requests_are_answered_in_order(server: DemoServer) -> None:
    one = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo\r\n\r\n"
    last = b"GET /v1/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = raw_exchange(server, one + one + last)
    assert received.count(b"HTTP/1.1 200") == 2
    assert received.index(b"HTTP/1.1 404") > received.rindex(b"HTTP/1.1 200")


def test_keep_alive_serves_many_requests(server: DemoServer, client: httpx.Client) -> None:
    for number in range(150):
        assert post(client, server.base_url, candidate_body("squire-1", f"Question {number}")).status_code == 200
    assert server.stats()["connections_opened"] == 1


def test_stats_count_models_purposes_and_peak(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(DemoSettings.quiet(150))
    with ThreadPoolExecutor(8) as pool:
        bodies = [candidate_body("page-mini", f"Question {number}") for number in range(8)]
        list(pool.map(lambda body: post(client, server.base_url, body), bodies))
    post(client, server.base_url, bodies[0])
    until(lambda: server.stats()["in_flight"] == 0, "nothing is in flight any more")
    stats = client.get(f"{server.base_url}/stats").json()
    assert stats["calls"] == {"page-mini": {"answer": 9}}
    assert stats["statuses"] == {"200": 9}
    assert (stats["completions"], stats["repeated_completions"]) == (9, 1)
    assert 2 <= stats["peak_in_flight"] <= 8
    assert client.post(f"{server.base_url}/reset").status_code == 200
    assert server.stats()["total_calls"] == 0


def test_only_loopback_listens_and_a_taken_port_is_reported(server: DemoServer) -> None:
    assert server.base_url == f"http://127.0.0.1:{server.port}/v1"
    with pytest.raises(OSError, match="in use"):
        serve_in_thread(server.port)


def test_stop_ends_open_calls(start_server: StartServer) -> None:
    server = start_server(DemoSettings.quiet(60_000))
    with ThreadPoolExecutor(1) as pool:
        with httpx.Client(headers={"Authorization": "Bearer demo"}, trust_env=False) as client:
            waiting = pool.submit(post, client, server.base_url, candidate_body("squire-1"))
            until(lambda: server.stats()["in_flight"] == 1, "the call is in flight")
            server.stop()
            with pytest.raises(httpx.TransportError):
                waiting.result(timeout=60)
    assert server.stats()["in_flight"] == 0
