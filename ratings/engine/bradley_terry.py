"""Bradley-Terry strengths from pair counts.

`fit` anchors each connected component at a mean of zero, or at a pinned candidate, and says which ends the
data leave open. It never reports a budget of iterations as convergence, and where the likelihood has no
finite optimum and no prior is asked for, it returns infinities and NaN rather than a number that depends on
when an iteration stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.comparisons import PairCounts
from ratings.engine.connectivity import Bounds, Connectivity, bounds, connectivity, core_of
from ratings.engine.likelihood import TIE_MODELS, Likelihood, TieModel
from ratings.engine.newton import ETA_FLOOR, lbfgs, newton

FALLBACK_RIDGE = 0.01
NEWTON_TOLERANCE = 1e-12
LBFGS_TOLERANCE = 1e-7
Method = Literal["newton", "lbfgs"]
MAX_ITERATIONS: dict[Method, int] = {"newton": 100, "lbfgs": 5000}


@dataclass(frozen=True, eq=False)
class BradleyTerryFit:
    """Result of `fit`.

    Attributes
    ----------
    theta : (n,) array
        Log-strengths (natural log odds), anchored per component. With ``ridge == 0``, outside the core of a
        component that is not strongly connected: ``inf`` where only the upper end is open, ``-inf`` where
        only the lower, NaN where both.
    eta : float or None
        Tie parameter; None with ``half_win``, ``inf`` where it has no finite optimum.
    converged : bool
        The projected gradient met the tolerance. Do not publish a fit that is not.
    iterations : int
    gradient_norm : float
        Largest component of the projected gradient, not divided by anything.
    log_likelihood : float
        Without the prior; NaN where eta has no finite optimum although there are wins and no prior.
    objective : float
        What was minimised: the prior's term minus the log-likelihood.
    connectivity : Connectivity
    bounds : Bounds
    reference : int or None
    ridge : float
    ties : {"half_win", "rao_kupper"}
    eta_free : bool
        False where there is no eta, or it rests on its floor of 1e-4 or at infinity.
    hessian : (k, k) array
        Of the objective at the optimum; strengths, then eta with ``rao_kupper``.
    finite_blocks : (n,) integer array
        Candidates that share a label have finite differences in this fit: components, or with no prior
        strong groups.
    """

    theta: FloatArray
    eta: float | None
    converged: bool
    iterations: int
    gradient_norm: float
    log_likelihood: float
    objective: float
    connectivity: Connectivity
    bounds: Bounds
    reference: int | None
    ridge: float
    ties: TieModel
    eta_free: bool
    hessian: FloatArray
    finite_blocks: IntArray

    @property
    def components(self) -> IntArray:
        """(n,) connected component of each candidate."""
        return self.connectivity.components

    @property
    def groups(self) -> IntArray:
        """(n,) strong group of each candidate."""
        return self.connectivity.groups

    @property
    def unbounded_above(self) -> BoolArray:
        """(n,) no upper bound from the data."""
        return self.bounds.above

    @property
    def unbounded_below(self) -> BoolArray:
        """(n,) no lower bound from the data."""
        return self.bounds.below

    @property
    def held_by_prior(self) -> BoolArray:
        """(n,) placed against the rest of the component by the prior."""
        return self.bounds.held_by_prior

    @property
    def eta_unbounded(self) -> bool:
        """Whether the data put no upper bound on eta."""
        return self.bounds.eta

    @property
    def parameters(self) -> FloatArray:
        """(k,) strengths and, with ``rao_kupper``, eta: the ``start`` of a later fit."""
        return self.theta if self.eta is None else np.append(self.theta, self.eta)


def default_ridge_for(counts: PairCounts, ties: TieModel = "half_win") -> float:
    """The ridge an audited board uses: none while the data allow it.

    Returns
    -------
    float
        0 when every component is strongly connected and, with ``rao_kupper``, eta is bounded; else
        `FALLBACK_RIDGE`.
    """
    links = connectivity(counts)
    finite = links.strongly_connected and not bounds(counts, links, ties=ties).eta
    return 0.0 if finite else FALLBACK_RIDGE


def fit(
    counts: PairCounts,
    *,
    ties: TieModel = "half_win",
    ridge: float = 0.0,
    start: ArrayLike | None = None,
    reference: int | None = None,
    method: Method = "newton",
    tolerance: float | None = None,
    max_iterations: int | None = None,
) -> BradleyTerryFit:
    """Fit strengths by penalised maximum likelihood.

    Parameters
    ----------
    counts : PairCounts
    ties : {"half_win", "rao_kupper"}
    ridge : float
        Precision of the normal prior on the strengths, in log-odds to the power -2; 0 for none. Never on eta.
    start : (n,) or (n + 1,) array_like, optional
        Strengths, and eta, of an earlier fit; values that are not finite are replaced. The optimum does not
        depend on it.
    reference : int, optional
        Candidate pinned at 0. Other components still sum to zero.
    method : {"newton", "lbfgs"}
    tolerance : float, optional
        Bound on the projected gradient divided by max(1, number of comparisons); 1e-12, with L-BFGS-B 1e-7.
    max_iterations : int, optional
        100, with L-BFGS-B 5,000.

    Returns
    -------
    BradleyTerryFit
        Degenerate data have documented results. No comparisons: all zero, each its own component, both ends
        open. All ties under ``rao_kupper``: equal strengths, eta ``inf``, both ends open. No ties under
        ``rao_kupper``: eta on its floor.

    Raises
    ------
    ValueError
        For an unknown tie model or method, a negative or infinite ridge, a start of the wrong shape, or a
        reference out of range.

    References
    ----------
    Bradley and Terry (1952), doi:10.2307/2334029. Rao and Kupper (1967), doi:10.1080/01621459.1967.10482901.
    """
    _check(counts, ties, ridge, reference, method)
    links = connectivity(counts)
    open_ends = bounds(counts, links, ties=ties, reference=reference)
    likelihood, blocks = _finite_part(counts, links, ties, ridge)
    begin = _start(likelihood, start, blocks)
    if open_ends.eta and (ridge == 0 or counts.total == counts.ties.sum()):
        return _without_eta(likelihood, links, open_ends, blocks, ridge, reference)
    if tolerance is None:
        tolerance = NEWTON_TOLERANCE if method == "newton" else LBFGS_TOLERANCE
    limit = MAX_ITERATIONS[method] if max_iterations is None else max_iterations
    minimise = newton if method == "newton" else lbfgs
    solution = minimise(likelihood, begin, blocks, ridge=ridge, tolerance=tolerance, max_iterations=limit)
    theta = solution.parameters[: counts.n_candidates]
    gradient_norm = float(np.abs(solution.gradient).max(initial=0.0))
    return BradleyTerryFit(
        theta=_anchor(theta, links, open_ends, blocks, reference),
        eta=float(solution.parameters[-1]) if ties == "rao_kupper" else None,
        converged=gradient_norm <= tolerance * max(1.0, likelihood.total),
        iterations=solution.iterations,
        gradient_norm=gradient_norm,
        log_likelihood=ridge / 2 * float(theta @ theta) - solution.value,
        objective=solution.value,
        connectivity=links,
        bounds=open_ends,
        reference=reference,
        ridge=ridge,
        ties=ties,
        eta_free=solution.eta_free,
        hessian=solution.hessian,
        finite_blocks=blocks,
    )


def _check(counts: PairCounts, ties: str, ridge: float, reference: int | None, method: str) -> None:
    if ties not in TIE_MODELS:
        raise ValueError(f"Unknown tie model {ties!r}; expected one of {', '.join(TIE_MODELS)}.")
    if method not in ("newton", "lbfgs"):
        raise ValueError(f"Unknown method {method!r}; expected newton or lbfgs.")
    if not (ridge >= 0 and math.isfinite(ridge)):
        raise ValueError(f"ridge must be finite and not negative, got {ridge}.")
    if reference is not None and not 0 <= reference < counts.n_candidates:
        raise ValueError(f"reference {reference} is outside 0 to {counts.n_candidates - 1}.")


def _finite_part(counts: PairCounts, links: Connectivity, ties: TieModel, ridge: float) -> tuple[Likelihood, IntArray]:
    """What has a finite optimum: everything with a prior, else the comparisons within strong groups.

    Without a prior, groups drift apart until the comparisons between them cost nothing, so the limit of
    every difference within a group is the optimum of that group's own comparisons.
    """
    if ridge > 0 or links.strongly_connected:
        return Likelihood.of(counts, ties), links.components
    within = links.groups[counts.first] == links.groups[counts.second]
    return Likelihood.of(counts, ties, within), links.groups


def _start(likelihood: Likelihood, start: ArrayLike | None, blocks: IntArray) -> FloatArray:
    n, size = likelihood.n_candidates, likelihood.n_parameters
    parameters = np.zeros(size)
    given = np.zeros(0) if start is None else np.asarray(start, dtype=np.float64)
    if start is not None and given.shape not in ((n,), (size,)):
        raise ValueError(f"start must have {n} or {size} values, not shape {given.shape}.")
    theta = _share_odds(likelihood) if start is None else np.where(np.isfinite(given[:n]), given[:n], 0.0)
    parameters[:n] = theta - _block_means(theta, blocks)
    if size > n:
        # With equal strengths the share of ties is tanh(eta / 2).
        share = min(likelihood.total_tied / max(1.0, likelihood.total), 0.999)
        parameters[n] = max(2 * math.atanh(share), ETA_FLOOR)
        if given.size > n and math.isfinite(given[n]):
            parameters[n] = max(float(given[n]), ETA_FLOOR)
    return parameters


def _share_odds(likelihood: Likelihood) -> FloatArray:
    """Log odds of each candidate's share of points, which save a step or two."""
    n, first, second = likelihood.n_candidates, likelihood.first, likelihood.second
    won = np.bincount(first, likelihood.up, n) + np.bincount(second, likelihood.down, n)
    lost = np.bincount(first, likelihood.down, n) + np.bincount(second, likelihood.up, n)
    return np.asarray(np.log((won + 1.0) / (lost + 1.0)), dtype=np.float64)


