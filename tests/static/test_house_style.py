"""What the content security policy and the budgets ask of every template, style sheet and script."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "templates" / "ratings" / "report.html"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "css").glob("*.css"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=relative)
def test_template_has_nothing_inline(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"<[^>]*\sstyle=", text)
    # The report is one file that the site hands out and never shows; its own policy names these styles by hash.
    if path != REPORT:
        assert not re.search(r"<style\b", text)
    assert not re.search(r"<[^>]*\son[a-z]+=", text)
    assert not re.search(r"<[^>]*\shx-on", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)


@pytest.mark.parametrize("path", [*TEMPLATES, *STYLES, *SCRIPTS], ids=relative)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"(?:src|href|action)=[\"'](?:https?:)?//", text)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/)", text)


def test_styles_and_scripts_fit_the_budget() -> None:
    sizes = {path: len(gzip.compress(path.read_bytes())) for path in [*STYLES, *SCRIPTS]}
    # htmx takes 17 KB of the 100 KB of a first page.
    assert sum(sizes.values()) < 40_000
    assert max(path.stat().st_size for path in SCRIPTS) < 60_000


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colours(theme: int) -> dict[str, str]:
    text = "".join(path.read_text() for path in STYLES)
    found = re.finditer(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", text)
    return {match[1]: match[2 + theme] for match in found}


INKS = [
    "ink", "ink-soft", "ink-faint", "accent", "accent-strong", "good", "warn", "bad",
    "c-word", "c-name", "c-text", "c-number", "c-remark",
]  # fmt: skip
GROUNDS = ["paper", "surface", "wash", "accent-wash", "good-wash", "warn-wash", "bad-wash"]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read(theme: int) -> None:
    palette = colours(theme)
    pairs = [
        *itertools.product(INKS, GROUNDS),
        ("accent-ink", "accent"),
        ("bad-ink", "bad"),
        ("paper", "ink"),
    ]
    weak = {pair for pair in pairs if contrast(palette[pair[0]], palette[pair[1]]) < 4.5}
    assert weak == set()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_controls_and_lines_of_charts_can_be_seen(theme: int) -> None:
    palette = colours(theme)
    marks = ["control", "accent", *(f"series-{number}" for number in range(1, 9))]
    weak = {mark for mark in marks if contrast(palette[mark], palette["paper"]) < 3}
    assert weak == set()


def test_templates_use_classes_that_exist() -> None:
    defined = set(re.findall(r"\.([a-z][\w-]*)", "".join(path.read_text() for path in STYLES)))
    own = [path for path in TEMPLATES if path.parent.name == "partials"] + [ROOT / "templates" / "base.html"]
    for path in own:
        text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", " ", path.read_text())
        used = {name for value in re.findall(r'class="([^"]*)"', text) for name in value.split()}
        unknown = {name for name in used if name not in defined and not name.endswith("-")}
        assert unknown == set(), path.name
