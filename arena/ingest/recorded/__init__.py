"""Pure readers of tournaments that other programs recorded: typed runs, and every problem with file, line, field."""

from __future__ import annotations

from pathlib import Path

from arena.ingest.paths import BadPath, clean_path
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.recorded import juryarena, orq
from arena.ingest.recorded.trees import Tree, opened
from arena.ingest.recorded.types import (
    RecordedAnswer,
    RecordedBallot,
    RecordedMatch,
    RecordedModel,
    RecordedPrice,
    RecordedRun,
    RunReading,
)
from arena.ingest.types import DEFAULT_LIMITS, Limits

__all__ = [
    "RecordedAnswer",
    "RecordedBallot",
    "RecordedMatch",
    "RecordedModel",
    "RecordedPrice",
    "RecordedRun",
    "RunReading",
    "read_record",
]


def read_record(path: Path, filename: str = "", *, limits: Limits = DEFAULT_LIMITS) -> RunReading:
    """Reads a folder, a ZIP archive or one log, and says all that is wrong with it. Writes nothing."""
    log = ProblemLog(_shown(filename or path.name), limits.stored_problems)
    runs: list[RecordedRun] = []
    with opened(path, limits, log) as tree:
        if tree is not None:
            runs = _read(tree)
    sound = not log.refused and log.error_count == 0
    return RunReading(
        runs=tuple(runs) if sound else (),
        problems=log.problems(),
        error_count=log.error_count,
        warning_count=log.warning_count,
        refused=log.refused,
    )


def _read(tree: Tree) -> list[RecordedRun]:
    paths = tree.paths()
    if juryarena.holds_record(paths):
        return juryarena.read_runs(tree)
    logs = [path for path in paths if orq.is_log_name(path)]
    if logs:
        return [run for run in (orq.read_log(tree, path) for path in logs) if run is not None]
    tree.log.refuse(
        "holds no recorded run: neither a log of rounds (.jsonl) nor the matches of a JuryArena evaluation "
        "(matches/detail/ or arena_matches/)"
    )
    return []


def _shown(filename: str) -> str:
    try:
        return clip(clean_path(filename.rsplit("/", 1)[-1]), 200)
    except BadPath:
        return "upload"
