"""How many matches each pairing needs for the same certainty, and what a dead candidate takes of a schedule.

Eight candidates of known strength play simulated tournaments, planned step by step as a run plans them: two steps
ahead of the last complete one. Run it alone; it needs neither a database nor a network.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from arena.judging.bench import Row, Seen, Side, Standing, review
from ratings.engine import Comparisons, Outlook, PairCounts, elo_pass, glicko2_periods, pairs, rate, step_seed
from ratings.engine.pairing import FOLLOWING

STRATEGIES = ("round_robin", "random", "elo", "glicko2")
SAMPLES = 200
STEP = 10
# True ratings, in points: a field of like candidates, and one from large models to very small ones.
FIELDS = {
    "close": (1120.0, 1060.0, 1000.0, 960.0, 920.0, 860.0, 760.0, 640.0),
    "wide": (1300.0, 1240.0, 1120.0, 1040.0, 940.0, 820.0, 660.0, 480.0),
}
TRUTH = FIELDS["close"]
TIES = 0.15
DEAD = 7


@dataclass
class Played:
    """A tournament as far as it has come: candidates are their positions in the truth."""

    matches: list[tuple[int, int, int, int]] = field(default_factory=list)  # step, first, second, sample
    outcomes: list[int | None] = field(default_factory=list)

    def decided(self, steps: int) -> tuple[Comparisons, list[int]]:
        rows = [
            (match[1], match[2], outcome, match[0])
            for match, outcome in zip(self.matches, self.outcomes, strict=True)
            if match[0] < steps and outcome is not None
        ]
        columns = [np.array([row[column] for row in rows], dtype=np.int64) for column in range(3)]
        return Comparisons(len(TRUTH), *columns), [row[3] for row in rows]


def outcome(rng: np.random.Generator, first: int, second: int) -> int:
    if rng.random() < TIES:
        return 2
    return int(rng.random() >= 1 / (1 + 10 ** ((TRUTH[second] - TRUTH[first]) / 400)))


def outlook(strategy: str, played: Played, complete: int) -> Outlook:
    met = [match[1:3] for match in played.matches]
    pending = [match[1:3] for match in played.matches if match[0] >= complete]
    if strategy == "elo":
        return Outlook(dict(enumerate(elo_pass(played.decided(complete)[0]).rating.tolist())), {}, met, pending)
    matches, periods = played.decided(complete)
    states = glicko2_periods(matches, periods, complete)
    if not states:
        return Outlook(recent=met, pending=pending)
    rating, deviation = states[-1].rating.tolist(), states[-1].deviation.tolist()
    return Outlook(dict(enumerate(rating)), dict(enumerate(deviation)), met, pending)


def play(strategy: str, seed: int, most: int, *, dead: int | None = None, at_step: Callable[[Played], bool]) -> Played:
    """Step by step until `at_step` says that it is enough. A dead candidate's matches have no outcome."""
    rng = np.random.default_rng(seed)
    played = Played()
    everybody = range(len(TRUTH))
    planned: list[list[tuple[int, int, int]]] = []
    whole = (
        []
        if strategy in FOLLOWING
        else [tuple(match) for match in pairs(strategy, everybody, [None] * SAMPLES, most, seed)]
    )
    standings = {candidate: Standing() for candidate in everybody}
    for step in range(10_000):
        while len(planned) < step + 2 and len(played.matches) < most:
            planned.append(_next(strategy, played, planned, whole, standings, seed, step))
        if step >= len(planned) or not planned[step]:
            break
        for first, second, sample in planned[step]:
            row = _row(len(played.matches), step, first, second, dead)
            result = review(standings, [row])
            standings = result.standings
            if result.to_withdraw:
                continue
            played.matches.append((step, first, second, sample))
            played.outcomes.append(None if dead in (first, second) else outcome(rng, first, second))
        if at_step(played) or len(played.matches) >= most:
            break
    return played


def _row(sequence: int, step: int, first: int, second: int, dead: int | None) -> Row:
    one, other = (Side(side, None, Seen.FAILED if side == dead else Seen.ANSWERED) for side in (first, second))
    return Row(sequence, step, (one, other))


def _next(
    strategy: str,
    played: Played,
    planned: list[list[tuple[int, int, int]]],
    whole: list[tuple[int, ...]],
    standings: dict[int, Standing],
    seed: int,
    complete: int,
) -> list[tuple[int, int, int]]:
    number = len(planned)
    if strategy not in FOLLOWING:
        return [(row[0], row[1], row[2]) for row in whole[number * STEP : (number + 1) * STEP]]
    already = [match for batch in planned for match in batch]
    view = outlook(strategy, played, complete)
    ahead = [match[:2] for match in (planned[complete] if complete < number else [])]
    view = Outlook(view.ratings, view.deviations, [match[:2] for match in already], ahead)
    roster = [one for one, standing in standings.items() if not standing.is_benched]
    chosen = pairs(
        strategy,
        roster,
        [None] * SAMPLES,
        STEP,
        step_seed(seed, number + 1),
        already=already,
        baseline=0 if strategy == "elo" and 0 in roster else None,
        outlook=view,
    )
    return [tuple(match) for match in chosen]


