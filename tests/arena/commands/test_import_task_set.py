from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from arena.models import TaskSet, Team
from tests.arena.ingest.builders import message_line

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Acme")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_text(message_line("One") + "\n" + message_line("Two") + "\n")
    return path


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.jsonl"
    path.write_text(message_line("One") + '\n{"prompt": 3}\nnonsense\n')
    return path


def run(*arguments: str | Path) -> str:
    out = io.StringIO()
    call_command("import_task_set", *map(str, arguments), stdout=out)
    return out.getvalue()


def refused(*arguments: str | Path) -> tuple[str, int]:
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("import_task_set", *map(str, arguments), stdout=out)
    return out.getvalue() + str(caught.value), caught.value.returncode


def test_a_good_file_is_stored(team: Team, good: Path) -> None:
    out = run(good, "--team", "Acme", "--name", "Greetings")
    task_set = TaskSet.objects.get()
    assert (task_set.name, task_set.sample_count) == ("Greetings", 2)
    assert task_set.public_id in out
    assert "\r" not in out


def test_every_problem_is_printed_and_nothing_stored(team: Team, mixed: Path) -> None:
    text, code = refused(mixed)
    assert code == 2
    assert "mixed.jsonl line 2: prompt: must be text" in text
    assert "mixed.jsonl line 3: is not valid JSON" in text
    assert "Nothing was stored." in text
    assert not TaskSet.objects.exists()


def test_the_good_ones_are_taken_when_asked(team: Team, mixed: Path) -> None:
    assert "Good samples: 1 of 3" in run(mixed, "--only-good")
    assert TaskSet.objects.get().sample_count == 1


def test_check_stores_nothing_and_needs_no_team(good: Path, mixed: Path) -> None:
    assert "Nothing was stored, as asked." in run(good, "--check")
    assert refused(mixed, "--check")[1] == 2
    assert not TaskSet.objects.exists()


def test_a_new_version_by_name(team: Team, good: Path, tmp_path: Path) -> None:
    run(good, "--name", "Greetings")
    assert "Nothing changed" in run(good, "--new-version-of", "greetings")
    good.write_text(message_line("Three") + "\n")
    run(good, "--new-version-of", "Greetings")
    assert list(TaskSet.objects.order_by("version").values_list("name", "version")) == [
        ("Greetings", 1),
        ("Greetings", 2),
    ]
    assert refused(good, "--new-version-of", "Elsewhere")[1] == 1


def test_a_taken_name_is_refused(team: Team, good: Path) -> None:
    run(good)
    good.write_text(message_line("Three") + "\n")
    text, code = refused(good)
    assert code == 2
    assert "“good”" in text


def test_which_team(good: Path) -> None:
    assert "no team yet" in refused(good)[0]
    team = Team.objects.create(name="One")
    Team.objects.create(name="Two")
    assert "several teams" in refused(good)[0]
    assert "No team has" in refused(good, "--team", "Three")[0]
    run(good, "--team", team.public_id)
    assert TaskSet.objects.get().team == team


def test_a_missing_file_is_named(team: Team, tmp_path: Path) -> None:
    text, code = refused(tmp_path / "nowhere.zip")
    assert code == 2
    assert "nowhere.zip does not exist" in text
