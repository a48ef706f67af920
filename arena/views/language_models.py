from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from arena.encryption import UnreadableSecret
from arena.forms.language_models import PRESETS, LanguageModelForm, NewPriceForm, add_problems, initial_of_model
from arena.llm.families import KNOWN_FAMILIES
from arena.models import LanguageModel, Role
from arena.selectors.language_models import (
    model_page,
    models_by_provider,
    probe_of,
    providers_of,
    quirks_of,
)
from arena.services.language_models import (
    add_price,
    create_language_model,
    delete_language_model,
    set_enabled,
    update_language_model,
)
from arena.services.members import Refused
from arena.services.probes import probe_model
from arena.services.wire import MissingKey, current_price
from arena.views.access import TeamRequest, team_view
from arena.views.responses import see_other


def _language_model(request: TeamRequest, public_id: str) -> LanguageModel:
    rows = LanguageModel.objects.filter(team=request.team).select_related("provider")
    return get_object_or_404(rows, public_id=public_id)


def _to(request: TeamRequest, language_model: LanguageModel, fragment: str = "") -> HttpResponse:
    return see_other(
        "arena:model-detail",
        team=request.team.public_id,
        language_model=language_model.public_id,
        fragment=fragment,
    )


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def model_list(request: TeamRequest) -> HttpResponse:
    context = {
        "nav_section": "models",
        "groups": models_by_provider(request.team),
        "presets": PRESETS,
        "manages": request.membership.at_least(Role.ADMIN),
    }
    return render(request, "arena/models/model_list.html", context)


def _form_page(
    request: TeamRequest, form: LanguageModelForm, language_model: LanguageModel | None = None
) -> HttpResponse:
    context = {
        "nav_section": "models",
        "form": form,
        "language_model": language_model,
        "families": KNOWN_FAMILIES,
    }
    return render(request, "arena/models/model_form.html", context, status=422 if form.errors else 200)


@team_view(Role.ADMIN)
def model_create(request: TeamRequest) -> HttpResponse:
    if not providers_of(request.team).exists():
        messages.info(request, _("A model is called at a provider, so add that first."))
        return see_other("arena:provider-create", team=request.team.public_id)
    initial = {name: request.GET.get(name, "") for name in ("provider", "model_id")}
    form = LanguageModelForm(request.POST or None, team=request.team, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            language_model = create_language_model(
                team=request.team, actor=request.user, fields=form.model_fields(), price=form.price()
            )
        except ValidationError as error:
            add_problems(form, error)
        else:
            messages.success(request, _("%(model)s is added. Test it before it competes.") % {"model": language_model})
            return _to(request, language_model)
    return _form_page(request, form)


@team_view(Role.ADMIN)
def model_edit(request: TeamRequest, language_model: str) -> HttpResponse:
    row = _language_model(request, language_model)
    initial = initial_of_model(row, current_price(row.pk))
    form = LanguageModelForm(request.POST or None, team=request.team, language_model=row, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            after = update_language_model(
                language_model=row, actor=request.user, fields=form.model_fields(), price=form.price()
            )
        except ValidationError as error:
            add_problems(form, error)
        except Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            text = _("%(model)s is saved.") if after.pk == row.pk else _("%(model)s is saved as a new version.")
            messages.success(request, text % {"model": after})
            return _to(request, after)
    return _form_page(request, form, row)


@team_view(Role.ADMIN)
def model_delete(request: TeamRequest, language_model: str) -> HttpResponse:
    row = _language_model(request, language_model)
    if request.method != "POST":
        return render(request, "arena/models/model_delete.html", {"nav_section": "models", "language_model": row})
    try:
        delete_language_model(language_model=row, actor=request.user)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return _to(request, row)
    messages.success(request, _("%(model)s is deleted.") % {"model": row})
    return see_other("arena:model-list", team=request.team.public_id)


def _detail(
    request: TeamRequest,
    row: LanguageModel,
    *,
    price_form: NewPriceForm | None = None,
    problem: str = "",
) -> HttpResponse:
    context = {
        "nav_section": "models",
        "language_model": row,
        "page": model_page(row),
        "price": current_price(row.pk),
        "price_form": price_form or NewPriceForm(),
        "probe": probe_of(row),
        "quirks": quirks_of(row),
        "problem": problem,
        "manages": request.membership.at_least(Role.ADMIN),
    }
    wrong = price_form is not None and price_form.errors
    return render(request, "arena/models/model_detail.html", context, status=422 if wrong else 200)


@team_view(Role.MEMBER, methods=("GET", "HEAD"))
def model_detail(request: TeamRequest, language_model: str) -> HttpResponse:
    return _detail(request, _language_model(request, language_model))


@never_cache
@team_view(Role.ADMIN, methods=("POST",))
def model_test(request: TeamRequest, language_model: str) -> HttpResponse:
    row = _language_model(request, language_model)
    problem = ""
    try:
        probe_model(language_model=row, actor=request.user, with_pdf=bool(request.POST.get("with_pdf")))
    except (MissingKey, UnreadableSecret) as error:
        problem = str(error)
    if request.htmx:
        row.refresh_from_db(fields=["learned"])
        return _detail(request, row, problem=problem)
    if problem:
        messages.error(request, problem)
    return _to(request, row, "test")


@team_view(Role.ADMIN, methods=("POST",))
def model_price(request: TeamRequest, language_model: str) -> HttpResponse:
    row = _language_model(request, language_model)
    form = NewPriceForm(request.POST)
    if form.is_valid():
        price = form.price()
        assert price is not None
        try:
            add_price(language_model=row, actor=request.user, price=price)
        except ValidationError as error:
            add_problems(form, error)
        else:
            messages.success(request, _("The price is noted. Calls from now on are counted at it."))
            return _to(request, row, "prices")
    return _detail(request, row, price_form=form)


@team_view(Role.ADMIN, methods=("POST",))
def model_enabled(request: TeamRequest, language_model: str) -> HttpResponse:
    row = _language_model(request, language_model)
    enabled = request.POST.get("enabled") == "1"
    try:
        set_enabled(language_model=row, actor=request.user, enabled=enabled)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        text = _("%(model)s is enabled.") if enabled else _("%(model)s is disabled; no new tournament will offer it.")
        messages.success(request, text % {"model": row})
    return _to(request, row)
