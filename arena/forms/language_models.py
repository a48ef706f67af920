from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from arena.models import LanguageModel, Price, Provider, Team
from arena.selectors.language_models import providers_of
from arena.services.language_models import BY_HAND, ModelFields, PriceFields, parameter_problems
from arena.services.providers import ProviderFields, default_base_url

Input = LanguageModel.Input


@dataclass(frozen=True)
class Preset:
    label: str | Promise
    name: str
    base_url: str
    note: str | Promise
    kind: str = Provider.Kind.OPENAI


PRESETS = {
    "openai": Preset("OpenAI", "openai", "https://api.openai.com/v1", _("Needs a key of your OpenAI project.")),
    "anthropic": Preset(
        "Anthropic",
        "anthropic",
        default_base_url(Provider.Kind.ANTHROPIC),
        _("Claude, in the Messages format. Needs a key of your Anthropic workspace."),
        Provider.Kind.ANTHROPIC,
    ),
    "gemini": Preset(
        "Gemini",
        "gemini",
        default_base_url(Provider.Kind.GEMINI),
        _("Google’s Gemini, in the generateContent format. Needs a key of the Gemini API."),
        Provider.Kind.GEMINI,
    ),
    "ollama": Preset(
        "Ollama", "ollama", "http://localhost:11434/v1", _("Runs on your own machine and needs no key. Start it first.")
    ),
    "vllm": Preset(
        "vLLM", "vllm", "http://localhost:8000/v1", _("Needs a key only if the server was started with one.")
    ),
    "openrouter": Preset(
        "OpenRouter",
        "openrouter",
        "https://openrouter.ai/api/v1",
        _("One key for the models of many makers; it reports what each call cost."),
    ),
    "other": Preset(_("Other"), "", "", _("Any server that speaks the OpenAI chat format.")),
}


# Fields of a price, where they stand among others.
FORM_NAMES = {
    "input_per_million": "price_input",
    "output_per_million": "price_output",
    "source": "price_source",
    "valid_from": "price_valid_from",
    "pdf_input": "takes_pdf",
    "image_input": "takes_images",
}


def add_problems(form: forms.Form, error: ValidationError) -> None:
    """Beside the fields that they are about; what has no field here stands above the form."""
    if not hasattr(error, "error_dict"):
        form.add_error(None, error)
        return
    for stored, errors in error.error_dict.items():
        name = FORM_NAMES.get(stored, stored)
        form.add_error(name if name in form.fields and name != NON_FIELD_ERRORS else None, errors)


