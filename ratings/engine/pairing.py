"""Which pairs meet, and on which samples.

A schedule is made in two parts. A *strategy* orders pairs: it sees a `Pool` (pairs with samples left, how
often each met, ratings so far) and returns the pairs wanted. Then every chosen pair draws its sample. Both
depend only on the seed, on the matches there are already, and, where a strategy follows results, on the
`Outlook`; so a schedule can be continued after a raised limit or an added candidate.

``round_robin`` and ``random`` look at no result and can be planned as a whole. ``glicko2`` and ``elo`` follow
results: they are planned step by step, each from what earlier steps came to (`FOLLOWING`).

Samples of a pair are drawn without replacement. First comes balance over categories within the pair, then
coverage: the sample used least in the whole schedule, so that all samples get used early. Sharing samples
between pairs would save answers (an answer is generated once per candidate and sample), but a verdict
resting on a few prompts says less than the same number of matches over many; prompts, not matches, are what
the errors count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from ratings.engine import elo as elo_ratings
from ratings.engine import glicko2 as glicko2_ratings
from ratings.engine.arrays import BoolArray, FloatArray, IntArray
from ratings.engine.draws import draw, mixed, seat, shuffled, step_seed, sub_seed

__all__ = [
    "FOLLOWING",
    "STRATEGIES",
    "Outlook",
    "Planned",
    "Pool",
    "Strategy",
    "pairs",
    "remaining",
    "seat",
    "step_seed",
    "sub_seed",
]

# A pair of so many last matches is not chosen again while there are others.
LAST_MATCHES = 20
# Of few pairs no more than a quarter are held back, or there would be nothing left to choose among: of 28 pairs,
# 20 held back make every strategy a round robin.
SHARE_HELD_BACK = 4
# The share of matches with the baseline under `elo`, where none is given.
ELO_BASELINE_WEIGHT = 0.6

Pair = tuple[int, int]


class Planned(NamedTuple):
    """A match to play; ``first < second``."""

    first: int
    second: int
    sample: int


@dataclass(frozen=True)
class Outlook:
    """What strategies that follow results know.

    Attributes
    ----------
    ratings, deviations : mapping of candidate to float
        In points of the strategy's own rating system; who is missing stands at its start.
    recent : sequence of pairs
        The last matches planned, latest last.
    pending : sequence of pairs
        Matches planned whose results are not in the ratings yet; `glicko2` expects them to narrow the
        deviations.
    """

    ratings: Mapping[int, float] = field(default_factory=dict)
    deviations: Mapping[int, float] = field(default_factory=dict)
    recent: Sequence[Pair] = ()
    pending: Sequence[Pair] = ()


@dataclass(frozen=True)
class Pool:
    """Pairs that may meet.

    Attributes
    ----------
    candidates : tuple of int
        Sorted.
    met : mapping of pair to int
        Matches of each eligible pair so far.
    left : mapping of pair to int
        Samples it has not used; at least 1. A strategy never returns a pair more often than this.
    kind : str
        ``all``, or ``baseline`` and ``rest`` where a baseline splits the pairs; part of what draws hash.
    n_planned : int
        Matches of the pool's pairs before this call, exhausted pairs included; it numbers the draws.
    outlook : Outlook
    """

    candidates: tuple[int, ...]
    met: Mapping[Pair, int]
    left: Mapping[Pair, int]
    kind: str
    n_planned: int
    outlook: Outlook


class Strategy(Protocol):
    """Orders pairs: at most ``wanted`` of the pool's, fewer only when it is exhausted."""

    def __call__(self, pool: Pool, wanted: int, seed: int) -> list[Pair]: ...


def round_robin(pool: Pool, wanted: int, seed: int) -> list[Pair]:
    """Every pair equally often, in rounds.

    Within a cycle of all pairs the candidates, in an order drawn by the seed, turn by the circle method:
    each round pairs everyone once (one sits out when their number is odd), so games stay level and the
    graph is connected early.
    """
    chosen: list[Pair] = []
    level = min(pool.met.values(), default=0)
    last = max((pool.met[pair] + left for pair, left in pool.left.items()), default=0)
    while len(chosen) < wanted and level < last:
        for pair in _circle(list(pool.candidates), seed, level):
            if pair in pool.met and pool.met[pair] <= level < pool.met[pair] + pool.left[pair]:
                chosen.append(pair)
        level += 1
    return chosen[:wanted]


