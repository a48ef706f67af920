"""What the comparisons can tell apart: components, strong groups, and who has no bound.

*Components* are the connected components of the undirected comparison graph; ratings compare only within one.
*Groups* are the strong components of the directed win graph, in which a win is an edge from winner to loser
and a tie an edge both ways. In a component of one group the maximum-likelihood strengths are finite (Ford
1957, American Mathematical Monthly 64, 28-33); between groups every comparison went one way, so the
likelihood alone pushes them apart for ever.

Under Rao and Kupper's tie model that is not the whole condition, because the tie parameter is fitted too:
raising eta by one and spreading the strengths so that every winner gains at least one on the loser, while
no tied pair moves apart by more than one, never lowers the likelihood. Such a direction exists exactly when
no cycle of the win graph has more wins than ties (one win and one tie, and nothing else, is the smallest
example).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.comparisons import PairCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# A dense table of 2,000 candidates is 4 MB; beyond that the sparse search takes over.
_DENSE_CANDIDATES = 2_000


@dataclass(frozen=True, eq=False)
class Connectivity:
    """Labels are numbered in the order of the lowest candidate they hold.

    Attributes
    ----------
    components : (n,) integer array
        Connected component of each candidate.
    groups : (n,) integer array
        Strong component of the win graph; never spans two components.
    n_components, n_groups : int
    """

    components: IntArray
    groups: IntArray
    n_components: int
    n_groups: int

    @property
    def strongly_connected(self) -> bool:
        """Whether every component is one group, so that strengths are finite without a prior."""
        return self.n_components == self.n_groups


@dataclass(frozen=True, eq=False)
class Bounds:
    """Which ends the likelihood alone leaves open.

    Attributes
    ----------
    above, below : (n,) bool arrays
        No upper (lower) bound on the strength: the candidate's group never lost to (never won against) the
        core of its component. Both, where it is not comparable with the core, and for a candidate without
        comparisons.
    held_by_prior : (n,) bool array
        Every candidate of a component whose strengths are not all finite without a prior: there the
        distance between groups, and so the place against the component's mean, is the prior's.
    eta : bool
        The tie parameter has no upper bound.
    """

    above: BoolArray
    below: BoolArray
    held_by_prior: BoolArray
    eta: bool


def connectivity(counts: PairCounts) -> Connectivity:
    """Components and strong groups of a set of comparisons.

    Parameters
    ----------
    counts : PairCounts

    Returns
    -------
    Connectivity
        A candidate without comparisons is a component and a group of its own.
    """
    n = counts.n_candidates
    if _one_group(counts):
        one = np.zeros(n, dtype=np.int64)
        return Connectivity(one, one, min(n, 1), min(n, 1))
    from scipy.sparse.csgraph import connected_components

    edges = _win_graph(counts)
    n_groups, groups = connected_components(edges, directed=True, connection="strong")
    n_components, components = connected_components(edges, directed=True, connection="weak")
    return Connectivity(_ordered(components), _ordered(groups), int(n_components), int(n_groups))


def bounds(counts: PairCounts, links: Connectivity, *, ties: str, reference: int | None = None) -> Bounds:
    """Open ends of every candidate, whatever prior the fit uses.

    Parameters
    ----------
    counts : PairCounts
    links : Connectivity
        Of the same counts.
    ties : {"half_win", "rao_kupper"}
    reference : int, optional
        Pinned candidate; its group is the core of its component.

    Returns
    -------
    Bounds

    Notes
    -----
    The core of a component is its largest group. Where two groups are equally large there is none, and a
    group is open above when it won against another and open below when it lost to another.
    """
    n = counts.n_candidates
    above, below = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    members = np.bincount(links.components, minlength=links.n_components)
    if not links.strongly_connected:
        wins = _win_graph(counts)
        for component in np.flatnonzero(members > 1):
            inside = np.flatnonzero(links.components == component)
            if (links.groups[inside] != links.groups[inside[0]]).any():
                _mark_component(wins[inside][:, inside], inside, links.groups, reference, above, below)
    apart = np.bincount(links.components, above | below, links.n_components) > 0
    held = apart[links.components]
    eta = False
    if ties == "rao_kupper":
        reach = eta_direction(counts)
        if reach is not None:
            eta = True
            same = links.components[:, None] == links.components[None, :]
            above |= ((reach > 0) & same).any(axis=0)
            below |= ((reach > 0) & same).any(axis=1)
            held[:] = True
    isolated = counts.games == 0
    return Bounds(above | isolated, below | isolated, held | isolated, eta)


def core_of(groups: IntArray, inside: IntArray, reference: int | None) -> int | None:
    """The group against which a component's open ends are meant.

    Parameters
    ----------
    groups : (n,) integer array
    inside : (k,) integer array
        Candidates of one component.
    reference : int or None

    Returns
    -------
    int or None
        The reference's group if it lies in the component, else the largest group, else (no single largest)
        None.
    """
    if reference is not None and reference in inside:
        return int(groups[reference])
    labels, sizes = np.unique(groups[inside], return_counts=True)
    largest = np.flatnonzero(sizes == sizes.max())
    return int(labels[largest[0]]) if largest.size == 1 else None


def _mark_component(
    wins: csr_array[Any],
    inside: IntArray,
    groups: IntArray,
    reference: int | None,
    above: BoolArray,
    below: BoolArray,
) -> None:
    from scipy.sparse.csgraph import breadth_first_order

    labels = groups[inside]
    core = core_of(groups, inside, reference)
    if core is None:
        winner, loser = wins.nonzero()
        crossing = labels[winner] != labels[loser]
        above[np.isin(groups, labels[winner[crossing]])] = True
        below[np.isin(groups, labels[loser[crossing]])] = True
        return
    start = int(np.flatnonzero(labels == core)[0])
    under, over = np.zeros(inside.size, dtype=np.bool_), np.zeros(inside.size, dtype=np.bool_)
    under[breadth_first_order(wins, start, directed=True, return_predecessors=False)] = True
    over[breadth_first_order(wins.T.tocsr(), start, directed=True, return_predecessors=False)] = True
    outside = labels != core
    # A group that neither beat the core nor lost to it, even through others, is free on both sides.
    above[inside] = outside & ~under
    below[inside] = outside & ~over


def eta_direction(counts: PairCounts) -> FloatArray | None:
    """Along which direction the tie parameter has no bound.

    Parameters
    ----------
    counts : PairCounts

    Returns
    -------
    (n, n) array or None
        How far j may rise above i (entry i, j) while eta rises by one; None where eta is bounded.
    """
    if not counts.ties.any() or ((counts.wins_first > 0) & (counts.wins_second > 0)).any():
        return None
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import NegativeCycleError, johnson

    # Difference constraints v_j <= v_i + weight: -1 from winner to loser, +1 both ways for a tie.
    tied = counts.ties > 0
    forward = np.where(counts.wins_first > 0, -1.0, np.where(tied, 1.0, np.nan))
    backward = np.where(counts.wins_second > 0, -1.0, np.where(tied, 1.0, np.nan))
    source = np.concatenate([counts.first, counts.second])
    target = np.concatenate([counts.second, counts.first])
    weight = np.concatenate([forward, backward])
    known = ~np.isnan(weight)
    n = counts.n_candidates
    try:
        reach: FloatArray = johnson(csr_array((weight[known], (source[known], target[known])), shape=(n, n)))
    except NegativeCycleError:
        return None
    return reach


def _ordered(labels: NDArray[np.integer[Any]]) -> IntArray:
    _, first_seen, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first_seen.size, dtype=np.int64)
    rank[np.argsort(first_seen)] = np.arange(first_seen.size)
    return rank[inverse]


def _one_group(counts: PairCounts) -> bool:
    """Whether all are strongly connected, the usual case, told without a general search."""
    n = counts.n_candidates
    if n <= 1:
        return True
    if n > _DENSE_CANDIDATES:
        return False
    beat = np.zeros((n, n), dtype=np.bool_)
    beat[counts.first, counts.second] = (counts.wins_first > 0) | (counts.ties > 0)
    beat[counts.second, counts.first] = (counts.wins_second > 0) | (counts.ties > 0)
    return _reaches_all(beat) and _reaches_all(beat.T)


def _reaches_all(edges: BoolArray) -> bool:
    reached = np.zeros(edges.shape[0], dtype=np.bool_)
    frontier = reached.copy()
    frontier[0] = True
    while frontier.any():
        reached |= frontier
        frontier = edges[frontier].any(axis=0) & ~reached
    return bool(reached.all())


def _win_graph(counts: PairCounts) -> csr_array[Any]:
    from scipy.sparse import csr_array

    down = (counts.wins_first > 0) | (counts.ties > 0)
    up = (counts.wins_second > 0) | (counts.ties > 0)
    source = np.concatenate([counts.first[down], counts.second[up]])
    target = np.concatenate([counts.second[down], counts.first[up]])
    n = counts.n_candidates
    return csr_array((np.ones(source.size), (source, target)), shape=(n, n))
