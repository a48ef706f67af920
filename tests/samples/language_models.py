from __future__ import annotations

from decimal import Decimal
from typing import Any

from arena.models import LanguageModel
from arena.services.language_models import ModelFields, PriceFields, create_language_model
from arena.services.providers import ProviderFields, create_provider
from tests.arena.models_world import make_used
from tests.personas import Side
from tests.url_samples import UrlSample


def extend(side: Side) -> None:
    # Without its variable no call leaves, whoever presses a button.
    fields = ProviderFields(
        name=f"{side.canary}-provider",
        base_url=f"https://{side.canary}.example.com/v1".lower(),
        key_variable="TILTYARD_KEY_UNSET_IN_TESTS",
    )
    provider = create_provider(team=side.team, actor=None, fields=fields)
    side.objects["provider"] = provider
    price = PriceFields(input_per_million=Decimal(1), output_per_million=Decimal(2), source=f"{side.canary}-source")
    side.objects["language_model"] = create_language_model(
        team=side.team,
        actor=None,
        fields=ModelFields(
            provider=provider,
            model_id=f"{side.canary}-model",
            display_name=f"{side.canary}-name",
            system_prompt=f"{side.canary}-prompt",
            parameters={"stop": f"{side.canary}-stop"},
        ),
        price=price,
    )
    imported = create_language_model(
        team=side.team, actor=None, fields=ModelFields(provider=None, model_id=f"{side.canary}-imported")
    )
    make_used(imported, name=f"{side.canary}-tournament")


def _team(side: Side) -> dict[str, Any]:
    return {"team": side.team_id}


def _provider(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "provider": side.objects["provider"].public_id}


def _model(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "language_model": side.objects["language_model"].public_id}


LIMITS = {"max_concurrency": 4, "connect_timeout_s": 5, "read_timeout_s": 60, "judge_timeout_s": 60}


def _provider_form(side: Side) -> dict[str, Any]:
    return {"name": "added", "kind": "openai", "base_url": "https://added.example.com/v1", **LIMITS}


def _model_form(side: Side) -> dict[str, Any]:
    return {"provider": side.objects["provider"].public_id, "model_id": "added", "max_tokens": 100}


def _price(side: Side) -> dict[str, Any]:
    return {"price_input": "3", "price_output": "4"}


def _edited_model(side: Side) -> dict[str, Any]:
    model: LanguageModel = side.objects["language_model"]
    return _model_form(side) | {"model_id": model.model_id}


SAMPLES = {
    "arena:model-list": UrlSample(_team),
    "arena:model-create": UrlSample(_team, post=_model_form),
    "arena:model-detail": UrlSample(_model),
    "arena:model-edit": UrlSample(_model, post=_edited_model),
    "arena:model-delete": UrlSample(_model, post=lambda side: {}),
    "arena:model-test": UrlSample(_model, get=False, post=lambda side: {}),
    "arena:model-price": UrlSample(_model, get=False, post=_price),
    "arena:model-enabled": UrlSample(_model, get=False, post=lambda side: {"enabled": "0"}),
    "arena:provider-create": UrlSample(_team, post=_provider_form),
    "arena:provider-edit": UrlSample(_provider, post=_provider_form),
    "arena:provider-delete": UrlSample(_provider, post=lambda side: {}),
    "arena:provider-models": UrlSample(_provider, post=lambda side: {}),
}
