"""Tournaments played row by row, without calls and in any order: what a worker of any concurrency may come to.

`play_rows` finishes queued answers and verdicts one at a time, drawn among the first `in_flight` of them, and
tells the services as a worker would.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import sha256

from arena.models import CallStatus, Match, Tournament, Trial, Verdict
from arena.services import matches, trials

# Given the model id and the sample's key; returns a skip code, or nothing where it answers.
Fails = Callable[[str, str], str]
STRENGTHS = {"lancer-large": 0.9, "squire-1": 0.6, "lancer-small": 0.4}


def always(*models: str, code: str = "API_ERROR") -> Fails:
    return lambda model, _: code if model in models else ""


def sometimes(share: float, *models: str) -> Fails:
    """Fails on the same samples whenever it is asked."""
    return lambda model, key: "API_ERROR" if model in models and chance("fails", model, key) < share else ""


def chance(*parts: object) -> float:
    return int(sha256("|".join(map(str, parts)).encode()).hexdigest()[:12], 16) / 16**12


def play_rows(tournament: Tournament, *, in_flight: int, fails: Fails = lambda *_: "", order: int = 0) -> Tournament:
    draw = random.Random(f"{order} {in_flight}")
    for _ in range(100_000):
        tournament.refresh_from_db()
        rows = [*_queued(Verdict, tournament), *_queued(Trial, tournament)]
        if not rows or tournament.status != Tournament.Status.RUNNING:
            return tournament
        row = draw.choice(rows[:in_flight])
        if isinstance(row, Trial):
            finish_trial(row, fails)
        else:
            finish_verdict(row)
    raise AssertionError("it does not end")


def _queued(model: type[Trial] | type[Verdict], tournament: Tournament) -> list[Trial | Verdict]:
    own = {"requests__tournament": tournament} if model is Trial else {"tournament": tournament}
    return list(model.objects.filter(status=CallStatus.QUEUED, **own).order_by("pk")[:40])


def finish_trial(trial: Trial, fails: Fails) -> None:
    assert trial.sample is not None
    code = fails(trial.language_model.model_id, trial.sample.key)
    trial.status = CallStatus.FAILED if code else CallStatus.SUCCEEDED
    trial.skip_code, trial.error, trial.answer = code, "It failed." if code else "", "" if code else "An answer."
    trial.save()
    trials.advance_matches(trial.pk)


def finish_verdict(verdict: Verdict) -> None:
    match = Match.objects.select_related("first", "second", "sample").get(pk=verdict.match_id)
    first, second = match.first.snapshot["model_id"], match.second.snapshot["model_id"]
    strong, weak = STRENGTHS.get(first, 0.5), STRENGTHS.get(second, 0.5)
    wins = chance("wins", first, second, match.sample.key) < strong / (strong + weak)
    verdict.status, verdict.vote = CallStatus.SUCCEEDED, "first" if wins else "second"
    verdict.save()
    matches.decide_when_complete(match.pk)


def schedule_of(tournament: Tournament) -> list[tuple[object, ...]]:
    """Every match with what became of it."""
    rows = tournament.matches.order_by("sequence")
    return list(
        rows.values_list(
            "sequence",
            "step__number",
            "first__position",
            "second__position",
            "sample__key",
            "status",
        )
    )