def random(pool: Pool, wanted: int, seed: int) -> list[Pair]:
    """Each match an independent uniform draw among the pairs that have samples left."""
    left = dict(pool.left)
    eligible = sorted(left)
    chosen: list[Pair] = []
    while len(chosen) < wanted and eligible:
        position = draw(seed, f"pair {pool.kind}", pool.n_planned + len(chosen)) % len(eligible)
        pair = eligible[position]
        chosen.append(pair)
        left[pair] -= 1
        if left[pair] == 0:
            del eligible[position]
    return chosen


class _Chooser:
    """Chooses one pair after another by a score that each choice may change.

    Pairs of the last matches and candidates that play in this step already are avoided. When nothing else is
    left a new round begins, in which everybody may play again; when that is not enough either, recent pairs
    return.
    """

    def __init__(
        self, roster: tuple[int, ...], ledger: _Ledger, view: Outlook, seed: int, baseline: int | None
    ) -> None:
        n = len(roster)
        self.roster, self.place = roster, {candidate: place for place, candidate in enumerate(roster)}
        self.met: IntArray = np.zeros((n, n), dtype=np.int64)
        for first, second in combinations(range(n), 2):
            times = ledger.met[roster[first], roster[second]]
            self.met[first, second] = self.met[second, first] = times
        self.left: IntArray = ledger.n_samples - self.met
        self.upper: BoolArray = np.triu(np.ones((n, n), dtype=np.bool_), 1)
        self.used: BoolArray = np.zeros(n, dtype=np.bool_)
        self.recent = list(view.recent)[-LAST_MATCHES:]
        self.seed, self.n_chosen = seed, 0
        self.baseline = None if baseline is None else self.place[baseline]
        # The pairs with the baseline.
        self.star: BoolArray = np.zeros((n, n), dtype=np.bool_)
        if self.baseline is not None:
            self.star[self.baseline, :] = self.star[:, self.baseline] = True

    def score(self) -> FloatArray:
        """Of every pair, the higher the better; equal ones are drawn among."""
        raise NotImplementedError

    def added(self, first: int, second: int) -> None:
        """Told of each choice."""

    def choose(self, kind: BoolArray) -> Pair | None:
        """The best pair of these, or None where all of them are exhausted."""
        eligible = kind & self.upper & (self.left > 0)
        if not eligible.any():
            return None
        fresh = eligible.copy()
        recent = [
            (self.place[one], self.place[two]) for one, two in self.recent if one in self.place and two in self.place
        ]
        recent = [places for places in recent if kind[places]]
        held_back = min(LAST_MATCHES, int(eligible.sum()) // SHARE_HELD_BACK)
        for places in recent[-held_back:] if held_back else []:
            fresh[places] = False
        idle = ~self.used
        rested = fresh & idle[:, None] & idle[None, :]
        if not rested.any():
            self.used[:] = False
            rested = fresh if fresh.any() else eligible
        return self._take(self._best(rested, self.score()))

    def _best(self, among: BoolArray, score: FloatArray) -> tuple[int, int]:
        # Rounded, so that equal candidates are equal on every platform; then who has met least, then the draw.
        rounded = np.where(among, np.round(score, 9), -np.inf)
        best = np.flatnonzero(rounded == rounded.max())
        met = self.met.ravel()[best]
        best = best[met == met.min()]
        chance = mixed(draw(self.seed, "pair", self.n_chosen), best)
        return divmod(int(best[np.argmin(chance)]), len(self.roster))

    def _take(self, places: tuple[int, int]) -> Pair:
        first, second = places
        for row, column in (places, places[::-1]):
            self.met[row, column] += 1
            self.left[row, column] -= 1
        # The baseline plays as often as its share says.
        self.used[[place for place in places if place != self.baseline]] = True
        self.added(first, second)
        self.n_chosen += 1
        pair = self.roster[first], self.roster[second]
        self.recent.append(pair)
        return pair


class _ByVariance(_Chooser):
    """Glicko-2: the pair whose match is expected to take most off the variance of the two ratings.

    With the information ``I = g(phi_opponent)**2 E (1 - E)`` of one match the variance of a rating falls from
    ``phi**2`` to ``phi**2 / (1 + phi**2 I)``. Each choice is taken as played: the next one sees the variances
    that are expected after it.
    """

    def __init__(
        self, roster: tuple[int, ...], ledger: _Ledger, view: Outlook, seed: int, baseline: int | None
    ) -> None:
        super().__init__(roster, ledger, view, seed, baseline)
        start, scale = glicko2_ratings.START, glicko2_ratings.SCALE
        self.ratings = np.array([(view.ratings.get(one, start) - start) / scale for one in roster])
        deviations = [view.deviations.get(one, glicko2_ratings.START_DEVIATION) / scale for one in roster]
        self.variance: FloatArray = np.array(deviations) ** 2
        for first, second in view.pending:
            if first in self.place and second in self.place:
                self.added(self.place[first], self.place[second])

    def _information(self) -> FloatArray:
        """Row: whose rating it informs; column: the opponent."""
        g = glicko2_ratings.weight(np.sqrt(self.variance))[None, :]
        gap = self.ratings[:, None] - self.ratings[None, :]
        expected = 1.0 / (1.0 + np.exp(np.clip(-g * gap, -700.0, 700.0)))
        return np.asarray(g * g * expected * (1.0 - expected))

    def score(self) -> FloatArray:
        information, variance = self._information(), self.variance[:, None]
        gain = variance**2 * information / (1.0 + variance * information)
        return np.asarray(gain + gain.T)

    def added(self, first: int, second: int) -> None:
        information = self._information()
        for own, other in ((first, second), (second, first)):
            self.variance[own] /= 1.0 + self.variance[own] * information[own, other]


class _ByRating(_Chooser):
    """Elo: the baseline meets whoever has played least; of the others the closest ratings meet."""

    def __init__(
        self, roster: tuple[int, ...], ledger: _Ledger, view: Outlook, seed: int, baseline: int | None
    ) -> None:
        super().__init__(roster, ledger, view, seed, baseline)
        self.ratings = np.array([view.ratings.get(one, elo_ratings.START) for one in roster])

    def score(self) -> FloatArray:
        return np.asarray(-np.abs(self.ratings[:, None] - self.ratings[None, :]))

    def choose(self, kind: BoolArray) -> Pair | None:
        eligible = kind & self.upper & (self.left > 0)
        if self.baseline is None or not eligible.any() or (eligible & ~self.star).any():
            return super().choose(kind)
        games = self.met.sum(axis=1).astype(np.float64)
        is_baseline = np.arange(games.size)[:, None] == self.baseline
        # Of each pair the games of the one that is not the baseline count.
        return self._take(self._best(eligible, -np.where(is_baseline, games[None, :], games[:, None])))


FIXED: dict[str, Strategy] = {"round_robin": round_robin, "random": random}
FOLLOWING: dict[str, type[_Chooser]] = {"glicko2": _ByVariance, "elo": _ByRating}
STRATEGIES = (*FIXED, *FOLLOWING)


def pairs(
    strategy: str,
    candidates: Collection[int],
    categories: Sequence[Hashable],
    max_matches: int,
    seed: int,
    *,
    already: Collection[tuple[int, int, int]] = (),
    baseline: int | None = None,
    baseline_weight: float | None = None,
    outlook: Outlook | None = None,
) -> list[Planned]:
    """Plan the next matches.

    Parameters
    ----------
    strategy : str
        One of `STRATEGIES`.
    candidates : collection of int
        Those that may play now; order does not matter.
    categories : sequence
        Category of each sample; sample s is position s. All hashable values are categories, None too.
    max_matches : int
        Upper bound on the matches planned by this call, not counting ``already``.
    seed : int
        For an extension its own, see `sub_seed`; with the same seed `round_robin` and `random` continue the
        former schedule exactly. Strategies that follow results take one of their own for each step, see
        `step_seed`.
    already : collection of (int, int, int)
        Matches planned before, whatever became of them, in any order. They may involve other candidates.
    baseline : int, optional
        Candidate of which ``baseline_weight`` holds.
    baseline_weight : float, optional
        Share of all matches, earlier ones included, that involve the baseline: 0 to 1. While both kinds of
        pair have samples left the share is kept to within one match; then the other kind fills the
        schedule. With `elo` a baseline has 0.6 where none is given.
    outlook : Outlook, optional
        What earlier results say; only strategies of `FOLLOWING` look at it.

    Returns
    -------
    list of Planned
        In the order to be played. Shorter than ``max_matches`` only when every pair is exhausted.

    Raises
    ------
    ValueError
        For an unknown strategy, a negative limit, a candidate or sample that is not valid, a weight outside
        0 to 1 or without a baseline among the candidates.
    """
    roster = tuple(sorted(set(candidates)))
    _check(strategy, roster, categories, max_matches, already, baseline, baseline_weight)
    ledger = _Ledger(categories, seed, already)
    every = list(combinations(roster, 2))
    view = outlook or Outlook()
    if strategy in FOLLOWING:
        weight = ELO_BASELINE_WEIGHT if baseline_weight is None and strategy == "elo" else baseline_weight
        share = None if baseline is None or weight is None or baseline not in roster else (baseline, weight)
        return [ledger.assign(pair) for pair in _followed(strategy, ledger, roster, max_matches, seed, share, view)]

    def select(kind: str, eligible: list[Pair]) -> list[Pair]:
        pool = ledger.pool(roster, kind, eligible, view)
        return FIXED[strategy](pool, max_matches, seed) if max_matches and pool.left else []

    if baseline is None or baseline_weight is None:
        order = select("all", every)
    else:
        star = select("baseline", [pair for pair in every if baseline in pair])
        rest = select("rest", [pair for pair in every if baseline not in pair])
        played = sum(baseline in match[:2] for match in ledger.taken)
        order = _interleave(star, rest, max_matches, baseline_weight, played, len(ledger.taken))
    return [ledger.assign(pair) for pair in order]


def _followed(
    strategy: str,
    ledger: _Ledger,
    roster: tuple[int, ...],
    wanted: int,
    seed: int,
    baseline: tuple[int, float] | None,
    view: Outlook,
) -> list[Pair]:
    """Pair by pair; with a baseline each slot is first offered to the kind of pair that is due."""
    chooser = FOLLOWING[strategy](roster, ledger, view, seed, baseline[0] if baseline else None)
    every: BoolArray = np.ones((len(roster), len(roster)), dtype=np.bool_)
    star = chooser.star
    played = sum(baseline is not None and baseline[0] in match[:2] for match in ledger.taken)
    total = len(ledger.taken)
    chosen: list[Pair] = []
    while len(chosen) < wanted:
        if baseline is None:
            pair = chooser.choose(every)
        else:
            due = played < baseline[1] * (total + len(chosen) + 1)
            kinds = (star, ~star) if due else (~star, star)
            pair = chooser.choose(kinds[0]) or chooser.choose(kinds[1])
        if pair is None:
            break
        chosen.append(pair)
        played += baseline is not None and baseline[0] in pair
    return chosen


def remaining(candidates: Collection[int], n_samples: int, already: Collection[tuple[int, int, int]] = ()) -> int:
    """How many matches of these candidates are still possible; 0 means that the tournament is finished."""
    roster = set(candidates)
    possible = len(roster) * (len(roster) - 1) // 2 * n_samples
    return possible - sum(match[0] in roster and match[1] in roster for match in set(already))


class _Ledger:
    """Which samples were used, by whom."""

    def __init__(self, categories: Sequence[Hashable], seed: int, already: Iterable[tuple[int, int, int]]) -> None:
        labels: dict[Hashable, int] = {}
        self._category: IntArray = np.array(
            [labels.setdefault(category, len(labels)) for category in categories], dtype=np.int64
        )
        self._n_categories = len(labels)
        self._seed = seed
        self._used: IntArray = np.zeros(len(categories), dtype=np.int64)
        self._samples_of: dict[Pair, list[int]] = {}
        self.met: Counter[Pair] = Counter()
        self.taken: set[tuple[int, int, int]] = set()
        for first, second, sample in set(already):
            self._take((first, second), sample)

    @property
    def n_samples(self) -> int:
        return self._used.size

    def pool(self, roster: tuple[int, ...], kind: str, eligible: list[Pair], outlook: Outlook) -> Pool:
        left = {pair: self._used.size - self.met[pair] for pair in eligible}
        left = {pair: count for pair, count in left.items() if count > 0}
        met = {pair: self.met[pair] for pair in left}
        return Pool(roster, met, left, kind, sum(self.met[pair] for pair in eligible), outlook)

    def assign(self, pair: Pair) -> Planned:
        open_samples = np.ones(self._used.size, dtype=np.bool_)
        own = np.array(self._samples_of.get(pair, []), dtype=np.int64)
        open_samples[own] = False
        in_category = np.bincount(self._category[own], minlength=self._n_categories)
        choices = np.flatnonzero(open_samples)
        across = np.bincount(self._category, self._used, self._n_categories)
        # Balance within the pair, then coverage, then balance over the whole schedule, then chance. Narrowing
        # down takes a tenth of the time of sorting by all four.
        for cost in (in_category[self._category], self._used, across[self._category]):
            costs = cost[choices]
            choices = choices[costs == costs.min()]
        chance = mixed(draw(self._seed, "sample", *pair), choices)
        sample = int(choices[np.argmin(chance)])
        self._take(pair, sample)
        return Planned(*pair, sample)

    def _take(self, pair: Pair, sample: int) -> None:
        self.taken.add((*pair, sample))
        self.met[pair] += 1
        self._samples_of.setdefault(pair, []).append(sample)
        self._used[sample] += 1


def _circle(candidates: list[int], seed: int, cycle: int) -> list[Pair]:
    """All pairs of one cycle, round by round."""
    circle: list[int | None] = [*shuffled(candidates, seed, "circle", cycle)]
    if len(circle) % 2:
        circle.append(None)
    ordered: list[Pair] = []
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        for left, right in zip(circle[:half], reversed(circle[half:]), strict=True):
            if left is not None and right is not None:
                ordered.append((min(left, right), max(left, right)))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return ordered


def _interleave(star: list[Pair], rest: list[Pair], wanted: int, weight: float, played: int, total: int) -> list[Pair]:
    """Merge so that the share of baseline matches stays at the weight, as far as both last."""
    order: list[Pair] = []
    at_star = at_rest = 0
    while len(order) < wanted and (at_star < len(star) or at_rest < len(rest)):
        due = played + at_star < weight * (total + len(order) + 1)
        if at_star < len(star) and (due or at_rest == len(rest)):
            order.append(star[at_star])
            at_star += 1
        else:
            order.append(rest[at_rest])
            at_rest += 1
    return order


def _check(
    strategy: str,
    roster: tuple[int, ...],
    categories: Sequence[Hashable],
    max_matches: int,
    already: Collection[tuple[int, int, int]],
    baseline: int | None,
    baseline_weight: float | None,
) -> None:
    if strategy not in STRATEGIES:
        raise ValueError(f"Unknown strategy {strategy!r}; expected one of {', '.join(STRATEGIES)}.")
    if max_matches < 0:
        raise ValueError(f"max_matches must not be negative, got {max_matches}.")
    if roster and roster[0] < 0:
        raise ValueError(f"Candidates are indexes from 0, got {roster[0]}.")
    for match in already:
        first, second, sample = match
        if not (0 <= first < second and 0 <= sample < len(categories)):
            raise ValueError(f"{tuple(match)} is no (first, second, sample) with first < second and a known sample.")
    if baseline_weight is None:
        return
    if not 0 <= baseline_weight <= 1:
        raise ValueError(f"baseline_weight must be from 0 to 1, got {baseline_weight}.")
    if baseline not in roster:
        raise ValueError(f"baseline_weight needs a baseline among the candidates, got {baseline}.")