# Measures --------------------------------------------------------------------------------------------------------
def counts_of(played: Played) -> PairCounts:
    rows = [
        (match[1], match[2], ("first", "second", "tie")[code], 1)
        for match, code in zip(played.matches, played.outcomes, strict=True)
        if code is not None
    ]
    return PairCounts.from_rows(len(TRUTH), rows)


def error_of(played: Played) -> float:
    """Root mean square of fitted against true ratings, both centred."""
    rating = rate(counts_of(played), ties="rao_kupper", ridge=0.01).rating
    truth = np.array(TRUTH)
    off = (rating - rating.mean()) - (truth - truth.mean())
    return float(np.sqrt((off**2).mean()))


def top_two_error(played: Played) -> float:
    """Standard error of the gap between the two best."""
    board = rate(counts_of(played), ties="rao_kupper", ridge=0.01)
    covariance = board.intervals.covariance
    return float(np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])) * 173.7178


MEASURES: dict[str, Callable[[Played], float]] = {
    "rating error": error_of,
    "error of the top gap": top_two_error,
}


def curves_of(strategy: str, seeds: int, checkpoints: list[int]) -> dict[str, dict[int, float]]:
    """The mean of each measure once so many matches are played."""
    found: dict[str, dict[int, list[float]]] = {name: {at: [] for at in checkpoints} for name in MEASURES}
    for seed in range(seeds):

        def look(played: Played) -> bool:
            if len(played.matches) in checkpoints:
                for name, measure in MEASURES.items():
                    found[name][len(played.matches)].append(measure(played))
            return False

        play(strategy, seed, max(checkpoints), at_step=look)
    return {
        name: {at: statistics.fmean(values) for at, values in rows.items() if values} for name, rows in found.items()
    }


def needed(found: dict[int, float], goal: float) -> float | None:
    """Matches from which on a curve stays at the goal or below, between two checkpoints in proportion."""
    points = sorted(found.items(), reverse=True)
    if points[0][1] > goal:
        return None
    for (after, low), (before, high) in pairwise(points):
        if high > goal:
            return before + (after - before) * (high - goal) / (high - low)
    return float(points[-1][0])


def compare(seeds: int, most: int) -> dict[str, dict[str, float | None]]:
    checkpoints = list(range(4 * STEP, most + 1, 2 * STEP))
    every = {strategy: curves_of(strategy, seeds, checkpoints) for strategy in STRATEGIES}
    results: dict[str, dict[str, float | None]] = {}
    for name in MEASURES:
        curves = {strategy: found[name] for strategy, found in every.items()}
        # What round robin comes to with three quarters of the matches.
        at = checkpoints[len(checkpoints) * 3 // 4]
        goal = curves["round_robin"][at]
        results[name] = {"goal": goal, **{strategy: needed(found, goal) for strategy, found in curves.items()}}
        print(f"  {name}: {goal:.1f} points, as round robin after {at} matches; at the end of {most}:")
        for strategy in STRATEGIES:
            matches = results[name][strategy]
            share = "" if matches is None else f"({100 * (matches / at - 1):+.0f} %)"
            told = "not reached" if matches is None else f"{matches:5.0f} matches"
            print(f"    {strategy:12} {told:14} {share:9} {curves[strategy][checkpoints[-1]]:6.1f}")
    return results


def shares_of_dead(seeds: int, most: int) -> dict[str, float]:
    shares = {}
    for strategy in STRATEGIES:
        taken = []
        for seed in range(seeds):
            played = play(strategy, seed, most, dead=DEAD, at_step=lambda _: False)
            taken.append(sum(DEAD in match[1:3] for match in played.matches) / most)
        shares[strategy] = max(taken)
        print(f"  {strategy:12} {100 * max(taken):.2f} % at most")
    return shares


def main() -> None:
    global TRUTH
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    began = time.perf_counter()
    results = {}
    for field_name, truth in FIELDS.items():
        TRUTH = truth
        print(f"{field_name} field, mean of {options.seeds} tournaments")
        results[field_name] = compare(options.seeds, options.matches)
    print(f"matches of a dead candidate, of {options.matches} (without benching it would have a quarter)")
    shares = shares_of_dead(10, options.matches)
    print(f"{time.perf_counter() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({"fields": results, "dead": shares}, indent=1) + "\n")


if __name__ == "__main__":
    main()
