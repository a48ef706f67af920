"""Messages of a sample as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString

from arena.models import Attachment, Team
from arena.services.rendered import SHOWN_CHARACTERS, html_of

INLINE_IMAGE_CHARACTERS = 2_000_000


@dataclass(slots=True)
class Block:
    """One part of a message: text, pdf, image (an attachment), data_image or remote_image (by address)."""

    kind: str
    text: str = ""
    cut: bool = False
    html: SafeString | str = ""
    attachment: Attachment | None = None
    name: str = ""


@dataclass(slots=True)
class Turn:
    role: str
    blocks: list[Block] = field(default_factory=list)
    tool_calls: str = ""


def transcript_of(*, team: Team, messages: Sequence[Mapping[str, Any]], files: Mapping[str, Attachment]) -> list[Turn]:
    turns = turns_of(messages, files)
    texts = [block for turn in turns for block in turn.blocks if block.kind == "text"]
    for block, html in zip(texts, html_of(team=team, texts=[block.text for block in texts]), strict=True):
        block.html = html
    return turns


def turns_of(messages: Sequence[Mapping[str, Any]], files: Mapping[str, Attachment]) -> list[Turn]:
    """Without the HTML of their texts, for a page that renders these and others together."""
    return [_turn(message, files) for message in messages]


def _turn(message: Mapping[str, Any], files: Mapping[str, Attachment]) -> Turn:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    calls = message.get("tool_calls")
    return Turn(
        role=str(message["role"]),
        blocks=[_block(part, files) for part in parts if part.get("text") != ""],
        tool_calls=json.dumps(calls, ensure_ascii=False, indent=2) if calls else "",
    )


def _block(part: Mapping[str, Any], files: Mapping[str, Attachment]) -> Block:
    match part["type"]:
        case "text":
            text = part["text"]
            return Block("text", text=text[:SHOWN_CHARACTERS], cut=len(text) > SHOWN_CHARACTERS)
        case "file_ref":
            attachment = files[part["path"]]
            kind = "pdf" if attachment.content_type == "application/pdf" else "image"
            return Block(kind, attachment=attachment, name=part["path"].rpartition("/")[2])
        case _:
            return _image(part["image_url"]["url"])


def _image(url: str) -> Block:
    if url[:5].lower() != "data:":
        return Block("remote_image", text=url)
    if len(url) > INLINE_IMAGE_CHARACTERS:
        return Block("large_image", text=str(len(url) * 3 // 4))
    return Block("data_image", text=url)
