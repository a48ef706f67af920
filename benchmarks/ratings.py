"""Seconds and memory for ratings, errors, bootstraps and passes, beside other libraries on the same input.

    uv sync --group oracle
    python -m benchmarks.ratings --sizes small middle
    python -m benchmarks.ratings --tasks bootstrap --sizes large --json figures.json

Each figure comes from a process of its own: imports, data and one warm-up come first, then the repeats, of which
the median is told. On a shared machine CPU seconds say more than seconds, so ratios are taken of them. Libraries
that are not installed are told as absent.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.usage import peak_memory_mb
from ratings.engine import (
    OUTCOMES,
    Comparisons,
    PairCounts,
    bootstrap,
    fisher,
    fit,
    label_codes,
    outcome_codes,
    robust,
)
from ratings.engine.arrays import FloatArray, IntArray
from ratings.engine.scale import logistic

SIZES = {"small": (20, 20_000), "middle": (100, 1_000_000), "large": (200, 2_000_000)}
STYLE_SIZE = (50, 100_000)
PERIOD = 1_000
OURS = "tiltyard"
# A peer's bootstrap is measured on so many resamples and told for all.
PEER_RESAMPLES = 3
SECONDS_AT_MOST = 120
# Short work is repeated until it took so long together.
SECONDS_AT_LEAST = 1.0
REPEATS_AT_MOST = 50
Work = Callable[[], object]


@dataclass(frozen=True, eq=False)
class Votes:
    """Simulated votes on pairs drawn at random; a seventh of them are ties."""

    n: int
    first: IntArray
    second: IntArray
    outcome: IntArray
    features: FloatArray

    @classmethod
    def simulated(cls, n: int, m: int, *, n_features: int = 0) -> Votes:
        rng = np.random.default_rng([1, n, m])
        theta = rng.normal(0, 0.6, n)
        first = rng.integers(0, n, m)
        second = (first + rng.integers(1, n, m)) % n
        features = rng.normal(0, 1, (m, n_features))
        d = theta[first] - theta[second] + features @ np.array([0.35, 0.06, 0.1, -0.04])[:n_features]
        chance = rng.random(m)
        won, lost = chance < logistic(d - 0.3), chance > 1 - logistic(-d - 0.3)
        return cls(n, first, second, np.where(won, 0, np.where(lost, 1, 2)), features)

    @cached_property
    def names(self) -> list[str]:
        return [f"model_{index:03d}" for index in range(self.n)]

    @cached_property
    def strings(self) -> tuple[list[str], list[str], list[str]]:
        """Names of both sides and the outcome of each vote."""
        first, second = ([self.names[code] for code in column.tolist()] for column in (self.first, self.second))
        return first, second, [OUTCOMES[code] for code in self.outcome.tolist()]

    @cached_property
    def counts(self) -> PairCounts:
        return PairCounts.from_codes(self.n, self.first, self.second, self.outcome)

    def frame(self) -> Any:
        """The strings as a data frame, as Chatbot Arena publishes votes."""
        pandas = importlib.import_module("pandas")
        first, second, outcome = self.strings
        winner = {"first": "model_a", "second": "model_b", "tie": "tie"}
        return pandas.DataFrame(
            {"model_a": first, "model_b": second, "winner": [winner[one] for one in outcome]}, dtype=object
        )


def counted(votes: Votes) -> PairCounts:
    first, second, outcome = votes.strings
    labels, (one, other) = label_codes(first, second)
    return PairCounts.from_codes(len(labels), one, other, outcome_codes(outcome))


def ratings_from_strings(votes: Votes) -> dict[str, Work]:
    return {
        OURS: lambda: fit(counted(votes)).theta,
        "choix ilsr dense": lambda: _choix(*_factorised(votes)),
        "evalica": lambda: importlib.import_module("evalica").bradley_terry(*_evalica_columns(votes)),
    }


def ratings_from_ids(votes: Votes) -> dict[str, Work]:
    return {
        OURS: lambda: fit(PairCounts.from_codes(votes.n, votes.first, votes.second, votes.outcome)).theta,
        "choix ilsr dense": lambda: _choix(votes.n, votes.first, votes.second, votes.outcome),
    }


def errors_from_strings(votes: Votes) -> dict[str, Work]:
    def ours() -> object:
        counts = counted(votes)
        return robust(fit(counts), counts).std_error

    def ours_with_ties() -> object:
        return fisher(fit(counted(votes), ties="rao_kupper", ridge=0.01)).std_error

    return {
        OURS: ours,
        "tiltyard, Rao-Kupper ties": ours_with_ties,
        "arena-rank sandwich": lambda: _arena_rank(votes),
    }


def errors_from_ids(votes: Votes) -> dict[str, Work]:
    def ours() -> object:
        counts = PairCounts.from_codes(votes.n, votes.first, votes.second, votes.outcome)
        return robust(fit(counts), counts).std_error

    return {OURS: ours, "statsmodels binomial": lambda: _statsmodels(votes)}


def bootstrap_of(n_resamples: int) -> Callable[[Votes], dict[str, Work]]:
    def works(votes: Votes) -> dict[str, Work]:
        def ours() -> object:
            counts = PairCounts.from_codes(votes.n, votes.first, votes.second, votes.outcome)
            return bootstrap(fit(counts), counts, n_resamples=n_resamples).lower

        return {
            OURS: ours,
            "scikit-learn recipe": lambda: _scikit_learn(votes, PEER_RESAMPLES),
            "evalica": lambda: _evalica_bootstrap(votes, PEER_RESAMPLES),
        }

    return works


def elo_from_strings(votes: Votes) -> dict[str, Work]:
    def ours() -> object:
        elo = importlib.import_module("ratings.engine.elo")
        first, second, outcome = votes.strings
        labels, (one, other) = label_codes(first, second)
        return elo.elo_pass(Comparisons(len(labels), one, other, outcome_codes(outcome))).rating

    return {OURS: ours, "evalica": lambda: importlib.import_module("evalica").elo(*_evalica_columns(votes))}


def glicko2_from_ids(votes: Votes) -> dict[str, Work]:
    periods = np.arange(votes.first.size) // PERIOD

    def ours() -> object:
        glicko2 = importlib.import_module("ratings.engine.glicko2")
        return glicko2.glicko2_periods(Comparisons(votes.n, votes.first, votes.second, votes.outcome), periods)

    return {OURS: ours, "glicko2": lambda: _glicko2(votes)}


def style_from_ids(votes: Votes) -> dict[str, Work]:
    def ours() -> object:
        style = importlib.import_module("ratings.engine.style")
        columns = {name: votes.features[:, column] for column, name in enumerate(_FEATURES)}
        return style.style_fit(Comparisons(votes.n, votes.first, votes.second, votes.outcome), columns)

    return {
        OURS: ours,
        "arena-rank, no penalty": lambda: _arena_rank_style(votes),
        "scikit-learn, no errors": lambda: _scikit_learn_style(votes),
    }


_FEATURES = ("verbosity", "formatting", "latency_ttft", "latency_duration")
TASKS: dict[str, tuple[str, Callable[[Votes], dict[str, Work]]]] = {
    "ratings": ("strings", ratings_from_strings),
    "ratings-ids": ("ids", ratings_from_ids),
    "errors": ("strings", errors_from_strings),
    "errors-ids": ("ids", errors_from_ids),
    "bootstrap-100": ("ids", bootstrap_of(100)),
    "bootstrap-1000": ("ids", bootstrap_of(1_000)),
    "elo": ("strings", elo_from_strings),
    "glicko2": ("ids", glicko2_from_ids),
    "style": ("ids", style_from_ids),
}


def _factorised(votes: Votes) -> tuple[int, IntArray, IntArray, IntArray]:
    pandas = importlib.import_module("pandas")
    first, second, outcome = (np.array(column, dtype=object) for column in votes.strings)
    codes, labels = pandas.factorize(np.concatenate([first, second]))
    order = {outcome_name: code for code, outcome_name in enumerate(OUTCOMES)}
    results, kinds = pandas.factorize(outcome)
    return len(labels), codes[: first.size], codes[first.size :], np.array([order[kind] for kind in kinds])[results]


def _choix(n: int, first: IntArray, second: IntArray, outcome: IntArray) -> object:
    choix = importlib.import_module("choix")
    cells = np.bincount((first * n + second) * 3 + outcome, minlength=n * n * 3).reshape(n, n, 3)
    half = cells[:, :, 2] / 2
    return choix.ilsr_pairwise_dense(cells[:, :, 0] + cells[:, :, 1].T + half + half.T)


def _evalica_columns(votes: Votes) -> tuple[list[str], list[str], list[Any]]:
    winner = importlib.import_module("evalica").Winner
    if not hasattr(votes, "_winners"):
        codes = (winner.X, winner.Y, winner.Draw)
        object.__setattr__(votes, "_winners", [codes[code] for code in votes.outcome.tolist()])
    return votes.strings[0], votes.strings[1], votes._winners  # type: ignore[attr-defined]


def _evalica_bootstrap(votes: Votes, n_resamples: int) -> object:
    evalica = importlib.import_module("evalica")
    columns = _evalica_columns(votes)
    return evalica.bootstrap(
        evalica.bradley_terry, *columns, n_resamples=n_resamples, bootstrap_method="percentile", random_state=1
    )


def _arena_rank(votes: Votes) -> object:
    models = importlib.import_module("arena_rank.models.bradley_terry")
    data = importlib.import_module("arena_rank.utils.data_utils")
    dataset = data.PairDataset.from_pandas(_frame(votes), reweighted=False)
    found = models.BradleyTerry(n_competitors=len(dataset.competitors)).compute_ratings_and_cis(dataset)
    return np.asarray(found["rating_lower"])


def _arena_rank_style(votes: Votes) -> object:
    models = importlib.import_module("arena_rank.models.contextual_bradley_terry")
    data = importlib.import_module("arena_rank.utils.data_utils")
    frame = _frame(votes)
    for column, name in enumerate(_FEATURES):
        frame[name] = votes.features[:, column]
    dataset = data.ContextualPairDataset.from_pandas(frame, feature_cols=list(_FEATURES), reweighted=False)
    model = models.ContextualBradleyTerry(len(dataset.competitors), len(_FEATURES), reg=0.0)
    return np.asarray(model.compute_ratings_and_cis(dataset)["rating_lower"])


def _frame(votes: Votes) -> Any:
    if not hasattr(votes, "_frame"):
        object.__setattr__(votes, "_frame", votes.frame())
    return votes._frame  # type: ignore[attr-defined]


def _design(counts: PairCounts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One row a pair: plus and minus one, the share won (ties half), the comparisons."""
    rows = np.arange(counts.first.size)
    design = np.zeros((rows.size, counts.n_candidates))
    design[rows, counts.first], design[rows, counts.second] = 1.0, -1.0
    games = counts.games_per_pair.astype(np.float64)
    return design, (counts.wins_first + counts.ties / 2) / games, games


