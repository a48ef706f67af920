"""Whose turn it is and which side: pure, so that it can be tried a thousand times over.

Every draw is a hash of the campaign's secret with what the draw is for. No shared stream of random numbers
has to be carried along, and nobody without the secret can work out how a pair was laid out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["normal", "gold", "repeat"]
# A repeat comes back no sooner than this many items later.
REPEAT_DISTANCE = 20


def keyed_draw(secret: str, *parts: object) -> float:
    """A number from 0 to below 1 that hangs on the secret and the parts alone."""
    text = "\x1f".join((secret, *map(str, parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


@dataclass(frozen=True)
class SideCounts:
    """How often each of a pair's two answers stood on the left before.

    Attributes
    ----------
    match_first, match_second : int
        In normal assignments of this match, by the answer that stood left.
    rater_first, rater_second : int
        The rater's balance of each of the two models: left minus right.
    """

    match_first: int = 0
    match_second: int = 0
    rater_first: int = 0
    rater_second: int = 0


def first_goes_left(counts: SideCounts, *, secret: str, match: int, rater: int) -> bool:
    """The side less used for this match, then for this rater and the two models; ties by a keyed hash.

    So for each match the two orientations never differ by more than one.
    """
    if counts.match_first != counts.match_second:
        return counts.match_first < counts.match_second
    if counts.rater_first != counts.rater_second:
        return counts.rater_first < counts.rater_second
    return keyed_draw(secret, "side", match, rater) < 0.5


class Progress(NamedTuple):
    """What a rater has been given so far, of each kind."""

    normal: int
    gold: int
    repeat: int

    @property
    def total(self) -> int:
        return sum(self)


def kind_of_next(progress: Progress, *, gold_share: float, repeat_share: float, offset: float) -> list[Kind]:
    """The kinds to try for the rater's next item, the one that is due first.

    A share is held exactly over time rather than drawn each time: a kind is due when its share of all items
    so far, shifted by the rater's own `offset` (0 to below 1), has passed what was given. Repeats start once
    there is something far enough back.
    """
    number = progress.total + 1
    order: list[Kind] = []
    far_enough = max(0, number - REPEAT_DISTANCE)
    if far_enough and _due(number, repeat_share, offset) > progress.repeat:
        order.append("repeat")
    if _due(number, gold_share, (offset + 0.5) % 1) > progress.gold:
        order.append("gold")
    return [*order, "normal"]


def _due(number: int, share: float, offset: float) -> int:
    return math.floor(number * share + offset) if share > 0 else 0


class Candidates(NamedTuple):
    """A pair of models by key, the lower first."""

    first: int
    second: int


def ordered(one: int, other: int) -> Candidates:
    return Candidates(min(one, other), max(one, other))


def balanced(loads: Mapping[Candidates, int], *, secret: str, rater: int, turn: int) -> list[Candidates]:
    """Pairs by what they have been given so far, votes and open assignments, the least first."""
    return sorted(loads, key=lambda pair: (loads[pair], keyed_draw(secret, "pair", *pair, rater, turn)))


def at_random(weights: Mapping[Candidates, int], *, secret: str, rater: int, turn: int) -> list[Candidates]:
    """Pairs in an order drawn with chances proportional to the matches that each has left."""
    # The largest of u^(1/w) is a draw with weights w (Efraimidis and Spirakis 2006); the order goes on likewise.
    keys = {
        pair: math.log(max(keyed_draw(secret, "random", *pair, rater, turn), 1e-16)) / weight
        for pair, weight in weights.items()
        if weight > 0
    }
    return sorted(keys, key=lambda pair: -keys[pair])


@dataclass(frozen=True)
class Strength:
    """A model by the people's own votes, on the scale of Glicko-2 (173.7178 display points to one)."""

    rating: float
    deviation: float


def informative(
    pairs: Iterable[Candidates], strengths: Mapping[int, Strength], *, secret: str, rater: int, turn: int
) -> list[Candidates]:
    """Pairs by how much a vote is expected to narrow the two ratings, the most first (Glickman 2013).

    For a model with deviation `phi` that meets one with `phi_other`, the information of one game is
    `I = g(phi_other)^2 E (1 - E)`, and its variance is expected to fall by `phi^4 I / (1 + phi^2 I)`.
    """
    return sorted(
        pairs,
        key=lambda pair: (
            -round(_gain(strengths[pair.first], strengths[pair.second]), 12),
            keyed_draw(secret, "pair", *pair, rater, turn),
        ),
    )


def _gain(one: Strength, other: Strength) -> float:
    return _fall_in_variance(one, other) + _fall_in_variance(other, one)


def _fall_in_variance(own: Strength, other: Strength) -> float:
    g = 1 / math.sqrt(1 + 3 * other.deviation**2 / math.pi**2)
    expected = 1 / (1 + math.exp(-g * (own.rating - other.rating)))
    information = g**2 * expected * (1 - expected)
    variance = own.deviation**2
    return variance**2 * information / (1 + variance * information)


def least_voted(items: Sequence[tuple[int, int]], *, secret: str, rater: int) -> list[int]:
    """Items, given as (key, load), by their load, the least first; equal ones in an order of the rater's own."""
    return [key for key, _ in sorted(items, key=lambda item: (item[1], keyed_draw(secret, "item", item[0], rater)))]
