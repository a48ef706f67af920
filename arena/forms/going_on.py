"""Forms of a tournament that is over: how it goes on, and who judges it again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MinValueValidator
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from arena.forms.tournaments import MOST_MATCHES, BudgetForm, ModelChoice, PanelForm, preset_parts, with_parts_of_preset
from arena.judging.protocol import PRESETS
from arena.models import LanguageModel, Tournament
from arena.selectors.extensions import Extension, later_versions
from arena.selectors.rejudging import RejudgeSpec
from arena.selectors.specs import prices_of


def usable_models(tournament: Tournament) -> dict[str, LanguageModel]:
    models = LanguageModel.objects.usable().filter(team=tournament.team_id, provider__isnull=False)
    rows = models.select_related("provider").order_by("provider__name", "model_id", "pk")
    return {row.public_id: row for row in rows}


class ExtensionForm(BudgetForm):
    max_matches = forms.IntegerField(
        label=_("Matches in all"),
        max_value=MOST_MATCHES,
        validators=[MinValueValidator(1)],
        help_text=_("Those that are played count too."),
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )
    candidates = forms.MultipleChoiceField(
        label=_("Further candidates"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("They meet the others on the samples there are, the least played pairs first."),
    )
    task_set = forms.ChoiceField(
        label=_("Samples"),
        required=False,
        help_text=_("A later version of the task set may add samples; those that were played on must still be in it."),
    )

    field_order = ("max_matches", "candidates", "task_set", "budget_usd")

    def __init__(self, data: QueryDict | None = None, *, tournament: Tournament) -> None:
        self.tournament = tournament
        entered = set(tournament.candidates.values_list("language_model__fingerprint", flat=True))
        every = usable_models(tournament)
        self.models = {key: model for key, model in every.items() if model.fingerprint not in entered}
        self.versions = {row.public_id: row for row in later_versions(tournament)}
        initial = {"max_matches": tournament.max_matches, "budget_usd": tournament.budget_usd}
        super().__init__(data, initial=initial)
        names = [(key, f"{model.label} ({model.full_id})") for key, model in self.models.items()]
        self._offer("candidates", names)
        stays = _("%(task_set)s, as before") % {"task_set": tournament.task_set}
        self._offer("task_set", [("", stays), *((key, str(row)) for key, row in self.versions.items())])
        # Nothing to choose among.
        for name, offered in (("candidates", self.models), ("task_set", self.versions)):
            if not offered:
                del self.fields[name]

    def _offer(self, name: str, choices: list[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def extension(self) -> Extension:
        data = self.cleaned_data
        return Extension(
            max_matches=data["max_matches"],
            candidates=[self.models[key] for key in data.get("candidates", ())],
            task_set=self.versions.get(data.get("task_set", "")),
            budget_usd=data["budget_usd"],
        )


class RetryForm(forms.Form):
    answers = forms.BooleanField(label=_("Answers, and the matches that are void without them"), required=False)
    verdicts = forms.BooleanField(label=_("Judge calls, and what they decide"), required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if not cleaned.get("answers") and not cleaned.get("verdicts"):
            raise forms.ValidationError(_("Choose what is to be called again."))
        return cleaned


class RejudgeForm(PanelForm):
    def __init__(self, data: QueryDict | None = None, *, tournament: Tournament) -> None:
        self.tournament = tournament
        self.models = usable_models(tournament)
        self.prices = prices_of([row.pk for row in self.models.values()])
        number = tournament.juries.filter(primary=False).count() + 1
        initial = {
            "name": _("Rejudge %(number)d") % {"number": number},
            "parts_of": "audited",
            "language": "en",
            **preset_parts(PRESETS["audited"]),
        }
        super().__init__(with_parts_of_preset(data) if data is not None else None, initial=initial)
        names = [(key, row.full_id) for key, row in self.models.items()]
        for name in ("judges", "replacements"):
            self.choices_of(name, names)

    def model_rows(self) -> list[ModelChoice]:
        judges, replacements = (set(self[name].value() or ()) for name in ("judges", "replacements"))
        return [
            ModelChoice(
                model, self.prices.get(model.pk), candidate=False, judge=key in judges, replacement=key in replacements
            )
            for key, model in self.models.items()
        ]

    def spec(self) -> RejudgeSpec:
        data = self.cleaned_data
        return RejudgeSpec(
            tournament=self.tournament,
            name=data["name"],
            judges=[model for key, model in self.models.items() if key in data["judges"]],
            replacement_judges=[model for key, model in self.models.items() if key in data["replacements"]],
            protocol=data["protocol"],
            budget_usd=data["budget_usd"],
        )