def _statsmodels(votes: Votes) -> object:
    api = importlib.import_module("statsmodels.api")
    counts = PairCounts.from_codes(votes.n, votes.first, votes.second, votes.outcome)
    design, share, games = _design(counts)
    # The last candidate is at nought, else the design has no full rank.
    return api.GLM(share, design[:, :-1], family=api.families.Binomial(), var_weights=games).fit().bse


def _logistic_regression() -> Any:
    linear = importlib.import_module("sklearn.linear_model")
    return linear.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-6, max_iter=1000)


def _scikit_learn(votes: Votes, n_resamples: int) -> object:
    counts = PairCounts.from_codes(votes.n, votes.first, votes.second, votes.outcome)
    design, share, games = _design(counts)
    cells = np.concatenate([share * games, (1 - share) * games])
    rows = np.concatenate([design, design])
    won = np.repeat([1, 0], games.size)
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(int(games.sum()), cells / cells.sum(), n_resamples)
    return [_logistic_regression().fit(rows, won, sample_weight=weight).coef_ for weight in drawn]


def _scikit_learn_style(votes: Votes) -> object:
    rows = np.zeros((votes.first.size, votes.n + len(_FEATURES)))
    every = np.arange(votes.first.size)
    rows[every, votes.first], rows[every, votes.second] = 1.0, -1.0
    rows[:, votes.n :] = votes.features
    weight = np.concatenate([np.where(votes.outcome == code, 1.0, 0.5 * (votes.outcome == 2)) for code in (0, 1)])
    both = np.concatenate([rows, rows])
    won = np.repeat([1, 0], every.size)
    held = weight > 0
    return _logistic_regression().fit(both[held], won[held], sample_weight=weight[held]).coef_


