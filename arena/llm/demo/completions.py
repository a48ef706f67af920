"""The content of a completion, and its form on the wire."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from arena.llm.demo.answers import answer_to
from arena.llm.demo.catalogue import MODELS_BY_ID
from arena.llm.demo.draws import uniform
from arena.llm.demo.pairs import Shown, verdict_language
from arena.llm.demo.reading import ChatCall, count_tokens
from arena.llm.demo.settings import Faults, ForcedReply
from arena.llm.demo.structured import json_answer
from arena.llm.demo.verdicts import judge, undecided

TEXT_PIECES = 6
LONGEST_PIECE_CHARACTERS = 64 * 1024
# A fixed date: the same request is answered by the same bytes.
CREATED = 1_767_225_600
_ENCODER = json.JSONEncoder(ensure_ascii=False)
REFUSAL = "I cannot help with that request."


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str = "stop"

    @property
    def reasoning_tokens(self) -> int:
        return count_tokens(self.reasoning) if self.reasoning else 0

    @property
    def output_tokens(self) -> int:
        return count_tokens(self.text) + self.reasoning_tokens + (count_tokens(self.refusal) if self.refusal else 0)


def is_verdict_call(call: ChatCall) -> bool:
    """Known by what is asked for, since a judge may be a candidate too and prompts can be reworded."""
    if call.schema is not None:
        properties = call.schema.get("properties")
        return isinstance(properties, dict) and "winner" in properties
    model = MODELS_BY_ID[call.model_id]
    if not model.is_judge:
        return False
    return any('"winner"' in text and '"reason"' in text for text in call.texts("system", "developer", "user"))


def answer_completion(call: ChatCall) -> Completion:
    user_texts = call.texts("user")
    answer = answer_to(call.model_id, user_texts[-1] if user_texts else call.turns[-1].text)
    if call.format != "text":
        return _capped(Completion(json_answer(answer.text, call.schema)), call.max_tokens)
    whole = Completion(answer.wire_text, answer.reasoning)
    if call.max_tokens is None or whole.output_tokens <= call.max_tokens:
        return whole
    # A short cap leaves no room for thoughts: they go first.
    return _capped(Completion(answer.text), call.max_tokens)


def verdict_completion(call: ChatCall, pair: tuple[Shown, Shown] | None) -> Completion:
    language = verdict_language(call)
    verdict = judge(call.model_id, *pair, language) if pair else undecided(language)
    return _capped(Completion(verdict.as_json()), call.max_tokens)


def _capped(completion: Completion, max_tokens: int | None) -> Completion:
    if max_tokens is None or completion.output_tokens <= max_tokens:
        return completion
    text = completion.text[: max_tokens * 4]
    while count_tokens(text) > max_tokens:
        text = text[: len(text) * 9 // 10]
    return replace(completion, text=text, finish_reason="length")


def malformed(completion: Completion) -> Completion:
    return replace(completion, text=completion.text[: len(completion.text) * 2 // 3])


def forced(completion: Completion, kind: ForcedReply, faults: Faults) -> Completion:
    text = completion.text
    if kind == "malformed":
        return malformed(completion)
    if kind == "fenced":
        return replace(completion, text=f"Here is my verdict:\n\n```json\n{text}\n```")
    if kind == "wrong_case":
        return replace(completion, text=re.sub(r'("winner": )"(\w+)"', lambda found: found[0].swapcase(), text))
    if kind == "extra_keys":
        return replace(completion, text=text.removesuffix("}") + ', "confidence": 0.8, "notes": []}')
    if kind == "empty":
        return Completion("")
    if kind == "refusal":
        return Completion("", refusal=REFUSAL)
    return replace(completion, text=_huge(text, faults.huge_characters))


def _huge(text: str, characters: int) -> str:
    padding = "x" * max(0, characters - len(text))
    # Inside the first string of a verdict, so that it stays JSON.
    return text.replace('"A": "', f'"A": "{padding}', 1) if text.startswith('{"A": "') else f"{text}\n\n{padding}"


def usage(call: ChatCall, completion: Completion) -> dict[str, object]:
    input_tokens, output_tokens = call.input_tokens, completion.output_tokens
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "completion_tokens_details": {"reasoning_tokens": completion.reasoning_tokens},
    }


def document(call: ChatCall, completion: Completion, key: str) -> bytes:
    message: dict[str, object] = {"role": "assistant", "content": completion.text}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.refusal:
        message |= {"content": None, "refusal": completion.refusal}
    choice = {"index": 0, "message": message, "finish_reason": completion.finish_reason}
    body = {**_envelope(call, key, "chat.completion"), "choices": [choice], "usage": usage(call, completion)}
    return _encode(body)


def stream(call: ChatCall, completion: Completion, key: str) -> tuple[bytes, ...]:
    """The events, grouped into what is written at once."""
    envelope = _envelope(call, key, "chat.completion.chunk")
    # Every event begins alike; encoded once, and strings alone after it, a stream costs a third.
    beginning = f'data: {_ENCODER.encode(envelope)[:-1]}, "choices": [{{"index": 0, "delta": '

    def event(delta: str, finish_reason: str = "null") -> bytes:
        text = f'{beginning}{{{delta}}}, "finish_reason": {finish_reason}}}]}}\n\n'
        return text.encode("utf-8", "replace")

    pieces = [event('"role": "assistant", "content": ""')]
    if completion.reasoning:
        pieces.append(event(f'"reasoning_content": {_ENCODER.encode(completion.reasoning)}'))
    if completion.refusal:
        pieces.append(event(f'"refusal": {_ENCODER.encode(completion.refusal)}'))
    pieces += [event(f'"content": {_ENCODER.encode(piece)}') for piece in split_text(completion.text)]
    ending = event("", _ENCODER.encode(completion.finish_reason))
    if call.include_usage:
        ending += b"data: " + _encode({**envelope, "choices": [], "usage": usage(call, completion)}) + b"\n\n"
    ending += b"data: [DONE]\n\n"
    # The role alone is no piece of the answer: it leaves together with what follows.
    head = b"".join(pieces[:2])
    middle = pieces[2:-1]
    last = (pieces[-1] if len(pieces) > 2 else b"") + ending
    return (head, *middle, last)


def split_text(text: str) -> list[str]:
    size = min(LONGEST_PIECE_CHARACTERS, max(1, -(-len(text) // TEXT_PIECES)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _envelope(call: ChatCall, key: str, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{key[:20]}", "object": kind, "created": CREATED, "model": call.model_id}


def _encode(payload: dict[str, object]) -> bytes:
    return _ENCODER.encode(payload).encode("utf-8", "replace")


def latency_share(call: ChatCall, key: str) -> float:
    """Where in the range of latencies a call lies: by the model above all, and by its content."""
    return 0.6 * MODELS_BY_ID[call.model_id].slowness + 0.4 * uniform("latency", key)
