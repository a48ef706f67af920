"""Configurations against the demo endpoint, and the command run in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from arena.services.wire import forget_context

CONFIG = """\
name: Check
task_set: samples.jsonl
providers:
  demo: {{kind: demo, base_url: "{base_url}", max_concurrency: 16}}
candidates:
  - {{model_id: lancer-large, name: Lancer, max_tokens: 1024, price: {{input: 4, output: 16}}}}
  - {{model_id: squire-1, max_tokens: 1024, price: {{input: 1, output: 3}}}}
  - {{model_id: page-mini, max_tokens: 1024, price: {{input: 0.1, output: 0.4}}}}
judges:
  - {{model_id: magistrate-1, max_tokens: 1024, price: {{input: 2.5, output: 10}}}}
  - {{model_id: scrivener-4, max_tokens: 1024, price: {{input: 0.3, output: 1.2}}}}
max_matches: 9
step_size: 4
seed: 3
"""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def write_config(folder: Path, base_url: str, extra: str = "", **changes: str) -> Path:
    text = CONFIG.format(base_url=base_url) + extra
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "tournament.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object, out: Path | None = None) -> Run:
    """Standard output is no terminal here, as in a pipe."""
    forget_context()
    stdout, stderr = StringIO(), StringIO()
    where = ["--out", str(out)] if out else []
    code = 0
    try:
        call_command("run_tournament", *map(str, arguments), *where, stdout=stdout, stderr=stderr)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Run(code, stdout.getvalue(), stderr.getvalue())


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