def _block_means(theta: FloatArray, blocks: IntArray) -> FloatArray:
    sizes = np.bincount(blocks)
    means: FloatArray = (np.bincount(blocks, theta) / np.maximum(sizes, 1))[blocks]
    return means


def _anchor(
    theta: FloatArray, links: Connectivity, open_ends: Bounds, blocks: IntArray, reference: int | None
) -> FloatArray:
    anchored: FloatArray = theta - _block_means(theta, blocks)
    if reference is not None:
        inside = blocks == blocks[reference]
        anchored[inside] -= anchored[reference]
    if blocks is links.components or links.strongly_connected:
        return anchored
    for component in range(links.n_components):
        inside = np.flatnonzero(links.components == component)
        core = core_of(links.groups, inside, reference)
        outside = inside[links.groups[inside] != core]
        anchored[outside] = _limits(open_ends)[outside]
    return anchored


def _limits(open_ends: Bounds) -> FloatArray:
    one_sided = np.where(open_ends.above, np.inf, -np.inf)
    return np.where(open_ends.above & open_ends.below, np.nan, one_sided)


def _without_eta(
    likelihood: Likelihood,
    links: Connectivity,
    open_ends: Bounds,
    blocks: IntArray,
    ridge: float,
    reference: int | None,
) -> BradleyTerryFit:
    """The limit where no finite eta is best: equal strengths if all tied, else strengths without a value."""
    n = likelihood.n_candidates
    all_tied = likelihood.total == likelihood.total_tied and not (open_ends.above != open_ends.below).any()
    theta = np.zeros(n) if all_tied else np.where(open_ends.above | open_ends.below, _limits(open_ends), 0.0)
    hessian = np.zeros((n + 1, n + 1))
    hessian[np.arange(n), np.arange(n)] = ridge
    return BradleyTerryFit(
        theta=theta,
        eta=math.inf,
        converged=True,
        iterations=0,
        gradient_norm=0.0,
        log_likelihood=0.0 if all_tied else math.nan,
        objective=0.0 if all_tied else math.nan,
        connectivity=links,
        bounds=open_ends,
        reference=reference,
        ridge=ridge,
        ties="rao_kupper",
        eta_free=False,
        hessian=hessian,
        finite_blocks=blocks,
    )
