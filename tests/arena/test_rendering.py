from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest

from arena.rendering import RENDERER_VERSION, render_markdown, render_plain
from arena.rendering.document import MAX_PARAGRAPH_BRACKETS
from arena.rendering.safety import sanitise
from arena.rendering.text import DISPLAY_CHARACTERS, visible

ALLOWED_ATTRIBUTES = {"a": {"href", "rel"}, "ol": {"start"}}


class Collector(HTMLParser):
    """The page as a browser would see it: tags with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(markup: str) -> Collector:
    collector = Collector()
    collector.feed(markup)
    collector.close()
    return collector


ATTACKS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)></svg>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>@import 'https://evil.example/x.css'</style>",
    "<div style='position:fixed;inset:0'>over</div>",
    "<a href='javascript:alert(1)'>x</a>",
    "<form action=/logout method=post><button>x</button></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example>",
    "<p id=main name=csrf>clobber</p>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<math href='javascript:alert(1)'>x</math>",
    "<math><annotation-xml encoding='text/html'><img src=x onerror=alert(1)></annotation-xml></math>",
    "<math><maction actiontype='statusline' xlink:href='javascript:alert(1)'>x</maction></math>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\\javascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/x)",
    "[x](/accounts/logout/)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "![x](https://evil.example/pixel.png)",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    '![x](https://evil.example/"onerror="alert(1))',
    '[x](https://a.example "t\\" onmouseover=\\"alert(1)")',
    '```"><script>alert(1)</script>\ncode\n```',
    '```python" onmouseover="alert(1)\nx = "</code></pre><script>alert(1)</script>"\n```',
    "    <script>alert(1)</script>",
    "`<script>alert(1)</script>`",
    "# <script>alert(1)</script>",
    "| <img src=x onerror=alert(1)> |\n|:-:|\n| <script>alert(1)</script> |",
    "$\\text{</mtext><script>alert(1)</script>}$",
    "$\\text{&lt;script&gt;alert(1)&lt;/script&gt;}$",
    "$$\\href{javascript:alert(1)}{x}$$",
    "$$\\class{evil}{\\style{position:fixed}{x}}$$",
    "$$\\unicode{x3c}script\\unicode{x3e}$$",
    "$$\\rule{1000em}{1000em}$$",
    '$$\\color{red" onmouseover="alert(1)}{x}$$',
    "\\(<img src=x onerror=alert(1)>\\)",
    "\\[</math><script>alert(1)</script>\\]",
    "<br onclick=alert(1)>",
    "<br/><script>alert(1)</script>",
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("frame", ["{}", "> - {}", "**{}**", "a {} b\n\n{}"])
def test_attack_stays_text(attack: str, frame: str) -> None:
    page = parsed(render_markdown(frame.replace("{}", attack)))
    for tag, attributes in page.tags:
        assert tag not in {
            "script",
            "style",
            "img",
            "svg",
            "iframe",
            "form",
            "button",
            "base",
            "meta",
            "maction",
        }
        assert not {name for name in attributes if name.startswith("on")}
        assert not {"id", "name", "style", "src", "srcdoc", "xlink:href", "target", "title"} & set(attributes)
        if "href" in attributes:
            assert tag == "a"
            assert re.match(r"(?:https?|mailto):", attributes["href"] or "")
            assert attributes["rel"] == "nofollow noopener noreferrer"


def test_sanitiser_stands_alone() -> None:
    markup = (
        '<p id="x" class="tag" onclick="a()">t<script>alert(1)</script><span class="k button">w</span></p>'
        '<math><mspace width="900em"></mspace><mi mathvariant="javascript:x">y</mi></math><a href="/x">z</a>'
    )
    assert sanitise(markup) == (
        '<p>t<span class="k">w</span></p><math><mspace></mspace><mi>y</mi></math>'
        '<a rel="nofollow noopener noreferrer">z</a>'
    )


def test_headings_leave_room_for_the_page() -> None:
    page = parsed(render_markdown("# a\n\n## b\n\n#### c\n\n###### d\n\ne\n=\n"))
    assert [tag for tag, _ in page.tags if tag.startswith("h")] == ["h3", "h4", "h6", "h6", "h3"]


def test_table_keeps_alignment_without_style() -> None:
    markup = render_markdown("| a | b |\n|:--|--:|\n| x<br>y | 1 |")
    assert '<div class="scroll"><table>' in markup
    assert '<td class="right">1</td>' in markup
    assert re.search(r"<td>x<br>\s*y</td>", markup)
    assert "style" not in markup


def test_strikethrough_lists_and_links() -> None:
    markup = render_markdown("~~old~~\n\n3. c\n4. d\n\n[site](https://a.example 'title') <mailto:b@a.example>")
    assert "<s>old</s>" in markup
    assert '<ol start="3">' in markup
    assert '<a href="https://a.example" rel="nofollow noopener noreferrer">site</a>' in markup
    assert 'href="mailto:b@a.example"' in markup


def test_image_is_named_not_loaded() -> None:
    markup = render_markdown(
        "![Plan *of* it](https://a.example/p.png) [![in a link](https://b.example/q.png)](https://c.example)"
    )
    assert "<img" not in markup
    assert '<span class="missing-image">Plan of it <code>https://a.example/p.png</code></span>' in markup
    assert "in a link" in markup


def test_code_is_highlighted_by_class_where_the_language_is_named() -> None:
    markup = render_markdown("```python\ndef f() -> int: return 1\n```")
    assert '<span class="k">def</span>' in markup
    assert parsed(markup).text == "def f() -> int: return 1\n\n"


@pytest.mark.parametrize("info", ["", "unknown", "text", "python-but-not"])
def test_code_without_a_known_language_is_plain(info: str) -> None:
    assert render_markdown(f"```{info}\ndef f(): <b>\n```") == (
        '<pre class="code"><code>def f(): &lt;b&gt;\n</code></pre>\n'
    )


@pytest.mark.parametrize(
    "source",
    [
        "$x^2$",
        "\\(x^2\\)",
        "$$x^2$$",
        "\\[x^2\\]",
        "$$\nx^2\n$$",
        "\\[\nx^2\n\\]",
        "a \\[x^2\\] b",
        "- $$\n  x^2\n  $$",
    ],
)
def test_formula_is_mathml(source: str) -> None:
    markup = render_markdown(source)
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in markup
    display = "inline" if source.startswith(("$x", "\\(")) else "block"
    assert f'<math display="{display}">' in markup


@pytest.mark.parametrize("environment", ["aligned", "align", "align*", "gathered", "cases", "pmatrix"])
def test_formula_environment_is_a_table(environment: str) -> None:
    markup = render_markdown(f"$$\n\\begin{{{environment}}} a &= b \\\\ c &= d \\end{{{environment}}}\n$$")
    assert markup.count("<mtr>") == 2
    assert "(1)" not in markup


@pytest.mark.parametrize(
    "prose",
    [
        "It costs $5 and $10.",
        "Between $5 (low) and US$ 10.",
        "a $ b $ c",
        "$100から$200まで",
        "Pay $1,200.00 now, $300 later, or 5$.",
        "escaped \\$x$ y",
        "unclosed $x and \\(y",
    ],
)
def test_price_is_not_a_formula(prose: str) -> None:
    page = parsed(render_markdown(prose))
    assert "math" not in {tag for tag, _ in page.tags}


@pytest.mark.parametrize(
    "latex",
    [
        "\\frac{",
        "\\def\\a{\\a}\\a",
        "\\newcommand{\\x}{y}\\x",
        "{" * 60 + "}" * 60,
        "\\left(",
        "x" * 2_001 + "^2",
    ],
)
def test_formula_that_fails_is_shown_as_code(latex: str) -> None:
    markup = render_markdown(f"$$\n{latex}\n$$")
    assert "<math" not in markup
    assert latex in parsed(markup).text


def test_formulas_beyond_the_budget_are_shown_as_code() -> None:
    markup = render_markdown("\n\n".join(f"$x_{{{n}}}$" for n in range(250)))
    assert markup.count("<math") == 200
    assert '<code class="math-source">$x_{249}$</code>' in markup


def test_invisible_and_turning_characters_are_removed() -> None:
    hidden = "pay\u200b \u202eevil\u202c \ufeffnow\u2066\u2069\U000e0041\u00ad"
    assert parsed(render_markdown(hidden)).text.strip() == "pay evil now"
    assert parsed(render_markdown(f"`{hidden}`")).text.strip() == "pay evil now"
    assert "pay evil now" in render_plain(hidden)


@pytest.mark.parametrize(
    "text", ["👩\u200d💻", "می\u200cخواهم", "क्\u200dष", "葛\U000e0100", "❤\ufe0f", "1\ufe0f\u20e3"]
)
def test_joiners_and_selectors_that_a_script_needs_stay(text: str) -> None:
    assert visible(text) == text


def test_joiner_between_letters_that_need_none_is_removed() -> None:
    assert visible("a\u200db\u200c c\ufe0fd \u200d👩") == "ab cd 👩"


def test_line_ends_are_one_kind() -> None:
    assert render_markdown("a\r\n\r\nb\rc\u2028d") == render_markdown("a\n\nb\nc\nd")


def test_plain_is_escaped_and_cut_with_a_note() -> None:
    assert render_plain("<b>&") == '<pre class="plain">&lt;b&gt;&amp;</pre>'
    markup = render_plain("x" * (DISPLAY_CHARACTERS + 7))
    assert markup.count("x") == DISPLAY_CHARACTERS
    assert "1,000,000 of 1,000,007 characters" in markup


def test_text_over_the_cap_is_plain() -> None:
    assert render_markdown("*a* b", max_characters=4) == render_plain("*a* b")
    assert render_markdown("*a* b", max_characters=5) == "<p><em>a</em> b</p>\n"


def test_nesting_never_loses_text() -> None:
    deep = "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(60)) + "\n" + ">" * 80 + " last"
    text = parsed(render_markdown(deep)).text
    assert "level 59" in text
    assert "last" in text


def test_paragraph_full_of_brackets_is_left_as_written() -> None:
    costly = "[" * (MAX_PARAGRAPH_BRACKETS + 1) + " *a*"
    markup = render_markdown(f"{costly}\n\n*b*")
    assert f"<p>{costly}</p>" in markup
    assert "<em>b</em>" in markup


def test_same_text_gives_the_same_html() -> None:
    text = '# a\n\n$x^2$\n\n```json\n{"a": 1}\n```\n\n| a |\n|-|\n| b |\n'
    first = render_markdown(text)
    render_markdown("$$\\begin{align} a &= b \\end{align}$$\n\n```python\nx\n```")
    assert render_markdown(text) == first
    assert isinstance(RENDERER_VERSION, int)


SIZE = 100_000
HOSTILE = {
    "long line": "a" * 1_000_000,
    "ten megabytes": "lorem ipsum\n" * 870_000,
    "quotes": ">" * SIZE,
    "quoted lines": (">" * 15 + "a\n") * 6_000,
    "quoted lists": ("> - " * 9 + "a\n") * 2_500,
    "lists": "".join("  " * depth + "- a\n" for depth in range(400)),
    "long list": "- a\n\n" * 20_000,
    "rule or list": "- " * (SIZE // 2),
    "brackets": "[" * SIZE,
    "bracket lines": ("[" * 240 + "\n\n") * 400,
    "image brackets": ("![" * 200 + "\n\n") * 240,
    "nested links": ("[" * 200 + "a" + "](http://x)" * 200 + "\n\n") * 30,
    "link titles": ('[a](b "' * 240 + "\n\n") * 30,
    "emphasis": "*" * SIZE,
    "mixed emphasis": "*a_ **b__ " * 10_000,
    "backticks": "`" * SIZE,
    "rising backticks": "".join("`" * n + " " for n in range(1, 195)),
    "less than": "<" * SIZE,
    "entities": "&" * SIZE,
    "dollars": "$a " * (SIZE // 3),
    "opened formulas": "\\[\n" * (SIZE // 3),
    "many formulas": ("$" + "\\frac{a}{b}+" * 100 + "$\n\n") * 80,
    "deep formula": "$" + "{" * 900 + "}" * 900 + "$",
    "wide table": "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "a\n" * 9_000,
    "references": "".join(f"[a{n}]: http://b\n" for n in range(6_000)),
    "blank lines": "\n" * SIZE,
    "blanks": " " * SIZE,
    "fences": "```\n" * (SIZE // 4),
    "java words": "```java\n" + "a\n" * 4_000 + "```",
    "c blanks": "```c\n" + " \n" * 4_000 + "```",
    "c# words": "```c#\n" + "a b\n" * 2_000 + "```",
    "joiners": "日\u200d" * (SIZE // 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_rendered_quickly(name: str) -> None:
    started = time.process_time()
    markup = render_markdown(HOSTILE[name])
    # About 0.5 s at most where it was measured; a quadratic step would take minutes.
    assert time.process_time() - started < 4
    assert len(markup) < 2_000_000
