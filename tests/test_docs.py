"""The documents against the code: what they name exists, and the numbers they quote are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.utils.text import slugify

from arena.ingest import inspect_upload
from arena.ingest.types import Limits
from arena.judging.protocol import PRESETS
from arena.judging.skips import CallFailure, SkipCode
from arena.judging.verdict import ErrorCode

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCS}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"manage\.py +([a-z_]+)")
TARGET = re.compile(r"^ *make ([a-z][a-z-]*)$", re.MULTILINE)
ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?==|$)")
READ = re.compile(
    r"""(?:env\.(?:text|flag|integer|number|words|url|secret)\(|environ(?:\.get\(|\[))\s*"([A-Z][A-Z0-9_]+)\""""
)
SECRET = re.compile(r"""env\.secret\("([A-Z0-9_]+)\"""")
# Of these names a document may speak as well: codes of errors, names in the code, and what others read.
CODES = {*CallFailure.__members__, *SkipCode.__members__, *ErrorCode.__members__}
NAMES_IN_CODE = {"_FORMATS", "KINDS"}
# Read by tests/run.py, and by the Makefile's own tools.
OF_TESTS = {"REQUIRE_SERVICES", "TEST_POSTGRES_URL", "TEST_REDIS_URL", "TEST_PROCESSES", "CHROMIUM"}
UNITS = {"": 1, "MB": 1024**2, "GB": 1024**3}
FIXED_LIMITS = {
    "one image": Limits().image_bytes,
    "one line": Limits().line_bytes,
    "entries of an archive": Limits().archive_entries,
    "unpacked to packed size": Limits().ratio,
    "seconds to read a PDF": Limits().pdf_seconds,
    "stored problems": Limits().stored_problems,
    "hours that a draft is kept": settings.UPLOAD_DRAFT_HOURS,
}


def of_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(text: str) -> str:
    """Without fenced blocks, in which brackets are data."""
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {slugify(title, allow_unicode=True) for title in titles} | {_github_anchor(title) for title in titles}


def _github_anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def code_of(text: str) -> Iterator[str]:
    """Inline code, fenced blocks, and blocks set in by four spaces."""
    yield from (block for _language, block in FENCE.findall(text))
    rest = prose(text)
    yield from CODE.findall(rest)
    yield from (line for line in rest.splitlines() if line.startswith("    "))


def table(text: str, header: str) -> list[list[str]]:
    """The rows of the table with this header line."""
    lines = text.splitlines()
    start = lines.index(header) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def number(cell: str) -> float:
    digits, _space, unit = cell.replace(",", "").partition(" ")
    return float(digits) * UNITS[unit]


def read_by_config() -> set[str]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "config").rglob("*.py")]
    return {name for source in sources for name in READ.findall(source)}


def read_by_scripts() -> set[str]:
    """Variables of the container's entry point, of the benchmarks, and of the demo."""
    paths = [*(ROOT / "docker").glob("*.sh"), *(ROOT / "benchmarks").rglob("*.py"), ROOT / "docker" / "compose.yaml"]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    found = {
        name for text in texts for name in re.findall(r"\$\{?([A-Z][A-Z0-9_]+)|\"([A-Z][A-Z0-9]*_[A-Z0-9_]+)\"", text)
    }
    return {one or other for one, other in found} | {"DEMO_SERVE", "DJANGO_SETTINGS_MODULE"}


def secrets_of_config() -> set[str]:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "config" / "settings").glob("*.py")]
    return {name for source in sources for name in SECRET.findall(source)}


