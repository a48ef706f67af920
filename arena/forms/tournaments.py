from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from arena.judging.protocol import ANSWER_CHARACTER_CAP, CRITERIA_CHARACTER_CAP, PRESETS, Protocol, ProtocolError
from arena.judging.wording import wording_for
from arena.models import LanguageModel, Price, TaskSet, Team, Tournament
from arena.selectors.specs import PAIRING_OF_PRESET, TournamentSpec, prices_of
from arena.selectors.task_sets import categories_of

# What a preset stands for and a tournament may change.
PARTS = (
    "seat_orders",
    "quorum",
    "on_error",
    "on_skip",
    "aggregation",
    "repair_attempts",
    "answer_character_cap",
    "pdf_as_text",
)
OTHER_LANGUAGE = "other"
MOST_MATCHES = 20_000
LARGEST_SEED = 2**63 - 1
PRESET_CHOICES = [("audited", _("Audited")), ("majority", _("Majority"))]
PRESET_NOTES = {
    "audited": _("Every judge sees each pair in both orders; who contradicts itself abstains."),
    "majority": _("Every judge sees each pair once, in a drawn order; most votes win, and failures count as ties."),
}


@dataclass(frozen=True)
class ModelChoice:
    model: LanguageModel
    price: Price | None
    candidate: bool
    judge: bool
    replacement: bool


def _number(label: Any, *, initial: int, low: int, high: int, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        initial=initial,
        min_value=low,
        max_value=high,
        help_text=help_text,
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )


