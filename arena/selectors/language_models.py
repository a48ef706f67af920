from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from arena.models import Call, Candidate, Judge, LanguageModel, Price, Provider, Team, Tournament

# Enough for a median that means something, and bounded however long the history is.
MEDIAN_CALLS = 1000
SHOWN_PARAMETERS = 3
SHOWN_VALUE = 24


@dataclass
class ModelRow:
    language_model: LanguageModel
    price: Price | None
    tournaments: int

    @property
    def parameters(self) -> str:
        return parameters_digest(self.language_model.parameters)

    @property
    def quirks(self) -> list[str]:
        return quirks_of(self.language_model)

    @property
    def probe(self) -> dict[str, Any] | None:
        return probe_of(self.language_model)


@dataclass
class ProviderGroup:
    # None: models whose answers were imported.
    provider: Provider | None
    rows: list[ModelRow] = field(default_factory=list)


def providers_of(team: Team) -> QuerySet[Provider]:
    return Provider.objects.filter(team=team).order_by("name")


def models_by_provider(team: Team) -> list[ProviderGroup]:
    groups: dict[int | None, ProviderGroup] = {row.pk: ProviderGroup(row) for row in providers_of(team)}
    models = LanguageModel.objects.current().filter(team=team).select_related("provider").order_by("model_id", "pk")
    prices = Price.objects.filter(language_model__team=team, language_model__superseded_at=None)
    # The last one of each stays.
    in_force = {price.language_model_id: price for price in prices.order_by("valid_from", "pk")}
    used = _tournaments_by_lineage(team)
    for row in models:
        group = groups.setdefault(row.provider_id, ProviderGroup(row.provider))
        group.rows.append(ModelRow(row, in_force.get(row.pk), len(used[row.lineage])))
    return list(groups.values())


def _tournaments_by_lineage(team: Team) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    candidates = Candidate.objects.filter(tournament__team=team)
    judges = Judge.objects.filter(jury__tournament__team=team)
    pairs: Iterable[tuple[str, int]] = [
        *candidates.values_list("language_model__lineage", "tournament_id").distinct(),
        *judges.values_list("language_model__lineage", "jury__tournament_id").distinct(),
    ]
    for lineage, tournament in pairs:
        found[lineage].add(tournament)
    return found


def parameters_digest(parameters: dict[str, Any]) -> str:
    shown = [f"{name} {_short(value)}" for name, value in list(parameters.items())[:SHOWN_PARAMETERS]]
    more = len(parameters) - len(shown)
    return ", ".join([*shown, f"+{more}"] if more > 0 else shown)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[: SHOWN_VALUE - 1]}…"


def quirks_of(language_model: LanguageModel) -> list[str]:
    """What the endpoint turned out to refuse, in words."""
    words = {
        "no_schema": _("no JSON schema"),
        "no_tool": _("no forced tool"),
        "no_openapi": _("no schema in the language of OpenAPI"),
        "no_json": _("no JSON mode"),
        "no_stream_options": _("reports no usage while streaming"),
        "max_completion_tokens": _("answer limit sent as max_completion_tokens"),
        "max_tokens": _("answer limit sent as max_tokens"),
    }
    refused = _("%(name)s is left out")
    changes: list[str] = language_model.learned.get("changes", [])
    return [words.get(change) or refused % {"name": change.removeprefix("no:")} for change in changes]


def probe_of(language_model: LanguageModel) -> dict[str, Any] | None:
    stored = language_model.learned.get("probe")
    if not stored:
        return None
    cost = stored["cost_usd"]
    return {**stored, "at": parse_datetime(stored["at"]), "cost_usd": None if cost is None else Decimal(cost)}


@dataclass(frozen=True)
class ModelTest:
    """How the last test of a model went; `at` is None where there was none."""

    language_model: LanguageModel
    at: Any = None
    ok: bool = False
    sentence: str = ""
    latency_ms: float | None = None
    cost_usd: Decimal | None = None
    # Why it could not be called at all.
    problem: str = ""


def last_tests_of(models: Sequence[LanguageModel], problems: Mapping[int, str] | None = None) -> list[ModelTest]:
    return [_test_of(model, (problems or {}).get(model.pk, "")) for model in models]


def _test_of(model: LanguageModel, problem: str) -> ModelTest:
    probe = probe_of(model)
    if problem or probe is None:
        return ModelTest(model, problem=problem)
    return ModelTest(
        model,
        at=probe["at"],
        ok=probe["ok"],
        sentence=probe["sentence"],
        latency_ms=probe["latency_ms"],
        cost_usd=probe["cost_usd"],
    )


@dataclass(frozen=True)
class Use:
    tournament: Tournament
    candidate: bool
    judge: bool


@dataclass(frozen=True)
class CallSummary:
    count: int
    errors: int
    cost_usd: Decimal | None
    unknown_cost: int
    median_ms: float | None
    last_at: Any


@dataclass(frozen=True)
class ModelPage:
    versions: list[LanguageModel]
    prices: list[Price]
    uses: list[Use]
    calls: CallSummary


def model_page(language_model: LanguageModel) -> ModelPage:
    """Of the whole lineage, since versions are one model to whoever looks at it."""
    lineage = LanguageModel.objects.filter(team_id=language_model.team_id, lineage=language_model.lineage)
    versions = list(lineage.select_related("provider").order_by("-pk"))
    keys = [version.pk for version in versions]
    prices = Price.objects.filter(language_model__in=keys).order_by("-valid_from", "-pk")
    return ModelPage(versions, list(prices), _uses(keys), _calls(keys))


def _uses(keys: list[int]) -> list[Use]:
    candidates = set(Candidate.objects.filter(language_model__in=keys).values_list("tournament_id", flat=True))
    judges = set(Judge.objects.filter(language_model__in=keys).values_list("jury__tournament_id", flat=True))
    tournaments = Tournament.objects.filter(pk__in=candidates | judges).order_by("-created_at", "-pk")
    return [Use(row, row.pk in candidates, row.pk in judges) for row in tournaments]


def _calls(keys: list[int]) -> CallSummary:
    calls = Call.objects.filter(language_model__in=keys)
    totals = calls.aggregate(
        count=Count("pk"),
        errors=Count("pk", filter=~Q(status=Call.Status.OK)),
        cost=Sum("cost_usd"),
        unknown=Count("pk", filter=Q(cost_usd=None)),
        last=Max("started_at"),
    )
    answered = calls.filter(status=Call.Status.OK).exclude(duration_ms=None).order_by("-pk")
    durations = list(answered.values_list("duration_ms", flat=True)[:MEDIAN_CALLS])
    return CallSummary(
        count=totals["count"],
        errors=totals["errors"],
        cost_usd=totals["cost"],
        unknown_cost=totals["unknown"],
        median_ms=statistics.median(duration for duration in durations if duration is not None) if durations else None,
        last_at=totals["last"],
    )


def entered_ids(provider: Provider) -> set[str]:
    models = LanguageModel.objects.current().filter(provider=provider)
    return set(models.values_list("model_id", flat=True))


def unused_model_count(provider: Provider) -> int:
    return LanguageModel.objects.current().filter(provider=provider).count()
