"""LaTeX between dollars or backslash brackets, as MathML. Whatever cannot be converted is shown as code."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

MAX_FORMULA_CHARACTERS = 2_000
MAX_FORMULAS = 200
MAX_FORMULA_CHARACTERS_IN_ALL = 10_000
MAX_FORMULA_LINES = 60
MAX_BRACES = 24
MAX_SEARCHES = 2_000

# Definitions could make a short formula expand without end; the rest load, link or draw beyond the line.
_REFUSED = re.compile(
    r"\\(?:newcommand|renewcommand|providecommand|def|gdef|edef|let|DeclareMathOperator|newenvironment|"
    r"renewenvironment|href|url|includegraphics|rule|style|class|cssId|unicode|char|Huge|huge|raise|lower|"
    r"moveleft|moveright|llap|rlap|kern|mkern|hskip|mskip|hspace|skew|sideset)(?![a-zA-Z])"
)
_CLOSERS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(aligned|align|gathered|gather\*?|equation\*?)\}")
_KNOWN = {"aligned": "align*", "align": "align*", "gathered": "matrix", "gather": "matrix"}
_WORD = re.compile(r"[^\W\d_]{2,}")
_MATHEMATICAL = re.compile(r"[\\^_=]")


def install(md: MarkdownIt) -> None:
    md.block.ruler.before("fence", "math_block", _math_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.inline.ruler.before("escape", "math_inline", _math_inline)
    md.add_render_rule("math_block", _render_math)
    md.add_render_rule("math_inline", _render_math)


def _math_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    opener = next((o for o in ("$$", "\\[", "\\(", "$") if state.src.startswith(o, state.pos)), None)
    if opener is None or not _may_search(state.env):
        return False
    start = state.pos + len(opener)
    end = _closing(state.src, start, min(state.posMax, start + MAX_FORMULA_CHARACTERS), opener)
    if end < 0:
        return False
    content = state.src[start:end]
    if opener == "$" and _is_prose(content, state.src[end + 1 : end + 2]):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = content, opener
    state.pos = end + len(_CLOSERS[opener])
    return True


def _closing(source: str, start: int, stop: int, opener: str) -> int:
    closer = _CLOSERS[opener]
    end = source.find(closer, start, stop)
    while end > 0 and source[end - 1] == "\\" and closer.startswith("$"):
        end = source.find(closer, end + 1, stop)
    return end if end > start and source[start:end].strip() else -1


def _is_prose(content: str, following: str) -> bool:
    """Two prices in a sentence are not a formula."""
    if content[0].isspace() or content[-1].isspace() or following.isdigit() or "`" in content:
        return True
    if _MATHEMATICAL.search(content):
        return False
    return bool(_WORD.search(content)) and bool(re.search(r"\s", content) or not content.isascii())


def _math_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    if state.is_code_block(first):
        return False
    start = state.bMarks[first] + state.tShift[first]
    opener = state.src[start : start + 2]
    if opener not in ("$$", "\\[") or not _may_search(state.env):
        return False
    lines: list[str] = []
    for line in range(first, min(last, first + MAX_FORMULA_LINES)):
        if line > first and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return False
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
        if line == first:
            text = text[2:]
        if _CLOSERS[opener] in text:
            return _end_block(state, (first, line), [*lines, text], opener, silent=silent)
        lines.append(text)
    return False


def _end_block(state: StateBlock, span: tuple[int, int], lines: list[str], opener: str, *, silent: bool) -> bool:
    content, _, rest = "\n".join(lines).partition(_CLOSERS[opener])
    # With text behind it the formula stands inside a sentence, which the inline rule reads.
    if rest.strip(" .,;:") or not content.strip():
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.block, token.content, token.markup = True, content.strip(), opener
        token.meta = {"after": rest.strip()}
        token.map = [span[0], span[1] + 1]
    state.line = span[1] + 1
    return True


def _may_search(env: EnvType) -> bool:
    """Every opener looks ahead for its end, so a text full of openers is given only so many looks."""
    env["math_searches"] = env.get("math_searches", 0) + 1
    return bool(env["math_searches"] <= MAX_SEARCHES)


def _render_math(self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    display = token.markup in ("$$", "\\[")
    mathml = _within_budget(token.content, env) and to_mathml(token.content, display=display)
    if not mathml:
        source = html.escape(f"{token.markup}{token.content}{_CLOSERS[token.markup]}", quote=False)
        mathml = f'<code class="math-source">{source}</code>'
    if token.type == "math_block":
        return f'<div class="math-block">{mathml}{html.escape(token.meta["after"])}</div>\n'
    return mathml


def _within_budget(latex: str, env: EnvType) -> bool:
    env["formulas"] = env.get("formulas", 0) + 1
    env["formula_characters"] = env.get("formula_characters", 0) + len(latex)
    return bool(
        env["formulas"] <= MAX_FORMULAS
        and env["formula_characters"] <= MAX_FORMULA_CHARACTERS_IN_ALL
        and len(latex) <= MAX_FORMULA_CHARACTERS
    )


def to_mathml(latex: str, *, display: bool) -> str | None:
    """MathML, or None where the formula is refused or is not LaTeX."""
    if _REFUSED.search(latex) or _depth(latex) > MAX_BRACES:
        return None
    from latex2mathml.converter import Converter

    latex = _ENVIRONMENT.sub(_known_environment, latex)
    try:
        element = Converter(display="block" if display else "inline").convert_to_element(latex)
    except Exception:
        # The converter answers bad input with any exception there is; the reader sees the formula as code.
        return None
    return _serialise(element)


def _known_environment(found: re.Match[str]) -> str:
    """The converter knows few environments; equation numbers would count from one in every formula."""
    name = found[2].removesuffix("*")
    return f"\\{found[1]}{{{_KNOWN[name]}}}" if name in _KNOWN else ""


def _depth(latex: str) -> int:
    depth = deepest = 0
    for found in re.finditer(r"[{}]|\\left(?![a-z])|\\right(?![a-z])|\\(begin|end|sqrt|frac)", latex):
        depth += -1 if found[0] in ("}", "\\right", "\\end") else 1
        deepest = max(deepest, depth)
    return deepest


def _serialise(element: Element) -> str:
    """The converter's own serialiser unescapes at the end, which would turn text of a formula into tags."""
    given = ((name, value) for name, value in element.attrib.items() if name != "xmlns")
    attributes = "".join(f' {name}="{html.escape(html.unescape(value))}"' for name, value in given)
    children = "".join(map(_serialise, element))
    return f"<{element.tag}{attributes}>{_text(element.text)}{children}</{element.tag}>{_text(element.tail)}"


def _text(text: str | None) -> str:
    return html.escape(html.unescape(text or ""), quote=False)