class PanelForm(forms.Form):
    """Who judges, and how."""

    name = forms.CharField(label=_("Name"), max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    judges = forms.MultipleChoiceField(label=_("Judges"), required=False)
    replacements = forms.MultipleChoiceField(label=_("Stand-ins"), required=False)

    preset = forms.ChoiceField(
        label=_("How they judge"), choices=PRESET_CHOICES, initial="audited", widget=forms.RadioSelect
    )
    parts_of = forms.CharField(required=False, widget=forms.HiddenInput)
    seat_orders = forms.TypedChoiceField(
        label=_("Orders"),
        coerce=int,
        choices=[(2, _("both: every pair is seen twice")), (1, _("one, drawn for each match"))],
    )
    quorum = _number(_("Quorum"), initial=2, low=1, high=1000, help_text=_("Votes that must be left to decide."))
    aggregation = forms.ChoiceField(
        label=_("Decision"),
        choices=[
            ("plurality", _("strict plurality, or inconclusive")),
            ("majority", _("most votes; equal ones by judge order")),
        ],
    )
    on_error = forms.ChoiceField(
        label=_("A judge that fails"), choices=[("abstain", _("abstains")), ("tie", _("counts as a tie"))]
    )
    on_skip = forms.ChoiceField(
        label=_("A missing answer"),
        choices=[("void", _("makes the match void")), ("forced_tie", _("is noted as a tie, never rated"))],
    )
    repair_attempts = _number(
        _("Repairs"), initial=1, low=0, high=5, help_text=_("Asked again when a verdict cannot be read.")
    )
    answer_character_cap = _number(
        _("Longest answer"),
        initial=ANSWER_CHARACTER_CAP,
        low=1_000,
        high=10_000_000,
        help_text=_("Characters that a judge is shown of an answer; longer ones are cut and marked."),
    )
    pdf_as_text = forms.BooleanField(
        label=_("Judges that take no PDF read its extracted text"),
        required=False,
        help_text=_("Otherwise they are left out of matches with PDF files."),
    )
    language = forms.ChoiceField(
        label=_("Language of the judges"),
        choices=[("en", _("English")), ("ja", _("Japanese")), (OTHER_LANGUAGE, _("another"))],
    )
    language_other = forms.CharField(
        label=_("Other language"),
        required=False,
        max_length=40,
        help_text=_("Such as German. Only where “another” is chosen."),
    )
    criteria = forms.CharField(
        label=_("Criteria"),
        required=False,
        max_length=CRITERIA_CHARACTER_CAP,
        help_text=_("In place of accuracy, instruction following, completeness, clarity and conciseness."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    budget_usd = forms.DecimalField(
        label=_("Budget"),
        required=False,
        max_digits=12,
        decimal_places=4,
        validators=[MinValueValidator(Decimal("0.0001"))],
        help_text=_("A hard stop: no call leaves that could pass it."),
        widget=forms.NumberInput(attrs={"class": "input-number", "step": "any", "min": "0"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if cleaned.get("language") == OTHER_LANGUAGE and not cleaned.get("language_other"):
            self.add_error("language_other", _("Name the language, or choose one of the list."))
        self.check_more(cleaned)
        if not self.errors:
            cleaned["protocol"] = self._protocol(cleaned)
        return cleaned

    def check_more(self, cleaned: Mapping[str, Any]) -> None:
        """What belongs to one page alone."""

    def choices_of(self, name: str, choices: Sequence[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def _protocol(self, cleaned: Mapping[str, Any]) -> Protocol | None:
        other = cleaned["language"] == OTHER_LANGUAGE
        overrides = {part: cleaned[part] for part in PARTS}
        overrides["language"] = cleaned["language_other"].strip() if other else cleaned["language"]
        overrides["criteria"] = cleaned["criteria"].strip() or None
        try:
            return PRESETS[cleaned["preset"]].with_overrides(overrides)
        except ProtocolError as error:
            for problem in error.problems:
                name, _colon, words = problem.partition(": ")
                field = "language_other" if name == "language" and other else name
                self.add_error(field if field in self.fields else None, words or problem)
            return None


class PlanForm(PanelForm):
    """The choices of the plan page. `strict` asks for everything that a draft needs, a name above all."""

    task_set = forms.ChoiceField(label=_("Task set"))
    categories_of = forms.CharField(required=False, widget=forms.HiddenInput)
    categories = forms.MultipleChoiceField(
        label=_("Categories"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen means all."),
    )
    candidates = forms.MultipleChoiceField(label=_("Candidates"), required=False)
    max_matches = _number(_("Matches"), initial=100, low=1, high=MOST_MATCHES)
    step_size = _number(_("Matches a step"), initial=20, low=1, high=MOST_MATCHES)
    pairing = forms.ChoiceField(
        label=_("Pairing"),
        choices=Tournament.Pairing.choices,
        help_text=_("Round robin goes with audited judging, by uncertainty with majority; any goes with either."),
    )
    seed = _number(_("Seed"), initial=1, low=0, high=LARGEST_SEED, help_text=_("Same seed, same schedule."))
    baseline = forms.ChoiceField(label=_("Baseline"), required=False, help_text=_("A candidate that plays more often."))
    baseline_percent = forms.IntegerField(
        label=_("Its share of matches"),
        required=False,
        validators=[MinValueValidator(0), MaxValueValidator(100)],
        help_text=_("Left empty: as chance has it; with pairing by rating 60%."),
        widget=forms.NumberInput(attrs={"class": "input-number", "min": "0", "max": "100"}),
    )

    def __init__(self, data: QueryDict | None = None, *, team: Team, strict: bool = False, task_set: str = "") -> None:
        self.task_sets = {row.public_id: row for row in TaskSet.objects.filter(team=team).newest_versions()}
        models = LanguageModel.objects.usable().filter(team=team, provider__isnull=False).select_related("provider")
        self.models = {row.public_id: row for row in models.order_by("provider__name", "model_id", "pk")}
        self.prices = prices_of([row.pk for row in self.models.values()])
        chosen = task_set if task_set in self.task_sets else next(iter(self.task_sets), "")
        super().__init__(
            _settled(data) if data is not None else None,
            initial={
                "task_set": chosen,
                "categories_of": chosen,
                "parts_of": "audited",
                "language": "en",
                **preset_parts(PRESETS["audited"]),
            },
        )
        self.strict = strict
        self._offer()

    def full_clean(self) -> None:
        # A plan needs no name yet, and a page that asks for one should not call it optional.
        self.fields["name"].required = self.strict
        super().full_clean()
        self.fields["name"].required = True

    def _offer(self) -> None:
        self.choices_of("task_set", [(key, str(row)) for key, row in self.task_sets.items()])
        names = [(key, row.full_id) for key, row in self.models.items()]
        for name in ("candidates", "judges", "replacements"):
            self.choices_of(name, names)
        self.choices_of("baseline", [("", _("none")), *names])
        task_set = self.task_sets.get(str(self["task_set"].value() or ""))
        self.known_categories = categories_of(task_set) if task_set is not None else []
        offered = [(name, f"{name} ({count})") for name, count in self.known_categories if name]
        self.choices_of("categories", offered)

    def model_rows(self) -> list[ModelChoice]:
        chosen = {name: set(self[name].value() or ()) for name in ("candidates", "judges", "replacements")}
        return [
            ModelChoice(
                model,
                self.prices.get(model.pk),
                *(key in chosen[name] for name in ("candidates", "judges", "replacements")),
            )
            for key, model in self.models.items()
        ]

    def check_more(self, cleaned: Mapping[str, Any]) -> None:
        if cleaned.get("baseline_percent") is not None and not cleaned.get("baseline"):
            self.add_error("baseline", _("Choose which candidate the share is of."))

    def spec(self) -> TournamentSpec:
        data = self.cleaned_data
        chosen = {
            name: [model for key, model in self.models.items() if key in data[name]]
            for name in ("candidates", "judges", "replacements")
        }
        percent = data["baseline_percent"]
        return TournamentSpec(
            name=data["name"],
            task_set=self.task_sets[data["task_set"]],
            candidates=chosen["candidates"],
            judges=chosen["judges"],
            replacement_judges=chosen["replacements"],
            protocol=data["protocol"],
            pairing=data["pairing"],
            max_matches=data["max_matches"],
            step_size=data["step_size"],
            seed=data["seed"],
            budget_usd=data["budget_usd"],
            baseline=self.models.get(data["baseline"]),
            baseline_weight=None if percent is None else percent / 100,
            categories=data["categories"],
        )


def with_parts_of_preset(data: QueryDict) -> QueryDict:
    """Another preset brings its own parts."""
    settled = data.copy()
    preset = str(data.get("preset", ""))
    if preset in PRESETS and data.get("parts_of") != preset:
        for name, value in preset_parts(PRESETS[preset]).items():
            settled[name] = str(value)
        settled["pairing"] = PAIRING_OF_PRESET[preset]
        settled["parts_of"] = preset
    return settled


def _settled(data: QueryDict) -> QueryDict:
    """And another task set has other categories."""
    settled = with_parts_of_preset(data)
    if data.get("categories_of") != data.get("task_set"):
        settled.setlist("categories", [])
        settled["categories_of"] = str(data.get("task_set", ""))
    return settled


def with_standard_criteria(data: QueryDict) -> QueryDict:
    """The criteria that judges go by where none are written, in their language, to be edited."""
    filled = data.copy()
    if not data.get("criteria", "").strip():
        other = data.get("language") == OTHER_LANGUAGE
        filled["criteria"] = wording_for(str(data.get("language_other" if other else "language", ""))).criteria
    return filled


def preset_parts(protocol: Protocol) -> dict[str, Any]:
    return {part: getattr(protocol, part) for part in PARTS}


class BudgetForm(forms.Form):
    budget_usd = forms.DecimalField(
        label=_("Budget"),
        required=False,
        max_digits=12,
        decimal_places=4,
        validators=[MinValueValidator(Decimal("0.0001"))],
        help_text=_("Left empty, nothing stops the tournament but its last match."),
        widget=forms.NumberInput(attrs={"class": "input-number", "step": "any", "min": "0"}),
    )
