from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from arena.llm.demo.answers import bank_answer
from arena.llm.demo.bank import load_bank
from arena.llm.demo.settings import DemoSettings, Faults
from tests.arena.llm.demo.conftest import StartServer
from tests.arena.llm.demo.conversations import (
    PROMPT,
    PROMPTS,
    candidate_body,
    judge_body,
    judge_prompt,
    post,
    text_of,
)
from tests.waiting import until

LARGE = bank_answer("lancer-large", "dat-churn").text
PAGE = bank_answer("page-mini", "dat-churn").text
VERDICT = judge_body("magistrate-1", PROMPT, LARGE, PAGE)


def test_rate_limit_once_then_success(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(faults=Faults(rate_limit_share=1.0))
    first = post(client, server.base_url, candidate_body("squire-1"))
    assert first.status_code == 429
    assert first.headers["retry-after"] in {"0", "1"}
    assert post(client, server.base_url, candidate_body("squire-1")).status_code == 200
    assert server.stats()["statuses"] == {"200": 1, "429": 1}
    server.reset()
    assert post(client, server.base_url, candidate_body("squire-1")).status_code == 429


def test_a_verdict_asked_for_again_counts_as_an_attempt(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(faults=Faults(rate_limit_share=1.0, faulty_attempts=2))
    marks = ["aaaa1111bbbb2222", "cccc3333dddd4444", "eeee5555ffff6666"]
    bodies = [
        judge_body("magistrate-1", PROMPT, "", "", text=judge_prompt(PROMPT, LARGE, PAGE, mark=mark)) for mark in marks
    ]
    assert [post(client, server.base_url, body).status_code for body in bodies] == [429, 429, 200]


def test_the_same_third_is_hit_in_any_order(start_server: StartServer, client: httpx.Client) -> None:
    faults = Faults(rate_limit_share=0.2, server_error_share=0.2)
    bodies = [candidate_body("squire-1", f"Question {number}") for number in range(120)]
    server = start_server(faults=faults)
    forth = [post(client, server.base_url, body).status_code for body in bodies]
    server.reset()
    with ThreadPoolExecutor(6) as pool:
        back = list(pool.map(lambda body: post(client, server.base_url, body).status_code, bodies[::-1]))
    assert back[::-1] == forth
    assert 10 <= forth.count(429) <= 40
    assert 8 <= forth.count(503) <= 36


def test_malformed_share_hits_first_replies_of_the_named_judge(start_server: StartServer, client: httpx.Client) -> None:
    faults = Faults(malformed_share=0.3, malformed_judges=frozenset({"usher-2"}))
    server = start_server(faults=faults)
    broken = 0
    for key in load_bank().checklists:
        answers = [bank_answer(model_id, key).text for model_id in ("squire-1", "page-mini")]
        for pair in (answers, answers[::-1]):
            body = judge_body("usher-2", PROMPTS[key], *pair)
            try:
                json.loads(text_of(post(client, server.base_url, body)))
            except json.JSONDecodeError:
                broken += 1
                body["messages"] += [
                    {"role": "assistant", "content": "?"},
                    {"role": "user", "content": "Again."},
                ]
                assert json.loads(text_of(post(client, server.base_url, body)))["winner"]
    assert 9 <= broken <= 27
    assert json.loads(text_of(post(client, server.base_url, VERDICT)))["winner"] == "A"


def test_the_demo_itself_is_rarely_disturbed() -> None:
    faults = DemoSettings().faults
    assert 0 < faults.rate_limit_share <= 0.02
    assert 0 < faults.malformed_share <= 0.02


def test_always_failing_and_refusing_models(start_server: StartServer, client: httpx.Client) -> None:
    faults = Faults(always_fail=frozenset({"page-mini"}), refused_parameters={"squire-1": frozenset({"temperature"})})
    server = start_server(faults=faults)
    for _ in range(3):
        assert post(client, server.base_url, candidate_body("page-mini")).status_code == 500
    refused = post(client, server.base_url, candidate_body("squire-1", temperature=0))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "temperature")
    assert post(client, server.base_url, candidate_body("squire-1")).status_code == 200


def test_silent_model_sends_nothing(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(faults=Faults(silent=frozenset({"squire-1"})))
    client.timeout = httpx.Timeout(20, read=0.3)
    with pytest.raises(httpx.ReadTimeout):
        post(client, server.base_url, candidate_body("squire-1"))
    client.timeout = httpx.Timeout(20)
    assert post(client, server.base_url, candidate_body("page-mini")).status_code == 200
    # A client has the whole answer a moment before the server counts it as ended.
    until(lambda: server.stats()["in_flight"] == 0, "nothing is in flight any more")


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        (Faults(stalling=frozenset({"squire-1"})), httpx.ReadTimeout),
        (Faults(breaking=frozenset({"squire-1"})), httpx.RemoteProtocolError),
    ],
    ids=["stalling", "breaking"],
)
def test_stream_that_does_not_end(
    start_server: StartServer, client: httpx.Client, faults: Faults, error: type[httpx.TransportError]
) -> None:
    server = start_server(faults=faults)
    client.timeout = httpx.Timeout(20, read=1.5)
    url = f"{server.base_url}/chat/completions"
    received = b""
    with (
        pytest.raises(error),
        client.stream("POST", url, json=candidate_body("squire-1", stream=True)) as response,
    ):
        for piece in response.iter_raw():
            received += piece
    assert b'"content": "' in received
    assert b"[DONE]" not in received


def test_disconnect_once_then_success(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(faults=Faults(disconnect_share=1.0))
    with pytest.raises(httpx.TransportError):
        post(client, server.base_url, candidate_body("squire-1"))
    assert post(client, server.base_url, candidate_body("squire-1")).status_code == 200


def forced(start_server: StartServer, client: httpx.Client, kind: str) -> str:
    faults = Faults(forced_replies={"magistrate-1": kind}, huge_characters=300_000)  # type: ignore[dict-item]
    return text_of(post(client, start_server(faults=faults).base_url, VERDICT))


def test_forced_replies(start_server: StartServer, client: httpx.Client) -> None:
    assert "```json" in forced(start_server, client, "fenced")
    assert '"winner": "a"' in forced(start_server, client, "wrong_case").replace('"WINNER": ', '"winner": ')
    assert json.loads(forced(start_server, client, "extra_keys"))["confidence"] == 0.8
    assert forced(start_server, client, "empty") == ""
    huge = forced(start_server, client, "huge")
    assert len(huge) > 290_000
    assert json.loads(huge)["winner"] == "A"
    with pytest.raises(json.JSONDecodeError):
        json.loads(forced(start_server, client, "malformed"))


def test_forced_refusal(start_server: StartServer, client: httpx.Client) -> None:
    server = start_server(faults=Faults(forced_replies={"magistrate-1": "refusal"}))
    message = post(client, server.base_url, VERDICT).json()["choices"][0]["message"]
    assert message["content"] is None
    assert message["refusal"]
