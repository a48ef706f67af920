"""What a tournament is to be, and everything that keeps it from running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from arena.judging.protocol import Protocol
from arena.models import LanguageModel, Price, TaskSet, Tournament
from ratings.engine.pairing import FOLLOWING

# The pairing that goes with a preset where none is chosen.
PAIRING_OF_PRESET = {"audited": Tournament.Pairing.ROUND_ROBIN, "majority": Tournament.Pairing.GLICKO2}


@dataclass(frozen=True, kw_only=True)
class TournamentSpec:
    """What a tournament is to be. The plan page, the command and the API all fill this in."""

    name: str
    task_set: TaskSet
    candidates: Sequence[LanguageModel]
    judges: Sequence[LanguageModel]
    replacement_judges: Sequence[LanguageModel] = ()
    protocol: Protocol
    # Left empty, that of the protocol's preset.
    pairing: str = ""
    max_matches: int
    step_size: int = 20
    seed: int = 1
    budget_usd: Decimal | None = None
    baseline: LanguageModel | None = None
    baseline_weight: float | None = None
    categories: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairing", str(self.pairing or PAIRING_OF_PRESET[self.protocol.preset]))

    @property
    def follows_results(self) -> bool:
        return self.pairing in FOLLOWING

    @property
    def models(self) -> list[LanguageModel]:
        return list({model.pk: model for model in (*self.candidates, *self.judges, *self.replacement_judges)}.values())


def prices_of(model_ids: Collection[int]) -> dict[int, Price]:
    """The price of each model as it is now; models without one are missing."""
    rows = Price.objects.filter(language_model__in=model_ids).order_by("valid_from", "id")
    return {price.language_model_id: price for price in rows}


def problems_of(spec: TournamentSpec) -> list[str]:
    """Everything that would keep the tournament from running; empty when it can start."""
    problems = []
    if len({model.pk for model in spec.candidates}) < 2:
        problems.append("Choose at least two candidates.")
    problems += panel_problems(spec.judges, spec.replacement_judges, spec.protocol)
    problems += [f"{name} is used twice as a candidate." for name in _twins(spec.candidates)]
    problems += model_problems(spec.models, team_id=spec.task_set.team_id, budget_usd=spec.budget_usd)
    samples = spec.task_set.samples.all()
    if spec.categories:
        samples = samples.filter(category__in=spec.categories)
    if not samples.exists():
        problems.append("The task set has no sample in the chosen categories.")
    if spec.baseline is not None and spec.baseline.pk not in {model.pk for model in spec.candidates}:
        problems.append("The baseline must be one of the candidates.")
    if spec.baseline_weight is not None and spec.baseline is None:
        problems.append("A share of matches with the baseline needs a baseline.")
    return problems


def _twins(models: Sequence[LanguageModel]) -> list[str]:
    counts = Counter(model.fingerprint for model in models)
    return sorted({model.full_id for model in models if counts[model.fingerprint] > 1})


def panel_problems(
    judges: Sequence[LanguageModel], replacement_judges: Sequence[LanguageModel], protocol: Protocol
) -> list[str]:
    problems = []
    if not judges:
        problems.append("Choose at least one judge.")
    elif protocol.aggregation == "plurality" and len(judges) < protocol.quorum:
        problems.append(
            f"The quorum is {protocol.quorum} votes, and there are {len(judges)} judges: "
            "no match could be decided. Add judges or lower the quorum."
        )
    both = {model.pk for model in judges} & {model.pk for model in replacement_judges}
    return problems + [
        f"{model.full_id} cannot be a judge and its replacement." for model in judges if model.pk in both
    ]


def judge_problems(
    judges: Sequence[LanguageModel],
    replacement_judges: Sequence[LanguageModel],
    protocol: Protocol,
    *,
    team_id: int,
    budget_usd: Decimal | None,
) -> list[str]:
    """Everything that keeps a panel from judging."""
    models = list({model.pk: model for model in (*judges, *replacement_judges)}.values())
    return panel_problems(judges, replacement_judges, protocol) + model_problems(
        models, team_id=team_id, budget_usd=budget_usd
    )


def model_problems(models: Sequence[LanguageModel], *, team_id: int, budget_usd: Decimal | None) -> list[str]:
    problems = []
    for model in models:
        if model.team_id != team_id:
            problems.append(f"{model.full_id} does not belong to this team.")
        elif model.provider_id is None:
            problems.append(f"{model.full_id} has no provider, so nobody can be asked for its answers or verdicts.")
        elif not model.enabled or model.superseded_at is not None:
            problems.append(f"{model.full_id} is disabled or was replaced by a newer version of itself.")
    if budget_usd is not None:
        problems += budget_problems(models)
    return problems


def budget_problems(models: Sequence[LanguageModel]) -> list[str]:
    """What a hard stop has to know of each model and does not."""
    prices = prices_of([model.pk for model in models])
    return [
        *(f"A budget needs a price for {model.full_id}." for model in models if model.pk not in prices),
        *(
            f"A budget needs an answer limit (max tokens) for {model.full_id}."
            for model in models
            if model.max_tokens is None
        ),
    ]


def named(models: Sequence[LanguageModel]) -> list[tuple[LanguageModel, str, str]]:
    """Labels fall back to full ids when two would collide; full ids get a fingerprint when variants share them."""
    ids = Counter(model.full_id for model in models)
    full_ids = [
        model.full_id if ids[model.full_id] == 1 else f"{model.full_id}#{model.fingerprint[:6]}" for model in models
    ]
    labels = Counter(model.label for model in models)
    return [
        (model, model.label if labels[model.label] == 1 else full_id, full_id)
        for model, full_id in zip(models, full_ids, strict=True)
    ]


def spec_of(tournament: Tournament) -> TournamentSpec:
    """What a stored tournament, a draft above all, was to be."""
    candidates = list(tournament.candidates.select_related("language_model__provider"))
    jury = tournament.juries.get(primary=True)
    seats = list(jury.judges.select_related("language_model__provider"))
    baseline = next((row.language_model for row in candidates if row.pk == tournament.baseline_id), None)
    return TournamentSpec(
        name=tournament.name,
        task_set=tournament.task_set,
        candidates=[row.language_model for row in candidates],
        judges=[seat.language_model for seat in seats if not seat.replacement],
        replacement_judges=[seat.language_model for seat in seats if seat.replacement],
        protocol=Protocol.from_json(jury.protocol),
        pairing=tournament.pairing,
        max_matches=tournament.max_matches,
        step_size=tournament.step_size,
        seed=tournament.seed,
        budget_usd=tournament.budget_usd,
        baseline=baseline,
        baseline_weight=tournament.baseline_weight,
        categories=tournament.categories,
        settings=tournament.settings,
    )
