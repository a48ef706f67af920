"""Hostile model output in, safe HTML out; the same text always gives the same HTML."""

from arena.rendering.document import render_markdown
from arena.rendering.text import render_plain

# Raise it whenever the same text would give other HTML, so that stored HTML is made again.
RENDERER_VERSION = 1

__all__ = ["RENDERER_VERSION", "render_markdown", "render_plain"]