class ProviderForm(forms.Form):
    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Letters, digits and hyphens. It begins the id of every model: name/model."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    kind = forms.ChoiceField(
        label=_("Format"),
        choices=[(kind.value, kind.label) for kind in Provider.Kind if kind != Provider.Kind.DEMO],
        initial=Provider.Kind.OPENAI,
        help_text=_("The language that the address speaks. It stays as it is once the provider is added."),
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        help_text=_("Without /chat/completions or /messages; it often ends in /v1."),
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=4000,
        # Never sent back, not even after an error elsewhere in the form.
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text=_("Kept encrypted and never shown again."),
    )
    remove_key = forms.BooleanField(label=_("Remove the stored key"), required=False)
    key_variable = forms.CharField(
        label=_("Key from an environment variable"),
        required=False,
        max_length=120,
        help_text=_("Instead of a key: a variable of the server whose name begins with TILTYARD_KEY_."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "code"}),
    )
    max_concurrency = forms.IntegerField(label=_("Calls at the same time"), min_value=1, max_value=512, initial=8)
    requests_per_minute = forms.IntegerField(
        label=_("Calls per minute"), min_value=1, max_value=1_000_000, required=False
    )
    connect_timeout_s = forms.FloatField(label=_("Connection, s"), min_value=0.1, max_value=600, initial=10)
    read_timeout_s = forms.FloatField(
        label=_("Silence, s"),
        min_value=0.1,
        max_value=86_400,
        initial=1200,
    )
    judge_timeout_s = forms.FloatField(label=_("Judge, s"), min_value=0.1, max_value=86_400, initial=300)

    def __init__(self, *args: Any, provider: Provider | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.provider = provider
        kind = provider.kind if provider else str(self["kind"].value() or "")
        # Empty is then the address of the format's maker.
        self.fields["base_url"].required = not (self.is_bound and default_base_url(kind))
        if provider is not None:
            del self.fields["kind"]
        self.key_is_stored = bool(provider and provider.encrypted_key)
        if self.key_is_stored:
            self.fields["key"].label = _("New key")
            self.fields["key"].help_text = _("A key is stored. Leave this empty to keep it.")
        else:
            del self.fields["remove_key"]

    def provider_fields(self) -> ProviderFields:
        names = ProviderFields.__dataclass_fields__.keys() - {"kind"}
        kind = self.provider.kind if self.provider else self.cleaned_data["kind"]
        return ProviderFields(kind=kind, **{name: self.cleaned_data[name] for name in names})


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


class ParametersField(forms.CharField):
    """JSON as typed: after an error the text comes back as it was."""

    widget = forms.Textarea

    def clean(self, value: Any) -> dict[str, Any]:
        text = str(super().clean(value) or "").strip()
        if not text:
            return {}
        try:
            parsed = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            message = _("This is not valid JSON: line %(line)s, column %(column)s.")
            raise ValidationError(message, params={"line": error.lineno, "column": error.colno}) from error
        except (ValueError, RecursionError) as error:
            raise ValidationError(_("NaN and Infinity are no numbers of JSON.")) from error
        if not isinstance(parsed, dict):
            raise ValidationError(_('Write an object, such as {"temperature": 0.7}.'))
        return parsed


class PriceForm(forms.Form):
    price_input = forms.DecimalField(
        label=_("Input, $"), min_value=Decimal(0), max_digits=12, decimal_places=6, required=False
    )
    price_output = forms.DecimalField(
        label=_("Output, $"), min_value=Decimal(0), max_digits=12, decimal_places=6, required=False
    )
    price_source = forms.CharField(label=_("Source"), max_length=200, required=False, help_text=_("Where you read it."))
    price_valid_from = forms.DateField(
        label=_("As of"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("Empty: today."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        given = {name: cleaned.get(name) is not None for name in ("price_input", "price_output")}
        if any(given.values()) and not all(given.values()):
            for name in (name for name in given if not given[name] and name not in self.errors):
                self.add_error(name, _("Give both prices. A price that is not known is not 0."))
        return cleaned

    def price(self) -> PriceFields | None:
        data = self.cleaned_data
        if data.get("price_input") is None or data.get("price_output") is None:
            return None
        source, valid_from = data.get("price_source"), data.get("price_valid_from")
        changed = self.changed_data
        if "price_input" in changed or "price_output" in changed:
            # Source and date that were filled in belong to the old numbers.
            source = source if "price_source" in changed else ""
            valid_from = valid_from if "price_valid_from" in changed else None
        return PriceFields(
            input_per_million=data["price_input"],
            output_per_million=data["price_output"],
            source=source or BY_HAND,
            valid_from=valid_from or timezone.localdate(),
        )


class NewPriceForm(PriceForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["price_input"].required = self.fields["price_output"].required = True


class LanguageModelForm(PriceForm):
    provider = forms.ModelChoiceField(Provider.objects.none(), label=_("Provider"), to_field_name="public_id")
    model_id = forms.CharField(
        label=_("Model id"),
        max_length=200,
        help_text=_("As the provider writes it."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    display_name = forms.CharField(
        label=_("Name"), max_length=200, required=False, help_text=_("Shown on boards instead of the id.")
    )
    family = forms.CharField(
        label=_("Family"),
        max_length=80,
        required=False,
        help_text=_("Its maker. Empty: guessed."),
        widget=forms.TextInput(attrs={"list": "families"}),
    )
    system_prompt = forms.CharField(
        label=_("System prompt"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Stands in for the system message of every sample."),
    )
    parameters = ParametersField(
        label=_("Parameters"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "code", "spellcheck": "false"}),
        help_text=_('A JSON object that goes along with every call, such as {"temperature": 0.7}.'),
    )
    max_tokens = forms.IntegerField(
        label=_("Answer limit, tokens"),
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        help_text=_("A budget needs it, and so does the format of Anthropic."),
    )
    context_tokens = forms.IntegerField(
        label=_("Context, tokens"), min_value=1, max_value=2**31 - 1, required=False, help_text=_("If you know it.")
    )
    takes_pdf = forms.BooleanField(label=_("Takes PDF files"), required=False)
    takes_images = forms.BooleanField(label=_("Takes images"), required=False)
    enabled = forms.BooleanField(
        label=_("Enabled"), required=False, initial=True, help_text=_("Disabled models are not offered to tournaments.")
    )

    def __init__(self, *args: Any, team: Team, language_model: LanguageModel | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice = self.fields["provider"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.queryset = providers_of(team)
        choice.empty_label = None
        self.imported = language_model is not None and language_model.provider is None
        if self.imported:
            del self.fields["provider"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        provider = cleaned.get("provider")
        kind = provider.kind if provider else Provider.Kind.OPENAI
        # Together with whatever else is wrong, not after it.
        for problem in parameter_problems(cleaned.get("parameters") or {}, kind):
            self.add_error("parameters", problem)
        return cleaned

    def model_fields(self) -> ModelFields:
        data = self.cleaned_data
        names = ("model_id", "display_name", "family", "system_prompt", "parameters", "max_tokens", "context_tokens")
        return ModelFields(
            provider=data.get("provider"),
            pdf_input=Input.BASE64 if data["takes_pdf"] else Input.NONE,
            image_input=Input.BASE64 if data["takes_images"] else Input.NONE,
            enabled=data["enabled"],
            **{name: data[name] for name in names},
        )


def initial_of_provider(provider: Provider) -> dict[str, Any]:
    values = {name: getattr(provider, name) for name in ProviderFields.__dataclass_fields__}
    # 10, not 10.0: whole seconds are what people enter.
    return {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in values.items()}


def initial_of_model(language_model: LanguageModel, price: Price | None) -> dict[str, Any]:
    initial = {name: getattr(language_model, name) for name in ModelFields.__dataclass_fields__}
    parameters = language_model.parameters
    initial |= {
        "provider": language_model.provider.public_id if language_model.provider else None,
        "parameters": json.dumps(parameters, indent=2, ensure_ascii=False) if parameters else "",
        "takes_pdf": language_model.pdf_input != Input.NONE,
        "takes_images": language_model.image_input != Input.NONE,
    }
    if price is not None:
        initial |= {
            "price_input": _plain(price.input_per_million),
            "price_output": _plain(price.output_per_million),
            "price_source": price.source,
            "price_valid_from": price.valid_from,
        }
    return initial


def _plain(value: Decimal) -> Decimal:
    """Without idle zeros, and without the exponent that `normalize` gives to 20."""
    return Decimal(f"{value.normalize():f}")
