"""Which task set a configuration means: a file or folder beside it, one of our own, or one that is stored."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from arena.ingest import Inspection, list_starters
from arena.models import TaskSet, Team
from arena.services.task_set_errors import NameTaken, NothingChanged, TaskSetError
from arena.services.task_set_files import inspect_path
from arena.services.task_sets import import_path, import_starter
from ratings.headless.config import RunConfig
from ratings.headless.yaml_tree import ConfigError

STARTER = "starter:"


@dataclass(frozen=True, slots=True)
class FoundTaskSet:
    """As the configuration names it; the row where it is stored already."""

    source: str
    task_set: TaskSet | None = None
    path: Path | None = None
    inspection: Inspection | None = None
    starter_id: str = ""


def find_task_set(config: RunConfig, *, folder: Path, team: Team, problems: list[str]) -> FoundTaskSet | None:
    """Nothing is stored here, so that all problems of a configuration can be told before anything is."""
    named = config.task_set.strip()
    if named.startswith(STARTER):
        return _starter(config, named, problems)
    path = folder / named
    if path.exists():
        return _path(config, named, path, team, problems)
    sets = TaskSet.objects.filter(team=team).newest_versions()
    task_set = sets.filter(name__iexact=named).first() or sets.filter(public_id=named).first()
    if task_set is not None:
        _check_categories(config, set(task_set.samples.values_list("category", flat=True)), problems)
        return FoundTaskSet(source=named, task_set=task_set)
    close = difflib.get_close_matches(named, list(sets.values_list("name", flat=True)), n=1)
    hint = f", did you mean {close[0]}?" if close else ""
    message = f"there is no file, folder or archive at {path}, and the team has no task set of this name{hint}"
    problems.append(config.told("task_set", message))
    return None


def _starter(config: RunConfig, named: str, problems: list[str]) -> FoundTaskSet | None:
    starter_id = named.removeprefix(STARTER).strip()
    known = sorted(starter.id for starter in list_starters())
    if starter_id in known:
        return FoundTaskSet(source=named, starter_id=starter_id)
    problems.append(config.told("task_set", f"there is no such set to start with; there are {', '.join(known)}"))
    return None


def _path(config: RunConfig, named: str, path: Path, team: Team, problems: list[str]) -> FoundTaskSet | None:
    try:
        inspection = inspect_path(path)
    except TaskSetError as error:
        problems.extend(config.told("task_set", problem) for problem in error.problems)
        return None
    if not inspection.clean:
        problems.append(config.told("task_set", f"{path} cannot be taken: {inspection.error_count} problems"))
        problems.extend(str(problem) for problem in inspection.problems if problem.severity == "error")
        return None
    _check_categories(config, set(inspection.categories), problems)
    same = TaskSet.objects.filter(team=team, content_hash=inspection.content_hash).order_by("-pk").first()
    return FoundTaskSet(source=named, task_set=same, path=path, inspection=inspection)


def _check_categories(config: RunConfig, known: set[str], problems: list[str]) -> None:
    for index, wanted in enumerate(config.categories):
        if wanted not in known:
            told = ", ".join(sorted(name for name in known if name)) or "none"
            problems.append(
                config.told(f"categories[{index}]", f"the task set has no category {wanted}; there are {told}")
            )


def stored(found: FoundTaskSet, *, config: RunConfig, team: Team) -> TaskSet:
    """The row, made now where there is none yet. Changed content is a new version of the set of that name."""
    if found.task_set is not None:
        return found.task_set
    try:
        if found.starter_id:
            return import_starter(team=team, starter_id=found.starter_id, actor=None)
        assert found.path is not None
        return _imported(found, team)
    except NothingChanged as unchanged:
        return unchanged.task_set
    except TaskSetError as error:
        raise ConfigError([config.told("task_set", problem) for problem in error.problems]) from error


def _imported(found: FoundTaskSet, team: Team) -> TaskSet:
    assert found.path is not None
    try:
        return import_path(team=team, path=found.path, actor=None, inspection=found.inspection)
    except NameTaken:
        name = found.path.resolve().stem
        older = TaskSet.objects.filter(team=team, name__iexact=name).newest_versions().first()
        if older is None:
            raise
        return import_path(team=team, path=found.path, actor=None, inspection=found.inspection, replaces=older)
