from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from arena.models import Team, Tournament
from tests.arena.ingest.recorded.builders import manifest, round_line, write_log

pytestmark = pytest.mark.django_db


def run(*arguments: Any) -> str:
    out = StringIO()
    call_command("import_run", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_import_and_again(tmp_path: Path) -> None:
    Team.objects.create(name="Yard")
    path = write_log(tmp_path, round_line(), beside=manifest())
    said = run(path, "--name", "Spring")
    tournament = Tournament.objects.get()
    assert f"Imported Spring, id {tournament.public_id}." in said
    assert "orq-arena run-1: 1 matches, 2 candidates, 2 judges, 2 answers." in said
    assert "Nothing changed: this run was imported before as Spring" in run(path)


def test_check_stores_nothing(tmp_path: Path) -> None:
    assert "Nothing was imported, as asked." in run(write_log(tmp_path, round_line()), "--check")
    assert not Tournament.objects.exists()


def test_what_is_wrong_is_printed(tmp_path: Path) -> None:
    Team.objects.create(name="Yard")
    out = StringIO()
    with pytest.raises(CommandError, match=r"Nothing was imported\.") as refused:
        call_command("import_run", str(write_log(tmp_path, round_line(winner="x"))), stdout=out)
    assert refused.value.returncode == 2
    assert "battles.jsonl line 1: winner" in out.getvalue()


def test_a_path_that_is_not_there() -> None:
    Team.objects.create(name="Yard")
    with pytest.raises(CommandError, match="does not exist"):
        run("/nowhere/battles.jsonl")
