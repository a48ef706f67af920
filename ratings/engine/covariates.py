"""Bradley-Terry strengths together with coefficients of covariates.

For a comparison of i and j with covariates x (of ``first`` minus of ``second``), d = (r_i - r_j) + beta . x takes
the place of r_i - r_j in either tie model of `likelihood`. Covariates differ from row to row, so the fit runs over
rows, not over counts per pair. Every row becomes one logistic term of its winner, a tie two terms, by the identity
stated in `likelihood`; the objective is then one logistic regression and a term in eta alone, concave, with an exact
Hessian. Terms are sorted by (winner, loser), so that sums per pair are sums of slices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.bradley_terry import BradleyTerryFit, fit
from ratings.engine.comparisons import Comparisons
from ratings.engine.likelihood import TieModel
from ratings.engine.newton import ETA_FLOOR, inverse_definite, invertible, same_block, solve_definite

TOLERANCE = 1e-12
MAX_ITERATIONS = 100
_ARMIJO = 1e-4
_MAX_HALVINGS = 50
# A Newton step that changes no margin by 1 proves a finite optimum; the rest of the way to 1 is for rounding.
_CERTAIN = 0.5
# Below this smallest eigenvalue of the Hessian, scaled to a unit diagonal, its columns count as dependent.
_DEPENDENT = 1e-10


@dataclass(frozen=True, eq=False)
class JointLikelihood:
    """Rows laid out as logistic terms for repeated evaluation.

    Parameters of the model are the strengths, the coefficients, and with ``rao_kupper`` eta, in this order.

    Attributes
    ----------
    n_candidates : int
    ties : {"half_win", "rao_kupper"}
    winner, loser : (c,) integer arrays
        Of each cell, an ordered pair.
    starts, sizes : (c,) integer arrays
        Where a cell's terms begin, and how many they are.
    x : (k, t) array
        Covariates of each term, of the winner minus of the loser.
    row : (t,) integer array
        The row each term comes from.
    base : (t,) array
        Weight of a term for a row that occurred once.
    weight : (t,) array
        ``base`` times the row's count.
    shift : (t,) array or None
        Factor of eta in a term's margin: -1 for wins, 1 for ties. None with ``half_win``.
    total, total_tied : float
        Comparisons, and with ``rao_kupper`` the ties among them.
    """

    n_candidates: int
    ties: TieModel
    winner: IntArray
    loser: IntArray
    starts: IntArray
    sizes: IntArray
    x: FloatArray
    row: IntArray
    base: FloatArray
    weight: FloatArray
    shift: FloatArray | None
    total: float
    total_tied: float

    @classmethod
    def of(cls, rows: Comparisons, x: FloatArray, ties: TieModel) -> JointLikelihood:
        """Lay out rows.

        Parameters
        ----------
        rows : Comparisons, m rows
        x : (k, m) array
            Covariates of ``first`` minus of ``second``.
        ties : {"half_win", "rao_kupper"}
        """
        n = rows.n_candidates
        tied = np.flatnonzero(rows.outcome == 2)
        row = np.concatenate([np.arange(rows.first.size), tied])
        flipped = np.concatenate([rows.outcome == 1, np.ones(tied.size, dtype=np.bool_)])
        winner = np.where(flipped, rows.second[row], rows.first[row])
        loser = np.where(flipped, rows.first[row], rows.second[row])
        cell = winner * n + loser
        # Stable sorting of 16-bit integers is by radix, several times faster.
        order = np.argsort(cell.astype(np.uint16) if n <= 256 else cell, kind="stable")
        row, cell = row[order], cell[order]
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        sign = np.where(flipped[order], -1.0, 1.0)
        is_tie = rows.outcome[row] == 2
        base = np.where(is_tie, 0.5, 1.0) if ties == "half_win" else np.ones(row.size)
        found = cls(
            n_candidates=n,
            ties=ties,
            winner=cell[starts] // max(n, 1),
            loser=cell[starts] % max(n, 1),
            starts=starts,
            sizes=np.diff(starts, append=row.size),
            x=np.stack([values[row] * sign for values in x]) if len(x) else np.zeros((0, row.size)),
            row=row,
            base=base,
            weight=base,
            shift=None if ties == "half_win" else np.where(is_tie, 1.0, -1.0),
            total=float(rows.first.size),
            total_tied=0.0 if ties == "half_win" else float(tied.size),
        )
        return found if rows.count is None else found.reweighted(rows.count.astype(np.float64))

    def reweighted(self, counts: FloatArray) -> JointLikelihood:
        """The same rows with other counts, one of each row."""
        weight = self.base * counts[self.row]
        total_tied = 0.0 if self.shift is None else float(weight[self.shift > 0].sum()) / 2
        return replace(self, weight=weight, total=float(counts.sum()), total_tied=total_tied)

    @property
    def n_features(self) -> int:
        """Coefficients."""
        return int(self.x.shape[0])

    @property
    def n_parameters(self) -> int:
        """Strengths, coefficients, and eta where ties have a parameter."""
        return self.n_candidates + self.n_features + (self.shift is not None)

    def margins(self, parameters: FloatArray) -> FloatArray:
        """(t,) argument of each logistic term; linear in the parameters."""
        n, k = self.n_candidates, self.n_features
        found = np.repeat(parameters[self.winner] - parameters[self.loser], self.sizes)
        for coefficient, values in zip(parameters[n : n + k], self.x, strict=True):
            found += coefficient * values
        if self.shift is not None:
            found += parameters[n + k] * self.shift
        return found

    def evaluate(self, parameters: FloatArray, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        """Objective, gradient and Hessian; the ridge is on strengths and coefficients.

        Parameters
        ----------
        parameters : (p,) array
        ridge : float

        Returns
        -------
        value : float
        gradient : (p,) array
        hessian : (p, p) array
        """
        z = self.margins(parameters)
        small = np.exp(-np.abs(z))
        inverse = 1.0 / (1.0 + small)
        lost = np.where(z >= 0, small, 1.0) * inverse
        value = _dot(self.weight, np.log1p(small) + np.maximum(-z, 0.0))
        gradient, hessian = self._assemble(-self.weight * lost, self.weight * small * inverse * inverse)
        if self.shift is not None:
            value += self._eta_term(float(parameters[-1]), gradient, hessian)
        penalised = self.n_candidates + self.n_features
        inside = parameters[:penalised]
        value += ridge / 2 * float(inside @ inside)
        gradient[:penalised] += ridge * inside
        hessian[np.arange(penalised), np.arange(penalised)] += ridge
        return value, gradient, hessian

    def _eta_term(self, eta: float, gradient: FloatArray, hessian: FloatArray) -> float:
        """Minus ties times log(1 - exp(-2 eta)): adds its derivatives, returns its value."""
        if not self.total_tied:
            return 0.0
        below_one = -math.expm1(-2 * eta)
        odds = math.exp(-2 * eta) / below_one
        gradient[-1] -= self.total_tied * 2 * odds
        hessian[-1, -1] += self.total_tied * 4 * odds / below_one
        return -self.total_tied * math.log(below_one)

    def _assemble(self, slope: FloatArray, curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
        n, size = self.n_candidates, self.n_parameters
        columns = [*self.x] if self.shift is None else [*self.x, self.shift]
        gradient, hessian = np.zeros(size), np.zeros((size, size))
        gradient[:n] = self._scatter(slope)
        per_cell = self._per_cell(curvature)
        np.add.at(hessian, (self.winner, self.loser), -per_cell)
        hessian[:n, :n] += hessian[:n, :n].T.copy()
        hessian[np.arange(n), np.arange(n)] = self._touching(per_cell)
        for one, values in enumerate(columns):
            gradient[n + one] = _dot(slope, values)
            curved = curvature * values
            hessian[:n, n + one] = hessian[n + one, :n] = self._scatter(curved)
            for other in range(one + 1):
                hessian[n + one, n + other] = hessian[n + other, n + one] = _dot(curved, columns[other])
        return gradient, hessian

    def _per_cell(self, per_term: FloatArray) -> FloatArray:
        if self.starts.size == 0:
            return np.zeros(0)
        summed: FloatArray = np.add.reduceat(per_term, self.starts)
        return summed

    def _scatter(self, per_term: FloatArray) -> FloatArray:
        n, cells = self.n_candidates, self._per_cell(per_term)
        scattered = np.bincount(self.winner, cells, n) - np.bincount(self.loser, cells, n)
        return scattered.astype(np.float64, copy=False)

    def _touching(self, per_cell: FloatArray) -> FloatArray:
        n = self.n_candidates
        touching = np.bincount(self.winner, per_cell, n) + np.bincount(self.loser, per_cell, n)
        return touching.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class JointSolution:
    """Where `minimise` stopped.

    Attributes
    ----------
    parameters, gradient : (p,) arrays
        The gradient is the projected one.
    hessian : (p, p) array
    value : float
    iterations : int
    eta_free : bool
        False where eta rests on its floor.
    converged : bool
    """

    parameters: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    value: float
    iterations: int
    eta_free: bool
    converged: bool

    @property
    def free(self) -> int:
        """Parameters that the Hessian is inverted over: all, or all but eta."""
        return self.parameters.size - int(not self.eta_free)


def minimise(
    likelihood: JointLikelihood,
    start: FloatArray,
    blocks: IntArray,
    *,
    ridge: float,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> JointSolution:
    """Damped Newton with the exact Hessian and Armijo backtracking.

    Parameters
    ----------
    likelihood : JointLikelihood
    start : (p,) array
        Eta at or above its floor.
    blocks : (n,) integer array
        Candidates whose strengths share a free level.
    ridge, tolerance : float
        Stops when the projected gradient is at most ``tolerance * max(1, comparisons)`` in every component.
    max_iterations : int

    Returns
    -------
    JointSolution
    """
    target = tolerance * max(1.0, likelihood.total)
    together = same_block(blocks)
    parameters = start
    value, gradient, hessian = likelihood.evaluate(parameters, ridge)
    iterations = 0
    while True:
        free = _n_free(likelihood, parameters, gradient)
        projected = np.where(np.arange(gradient.size) < free, gradient, 0.0)
        norm = float(np.abs(projected).max(initial=0.0))
        if iterations >= max_iterations or norm <= target:
            break
        step = _step(likelihood, parameters, projected, invertible(hessian, together), free)
        moved = _line_search(likelihood, parameters, step, value, float(projected @ step), ridge)
        if moved is None:
            break
        parameters, value, gradient, hessian = moved
        iterations += 1
    eta_free = likelihood.shift is None or free == parameters.size
    return JointSolution(parameters, projected, hessian, value, iterations, eta_free, norm <= target)


def finite_optimum(likelihood: JointLikelihood, solution: JointSolution, blocks: IntArray) -> bool:
    """Whether an unpenalised optimum is proven to be finite and unique up to the levels.

    Where a direction exists along which no margin falls, the likelihood has no finite optimum, and iterations end by
    rounding at some point that looks like one. None exists where positive weights make the weighted sum of all rows
    of the design zero. The probabilities of losing are such weights but for the gradient g that is left; what takes it
    away changes each by a share of at most the change in its margin under the Newton step. So a step that changes no
    margin by 1 is a proof.

    Parameters
    ----------
    likelihood : JointLikelihood
    solution : JointSolution
        Of a fit with a ridge of 0.
    blocks : (n,) integer array

    Returns
    -------
    bool
        False also where the columns of the design depend on one another, or rounding leaves it open.
    """
    kept = solution.free
    filled = invertible(solution.hessian, same_block(blocks))[:kept, :kept]
    diagonal = np.sqrt(np.diag(filled))
    if kept and not diagonal.all():
        return False
    scaled = filled / np.outer(diagonal, diagonal)
    if kept and np.linalg.eigvalsh(scaled)[0] < _DEPENDENT:
        return False
    step = np.zeros_like(solution.parameters)
    step[:kept] = solve_definite(scaled, solution.gradient[:kept] / diagonal) / diagonal
    return bool(np.abs(likelihood.margins(step)[likelihood.weight > 0]).max(initial=0.0) < _CERTAIN)


@dataclass(frozen=True, eq=False)
class JointFit:
    """Strengths beside coefficients.

    Attributes
    ----------
    adjusted : BradleyTerryFit
        The strengths at equal covariates. Its Hessian is the one left when the coefficients are profiled out, so
        that `intervals.fisher` gives errors which allow for their being fitted.
    plain : BradleyTerryFit
        The same comparisons without covariates.
    coefficients, std_error : (k,) arrays
        In log odds per unit of the covariate. NaN where ``finite`` is False.
    covariance : (k, k) array
    finite : bool
        An optimum exists. Always with a ridge, unless eta has none; without one only where it is proven.
    """

    adjusted: BradleyTerryFit
    plain: BradleyTerryFit
    coefficients: FloatArray
    std_error: FloatArray
    covariance: FloatArray
    finite: bool


def joint_fit(
    rows: Comparisons, x: FloatArray, *, ties: TieModel, ridge: float, reference: int | None = None
) -> JointFit:
    """Fit strengths and coefficients by penalised maximum likelihood.

    Parameters
    ----------
    rows : Comparisons, m rows
    x : (k, m) array
        Covariates of ``first`` minus of ``second``, finite.
    ties : {"half_win", "rao_kupper"}
    ridge : float
        Precision of the prior on strengths and coefficients, never on eta; 0 for none.
    reference : int, optional
        Candidate pinned at 0; else each component sums to zero.

    Returns
    -------
    JointFit
        Without a prior, strengths are finite within the core of a component, as in `fit`: rows between strong groups
        cost nothing in the limit and are left out.

    Raises
    ------
    ValueError
        As `fit`.
    """
    plain = fit(rows.pair_counts(), ties=ties, ridge=ridge, reference=reference)
    k = x.shape[0]
    if plain.eta == math.inf:
        unknown = np.full(k, math.nan)
        return JointFit(plain, plain, unknown, unknown, np.full((k, k), math.nan), finite=False)
    blocks = plain.finite_blocks
    within = blocks[rows.first] == blocks[rows.second]
    likelihood = JointLikelihood.of(taken(rows, within), x[:, within], ties)
    solution = minimise(likelihood, _start(plain, k), blocks, ridge=ridge)
    finite = solution.converged and (ridge > 0 or finite_optimum(likelihood, solution, blocks))
    adjusted = _as_strengths(plain, solution, blocks, k, ridge)
    if not finite:
        unknown = np.full(k, math.nan)
        return JointFit(adjusted, plain, unknown, unknown, np.full((k, k), math.nan), finite=False)
    n = rows.n_candidates
    kept = solution.free
    inverse = inverse_definite(invertible(solution.hessian, same_block(blocks))[:kept, :kept])
    covariance = inverse[n : n + k, n : n + k]
    return JointFit(
        adjusted=adjusted,
        plain=plain,
        coefficients=solution.parameters[n : n + k],
        std_error=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        covariance=covariance,
        finite=True,
    )


def taken(rows: Comparisons, kept: BoolArray) -> Comparisons:
    """Some of the rows."""
    if kept.all():
        return rows
    count = None if rows.count is None else rows.count[kept]
    cluster = None if rows.cluster is None else rows.cluster[kept]
    return Comparisons(rows.n_candidates, rows.first[kept], rows.second[kept], rows.outcome[kept], count, cluster)


def _start(plain: BradleyTerryFit, k: int) -> FloatArray:
    theta = np.where(np.isfinite(plain.theta), plain.theta, 0.0)
    sizes = np.bincount(plain.finite_blocks)
    theta -= (np.bincount(plain.finite_blocks, theta) / np.maximum(sizes, 1))[plain.finite_blocks]
    return np.concatenate([theta, np.zeros(k), [] if plain.eta is None else [plain.eta]])


def _as_strengths(
    plain: BradleyTerryFit, solution: JointSolution, blocks: IntArray, k: int, ridge: float
) -> BradleyTerryFit:
    """The strengths of a joint solution as a fit of their own, coefficients profiled out."""
    n = plain.theta.size
    theta = solution.parameters[:n]
    penalised = solution.parameters[: n + k]
    finite = np.isfinite(plain.theta)
    sizes = np.bincount(blocks)
    anchored = theta - (np.bincount(blocks, theta) / np.maximum(sizes, 1))[blocks]
    if plain.reference is not None:
        inside = blocks == blocks[plain.reference]
        anchored[inside] -= anchored[plain.reference]
    others = np.r_[0:n, n + k : solution.parameters.size]
    hessian = solution.hessian[np.ix_(others, others)]
    if k:
        cross = solution.hessian[np.ix_(others, np.arange(n, n + k))]
        hessian = hessian - cross @ np.linalg.pinv(solution.hessian[n : n + k, n : n + k], hermitian=True) @ cross.T
    return replace(
        plain,
        theta=np.where(finite, anchored, plain.theta),
        eta=None if plain.eta is None else float(solution.parameters[-1]),
        converged=solution.converged,
        iterations=solution.iterations,
        gradient_norm=float(np.abs(solution.gradient).max(initial=0.0)),
        log_likelihood=ridge / 2 * float(penalised @ penalised) - solution.value,
        objective=solution.value,
        eta_free=solution.eta_free and plain.eta is not None,
        hessian=hessian,
    )


def _n_free(likelihood: JointLikelihood, parameters: FloatArray, gradient: FloatArray) -> int:
    resting = likelihood.shift is not None and parameters[-1] <= ETA_FLOOR and gradient[-1] >= 0
    return parameters.size - int(resting)


def _step(
    likelihood: JointLikelihood, parameters: FloatArray, gradient: FloatArray, hessian: FloatArray, free: int
) -> FloatArray:
    step = np.zeros_like(parameters)
    step[:free] = solve_definite(hessian[:free, :free], -gradient[:free])
    if likelihood.shift is not None and free == parameters.size and parameters[-1] + step[-1] < ETA_FLOOR:
        # Past the floor: minimise the same quadratic model with eta on it. Cutting eta alone may go uphill.
        step[-1] = ETA_FLOOR - parameters[-1]
        step[:-1] = solve_definite(hessian[:-1, :-1], -(gradient[:-1] + hessian[:-1, -1] * step[-1]))
    return step


def _line_search(
    likelihood: JointLikelihood, parameters: FloatArray, step: FloatArray, value: float, slope: float, ridge: float
) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:
    noise = 1e-13 * (1.0 + abs(value))
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        candidate = parameters + length * step
        if likelihood.shift is not None:
            candidate[-1] = max(candidate[-1], ETA_FLOOR)
        found = likelihood.evaluate(candidate, ridge)
        if found[0] <= value + _ARMIJO * length * slope + noise:
            return candidate, *found
        length /= 2
    return None


def _dot(x: FloatArray, y: FloatArray) -> float:
    # Not x @ y: on long vectors BLAS wakes its threads for it, which costs milliseconds on a busy machine.
    return float(np.einsum("i,i->", x, y))
