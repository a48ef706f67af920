"""One HTML file that needs nothing else: styles, script, files and pairs are in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.selectors.campaigns import newest_guidelines
from annotation.services.shown import sample_of, texts_of
from arena.models import Attachment
from arena.selectors.task_sets import attachments_by_path
from arena.services.rendered import SHOWN_CHARACTERS, html_of
from arena.views.transcripts import Turn, transcript_of

STYLES = ("tokens", "base", "components", "forms", "prose", "offline")
SCRIPT = "js/offline.js"


@dataclass(frozen=True)
class File:
    name: str
    url: str
    is_image: bool


@dataclass(frozen=True)
class Pair:
    token: str
    turns: list[Turn]
    files: list[File]
    left: SafeString
    right: SafeString


def offline_page(campaign: Campaign, rater: Rater, assignments: Sequence[Assignment]) -> str:
    urls: dict[int, str] = {}
    newest = newest_guidelines(campaign)
    context: dict[str, Any] = {
        "campaign": campaign,
        "rater": rater,
        "pairs": [_pair(campaign, assignment, urls) for assignment in assignments],
        "guidelines": html_of(team=campaign.team, texts=[newest.text])[0] if newest and newest.text else "",
        "tags": Vote.Tag.choices,
        "skip_reasons": Vote.SkipReason.choices,
        "policy": format_html('<meta http-equiv="Content-Security-Policy" content="{}">', _POLICY),
        "styles": _element("style", "\n".join(_read(f"css/{name}.css") for name in STYLES)),
        "script": _element("script", _read(SCRIPT)),
    }
    return render_to_string("annotation/offline.html", context)


# Nothing is loaded and nothing is sent, whatever an answer holds.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'"
)


def _element(name: str, text: str) -> SafeString:
    # Of our own files alone; the end tag in one of them would end the element.
    if f"</{name}" in text:
        raise ValueError(f"A {name} must not contain its own end.")
    return mark_safe(f"<{name}>\n{text}\n</{name}>")  # noqa: S308 - our own static files, checked above


def _read(path: str) -> str:
    found = finders.find(path)
    if not isinstance(found, str):
        raise FileNotFoundError(f"The static file {path} is missing.")
    return Path(found).read_text(encoding="utf-8")


def _pair(campaign: Campaign, assignment: Assignment, urls: dict[int, str]) -> Pair:
    sample = sample_of(assignment)
    paths = attachments_by_path(sample)
    left, right = html_of(
        team=campaign.team, texts=[text[:SHOWN_CHARACTERS] for text in texts_of(campaign, assignment)]
    )
    return Pair(
        token=assignment.token,
        turns=transcript_of(team=campaign.team, messages=sample.messages, files=dict(paths)),
        files=[
            File(path.rpartition("/")[2], _data_url(attachment, urls), attachment.content_type.startswith("image/"))
            for path, attachment in paths.items()
        ],
        left=left,
        right=right,
    )


def _data_url(attachment: Attachment, urls: dict[int, str]) -> str:
    if attachment.pk not in urls:
        with attachment.file.open("rb") as file:
            encoded = base64.b64encode(file.read()).decode()
        urls[attachment.pk] = f"data:{attachment.content_type};base64,{encoded}"
    return urls[attachment.pk]
