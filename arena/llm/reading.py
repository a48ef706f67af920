"""What the readers of all wire formats share: events to documents, counts, and the pieces of one answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from arena.llm.classify import Sent
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import Usage
from arena.llm.text import split_thinking, storable


class EventReader:
    """Collects one answer. A format says in `take` what an event means, and in `take_whole` a whole document."""

    def __init__(self, sent: Sent) -> None:
        self.sent = sent
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refused: list[str] = []
        self.finish_reason: str | None = None
        self.usage = Usage()
        self.model_reported: str | None = None
        self.done = False

    def take(self, document: Mapping[str, object]) -> None:
        raise NotImplementedError

    def take_whole(self, document: object) -> None:
        raise NotImplementedError

    def end_mark(self) -> None:
        """`[DONE]` was sent. Formats with an end of their own do not rest on it."""

    def has_begun(self) -> bool:
        return bool(self.text or self.reasoning or self.refused)

    def answer(self) -> tuple[str, str]:
        text, thought = split_thinking(storable("".join(self.text)))
        reasoning = storable("".join(self.reasoning)).strip()
        return text, "\n\n".join(part for part in (reasoning, thought) if part)

    def refusal(self) -> str | None:
        return storable("".join(self.refused)) or None

    def feed(self, data: str) -> None:
        if data == "[DONE]" or data.strip() == "[DONE]":
            self.end_mark()
            return
        try:
            documents = [json.loads(data)]
        except (ValueError, RecursionError):
            documents = self._line_by_line(data)
        for document in documents:
            self.take(as_object(document))

    def read_document(self, text: str) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if document is None:
            raise broken("The server's answer is not valid JSON.")
        self.take_whole(document)
        self.done = True

    def note_model(self, name: object) -> None:
        if self.model_reported is None and isinstance(name, str):
            self.model_reported = storable(name)[:300] or None

    def note_finish(self, reason: object) -> None:
        if isinstance(reason, str) and reason:
            self.finish_reason = storable(reason)[:100]

    def _line_by_line(self, data: str) -> list[object]:
        """Servers that forget the blank line between events leave several documents in one."""
        lines = [line for line in data.split("\n") if line.strip() not in {"", "[DONE]"}]
        documents = []
        is_broken = len(lines) < 2 and "[DONE]" not in data
        for line in lines if not is_broken else ():
            try:
                documents.append(json.loads(line))
            except (ValueError, RecursionError):
                is_broken = True
                break
        if is_broken:
            # Going on would drop a piece of the answer without anyone noticing.
            raise broken("The stream contains an event that is not valid JSON.")
        if "[DONE]" in data:
            self.end_mark()
        return documents


def as_object(document: object) -> Mapping[str, object]:
    if not isinstance(document, dict):
        raise broken("The server's answer is not a JSON object.")
    return document


def broken(message: str) -> LLMError:
    return LLMError(ErrorCode.CONNECTION, message, transient=True)


def inside(values: object, *names: str) -> object:
    """What lies at the end of a path of keys; None where the path breaks off."""
    for name in names:
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def items(value: object) -> list[Mapping[str, object]]:
    """The objects of a list, whatever else is in it or instead of it."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    # More than a database's integer holds is nonsense, not a count.
    return value if 0 <= value < 2**31 else None


def reserved(name: str) -> str:
    return f'The parameter "{name}" is set by the application and cannot be given.'
