"""From a configuration to rows: providers, language models and the task set, found again or entered once.

Identity decides, not the file: the same address, the same model asked the same thing and the same content are
the rows of the last run, so its answers are there already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from arena.encryption import UnreadableSecret
from arena.llm.demo.catalogue import DEMO_KEY
from arena.llm.text import storable
from arena.models import LanguageModel, Provider, TaskSet, Team
from arena.services.language_models import (
    ModelFields,
    PriceFields,
    add_price,
    create_language_model,
    update_language_model,
)
from arena.services.members import Refused
from arena.services.providers import ProviderFields, create_provider, default_base_url, update_provider
from arena.services.tournaments import TournamentSpec
from arena.services.wire import MissingKey, current_price, provider_key
from arena.services.workers import somebody_works
from ratings.headless.config import ModelConfig, PriceConfig, ProviderConfig, RunConfig
from ratings.headless.task_set import FoundTaskSet, find_task_set, stored
from ratings.headless.yaml_tree import ConfigError


def enter(config: RunConfig, *, folder: Path, team: Team, budget_usd: Decimal | None) -> TournamentSpec:
    """Everything a tournament needs, or ConfigError with all that stands in the way; then nothing was stored."""
    problems: list[str] = []
    found = find_task_set(config, folder=folder, team=team, problems=problems)
    with transaction.atomic():
        models = _Entry(config, team, problems).models()
        if problems:
            transaction.set_rollback(True)
    if problems or found is None:
        raise ConfigError(problems)
    task_set = stored(found, config=config, team=team)
    return _spec(config, task_set, found, models, config.budget_usd if budget_usd is None else budget_usd)


def enter_panel(config: RunConfig, *, team: Team) -> tuple[list[LanguageModel], list[LanguageModel]]:
    """Judges and stand-ins, or ConfigError with all that stands in the way; then nothing was stored."""
    problems: list[str] = []
    with transaction.atomic():
        models = _Entry(config, team, problems).models()
        if problems:
            transaction.set_rollback(True)
    if problems:
        raise ConfigError(problems)
    judges, replacements = ([models[one.path] for one in panel] for panel in (config.judges, config.replacement_judges))
    return judges, replacements


def _spec(
    config: RunConfig,
    task_set: TaskSet,
    found: FoundTaskSet,
    models: dict[str, LanguageModel],
    budget_usd: Decimal | None,
) -> TournamentSpec:
    return TournamentSpec(
        name=config.name,
        task_set=task_set,
        candidates=[models[one.path] for one in config.candidates],
        judges=[models[one.path] for one in config.judges],
        replacement_judges=[models[one.path] for one in config.replacement_judges],
        protocol=config.protocol,
        pairing=config.pairing,
        max_matches=config.max_matches,
        step_size=config.step_size,
        seed=config.seed,
        budget_usd=budget_usd,
        baseline=None if config.baseline is None else models[config.candidates[config.baseline].path],
        baseline_weight=config.baseline_weight,
        categories=config.categories,
        settings={"headless": {"configuration": config.file, "task_set": found.source}},
    )


class _Entry:
    def __init__(self, config: RunConfig, team: Team, problems: list[str]) -> None:
        self.config, self.team, self.problems = config, team, problems

    def problem(self, path: str, message: str) -> None:
        self.problems.append(self.config.told(path, message))

    def models(self) -> dict[str, LanguageModel]:
        """By the path of their entry. Entries of one model share a row."""
        providers = self._providers()
        rows: dict[tuple[str, ...], LanguageModel] = {}
        by_path: dict[str, LanguageModel] = {}
        for entry in self.config.models:
            provider = providers.get(entry.provider)
            if entry.identity not in rows and provider is not None:
                # Names and prices may stand in one of several entries of the same model.
                same = [other for other in self.config.models if other.identity == entry.identity]
                row = self._model(entry, provider, same)
                if row is not None:
                    rows[entry.identity] = row
            if entry.identity in rows:
                by_path[entry.path] = rows[entry.identity]
        return by_path

    # Providers ---------------------------------------------------------------------------------------------
    def _providers(self) -> dict[str, Provider]:
        stored_ones = {one.name: one for one in Provider.objects.filter(team=self.team)}
        entered: dict[str, Provider] = {}
        for config in self.config.providers:
            provider = self._provider(config, stored_ones.get(config.name))
            if provider is not None:
                entered[config.name] = provider
        declared = {config.name for config in self.config.providers}
        for model in self.config.models:
            if model.provider in declared or not model.provider:
                continue
            if model.provider in stored_ones:
                entered[model.provider] = stored_ones[model.provider]
            else:
                known = ", ".join(sorted(declared | stored_ones.keys())) or "none"
                self.problem(
                    f"{model.path}.provider",
                    f"there is no provider {model.provider} here or in the team; known: {known}",
                )
        self._check_keys(entered)
        return entered

    def _check_keys(self, providers: dict[str, Provider]) -> None:
        """Where this process is going to call, a key that is missing is known before anything is paid."""
        if not settings.EMBEDDED or somebody_works():
            return
        for name in sorted({model.provider for model in self.config.models} & providers.keys()):
            try:
                provider_key(providers[name])
            except (MissingKey, UnreadableSecret) as error:
                self.problem(f"providers.{name}", str(error))

    def _provider(self, config: ProviderConfig, provider: Provider | None) -> Provider | None:
        given = {
            name: value
            for name, value in asdict(config).items()
            if name in ProviderFields.__dataclass_fields__ and value is not None
        }
        kind = config.kind or (provider.kind if provider else Provider.Kind.OPENAI)
        # The key of the demo endpoint is no secret; it is the same everywhere and opens nothing.
        key = DEMO_KEY if kind == Provider.Kind.DEMO and not config.key_variable else ""
        try:
            if provider is None:
                given.setdefault("base_url", default_base_url(kind))
                if not given["base_url"]:
                    self.problem(f"{config.path}.base_url", "is missing, and the team has no provider of this name")
                    return None
                return create_provider(team=self.team, actor=None, fields=ProviderFields(**given), key=key)
            return self._known_provider(config, provider, given, key)
        except ValidationError as error:
            self._refused(config.path, error, {})
        except Refused as error:
            self.problem(config.path, str(error))
        return None

    def _known_provider(
        self, config: ProviderConfig, provider: Provider, given: dict[str, Any], key: str
    ) -> Provider | None:
        moved = config.base_url is not None and config.base_url.strip().rstrip("/") != provider.base_url
        if moved and provider.kind != Provider.Kind.DEMO:
            self.problem(
                f"{config.path}.base_url",
                f"the team's provider {provider.name} is at {provider.base_url}; "
                "use another name, or change its address on the site",
            )
            return None
        if config.kind is not None and config.kind != provider.kind:
            self.problem(f"{config.path}.kind", f"the team's provider {provider.name} is of kind {provider.kind}")
            return None
        kept = {name: getattr(provider, name) for name in ProviderFields.__dataclass_fields__}
        wanted = kept | given | {"base_url": provider.base_url if not moved else given["base_url"]}
        if wanted == kept:
            return provider
        return update_provider(provider=provider, actor=None, fields=ProviderFields(**wanted), key=key if moved else "")

    # Models ------------------------------------------------------------------------------------------------
    def _model(self, entry: ModelConfig, provider: Provider, same: Iterable[ModelConfig]) -> LanguageModel | None:
        fields_ = ModelFields(
            provider=provider,
            model_id=entry.model_id,
            display_name=_first(one.name for one in same) or "",
            family=_first(one.family for one in same) or "",
            system_prompt=entry.system_prompt,
            parameters=dict(entry.parameters),
            pdf_input=_input(entry.pdf),
            image_input=_input(entry.image),
            context_tokens=_first(one.context_tokens for one in same),
            max_tokens=entry.max_tokens,
        )
        price = _first(one.price for one in same)
        try:
            known = _known_model(self.team, fields_)
            if known is None:
                return create_language_model(
                    team=self.team, actor=None, fields=fields_, price=_price_fields(price, self.config.file)
                )
            if not known.enabled:
                self.problem(entry.path, f"{known.full_id} is disabled in the team; enable it on the site first")
                return None
            return self._follow(known, fields_, price)
        except ValidationError as error:
            self._refused(entry.path, error, MODEL_FIELDS)
        except Refused as error:
            self.problem(entry.path, str(error))
        return None

    def _follow(self, known: LanguageModel, wanted: ModelFields, price: PriceConfig | None) -> LanguageModel:
        """What the file says beside the model's identity; what it does not say stays as it is."""
        changes = {
            name: getattr(wanted, name)
            for name in ("display_name", "family", "context_tokens")
            if getattr(wanted, name) and getattr(wanted, name) != getattr(known, name)
        }
        if changes:
            old = {item.name: getattr(known, item.name) for item in fields(ModelFields)}
            known = update_language_model(language_model=known, actor=None, fields=ModelFields(**old | changes))
        current = current_price(known.pk)
        new = _price_fields(price, self.config.file)
        if new is not None and (
            current is None
            or (current.input_per_million, current.output_per_million)
            != (new.input_per_million, new.output_per_million)
        ):
            add_price(language_model=known, actor=None, price=new)
        return known

    def _refused(self, path: str, error: ValidationError, names: dict[str, str]) -> None:
        for name, messages in error.message_dict.items():
            inside = path if name == "__all__" else f"{path}.{names.get(name, name)}"
            for message in messages:
                self.problem(inside, message)