def _glicko2(votes: Votes) -> object:
    library = importlib.import_module("glicko2")
    players = [library.Player() for _ in range(votes.n)]
    scores = np.array([1.0, 0.0, 0.5])[votes.outcome]
    for begin in range(0, scores.size, PERIOD):
        part = slice(begin, begin + PERIOD)
        before = [(player.rating, player.rd) for player in players]
        met: dict[int, tuple[list[float], list[float], list[float]]] = {}
        rows = zip(votes.first[part].tolist(), votes.second[part].tolist(), scores[part].tolist(), strict=True)
        for one, other, score in rows:
            for own, opponent, points in ((one, other, score), (other, one, 1 - score)):
                rating, deviation = before[opponent]
                columns = met.setdefault(own, ([], [], []))
                columns[0].append(rating)
                columns[1].append(deviation)
                columns[2].append(points)
        for index, player in enumerate(players):
            if index in met:
                player.update_player(*met[index])
            else:
                player.did_not_compete()
    return [player.rating for player in players]


def _baseline_mb() -> float:
    """Memory in use; the peak is counted from here on."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory_mb(os.getpid())


def measure(task: str, size: str, peer: str, repeats: int) -> dict[str, Any]:
    """One figure, in this process."""
    n, m = STYLE_SIZE if task == "style" else SIZES[size]
    votes = Votes.simulated(n, m, n_features=4 if task == "style" else 0)
    source, make = TASKS[task]
    work = make(votes)[peer]
    if source == "strings":
        _ = votes.strings
    try:
        if peer.startswith("arena-rank"):
            _frame(votes)
        work()
    except ModuleNotFoundError as error:
        return {"absent": str(error)}
    before = _baseline_mb()
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    while len(seconds) < repeats or (sum(seconds) < SECONDS_AT_LEAST and len(seconds) < REPEATS_AT_MOST):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        work()
        seconds.append(time.perf_counter() - begin)
        cpu_seconds.append(time.process_time() - cpu_begin)
    factor = 1.0
    if task.startswith("bootstrap") and peer != OURS:
        factor = int(task.rpartition("-")[2]) / PEER_RESAMPLES
    peak = peak_memory_mb(os.getpid()) - before
    return {
        "seconds": statistics.median(seconds) * factor,
        "cpu_seconds": statistics.median(cpu_seconds) * factor,
        "peak_mb": peak,
        "extrapolated": factor != 1.0,
    }


def in_process(task: str, size: str, peer: str, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.ratings", "--one", task, size, peer]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    try:
        done = subprocess.run(
            [*command, "--repeats", str(repeats)],
            cwd=Path(__file__).resolve().parents[1],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_AT_MOST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"absent": f"over {SECONDS_AT_MOST} s"}
    if done.returncode != 0:
        return {"absent": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(task: str, size: str, repeats: int) -> list[dict[str, Any]]:
    """Print a task's rows, our own first, and give them back."""
    n, m = STYLE_SIZE if task == "style" else SIZES[size]
    source, make = TASKS[task]
    peers = list(make(Votes.simulated(2, 10, n_features=4)))
    figures = [{"task": task, "size": size, "peer": peer, **in_process(task, size, peer, repeats)} for peer in peers]
    own = figures[0].get("cpu_seconds")
    for figure in figures:
        head = f"| {task} | {source} | {n} x {m:,} | {figure['peer']} "
        if "absent" in figure:
            print(f"{head}| - | - | - | - | {figure['absent']} |", flush=True)
            continue
        ratio = f"{figure['cpu_seconds'] / own:.1f}" if own else "-"
        note = f"from {PEER_RESAMPLES} resamples" if figure["extrapolated"] else ""
        cells = (f"{figure['seconds']:.4g}", f"{figure['cpu_seconds']:.4g}", ratio, f"{figure['peak_mb']:.0f}", note)
        print(f"{head}| {' | '.join(cells)} |", flush=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "middle"])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("TASK", "SIZE", "PEER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.repeats)))
        return 0
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| task | input | candidates x votes | who | seconds | CPU seconds | times our CPU | peak MB | note |")
    print("|---|---|---|---|---|---|---|---|---|")
    figures = []
    for task in options.tasks:
        for size in options.sizes if task != "style" else options.sizes[:1]:
            figures += report(task, size, options.repeats)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
