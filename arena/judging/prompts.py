"""The messages a judge is sent.

Everything that others wrote stands between lines with a random mark which occurs nowhere in it,
so no text can close its own quotation. The order of roles is what strict chat templates demand:
one system message, then user and assistant by turns, ending with user.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from arena.judging.protocol import Protocol
from arena.judging.verdict import VERDICT_SCHEMA, VerdictError
from arena.judging.wording import Wording, language_name, wording_for

Message = dict[str, Any]
Content = str | list[dict[str, Any]]

FENCE_CHARACTERS = 16
BAD_REPLY_CHARACTER_CAP = 4_000

_NO_WORD = re.compile(r"\W+")
_NOT_IN_FENCE = re.compile(r"[^0-9a-z]+")
_ASCII_NOT_IN_FENCE = bytes(code for code in range(128) if _NOT_IN_FENCE.match(chr(code)))


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    messages: list[Message]
    truncated_a: bool
    truncated_b: bool
    fence: str


@dataclass(frozen=True, slots=True)
class _Quoter:
    words: Wording
    fence: str

    def quote(self, label: str, text: str) -> str:
        return f"{self._line(self.words.begin, label)}\n{text}\n{self._line(self.words.end, label)}"

    def quote_content(self, label: str, content: Content) -> Content:
        if isinstance(content, str):
            return self.quote(label, content)
        begin, end = self._line(self.words.begin, label), self._line(self.words.end, label)
        return [_text_part(begin), *content, _text_part(end)]

    def _line(self, template: str, label: str) -> str:
        return template.format(label=label, fence=self.fence)


def judge_messages(
    *,
    sample_messages: Sequence[Mapping[str, Any]],
    answer_a: str,
    answer_b: str,
    protocol: Protocol,
    fence_seed: str,
    reference: str | None = None,
    sample_criteria: str | None = None,
) -> JudgePrompt:
    """The same inputs and seed give the same messages, to the letter."""
    cap = protocol.answer_character_cap
    words = wording_for(protocol.language)
    given = [reference or "", sample_criteria or "", protocol.criteria or ""]
    fence = draw_fence(fence_seed, [answer_a[:cap], answer_b[:cap], *given, *_texts(sample_messages)])
    quoter = _Quoter(words, fence)
    verdict_request = "\n\n".join(
        [
            *_task_paragraphs(quoter, protocol, reference, sample_criteria),
            *_answer_paragraphs(quoter, "A", answer_a, cap),
            *_answer_paragraphs(quoter, "B", answer_b, cap),
            words.criteria_heading,
            protocol.criteria or words.criteria,
            words.output,
        ]
    )
    turns = [_turn(message, quoter) for message in sample_messages]
    messages = [
        {"role": "system", "content": words.role.format(fence=fence)},
        *_alternating([*turns, {"role": "user", "content": verdict_request}], words),
    ]
    return JudgePrompt(messages, len(answer_a) > cap, len(answer_b) > cap, fence)


def repair_messages(
    messages: Sequence[Message], *, reply: str | None, error: VerdictError, language: str
) -> list[Message]:
    """The prompt again, with the reply that could not be used and what was wrong with it."""
    words = wording_for(language)
    problem = words.repair_reasons.get(error.code, f"{error.message} ")
    shown = (reply or "")[:BAD_REPLY_CHARACTER_CAP]
    return [
        *messages,
        {"role": "assistant", "content": words.blank if _is_blank(shown) else shown},
        {"role": "user", "content": words.repair.format(problem=problem)},
    ]


@cache
def verdict_schema(language: str) -> dict[str, Any]:
    """The JSON schema of a verdict, described in the language of the prompt."""
    notes = wording_for(language).schema_notes
    properties = {name: {**rules, "description": notes[name]} for name, rules in VERDICT_SCHEMA["properties"].items()}
    return {**VERDICT_SCHEMA, "properties": properties}


@cache
def verdict_schema_bytes(language: str) -> int:
    """As JSON at its longest, every sign of another script written out in six."""
    return len(json.dumps(verdict_schema(language)))


@cache
def schema_in_prompt(language: str) -> str:
    schema = json.dumps(verdict_schema(language), ensure_ascii=False, indent=2)
    return wording_for(language).schema.format(schema=schema)


def with_schema(messages: Sequence[Message], language: str) -> list[Message]:
    """For an endpoint that takes no schema: the schema in words, at the end of the last message."""
    last = messages[-1]
    content = _joined(last["content"], schema_in_prompt(language))
    return [*messages[:-1], {**last, "content": content}]


def draw_fence(seed: str, texts: Iterable[str]) -> str:
    """Drawn again until it occurs in no text, not even spaced, in capitals or behind invisible characters."""
    folded = [_folded(text) for text in texts]
    attempt = 0
    while True:
        digest = hashlib.sha256(f"fence:{attempt}:{seed}".encode("utf-8", "surrogatepass")).hexdigest()
        fence = digest[:FENCE_CHARACTERS]
        if not any(fence in text for text in folded):
            return fence
        attempt += 1


def _folded(text: str) -> str:
    # Combining marks go before normalising, which is quadratic in the length of a run of them.
    if text.isascii():
        # The usual case, a hundred times faster than by expressions.
        return text.lower().encode("ascii").translate(None, _ASCII_NOT_IN_FENCE).decode("ascii")
    return _NOT_IN_FENCE.sub("", unicodedata.normalize("NFKC", _NO_WORD.sub("", text)).casefold())


def _task_paragraphs(
    quoter: _Quoter, protocol: Protocol, reference: str | None, sample_criteria: str | None
) -> list[str]:
    words = quoter.words
    paragraphs = [
        words.conversation_ends.format(fence=quoter.fence),
        words.task,
        words.answer_in.format(language=language_name(protocol.language)),
    ]
    if reference and not _is_blank(reference):
        paragraphs += [words.reference_note, quoter.quote(words.reference_label, reference)]
    if sample_criteria and not _is_blank(sample_criteria):
        label = words.sample_criteria_label
        paragraphs += [words.sample_criteria_note, quoter.quote(label, sample_criteria)]
    return paragraphs


def _answer_paragraphs(quoter: _Quoter, seat: str, answer: str, cap: int) -> list[str]:
    label = quoter.words.answer_label.format(seat=seat)
    quoted = quoter.quote(label, answer[:cap])
    if len(answer) <= cap:
        return [quoted]
    # Outside the quotation, where no answer can put such a line itself.
    return [quoted, quoter.words.cut.format(seat=seat, shown=f"{cap:,}", total=f"{len(answer):,}")]


def _turn(message: Mapping[str, Any], quoter: _Quoter) -> Message:
    words = quoter.words
    role = str(message.get("role", "user"))
    content = _content_of(message, quoter)
    if role in ("user", "assistant"):
        return {"role": role, "content": content}
    if role in ("system", "developer"):
        label = words.system_label
    elif role in ("tool", "function"):
        label = words.tool_label
    else:
        label = words.other_label.format(role=_folded(role) or "?")
    return {"role": "user", "content": quoter.quote_content(label, content)}


def _content_of(message: Mapping[str, Any], quoter: _Quoter) -> Content:
    raw = message.get("content")
    content: Content = [dict(part) for part in raw] if isinstance(raw, list) else str(raw or "")
    calls = message.get("tool_calls")
    if calls:
        # A judge has no tools, and endpoints refuse calls without their results: they are told as text.
        told = quoter.quote(quoter.words.tool_calls_label, json.dumps(calls, ensure_ascii=False))
        return told if _is_blank(content) else _joined(content, told)
    return quoter.words.blank if _is_blank(content) else content


def _alternating(turns: Sequence[Message], words: Wording) -> list[Message]:
    messages: list[Message] = []
    for turn in turns:
        if messages and messages[-1]["role"] == turn["role"]:
            messages[-1] = {**turn, "content": _joined(messages[-1]["content"], turn["content"])}
        else:
            messages.append(turn)
    if messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": words.opening})
    return messages


def extracted_text(name: str, text: str, language: str) -> str:
    """The text of a file for a judge that cannot be shown the file."""
    return f"{wording_for(language).extracted.format(name=name)}\n{text}"


def _joined(before: Content, after: Content) -> Content:
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_parts(before), *_parts(after)]


def _parts(content: Content) -> list[dict[str, Any]]:
    return [_text_part(content)] if isinstance(content, str) else content


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_blank(content: Content) -> bool:
    # Endpoints refuse messages of blanks alone.
    return not content.strip() if isinstance(content, str) else not content


def _texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [str(part["text"]) for part in parts if part.get("text")]
        if message.get("tool_calls"):
            texts.append(json.dumps(message["tool_calls"], ensure_ascii=False))
    return texts
