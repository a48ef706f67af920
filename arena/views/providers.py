from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from arena.encryption import UnreadableSecret
from arena.forms.language_models import PRESETS, ProviderForm, add_problems, initial_of_provider
from arena.llm.errors import LLMError
from arena.models import Provider, Role
from arena.selectors.language_models import entered_ids, unused_model_count
from arena.services.members import Refused
from arena.services.probes import offered_models
from arena.services.providers import create_provider, delete_provider, update_provider
from arena.services.wire import MissingKey
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other


def _provider(request: TeamRequest, provider: str) -> Provider:
    rows: QuerySet[Provider] = Provider.objects.filter(team=request.team)
    return get_object_or_404(rows, public_id=provider)


def _form_page(request: TeamRequest, form: ProviderForm, provider: Provider | None = None) -> HttpResponse:
    chosen = request.GET.get("preset", "")
    context = {
        "nav_section": "models",
        "form": form,
        "provider": provider,
        "presets": PRESETS,
        "chosen": chosen,
        "preset": PRESETS.get(chosen),
    }
    return render(request, "arena/models/provider_form.html", context, status=422 if form.errors else 200)


@never_cache
@sensitive_post_parameters("key")
@sensitive_variables("key")
@team_view(Role.ADMIN)
def provider_create(request: TeamRequest) -> HttpResponse:
    preset = PRESETS.get(request.GET.get("preset", ""))
    initial = {"name": preset.name, "kind": preset.kind, "base_url": preset.base_url} if preset else {}
    form = ProviderForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            provider = create_provider(
                team=request.team, actor=request.user, fields=form.provider_fields(), key=form.cleaned_data["key"]
            )
        except ValidationError as error:
            add_problems(form, error)
        else:
            messages.success(request, _("%(name)s is added. Next, add its models.") % {"name": provider.name})
            return see_other("arena:provider-models", team=request.team.public_id, provider=provider.public_id)
    return _form_page(request, form)


@never_cache
@sensitive_post_parameters("key")
@sensitive_variables("key")
@team_view(Role.ADMIN)
def provider_edit(request: TeamRequest, provider: str) -> HttpResponse:
    row = _provider(request, provider)
    form = ProviderForm(request.POST or None, provider=row, initial=initial_of_provider(row))
    if request.method == "POST" and form.is_valid():
        try:
            after = update_provider(
                provider=row,
                actor=request.user,
                fields=form.provider_fields(),
                key=form.cleaned_data["key"],
                remove_key=form.cleaned_data.get("remove_key", False),
            )
        except ValidationError as error:
            add_problems(form, error)
        else:
            messages.success(request, _("%(name)s is saved.") % {"name": after.name})
            if row.encrypted_key and not after.encrypted_key and not form.cleaned_data.get("remove_key"):
                messages.warning(request, _("The stored key was removed: it belonged to the former address."))
            return see_other("arena:model-list", team=request.team.public_id)
    return _form_page(request, form, row)


@team_view(Role.ADMIN)
def provider_delete(request: TeamRequest, provider: str) -> HttpResponse:
    row = _provider(request, provider)
    if request.method != "POST":
        context = {"nav_section": "models", "provider": row, "models": unused_model_count(row)}
        return render(request, "arena/models/provider_delete.html", context)
    try:
        delete_provider(provider=row, actor=request.user)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("%(name)s and its models are deleted.") % {"name": row.name})
    return see_other("arena:model-list", team=request.team.public_id)


@never_cache
@team_view(Role.ADMIN)
def provider_models(request: TeamRequest, provider: str) -> HttpResponse:
    """The ids that the provider offers; asked only by POST, since the key leaves the house for it."""
    row = _provider(request, provider)
    context = {"nav_section": "models", "provider": row, "offered": None, "problem": ""}
    if request.method == "POST":
        try:
            ids = offered_models(provider=row)
        except (LLMError, MissingKey, UnreadableSecret) as error:
            context["problem"] = error.message if isinstance(error, LLMError) else str(error)
        else:
            entered = entered_ids(row)
            context["offered"] = [(model_id, model_id in entered) for model_id in ids]
    template = "arena/models/provider_models.html"
    return render(request, f"{template}#offered" if request.htmx else template, context)
