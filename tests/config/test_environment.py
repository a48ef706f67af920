"""`.env.example` names every variable that the settings and the entrypoint read, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READERS = {"text", "flag", "integer", "number", "words", "url", "secret"}
# Read by Django itself, and by providers whose key comes from the environment.
READ_ELSEWHERE = {"DJANGO_SETTINGS_MODULE", "TILTYARD_KEY_EXAMPLE"}


def read_by_settings() -> set[str]:
    names = set()
    for path in [*(ROOT / "config/settings").glob("*.py"), *(ROOT / "config").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            function, first = node.func, node.args[0]
            if not (isinstance(function.value, ast.Name) and function.value.id == "env" and function.attr in READERS):
                continue
            assert isinstance(first, ast.Constant), f"{path.name}:{node.lineno} reads a variable whose name is computed"
            names.add(str(first.value))
    return names


def read_by_entrypoint() -> set[str]:
    script = (ROOT / "docker/entrypoint.sh").read_text(encoding="utf-8")
    return set(re.findall(r"\$\{([A-Z_]+):-", script))


def listed() -> list[str]:
    return re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_variable_is_listed_once() -> None:
    assert len(read_by_settings()) > 30
    assert sorted(listed()) == sorted(read_by_settings() | read_by_entrypoint() | READ_ELSEWHERE)


def test_the_example_changes_nothing_when_copied_as_it_is() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == []
