"""How candidates stand by their decided matches, for the pairing of a tournament that runs.

Folded anew from decisions each time: nothing else is the source of these ratings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arena.models import Decision, Tournament
from ratings.engine.comparisons import Comparisons, outcome_codes
from ratings.engine.elo import elo_pass
from ratings.engine.glicko2 import Glicko2, glicko2_periods
from ratings.engine.pairing import Outlook

Pair = tuple[int, int]


def decided_matches(tournament: Tournament, steps: int) -> tuple[Comparisons, list[int]]:
    """The rated decisions of the first so many steps, in the order of the matches, and each one's step from 0.

    Candidates are their positions.
    """
    rows = list(
        Decision.objects.rated()
        .filter(jury__tournament=tournament, jury__primary=True, match__step__number__lte=steps)
        .order_by("match__sequence")
        .values_list("match__first__position", "match__second__position", "outcome", "match__step__number")
    )
    positions = tournament.candidates.values_list("position", flat=True)
    first, second = (np.array([row[side] for row in rows], dtype=np.int64) for side in (0, 1))
    outcomes = outcome_codes([row[2] for row in rows])
    return Comparisons(max(positions, default=-1) + 1, first, second, outcomes), [row[3] - 1 for row in rows]


def glicko2_by_step(tournament: Tournament, steps: int) -> list[Glicko2]:
    """The Glicko-2 ratings after each of the first so many steps; a step is a rating period."""
    matches, numbers = decided_matches(tournament, steps)
    return glicko2_periods(matches, numbers, steps)


def outlook_of(tournament: Tournament, steps: int, *, recent: Sequence[Pair], pending: Sequence[Pair]) -> Outlook:
    """What the pairing knows after so many complete steps."""
    if tournament.pairing == Tournament.Pairing.ELO:
        ratings = elo_pass(decided_matches(tournament, steps)[0]).rating
        return Outlook(dict(enumerate(ratings.tolist())), {}, recent, pending)
    states = glicko2_by_step(tournament, steps)
    if not states:
        return Outlook(recent=recent, pending=pending)
    ratings, deviations = states[-1].rating, states[-1].deviation
    return Outlook(dict(enumerate(ratings.tolist())), dict(enumerate(deviations.tolist())), recent, pending)
