"""The screen of anonymous sessions before a fit over people's votes.

Three tests, each at a third of ``alpha`` (Bonferroni), ask of every session: too many votes, too one-sided, too fast?
A session too small for a test is not tested: a handful of votes cannot be told from a quick person's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ALPHA = 1e-3
FEWEST_FOR_VOLUME = 20
FEWEST_FOR_POSITION = 15
FEWEST_FOR_SPEED = 8
FASTEST_MEDIAN_GAP_S = 1.5

Test = Literal["volume", "position", "speed"]
ExclusionRule = Literal["position_and_speed", "all"]
EXCLUDING: dict[ExclusionRule, frozenset[Test]] = {
    "position_and_speed": frozenset({"position", "speed"}),
    "all": frozenset({"volume", "position", "speed"}),
}


@dataclass(frozen=True)
class SessionVotes:
    """What one anonymous session cast.

    Parameters
    ----------
    session : hashable
    left, right : int
        Votes for the answer on that side, as shown.
    ties : int
        Both good and both bad. Skips are no votes.
    times_s : sequence of float
        When it acted, in seconds from any origin, in any order; those of skips may be among them.

    Raises
    ------
    ValueError
        For negative counts and times that are not finite.
    """

    session: Hashable
    left: int
    right: int
    ties: int
    times_s: Sequence[float] = ()

    def __post_init__(self) -> None:
        if min(self.left, self.right, self.ties) < 0:
            raise ValueError(f"Session {self.session!r} has a negative count.")
        if not all(math.isfinite(time) for time in self.times_s):
            raise ValueError(f"Session {self.session!r} has a time that is not finite.")

    @property
    def votes(self) -> int:
        """All votes."""
        return self.left + self.right + self.ties

    @property
    def median_gap_s(self) -> float | None:
        """Median time between consecutive actions; None with fewer than two times."""
        if len(self.times_s) < 2:
            return None
        return float(np.median(np.diff(np.sort(np.asarray(self.times_s, dtype=np.float64)))))


@dataclass(frozen=True)
class Screening:
    """Verdict on one session.

    Attributes
    ----------
    session : hashable
    votes, left, right : int
    volume_p : float or None
        Upper Poisson tail of its votes against the mean over all sessions, itself included. None when not tested.
    volume_p_others : float or None
        The same against the mean of the other sessions: reported beside, never rejecting. None also where there is no
        other session, or none with a vote.
    position_p : float or None
        Two-sided exact binomial of left against right at 0.5. None when not tested.
    median_gap_s : float or None
        None when not tested; this test has a floor and no p-value.
    reasons : tuple
        The tests that rejected it.
    excluded : bool
        Left out of every fit under the rule in force.
    """

    session: Hashable
    votes: int
    left: int
    right: int
    volume_p: float | None
    volume_p_others: float | None
    position_p: float | None
    median_gap_s: float | None
    reasons: tuple[Test, ...]
    excluded: bool

    @property
    def flagged(self) -> bool:
        """Rejected by some test; excluded or not."""
        return bool(self.reasons)


def screen(
    sessions: Iterable[SessionVotes], *, rule: ExclusionRule = "position_and_speed", alpha: float = ALPHA
) -> tuple[Screening, ...]:
    """Test every session.

    Parameters
    ----------
    sessions : iterable of SessionVotes
        All anonymous sessions of the board, also small ones: they set the mean. Votes without a session do not
        belong here; they are always kept.
    rule : {"position_and_speed", "all"}
        Which tests exclude. Counts of votes per person vary far more than Poisson's, so by default the volume test
        flags only; with ``all`` it excludes too.
    alpha : float
        Level over the three tests together.

    Returns
    -------
    tuple of Screening
        In the order given; empty for no sessions.

    Raises
    ------
    ValueError
        For an unknown rule, an alpha outside 0 to 1, or a session given twice.
    """
    if rule not in EXCLUDING:
        raise ValueError(f"Unknown rule {rule!r}; expected one of {', '.join(EXCLUDING)}.")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}.")
    listed = list(sessions)
    if len({found.session for found in listed}) < len(listed):
        raise ValueError("A session is given twice.")
    total = sum(found.votes for found in listed)
    return tuple(_screened(found, total, len(listed), rule, alpha / 3) for found in listed)


def _screened(found: SessionVotes, total: int, n_sessions: int, rule: ExclusionRule, level: float) -> Screening:
    volume_p = volume_p_others = position_p = gap = None
    if found.votes >= FEWEST_FOR_VOLUME:
        volume_p = _poisson_upper(found.votes, total / n_sessions)
        if total > found.votes:
            volume_p_others = _poisson_upper(found.votes, (total - found.votes) / (n_sessions - 1))
    if found.left + found.right >= FEWEST_FOR_POSITION:
        position_p = _binomial_two_sided(found.left, found.right)
    if len(found.times_s) >= FEWEST_FOR_SPEED:
        gap = found.median_gap_s
    rejecting: dict[Test, bool] = {
        "volume": volume_p is not None and volume_p < level,
        "position": position_p is not None and position_p < level,
        "speed": gap is not None and gap < FASTEST_MEDIAN_GAP_S,
    }
    reasons = tuple(test for test, rejected in rejecting.items() if rejected)
    return Screening(
        session=found.session,
        votes=found.votes,
        left=found.left,
        right=found.right,
        volume_p=volume_p,
        volume_p_others=volume_p_others,
        position_p=position_p,
        median_gap_s=gap,
        reasons=reasons,
        excluded=not EXCLUDING[rule].isdisjoint(reasons),
    )


def _poisson_upper(votes: int, mean: float) -> float:
    # The special functions alone: scipy.stats takes a second to import.
    from scipy.special import pdtrc

    return float(pdtrc(votes - 1, mean))


def _binomial_two_sided(left: int, right: int) -> float:
    from scipy.special import bdtr

    # At 0.5 both tails are alike.
    return min(1.0, 2 * float(bdtr(min(left, right), left + right, 0.5)))