MODEL_FIELDS = {
    "display_name": "name",
    "pdf_input": "pdf",
    "image_input": "image",
    "input_per_million": "price.input",
    "output_per_million": "price.output",
}


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _input(taken: bool) -> str:  # noqa: FBT001 - a plain conversion
    return LanguageModel.Input.BASE64 if taken else LanguageModel.Input.NONE


def _price_fields(price: PriceConfig | None, file: str) -> PriceFields | None:
    if price is None:
        return None
    return PriceFields(input_per_million=price.input, output_per_million=price.output, source=f"given in {file}"[:200])


def _known_model(team: Team, wanted: ModelFields) -> LanguageModel | None:
    """The current row that would be asked the very same thing at the same provider."""
    twin = LanguageModel(
        team=team,
        provider=wanted.provider,
        model_id=storable(wanted.model_id).strip(),
        system_prompt=storable(wanted.system_prompt).strip(),
        parameters=dict(wanted.parameters),
        max_tokens=wanted.max_tokens,
        pdf_input=wanted.pdf_input,
        image_input=wanted.image_input,
    )
    same = LanguageModel.objects.current().filter(
        team=team, provider=wanted.provider, fingerprint=twin.compute_fingerprint()
    )
    return same.select_related("provider", "team").order_by("-enabled", "pk").first()
