"""A finished tournament with ballots, and with names and answers that nobody should trust."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from arena.models import Ballot, Decision, Judge, Match, Sample, Team, Trial
from ratings import services
from tests.ratings.world import Played, simulated, tournament

EVIL = "evil.example"
NAMES = ["<script>alert(1)</script>", "Bram {{ view }}", '"><img src=x onerror=alert(2)>', "Dora"]
ANSWERS = [
    f"<script src='https://{EVIL}/a.js'></script> See [the notes](https://{EVIL}/notes) and `x`.",
    f"![picture](https://{EVIL}/pixel.png) <img src=https://{EVIL}/b.png onerror=alert(3)> A **good** answer. " * 4,
    f"<style>@import url(https://{EVIL}/c.css)</style><a href='javascript:alert(4)'>click</a> plain",
    f"<iframe src=https://{EVIL}></iframe><form action=https://{EVIL}></form> https://{EVIL}/bare " + "long " * 900,
]
# How the three judges vote, seen from the side that won; in turn over the matches.
PATTERNS = ("www", "wwl", "w-w", "wwt")


def reported(team: Team | None = None, *, games: int = 50, name: str = "Autumn <b>run</b>") -> Played:
    """Of four candidates; with 50 games a pair it has 300 matches."""
    played = tournament(NAMES, simulated(4, games, seed=5), team=team, n_samples=max(30, games), name=name)
    _answers(played)
    Sample.objects.filter(pk__in=[sample.pk for sample in played.samples[::2]]).update(category="<i>odd</i>")
    _ballots(played)
    assert services.refit(services.leaderboard_for(played.tournament, played.jury).pk) is not None
    return played


def _answers(played: Played) -> None:
    models = [candidate.language_model_id for candidate in played.candidates]
    trials = list(Trial.objects.filter(language_model__in=models).order_by("pk"))
    for trial in trials:
        trial.answer = ANSWERS[models.index(trial.language_model_id)]
        trial.characters, trial.output_tokens, trial.ttft_ms = len(trial.answer), len(trial.answer) // 4, 90.0
    Trial.objects.bulk_update(trials, ["answer", "characters", "output_tokens", "ttft_ms"])


def _ballots(played: Played) -> None:
    judges: Sequence[Judge] = list(played.jury.judges.all())
    outcomes = dict(Decision.objects.filter(jury=played.jury).values_list("match", "outcome"))
    swapped = {"first": "second", "second": "first", "tie": "first"}
    ballots = []
    for match, pattern in zip(Match.objects.filter(tournament=played.tournament), cycle(PATTERNS), strict=False):
        outcome = outcomes.get(match.pk)
        if outcome is None:
            continue
        for judge, sign in zip(judges, pattern, strict=True):
            vote = {"w": outcome, "l": swapped[outcome], "t": "tie", "-": ""}[sign]
            ballots.append(
                Ballot(
                    jury=played.jury,
                    match=match,
                    judge=judge,
                    status="vote" if vote else "abstained",
                    vote=vote,
                    flipped=not vote,
                    flip_kind="" if vote else "side",
                    explanation=f"<script>alert(5)</script> because of https://{EVIL}/why",
                )
            )
    Ballot.objects.bulk_create(ballots)