@pytest.mark.parametrize("path", DOCS, ids=of_path)
def test_every_relative_link_resolves(path: Path) -> None:
    broken = []
    for target in LINK.findall(prose(TEXTS[path])):
        if re.match(r"[a-z]+:", target):
            continue
        name, _hash, anchor = target.partition("#")
        found = (path.parent / name).resolve() if name else path
        if not found.exists() or (anchor and anchor not in anchors(found.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def test_the_links_of_these_documents_are_found() -> None:
    links = [target for text in TEXTS.values() for target in LINK.findall(prose(text))]
    assert len(links) > 30


@pytest.mark.parametrize("path", DOCS, ids=of_path)
def test_every_command_exists(path: Path) -> None:
    named = {name for code in code_of(TEXTS[path]) for name in COMMAND.findall(code)}
    assert named <= get_commands().keys()


def test_every_command_of_our_own_has_a_section() -> None:
    own = {name for name, app in get_commands().items() if app in {"arena", "ratings"}}
    assert own <= anchors(TEXTS[ROOT / "docs" / "commands.md"])


@pytest.mark.parametrize("path", DOCS, ids=of_path)
def test_every_make_target_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = {name for code in code_of(TEXTS[path]) for name in TARGET.findall(code)}
    assert named <= targets


@pytest.mark.parametrize("path", DOCS, ids=of_path)
def test_every_variable_is_one_that_something_reads(path: Path) -> None:
    named = {name for code in CODE.findall(prose(TEXTS[path])) for name in ENVIRONMENT_NAME.findall(code)}
    named = {name for name in named if not name.startswith(("TILTYARD_KEY_", "TILTYARD_KEYHOSTS_"))}
    settings_shown = {name for name in named if hasattr(settings, name)}
    files = {f"{name}_FILE" for name in secrets_of_config()}
    known = read_by_config() | read_by_scripts() | files | CODES | NAMES_IN_CODE | OF_TESTS
    assert named - settings_shown <= known


def test_the_variables_of_the_tests_are_read_by_their_runner() -> None:
    runner = (ROOT / "tests" / "run.py").read_text(encoding="utf-8")
    assert [name for name in sorted(OF_TESTS) if f'"{name}"' not in runner] == []


def test_the_example_environment_and_the_settings_name_the_same() -> None:
    example = ROOT / ".env.example"
    if not example.exists():
        pytest.skip("there is no .env.example")
    listed = set(re.findall(r"^#? ?([A-Z][A-Z0-9_]+)=", example.read_text(encoding="utf-8"), re.MULTILINE))
    listed = {name for name in listed if not name.startswith("TILTYARD_KEY_")}
    read = read_by_config() - {"DJANGO_SETTINGS_MODULE", "TEST_DATABASE_URL", "TILTYARD_DEMO"}
    anywhere = read_by_config() | read_by_scripts()
    unread = {name for name in listed if name not in anywhere and name.removesuffix("_FILE") not in read}
    # A secret is listed once; that it may come from a file instead goes for all of them.
    unlisted = {name for name in read if name.removesuffix("_FILE") not in listed and f"{name}_FILE" not in listed}
    assert (unread, unlisted) == (set(), set())


def test_the_limits_of_uploads_are_those_of_the_code() -> None:
    rows = table(TEXTS[ROOT / "docs" / "formats.md"], "| limit | value | set by |")
    for label, value, source in rows:
        meant = FIXED_LIMITS[label] if source == "fixed" else getattr(settings, source.strip("`"))
        assert number(value) == meant, label
    assert {label for label, _value, source in rows if source == "fixed"} == FIXED_LIMITS.keys()
    changeable = {name for name in dir(settings) if name.startswith("UPLOAD_MAX_")}
    assert {source.strip("`") for *_, source in rows} == {"fixed", *changeable}


@pytest.mark.parametrize("name", ["security.md", "architecture.md"])
def test_settings_are_quoted_as_they_are(name: str) -> None:
    rows = table(TEXTS[ROOT / "docs" / name], "| setting | value | |")
    assert rows
    assert {row[0]: number(row[1]) for row in rows} == {row[0]: getattr(settings, row[0].strip("`")) for row in rows}


def test_both_presets_are_told_as_they_are() -> None:
    rows = table(TEXTS[ROOT / "docs" / "methodology.md"], "| part | `audited` | `majority` | meaning |")
    told = {part.strip("`"): (audited, majority) for part, audited, majority, _ in rows}
    audited, majority = PRESETS["audited"], PRESETS["majority"]
    assert told == {part: (str(getattr(audited, part)), str(getattr(majority, part))) for part in told}
    differing = {one.name for one in fields(audited) if getattr(audited, one.name) != getattr(majority, one.name)} - {
        "preset"
    }
    assert differing <= told.keys()


def examples() -> Iterator[tuple[str, str, str]]:
    for path, text in TEXTS.items():
        for index, (language, block) in enumerate(FENCE.findall(text)):
            if language in {"jsonl", "csv"}:
                yield f"{path.name}-{index}", language, block


@pytest.mark.parametrize(("language", "block"), [pytest.param(*rest, id=name) for name, *rest in examples()])
def test_every_example_of_an_upload_is_taken_without_a_word(language: str, block: str, tmp_path: Path) -> None:
    path = tmp_path / f"example.{language}"
    path.write_text(block, encoding="utf-8")
    inspection = inspect_upload(path, path.name)
    assert inspection.clean
    assert inspection.problems == ()


def test_there_is_an_example_of_every_dialect(tmp_path: Path) -> None:
    dialects = set()
    for name, language, block in examples():
        path = tmp_path / f"{name}.{language}"
        path.write_text(block, encoding="utf-8")
        dialects |= inspect_upload(path, path.name).dialects.keys()
    assert dialects >= {"tiltyard", "orq-arena", "openai-evals", "mt-bench", "arena-hard", "table"}
