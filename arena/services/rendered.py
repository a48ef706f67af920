"""Safe HTML of texts, kept per team: rendering costs some 50 ms of CPU per 8 KB, so it is done once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from django.utils.safestring import SafeString, mark_safe

from arena.models import RenderedText, Team
from arena.rendering import RENDERER_VERSION, render_markdown, render_plain

VERSION = str(RENDERER_VERSION)
# What one request may render anew, so that a page of large texts answers in seconds; the rest stays plain
# until somebody looks again.
CHARACTERS_AT_ONCE = 300_000
BATCH = 500
# What a page shows of one text.
SHOWN_CHARACTERS = 100_000


def html_of(*, team: Team, texts: Sequence[str]) -> list[SafeString]:
    """The HTML of each text, in order. Reads all that is stored by one query and stores the rest by another."""
    digests = [_digest(text) for text in texts]
    stored = RenderedText.objects.filter(team=team, renderer_version=VERSION, digest__in=set(digests))
    found: dict[str, str] = dict(stored.values_list("digest", "html")) if digests else {}
    made: dict[str, str] = {}
    left = CHARACTERS_AT_ONCE
    for digest, text in zip(digests, texts, strict=True):
        if digest in found:
            continue
        if len(text) > left:
            found[digest] = render_plain(text)
            continue
        left -= len(text)
        found[digest] = made[digest] = render_markdown(text)
    RenderedText.objects.bulk_create(
        [RenderedText(team=team, digest=digest, renderer_version=VERSION, html=html) for digest, html in made.items()],
        ignore_conflicts=True,
    )
    return [mark_safe(found[digest]) for digest in digests]  # noqa: S308 - what arena.rendering returns is safe


def fresh_html(text: str) -> SafeString:
    """For what may be thrown away in a moment: nothing of it is stored."""
    return mark_safe(render_markdown(text))  # noqa: S308 - what arena.rendering returns is safe


def forget(*, team: Team, texts: Iterable[str]) -> None:
    """Remove what is kept of texts that are being deleted. Wherever one is still shown, it is rendered anew."""
    digests = sorted({_digest(text[:SHOWN_CHARACTERS]) for text in texts})
    for start in range(0, len(digests), BATCH):
        RenderedText.objects.filter(team=team, digest__in=digests[start : start + BATCH]).delete()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
