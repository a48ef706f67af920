from __future__ import annotations

import functools
import html
import re
from typing import TYPE_CHECKING

from arena.rendering import formulas
from arena.rendering.safety import URL_SCHEMES, sanitise
from arena.rendering.text import render_plain, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict
    from pygments.lexer import Lexer

MAX_LINE_CHARACTERS = 20_000
MAX_LINES = 8_000
MAX_NESTING = 40
MAX_PARAGRAPH_CHARACTERS = 20_000
MAX_PARAGRAPH_BRACKETS = 250
MAX_PARAGRAPH_IMAGES = 30
MAX_MARKS = 16_000
MAX_TOKENS = 40_000
MAX_HIGHLIGHTED_CHARACTERS = 16_000
MAX_HIGHLIGHTED_BLOCK = 8_000

# Named by the author of the text or not highlighted at all: guessing a language is slow and often wrong.
_LANGUAGE_NAMES = """
    bash c c# c++ cpp cs csharp css diff docker dockerfile go golang graphql haskell html ini java
    javascript js json jsx kotlin latex lua make makefile nginx perl php powershell protobuf py python python3
    r rb ruby rust rs scala sh shell sql swift tex toml ts tsx typescript xml yaml yml zsh
"""
_LANGUAGES = frozenset(_LANGUAGE_NAMES.split())
# Some lexers look ahead over words or blank space, again from every word: long runs of them take seconds.
_SLOW_TO_LEX = re.compile(r"(?<!.).{1000}|(?<!\s)\s{400}|(?<![\w.$<>?\[\]])(?:[\w.$<>?\[\]]++\s++){200}")
_SCHEME = re.compile(rf"(?:{'|'.join(sorted(URL_SCHEMES))}):[^\s]+", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)


def render_markdown(text: str, *, max_characters: int = 100_000) -> str:
    """CommonMark with tables, strikethrough, code and formulas; plain text where that would cost too much."""
    if len(text) > max_characters:
        return render_plain(text)
    source = visible(text)
    if _is_costly(source):
        return render_plain(text)
    md = _parser()
    env: EnvType = {}
    tokens = md.parse(source, env)
    # The parser drops what is nested deeper than it may go, and nothing an answer says may be lost.
    if len(tokens) > MAX_TOKENS or any(token.level >= MAX_NESTING - 2 for token in tokens):
        return render_plain(text)
    return sanitise(md.renderer.render(tokens, md.options, env))


def _is_costly(source: str) -> bool:
    lines = source.split("\n")
    return (
        len(lines) > MAX_LINES
        or max(map(len, lines)) > MAX_LINE_CHARACTERS
        or sum(map(source.count, "[]*_~`<>&$\\|")) > MAX_MARKS
    )


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Safe for threads: options and rules never change after this, and a parse keeps its state in `env`.
    md = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    md.enable(["table", "strikethrough"])
    md.disable(["html_block", "html_inline"])
    md.validateLink = lambda url: _SCHEME.fullmatch(url) is not None  # type: ignore[method-assign]
    md.core.ruler.at("inline", _parse_inlines)
    md.core.ruler.after("inline", "shift_headings", _shift_headings)
    md.inline.ruler.before("autolink", "line_break", _line_break)
    formulas.install(md)
    md.add_render_rule("image", _render_image)
    md.add_render_rule("fence", _render_code)
    md.add_render_rule("code_block", _render_code)
    md.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    md.add_render_rule("table_close", lambda *_: "</table></div>\n")
    md.add_render_rule("th_open", _render_cell)
    md.add_render_rule("td_open", _render_cell)
    return md


def _parse_inlines(state: StateCore) -> None:
    from markdown_it.token import Token

    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        content = token.content
        if _is_costly_paragraph(content):
            token.children.append(Token("text", "", 0, content=content))
        else:
            state.md.inline.parse(content, state.md, state.env, token.children)


def _is_costly_paragraph(content: str) -> bool:
    # An unclosed bracket makes the parser look to the end of its paragraph, and a picture in a picture again.
    return (
        len(content) > MAX_PARAGRAPH_CHARACTERS
        or content.count("[") > MAX_PARAGRAPH_BRACKETS
        or content.count("![") > MAX_PARAGRAPH_IMAGES
    )


def _shift_headings(state: StateCore) -> None:
    """The page has its own first two levels."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


def _line_break(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    # The one tag models write on purpose: a second line in a table cell has no Markdown of its own.
    found = _LINE_BREAK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _render_image(self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Nothing is loaded from elsewhere: what the picture was called, and where it was."""
    token = tokens[index]
    name = self.renderInlineAsText(token.children or [], options, env).strip()
    address = html.escape(str(token.attrGet("src") or ""), quote=False)
    spoken = f"{html.escape(name, quote=False)} " if name else ""
    return f'<span class="missing-image">{spoken}<code>{address}</code></span>'


def _render_cell(self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    side = str(token.attrGet("style") or "").removeprefix("text-align:")
    return f'<{token.tag} class="{side}">' if side in ("center", "right") else f"<{token.tag}>"


def _render_code(self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    words = token.info.split(maxsplit=1)
    language = words[0].lower() if words else ""
    inner = _highlighted(token.content, language, env) or html.escape(token.content, quote=False)
    return f'<pre class="code"><code>{inner}</code></pre>\n'


def _highlighted(code: str, language: str, env: EnvType) -> str | None:
    if language not in _LANGUAGES or len(code) > MAX_HIGHLIGHTED_BLOCK or _SLOW_TO_LEX.search(code):
        return None
    env["highlighted_characters"] = env.get("highlighted_characters", 0) + len(code)
    if env["highlighted_characters"] > MAX_HIGHLIGHTED_CHARACTERS:
        return None
    from pygments.token import STANDARD_TYPES

    parts: list[str] = []
    for kind, value in _lexer(language).get_tokens(code):
        while kind not in STANDARD_TYPES and kind.parent is not None:
            kind = kind.parent
        name = STANDARD_TYPES[kind]
        escaped = html.escape(value, quote=False)
        parts.append(f'<span class="{name}">{escaped}</span>' if name and not value.isspace() else escaped)
    return "".join(parts)


def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
