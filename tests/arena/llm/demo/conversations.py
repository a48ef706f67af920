"""Requests as an application would send them."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx

from arena.llm.demo.bank import SAMPLES_PATH, load_bank

VERDICT_SCHEMA = {
    "type": "object",
    "properties": {
        "A": {"type": "string"},
        "B": {"type": "string"},
        "reason": {"type": "string"},
        "winner": {"enum": ["A", "B", "tie"]},
    },
    "required": ["A", "B", "reason", "winner"],
}
SCHEMA_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "strict": True, "schema": VERDICT_SCHEMA},
}
JSON_FORMAT = {"type": "json_object"}
PDF_BYTES = (SAMPLES_PATH.parent / "attachments" / "supply-agreement.pdf").read_bytes()
PROMPTS = {key: prompt for prompt, key in load_bank().prompts.items()}
PROMPT = PROMPTS["dat-churn"]


def pdf_part(content: bytes = PDF_BYTES) -> dict[str, Any]:
    data = base64.b64encode(content).decode()
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}}


def candidate_body(model_id: str, prompt: str = PROMPT, **extra: Any) -> dict[str, Any]:
    return {"model": model_id, "messages": [{"role": "user", "content": prompt}], **extra}


def judge_prompt(prompt: str, answer_a: str, answer_b: str, *, mark: str = "9f3c0a7712de45ab") -> str:
    return (
        f"{prompt}\n\n[the conversation ends here {mark}]\n\nCompare the two answers.\n\n"
        f"[begin answer A {mark}]\n{answer_a}\n[end answer A {mark}]\n\n"
        f"[begin answer B {mark}]\n{answer_b}\n[end answer B {mark}]\n\n"
        'Reply with one JSON object with the keys "A", "B", "reason" and "winner".'
    )


def judge_body(judge_id: str, prompt: str, answer_a: str, answer_b: str, **extra: Any) -> dict[str, Any]:
    default = JSON_FORMAT if judge_id == "usher-2" else SCHEMA_FORMAT
    return {
        "model": judge_id,
        "messages": [
            {"role": "system", "content": extra.pop("system", "You are an impartial judge.")},
            {"role": "user", "content": extra.pop("text", judge_prompt(prompt, answer_a, answer_b))},
        ],
        "response_format": extra.pop("response_format", default),
        **extra,
    }


def post(client: httpx.Client, base_url: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(f"{base_url}/chat/completions", json=body)


def text_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]
