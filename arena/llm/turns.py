"""Chat messages as the formats want them that keep the system prompt apart and let two sides take turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from arena.llm.messages import ChatMessage
from arena.llm.reading import inside, items

Block = dict[str, object]
SYSTEM_ROLES = frozenset({"system", "developer"})


def system_text(messages: Sequence[ChatMessage]) -> str:
    return "\n\n".join(message.text for message in messages if message.role in SYSTEM_ROLES and message.text.strip())


def turns(
    messages: Sequence[ChatMessage], blocks_of: Callable[[ChatMessage], list[Block]]
) -> list[tuple[bool, list[Block]]]:
    """(is the model's, blocks): neighbours of one side are joined, and what has nothing to say is left out."""
    found: list[tuple[bool, list[Block]]] = []
    for message in messages:
        if message.role in SYSTEM_ROLES:
            continue
        blocks = blocks_of(message)
        is_own = message.role == "assistant"
        if blocks and found and found[-1][0] == is_own:
            found[-1][1].extend(blocks)
        elif blocks:
            found.append((is_own, blocks))
    return found


def tool_calls(message: ChatMessage) -> list[tuple[str, str, Mapping[str, object]]]:
    """(id, name, arguments) of the calls that a recorded answer made, as the OpenAI format writes them."""
    calls: list[tuple[str, str, Mapping[str, object]]] = []
    for call in items(message.extra.get("tool_calls")):
        try:
            arguments = json.loads(str(inside(call, "function", "arguments") or "{}"))
        except (ValueError, RecursionError):
            arguments = None
        # What is no object is kept under a name of its own rather than lost.
        values = arguments if isinstance(arguments, dict) else {"arguments": inside(call, "function", "arguments")}
        calls.append((str(call.get("id") or ""), str(inside(call, "function", "name") or ""), values))
    return calls
