"""Finished tournaments with given outcomes, put in row by row: no worker, no calls."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

from django.utils import timezone

from arena.judging.protocol import AUDITED
from arena.models import (
    Candidate,
    Decision,
    Judge,
    Jury,
    LanguageModel,
    Match,
    Provider,
    Sample,
    Step,
    TaskSet,
    Team,
    Tournament,
    Trial,
)

_numbers = count(1)
# Position of a candidate, of another, the outcome as seen by the former, how often.
Row = tuple[int, int, str, int]
SWAPPED = {"first": "second", "second": "first"}


@dataclass
class Played:
    tournament: Tournament
    jury: Jury
    candidates: list[Candidate]
    samples: list[Sample]

    def decide(self, rows: Iterable[Row], *, step: int = 1) -> None:
        play(self, rows, step=step)


def language_model(team: Team, provider: Provider, name: str, family: str = "") -> LanguageModel:
    model = LanguageModel(team=team, provider=provider, model_id=name, display_name=name, family=family)
    model.fingerprint = model.compute_fingerprint()
    model.save()
    return model


def snapshot(model: LanguageModel) -> dict[str, Any]:
    return {"model_id": model.model_id, "full_id": model.full_id, "family": model.family}


def tournament(
    names: Sequence[str],
    rows: Iterable[Row] = (),
    *,
    team: Team | None = None,
    n_samples: int = 30,
    families: Sequence[str] = (),
    judges: Sequence[tuple[str, str]] = (("judge-a", ""), ("judge-b", ""), ("judge-c", "")),
    status: str = Tournament.Status.FINISHED,
    name: str = "Spring check",
    costs: Sequence[str | None] = (),
) -> Played:
    number = next(_numbers)
    team = team or Team.objects.create(name=f"Team {number}")
    provider = Provider.objects.create(team=team, name=f"vendor-{number}", base_url="http://127.0.0.1:9/v1")
    task_set = TaskSet.objects.create(team=team, name=f"Set {number}", content_hash=str(number), sample_count=n_samples)
    samples = Sample.objects.bulk_create(
        [
            Sample(
                task_set=task_set,
                position=position,
                key=f"sample-{position}",
                messages=[{"role": "user", "content": f"Question {position}"}],
                input_hash=f"{number}-{position}",
                content_hash=f"{number}-{position}",
            )
            for position in range(n_samples)
        ]
    )
    now = timezone.now()
    row = Tournament.objects.create(
        team=team, task_set=task_set, name=name, status=status, max_matches=100, started_at=now, finished_at=now
    )
    candidates = []
    for position, label in enumerate(names):
        model = language_model(team, provider, label, families[position] if families else "")
        candidates.append(
            Candidate.objects.create(
                tournament=row,
                language_model=model,
                position=position,
                label=label,
                full_id=model.full_id,
                snapshot=snapshot(model),
            )
        )
    jury = Jury.objects.create(tournament=row, protocol=AUDITED.to_json(), status=Jury.Status.FINISHED)
    for position, (label, family) in enumerate(judges):
        model = language_model(team, provider, f"{label}-{number}", family)
        Judge.objects.create(
            jury=jury,
            language_model=model,
            position=position,
            label=label,
            full_id=model.full_id,
            snapshot=snapshot(model),
        )
    played = Played(row, jury, candidates, samples)
    _answer(played, costs)
    play(played, rows)
    return played


def _answer(played: Played, costs: Sequence[str | None]) -> None:
    trials = []
    for position, candidate in enumerate(played.candidates):
        cost = costs[position] if costs else "0.0012"
        trials += [
            Trial(
                team=played.tournament.team,
                language_model=candidate.language_model,
                sample=sample,
                input_hash=sample.input_hash,
                fingerprint=candidate.language_model.fingerprint,
                status="succeeded",
                answer="An answer.",
                cost_usd=None if cost is None else Decimal(cost),
                duration_ms=800.0 + 100 * position,
            )
            for sample in played.samples
        ]
    Trial.objects.bulk_create(trials)


def play(played: Played, rows: Iterable[Row], *, step: int = 1) -> None:
    """Outcomes `first`, `second`, `tie`, `inconclusive`, `void` or `forced`, each pair on samples of its own."""
    row, _ = Step.objects.get_or_create(
        tournament=played.tournament,
        number=step,
        defaults={"status": Step.Status.COMPLETE, "completed_at": timezone.now()},
    )
    used: dict[tuple[int, int], int] = {}
    for first, second in Match.objects.filter(tournament=played.tournament).values_list("first", "second"):
        used[first, second] = used.get((first, second), 0) + 1
    sequence = played.tournament.matches.count()
    trials = {
        (model, sample): trial
        for model, sample, trial in Trial.objects.filter(sample__in=played.samples).values_list(
            "language_model", "sample", "pk"
        )
    }
    matches, outcomes = [], []
    for one, other, outcome, times in rows:
        first, second = sorted((one, other), key=lambda position: played.candidates[position].pk)
        seen = outcome if first == one else SWAPPED.get(outcome, outcome)
        pair = played.candidates[first], played.candidates[second]
        for _ in range(times):
            at = used.get((pair[0].pk, pair[1].pk), 0)
            used[pair[0].pk, pair[1].pk] = at + 1
            # Each pair starts elsewhere, so that few matches still touch many samples.
            sample = played.samples[(at + 7 * first + 3 * second) % len(played.samples)]
            sequence += 1
            matches.append(
                Match(
                    tournament=played.tournament,
                    step=row,
                    sequence=sequence,
                    sample=sample,
                    first=pair[0],
                    second=pair[1],
                    first_trial_id=trials[pair[0].language_model_id, sample.pk],
                    second_trial_id=trials[pair[1].language_model_id, sample.pk],
                    status={"inconclusive": "inconclusive", "void": "void", "forced": "void"}.get(seen, "decided"),
                    forced_tie=seen == "forced",
                    decided_at=timezone.now(),
                )
            )
            outcomes.append(seen)
    Match.objects.bulk_create(matches)
    Decision.objects.bulk_create(
        [
            Decision(jury=played.jury, match=match, outcome=outcome)
            for match, outcome in zip(matches, outcomes, strict=True)
            if outcome not in {"void", "forced"}
        ]
    )


def simulated(n: int, games: int, *, seed: int = 1, tie_share: float = 0.2) -> list[Row]:
    """A round robin of candidates whose strength falls with their position."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for one in range(n):
        for other in range(one + 1, n):
            for _ in range(games):
                if draw.random() < tie_share:
                    outcome = "tie"
                else:
                    chance = 1 / (1 + 10 ** (-(other - one) * 120 / 400 / max(1, n / 8)))
                    outcome = "first" if draw.random() < chance else "second"
                rows.append((one, other, outcome, 1))
    return rows
