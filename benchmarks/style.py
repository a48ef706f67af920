"""How long the style fit, length control and agreement take, on data drawn by a seed.

python -m benchmarks.style
python -m benchmarks.style --repeats 9
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np

from ratings.engine import Comparisons, Votes, agreement, length_control, style_fit
from ratings.engine.arrays import FloatArray
from ratings.engine.scale import logistic

BETA = np.array([0.35, 0.06, 0.10, -0.04])


def drawn(n_models: int, n_votes: int, seed: int) -> tuple[Comparisons, FloatArray]:
    """Votes with ties under Rao and Kupper, and four features; integer ids."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.6, n_models)
    first = rng.integers(0, n_models, n_votes)
    second = (first + rng.integers(1, n_models, n_votes)) % n_models
    x = rng.normal(size=(4, n_votes))
    d = theta[first] - theta[second] + BETA @ x
    draws = rng.random(n_votes)
    outcome = np.where(draws < logistic(d - 0.35), 0, np.where(draws > 1 - logistic(-d - 0.35), 1, 2))
    return Comparisons(n_models, first, second, outcome), x


def tasks() -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(1)
    large, x = drawn(50, 100_000, 2)
    features = dict(zip(("verbosity", "formatting", "latency_ttft", "latency_duration"), x, strict=True))
    small, _ = drawn(20, 5_000, 3)
    characters = rng.integers(200, 4_000, (2, 5_000))
    votes = Votes(rng.integers(-1, 3, (5_000, 5)), 3, rng.integers(0, 500, 5_000))
    return {
        "style fit with errors, 50 models, 100,000 votes, 4 features": lambda: style_fit(large, features),
        "length control, 20 models, 5,000 comparisons, 400 resamples": lambda: length_control(small, *characters),
        "agreement, 5 raters, 5,000 rounds, 1,000 resamples": lambda: agreement(votes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| task | wall s | CPU s | peak MB |\n|---|---|---|---|")
    for name, task in tasks().items():
        task()
        walls, cpus = [], []
        for _ in range(repeats):
            wall, cpu = time.perf_counter(), time.process_time()
            task()
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        tracemalloc.start()
        task()
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"| {name} | {median(walls):.3f} | {median(cpus):.3f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
