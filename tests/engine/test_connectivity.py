from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ratings.engine.arrays import FloatArray
from ratings.engine.comparisons import OUTCOMES, TIE, PairCounts
from ratings.engine.connectivity import bounds, connectivity
from tests.engine.helpers import from_cells

N = 4
rows_of_few = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.sampled_from(OUTCOMES), st.just(1)).filter(
        lambda row: row[0] != row[1]
    ),
    min_size=1,
    max_size=9,
)


def test_components_and_groups_are_numbered_by_their_lowest_candidate() -> None:
    links = connectivity(from_cells(6, [(1, 5, 2, 1, 0), (0, 4, 3, 0, 0), (4, 2, 0, 0, 1)]))

    assert links.components.tolist() == [0, 1, 0, 2, 0, 1]
    assert links.groups.tolist() == [0, 1, 2, 3, 2, 1]
    assert (links.n_components, links.n_groups) == (3, 4)
    assert not links.strongly_connected


def test_a_tie_is_an_edge_both_ways() -> None:
    assert connectivity(from_cells(3, [(0, 1, 3, 0, 1), (1, 2, 0, 0, 2)])).n_groups == 1
    assert connectivity(from_cells(3, [(0, 1, 3, 0, 0), (1, 2, 0, 0, 2)])).n_groups == 2


def test_a_long_cycle_is_one_group() -> None:
    n = 30
    cells = [(i, (i + 1) % n, 1, 0, 0) for i in range(n)]

    assert connectivity(from_cells(n, cells)).n_groups == 1
    assert connectivity(from_cells(n, cells[:-1])).n_groups == n


def test_more_candidates_than_a_dense_table_holds() -> None:
    n = 2500
    cells = [(i, (i + 1) % n, 1, 0, 0) for i in range(n)]

    assert connectivity(from_cells(n, cells)).strongly_connected


def constraints(rows: list[tuple[int, int, str, int]]) -> tuple[FloatArray, FloatArray]:
    """Winners at least one above losers, tied pairs at most one apart, as A v <= b."""
    matrix, limits = [], []
    for i, j, outcome, _ in rows:
        difference = np.zeros(N)
        difference[i], difference[j] = 1, -1
        if outcome == TIE:
            matrix += [difference, -difference]
            limits += [1.0, 1.0]
        else:
            matrix.append(-difference if outcome == "first" else difference)
            limits.append(-1.0)
    return np.array(matrix), np.array(limits)


@settings(max_examples=20, deadline=None)
@given(rows=rows_of_few)
def test_directions_in_which_eta_runs_away_match_a_linear_program(
    rows: list[tuple[int, int, str, int]],
) -> None:
    counts = PairCounts.from_rows(N, rows)
    links = connectivity(counts)
    found = bounds(counts, links, ties="rao_kupper")
    matrix, limits = constraints(rows)

    def highest(i: int, j: int) -> float:
        cost = np.zeros(N)
        cost[i], cost[j] = -1, 1
        solved = linprog(cost, A_ub=matrix, b_ub=limits, bounds=[(-50, 50)] * N)
        assert solved.fun is not None
        return -float(solved.fun)

    feasible = linprog(np.zeros(N), A_ub=matrix, b_ub=limits, bounds=[(None, None)] * N).status == 0
    tied = any(outcome == TIE for *_, outcome, _ in rows)
    assert found.eta == (feasible and tied)
    if found.eta:
        for i in np.flatnonzero(counts.games).tolist():
            others = [j for j in range(N) if links.components[j] == links.components[i] and j != i]
            assert found.above[i] == (max(highest(i, j) for j in others) > 1e-6)
            assert found.below[i] == (max(highest(j, i) for j in others) > 1e-6)


def test_importing_the_engine_imports_no_scipy() -> None:
    program = "import sys, ratings.engine; print(any(name.startswith('scipy') for name in sys.modules))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
