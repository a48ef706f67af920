"""Language models of a team: entered, edited, priced. Used ones never change; an edit makes their next version."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.llm.demo.catalogue import DEMO_KEY, DEMO_MODELS, DEMO_PRICE_SOURCE, DemoModel
from arena.llm.families import guess_family
from arena.llm.pricing import seed_price
from arena.llm.text import storable
from arena.llm.wire import format_of
from arena.models import LanguageModel, Price, Provider, Team, User
from arena.services import audit
from arena.services.members import Refused
from arena.services.providers import ProviderFields, create_provider, update_provider
from arena.services.versions import copy_price, is_used, next_version
from arena.services.wire import current_price, forget_context

PARAMETERS_LIMIT_BYTES = 32 * 1024
PROMPT_LIMIT = 100_000
BY_HAND = "entered by hand"
DEMO_NAME = "demo"
# Set by the application from fields of their own.
OWN_PARAMETERS = {"response_format", "system", "max_completion_tokens", "max_tokens"}


@dataclass(frozen=True, kw_only=True)
class ModelFields:
    provider: Provider | None
    model_id: str
    display_name: str = ""
    # Guessed from the model id where nothing is said.
    family: str = ""
    system_prompt: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pdf_input: str = LanguageModel.Input.NONE
    image_input: str = LanguageModel.Input.NONE
    context_tokens: int | None = None
    max_tokens: int | None = None
    enabled: bool = True

    @classmethod
    def of(cls, language_model: LanguageModel) -> ModelFields:
        return cls(**{name: getattr(language_model, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True)
class PriceFields:
    """US dollars per million tokens."""

    input_per_million: Decimal
    output_per_million: Decimal
    source: str = BY_HAND
    valid_from: dt.date | None = None


@transaction.atomic
def create_language_model(
    *, team: Team, actor: User | None, fields: ModelFields, price: PriceFields | None = None
) -> LanguageModel:
    """Without a price of its own the model gets the published one, where its endpoint has one."""
    language_model = LanguageModel(team=team)
    _lock_provider(fields.provider)
    _apply(language_model, fields)
    _check(language_model)
    language_model.save()
    audit.record(
        team=team,
        actor=actor,
        action="language_model.create",
        target=language_model.full_id,
        new=_values(language_model),
    )
    if price is not None:
        add_price(language_model=language_model, actor=actor, price=price)
    else:
        _seed_price(language_model)
    return language_model


@transaction.atomic
def update_language_model(
    *, language_model: LanguageModel, actor: User | None, fields: ModelFields, price: PriceFields | None = None
) -> LanguageModel:
    """The current row afterwards: the same one, or the next version where the old one was used."""
    row = _locked(language_model)
    old_pk, old_values, old_fingerprint, old_name = row.pk, _values(row), row.fingerprint, row.display_name
    old_address = _address(row)
    _lock_provider(fields.provider)
    _apply(row, fields)
    _check(row)
    new_values = _values(row)
    changed = sorted(name for name in new_values if new_values[name] != old_values[name])
    moved = _address(row) != old_address
    if changed:
        if row.fingerprint != old_fingerprint:
            row.learned = {} if moved else {name: row.learned[name] for name in ("changes",) if name in row.learned}
        versioned = (row.fingerprint != old_fingerprint or row.display_name != old_name) and is_used(row)
        if versioned:
            next_version(row)
        else:
            row.save()
        audit.record(
            team=row.team,
            actor=actor,
            action="language_model.version" if versioned else "language_model.update",
            target=row.full_id,
            old={name: old_values[name] for name in changed},
            new={name: new_values[name] for name in changed},
        )
        _carry_price(row, old_pk=old_pk, versioned=versioned, moved=moved)
    if price is not None and _differs(price, current_price(row.pk)):
        add_price(language_model=row, actor=actor, price=price)
    transaction.on_commit(forget_context)
    return row


@transaction.atomic
def set_enabled(*, language_model: LanguageModel, actor: User | None, enabled: bool) -> None:
    row = _locked(language_model)
    if row.enabled == enabled:
        return
    LanguageModel.objects.filter(pk=row.pk).update(enabled=enabled)
    language_model.enabled = enabled
    action = "language_model.enable" if enabled else "language_model.disable"
    audit.record(team=row.team, actor=actor, action=action, target=row.full_id)
    transaction.on_commit(forget_context)


@transaction.atomic
def delete_language_model(*, language_model: LanguageModel, actor: User | None) -> None:
    """With the earlier versions of its lineage; only as long as no result speaks of any of them."""
    row = _locked(language_model)
    lineage = LanguageModel.objects.filter(team=row.team, lineage=row.lineage)
    if any(is_used(version) for version in lineage):
        raise Refused(_("%(model)s cannot be deleted: results rest on it. Disable it instead.") % {"model": row})
    audit.record(team=row.team, actor=actor, action="language_model.delete", target=row.full_id, old=_values(row))
    lineage.delete()
    transaction.on_commit(forget_context)


@transaction.atomic
def add_price(*, language_model: LanguageModel, actor: User | None, price: PriceFields) -> Price:
    """From now on; calls made before keep the price that they were paid at."""
    old = current_price(language_model.pk)
    row = Price(
        language_model=language_model,
        input_per_million=price.input_per_million,
        output_per_million=price.output_per_million,
        source=price.source.strip() or BY_HAND,
        valid_from=price.valid_from or timezone.localdate(),
    )
    if row.valid_from > timezone.localdate():
        raise ValidationError({"valid_from": [_("A price cannot begin in the future.")]})
    if old is not None and row.valid_from < old.valid_from:
        message = _("There is a price as of %(date)s already; a new one cannot be older.") % {"date": old.valid_from}
        raise ValidationError({"valid_from": [message]})
    row.full_clean()
    row.save()
    audit.record(
        team=language_model.team,
        actor=actor,
        action="language_model.price",
        target=language_model.full_id,
        old=_price_values(old) if old else {},
        new=_price_values(row),
    )
    transaction.on_commit(forget_context)
    return row


# The demo ---------------------------------------------------------------------------------------------------
@transaction.atomic
def register_demo(team: Team, base_url: str) -> list[LanguageModel]:
    """The demo's provider and models, entered once; later runs only follow the endpoint to its port."""
    Team.objects.select_for_update().get(pk=team.pk)
    provider = Provider.objects.filter(team=team, kind=Provider.Kind.DEMO).order_by("pk").first()
    if provider is None:
        taken = Provider.objects.filter(team=team, name=DEMO_NAME).exists()
        fields = ProviderFields(
            name=f"{DEMO_NAME}-endpoint" if taken else DEMO_NAME, base_url=base_url, kind=Provider.Kind.DEMO
        )
        provider = create_provider(team=team, actor=None, fields=fields, key=DEMO_KEY)
    elif provider.base_url != base_url.rstrip("/") or not provider.encrypted_key:
        kept = {name: getattr(provider, name) for name in ProviderFields.__dataclass_fields__}
        fields = ProviderFields(**kept | {"base_url": base_url, "key_variable": ""})
        provider = update_provider(provider=provider, actor=None, fields=fields, key=DEMO_KEY)
    known = {model.model_id: model for model in LanguageModel.objects.current().filter(provider=provider)}
    return [known.get(model.model_id) or _create_demo_model(provider, model) for model in DEMO_MODELS]


