"""Builders and reference data for the engine's tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ratings.engine.arrays import FloatArray, IntArray
from ratings.engine.comparisons import FIRST, OUTCOMES, SECOND, TIE, Comparisons, PairCounts

SHARED = Path(os.environ.get("TILTYARD_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")


def shared_file(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"reference data {relative} not beside the checkout")
    return path


def shared_json(relative: str) -> Any:
    return json.loads(shared_file(relative).read_text())


def from_cells(n_candidates: int, cells: Iterable[Sequence[int]]) -> PairCounts:
    """Counts from rows (i, j, wins of i, wins of j, ties)."""
    return PairCounts.from_rows(
        n_candidates,
        [(i, j, outcome, count) for i, j, *counts in cells for outcome, count in zip(OUTCOMES, counts, strict=True)],
    )


def quickstart(category: str | None = None) -> tuple[list[str], PairCounts]:
    """Names and counts of the published quickstart log, in full or one category of it."""
    lines = shared_file("data/orq_quickstart/battles.jsonl").read_text().splitlines()
    rounds = [json.loads(line) for line in lines]
    names = sorted({name for row in rounds for name in (row["model_a"], row["model_b"])})
    rows = []
    for row in rounds:
        if row["winner"] == "inconclusive" or category not in (None, row["prompt_category"]):
            continue
        outcome = {row["model_a"]: FIRST, row["model_b"]: SECOND, "tie": TIE}[row["winner"]]
        rows.append((names.index(row["model_a"]), names.index(row["model_b"]), outcome, 1))
    return names, PairCounts.from_rows(len(names), rows)


def simulated(
    theta: FloatArray, n_comparisons: int, seed: int, *, eta: float = 0.0
) -> tuple[IntArray, IntArray, IntArray]:
    """Comparisons of uniformly drawn pairs under Rao and Kupper: first, second, outcome codes."""
    rng = np.random.default_rng(seed)
    n = theta.size
    first = rng.integers(0, n, n_comparisons)
    second = (first + rng.integers(1, n, n_comparisons)) % n
    d = theta[first] - theta[second]
    draws = rng.random(n_comparisons)
    win = draws < 1 / (1 + np.exp(eta - d))
    loss = draws > 1 / (1 + np.exp(-eta - d))
    return first, second, np.where(win, 0, np.where(loss, 1, 2))


def quickstart_rounds() -> tuple[list[str], Comparisons, IntArray, IntArray]:
    """Names, rated rounds, and characters of either answer of the published quickstart log."""
    rounds = [json.loads(line) for line in shared_file("data/orq_quickstart/battles.jsonl").read_text().splitlines()]
    rated = [row for row in rounds if row["winner"] != "inconclusive"]
    names = sorted({name for row in rounds for name in (row["model_a"], row["model_b"])})
    first = np.array([names.index(row["model_a"]) for row in rated])
    second = np.array([names.index(row["model_b"]) for row in rated])
    outcome = np.array(
        [{row["model_a"]: 0, row["model_b"]: 1, "tie": 2}[row["winner"]] for row in rated], dtype=np.int64
    )
    characters = (np.array([len(row[side]) for row in rated]) for side in ("response_a", "response_b"))
    return names, Comparisons(len(names), first, second, outcome), *characters


def clustered(
    theta: FloatArray, n_clusters: int, per_cluster: int, seed: int, *, spread: float = 0.7, raters: int = 0
) -> Comparisons:
    """Comparisons in which each sample, and each rater, favours some candidates, under Rao and Kupper."""
    rng = np.random.default_rng(seed)
    n = theta.size
    cluster = np.repeat(np.arange(n_clusters), per_cluster)
    first = rng.integers(0, n, cluster.size)
    second = (first + rng.integers(1, n, cluster.size)) % n
    favour = rng.normal(0, spread, (n_clusters, n)) + theta
    d = favour[cluster, first] - favour[cluster, second]
    rater = None
    if raters:
        rater = rng.integers(0, raters, cluster.size)
        taste = rng.normal(0, spread, (raters, n))
        d += taste[rater, first] - taste[rater, second]
    draws = rng.random(cluster.size)
    win, loss = draws < 1 / (1 + np.exp(0.3 - d)), draws > 1 / (1 + np.exp(-0.3 - d))
    return Comparisons(n, first, second, np.where(win, 0, np.where(loss, 1, 2)), None, cluster, rater)
