"""Where models are called: providers, their limits and their keys. A key goes in here and never comes out again."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from arena.encryption import encrypt
from arena.llm.guard import check_base_url
from arena.llm.wire import format_of, known_kinds
from arena.models import LanguageModel, Provider, Team, Tournament, User
from arena.services import audit
from arena.services.members import Refused
from arena.services.versions import is_used, renew_fingerprint, used_models
from arena.services.wire import forget_context

KEY_VARIABLE = re.compile(r"TILTYARD_KEY_[A-Za-z0-9_]+")
KEY_LIMIT = 4000
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, kw_only=True)
class ProviderFields:
    """Everything about a provider but its key, which is given apart so that no record of these can hold it."""

    name: str
    # May be empty for a kind that has an address of its own.
    base_url: str
    kind: str = Provider.Kind.OPENAI
    key_variable: str = ""
    max_concurrency: int = 8
    requests_per_minute: int | None = None
    connect_timeout_s: float = 10
    read_timeout_s: float = 1200
    judge_timeout_s: float = 300


def default_base_url(kind: str) -> str:
    """Where the maker of a wire format serves it; empty where many do."""
    return format_of(kind).default_base_url if kind in known_kinds() else ""


@transaction.atomic
@sensitive_variables("key")
def create_provider(*, team: Team, actor: User | None, fields: ProviderFields, key: str = "") -> Provider:
    provider = Provider(team=team)
    _apply(provider, fields)
    _check(provider, key)
    if key := key.strip():
        provider.encrypted_key = encrypt(key)
    provider.save()
    audit.record(team=team, actor=actor, action="provider.create", target=provider.name, new=_values(provider))
    return provider


@transaction.atomic
@sensitive_variables("key")
def update_provider(
    *, provider: Provider, actor: User | None, fields: ProviderFields, key: str = "", remove_key: bool = False
) -> Provider:
    """A stored key stays with the address that it was given for: another host, or plain http, clears it."""
    locked = Provider.objects.select_for_update().select_related("team").get(pk=provider.pk)
    old_values, old_name, old_url = _values(locked), locked.name, locked.base_url
    old_variable = locked.key_variable
    _apply(locked, fields)
    _check(locked, key)
    if locked.name != old_name:
        _refuse_new_name(locked)
    key = key.strip()
    if key:
        locked.encrypted_key = encrypt(key)
    elif remove_key or locked.key_variable or _leads_elsewhere(old_url, locked.base_url):
        locked.encrypted_key = ""
    if locked.key_variable == old_variable and _leads_elsewhere(old_url, locked.base_url):
        # The variable was meant for the other address; it can be entered again.
        locked.key_variable = ""
    locked.save()
    _renew_models(locked, actor)
    new_values = _values(locked)
    if key:
        new_values["key"] = "replaced" if old_values["key"] == "stored" else "stored"
    changed = {name for name in new_values if new_values[name] != old_values[name]}
    if changed:
        audit.record(
            team=locked.team,
            actor=actor,
            action="provider.update",
            target=locked.name,
            old={name: old_values[name] for name in sorted(changed)},
            new={name: new_values[name] for name in sorted(changed)},
        )
    transaction.on_commit(forget_context)
    return locked


@transaction.atomic
def delete_provider(*, provider: Provider, actor: User | None) -> None:
    """Together with its models, as long as no result speaks of them."""
    locked = Provider.objects.select_for_update().select_related("team").get(pk=provider.pk)
    models = LanguageModel.objects.select_for_update().filter(provider=locked)
    names = sorted(set(used_models(models).values_list("model_id", flat=True)))
    if names:
        raise Refused(
            _(
                "%(provider)s cannot be deleted: results rest on its models %(models)s. "
                "Disable them instead, or remove the key."
            )
            % {"provider": locked.name, "models": ", ".join(names)}
        )
    values = _values(locked) | {"models": sorted(models.current().values_list("model_id", flat=True))}
    models.delete()
    audit.record(team=locked.team, actor=actor, action="provider.delete", target=locked.name, old=values)
    locked.delete()
    transaction.on_commit(forget_context)


def _apply(provider: Provider, fields: ProviderFields) -> None:
    for name, value in asdict(fields).items():
        setattr(provider, name, value.strip() if isinstance(value, str) else value)
    provider.base_url = provider.base_url.rstrip("/") or default_base_url(provider.kind)


@sensitive_variables("key")
def _check(provider: Provider, key: str) -> None:
    problems: dict[str, list[str]] = {}
    if provider.base_url:
        found = check_base_url(provider.base_url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
        if not found and provider.kind == Provider.Kind.DEMO:
            # Its port is no part of a model's identity, so it must not lead to any other server.
            host = urlsplit(provider.base_url).hostname
            found = [] if host in LOOPBACK_HOSTS else [_("The demo endpoint runs on this machine only.")]
        if found:
            problems["base_url"] = found
    if Provider.objects.filter(team=provider.team, name=provider.name).exclude(pk=provider.pk).exists():
        problems["name"] = [_("There is a provider of this name already.")]
    if provider.key_variable and not KEY_VARIABLE.fullmatch(provider.key_variable):
        problems["key_variable"] = [
            _("Only environment variables whose names begin with TILTYARD_KEY_ can be read, such as TILTYARD_KEY_MAIN.")
        ]
    if key and (problem := _key_problem(key.strip(), provider)):
        problems["key"] = [problem]
    try:
        # The constraint on the variable's prefix would say the same in the database's words.
        provider.full_clean(validate_constraints=not problems)
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            problems.setdefault(name, messages)
    if problems:
        raise ValidationError(dict(problems))


@sensitive_variables("key")
def _key_problem(key: str, provider: Provider) -> str:
    if provider.key_variable:
        return _("Give a key or a variable, not both.")
    if len(key) > KEY_LIMIT:
        return _("This is too long for a key.")
    if not key.isascii() or not key.isprintable() or " " in key:
        return _("A key has no spaces, line breaks or special characters. Copy it again.")
    return ""


def _leads_elsewhere(old_url: str, new_url: str) -> bool:
    old, new = urlsplit(old_url), urlsplit(new_url)
    less_safe = (old.scheme.lower(), new.scheme.lower()) == ("https", "http")
    return old.netloc.lower() != new.netloc.lower() or less_safe


def _refuse_new_name(provider: Provider) -> None:
    if used_models(LanguageModel.objects.filter(provider=provider)).exists():
        raise ValidationError(
            {"name": [_("Results name models by this name, so it stays. Add a second provider instead.")]}
        )


def _renew_models(provider: Provider, actor: User | None) -> None:
    """Another address may answer differently: what was used there keeps its identity, and new rows take over."""
    models = LanguageModel.objects.select_for_update().current().filter(provider=provider)
    changed = []
    for language_model in models:
        language_model.provider = provider
        if language_model.compute_fingerprint() != language_model.fingerprint:
            changed.append(language_model)
    used = [language_model for language_model in changed if is_used(language_model)]
    _refuse_while_running(used)
    for language_model in changed:
        renew_fingerprint(language_model, actor=actor)


def _refuse_while_running(models: list[LanguageModel]) -> None:
    live = Tournament.objects.filter(status__in=[Tournament.Status.RUNNING, Tournament.Status.PAUSED])
    names = set(live.filter(candidates__language_model__in=models).values_list("name", flat=True))
    names |= set(live.filter(juries__judges__language_model__in=models).values_list("name", flat=True))
    if names:
        message = _("Unfinished tournaments call this address: %(names)s. Finish or stop them first.")
        raise ValidationError({"base_url": [message % {"names": ", ".join(sorted(names))}]})


def _values(provider: Provider) -> dict[str, Any]:
    """For the audit log: that there is a key, never which."""
    names = ProviderFields.__dataclass_fields__
    values = {name: getattr(provider, name) for name in names}
    return values | {"kind": str(provider.kind), "key": "stored" if provider.encrypted_key else "none"}