def _create_demo_model(provider: Provider, model: DemoModel) -> LanguageModel:
    fields = ModelFields(
        provider=provider,
        model_id=model.model_id,
        display_name=model.display_name,
        family=model.family,
        parameters=dict(model.parameters),
        pdf_input=LanguageModel.Input.BASE64 if model.takes_pdf else LanguageModel.Input.NONE,
        context_tokens=model.context_tokens,
        max_tokens=model.max_tokens,
    )
    price = PriceFields(
        input_per_million=model.input_price_usd, output_per_million=model.output_price_usd, source=DEMO_PRICE_SOURCE
    )
    return create_language_model(team=provider.team, actor=None, fields=fields, price=price)


# Inside -----------------------------------------------------------------------------------------------------
def _locked(language_model: LanguageModel) -> LanguageModel:
    row = (
        LanguageModel.objects.select_for_update(of=("self",))
        .select_related("provider", "team")
        .get(pk=language_model.pk)
    )
    if row.superseded_at is not None:
        raise Refused(_("A newer version of this model exists; edit that one."))
    return row


def _lock_provider(provider: Provider | None) -> None:
    """So that its address stays what it is until the fingerprint that covers it is stored."""
    if provider is not None:
        provider.base_url = Provider.objects.select_for_update().get(pk=provider.pk).base_url


def _apply(language_model: LanguageModel, fields: ModelFields) -> None:
    for name in ModelFields.__dataclass_fields__:
        value = getattr(fields, name)
        setattr(language_model, name, storable(value).strip() if isinstance(value, str) else value)
    language_model.parameters = dict(fields.parameters)
    language_model.family = language_model.family or guess_family(language_model.model_id)
    language_model.fingerprint = language_model.compute_fingerprint()


def _check(language_model: LanguageModel) -> None:
    problems: dict[str, list[str]] = {}
    provider = language_model.provider
    kind = provider.kind if provider is not None else Provider.Kind.OPENAI
    if found := parameter_problems(language_model.parameters, kind):
        problems["parameters"] = found
    if len(language_model.system_prompt) > PROMPT_LIMIT:
        message = _("A system prompt can have %(limit)s characters at most.") % {"limit": PROMPT_LIMIT}
        problems["system_prompt"] = [message]
    for name in ("context_tokens", "max_tokens"):
        if getattr(language_model, name) == 0:
            problems[name] = [_("Leave this empty if there is no limit; it cannot be 0.")]
    if provider is not None and language_model.max_tokens is None and format_of(kind).needs_max_tokens:
        problems["max_tokens"] = [
            _("The format of this provider takes no call without a limit. Give one, such as 8192.")
        ]
    if provider is not None and provider.team_id != language_model.team_id:
        raise ValueError("a provider of another team")
    try:
        language_model.full_clean(exclude=problems)
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            problems.setdefault(name, messages)
    if not problems and _has_twin(language_model):
        problems["model_id"] = [_("This very model, with the same settings, is entered already.")]
    if problems:
        raise ValidationError(dict(problems))


def parameter_problems(parameters: Mapping[str, Any], kind: str = Provider.Kind.OPENAI) -> list[str]:
    """What cannot be sent along in the wire format of such a provider, or not be stored."""
    problems = format_of(kind).check_parameters(parameters)
    names = sorted(OWN_PARAMETERS & parameters.keys())
    problems += [
        _('"%(name)s" has a field or a rule of its own and cannot be given here.') % {"name": n} for n in names
    ]
    try:
        text = json.dumps(parameters, allow_nan=False, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return [*problems, _("NaN and Infinity are no numbers of JSON.")]
    if storable(text) != text:
        problems.append(_("There are characters that cannot be stored."))
    if len(text.encode("utf-8", "replace")) > PARAMETERS_LIMIT_BYTES:
        problems.append(_("This is too long: 32 KB is the limit."))
    return problems


def _has_twin(language_model: LanguageModel) -> bool:
    if language_model.provider is None:
        return False
    twins = LanguageModel.objects.current().filter(
        team=language_model.team, provider=language_model.provider, fingerprint=language_model.fingerprint
    )
    return twins.exclude(pk=language_model.pk).exists()


def _address(language_model: LanguageModel) -> tuple[int | None, str]:
    return language_model.provider_id, language_model.model_id


def _carry_price(row: LanguageModel, *, old_pk: int, versioned: bool, moved: bool) -> None:
    if versioned and not moved:
        copy_price(old_pk=old_pk, language_model=row)
    if moved:
        # What one model costs says nothing of another.
        Price.objects.filter(language_model=row).delete()
        _seed_price(row)


def _seed_price(language_model: LanguageModel) -> None:
    provider = language_model.provider
    seed = seed_price(language_model.model_id, provider.base_url) if provider is not None else None
    if seed is not None:
        Price.objects.create(
            language_model=language_model,
            input_per_million=seed.input_per_million,
            output_per_million=seed.output_per_million,
            source=seed.source,
            valid_from=seed.date or timezone.localdate(),
        )


def _differs(price: PriceFields, current: Price | None) -> bool:
    if current is None:
        return True
    old = (current.input_per_million, current.output_per_million, current.source)
    if (price.input_per_million, price.output_per_million, price.source) != old:
        return True
    return price.valid_from is not None and price.valid_from != current.valid_from


def _values(language_model: LanguageModel) -> dict[str, Any]:
    values = {name: getattr(language_model, name) for name in ModelFields.__dataclass_fields__}
    values["provider"] = language_model.provider.name if language_model.provider else None
    values |= {"pdf_input": str(language_model.pdf_input), "image_input": str(language_model.image_input)}
    return values | {"parameters": dict(language_model.parameters)}


def _price_values(price: Price) -> dict[str, str]:
    return {
        "input_per_million": str(price.input_per_million),
        "output_per_million": str(price.output_per_million),
        "source": price.source,
        "valid_from": price.valid_from.isoformat(),
    }
