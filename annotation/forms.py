from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Campaign
from annotation.models.campaigns import MOST_RATERS_PER_PAIR
from annotation.selectors.exports import ExportFilter
from annotation.selectors.pools import PoolFilter, choices_of
from annotation.services.campaigns import CampaignFields
from arena.models import Team, Tournament

MOST_PERCENT = 20


class CampaignForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        help_text=_("Raters see it, so it should name no model."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    tournaments = forms.ModelMultipleChoiceField(
        label=_("Tournaments"), queryset=Tournament.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    guidelines = forms.CharField(
        label=_("Guidelines"),
        required=False,
        max_length=50_000,
        help_text=_("What raters should go by, in Markdown. A change is a new version; each vote says which it saw."),
        widget=forms.Textarea(attrs={"rows": 8}),
    )
    raters_per_pair = forms.IntegerField(
        label=_("Votes per match"),
        initial=3,
        min_value=1,
        max_value=MOST_RATERS_PER_PAIR,
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )
    pairing = forms.ChoiceField(
        label=_("What comes next"), choices=Campaign.Pairing.choices, initial="balanced", widget=forms.RadioSelect
    )
    reveal = forms.ChoiceField(
        label=_("When raters learn the names"),
        choices=Campaign.Reveal.choices,
        initial="at_close",
        widget=forms.RadioSelect,
    )
    self_identification = forms.ChoiceField(
        label=_("Where an answer names its model"),
        choices=Campaign.SelfIdentification.choices,
        initial="mask",
        widget=forms.RadioSelect,
    )
    repeat_percent = forms.IntegerField(
        label=_("Repeats, in percent"),
        initial=8,
        min_value=0,
        max_value=MOST_PERCENT,
        help_text=_("So many pairs come back later, sides swapped. They measure the rater and are never rated."),
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )
    gold_percent = forms.IntegerField(
        label=_("Gold items, in percent"),
        initial=0,
        min_value=0,
        max_value=MOST_PERCENT,
        help_text=_("Pairs whose answer is known. They are made from the pool when the campaign opens."),
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )
    allow_both_bad = forms.BooleanField(label=_("Offer “both bad”"), required=False, initial=True)
    require_reason_on = forms.MultipleChoiceField(
        label=_("Ask for a tag or comment on"),
        choices=Campaign.ReasonOn.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    counts_unblinded = forms.BooleanField(
        label=_("Count the votes of owners and admins, who can see names"), required=False
    )
    categories = forms.MultipleChoiceField(
        label=_("Categories"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen means all."),
    )
    candidates = forms.MultipleChoiceField(
        label=_("Candidates"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Matches between any two of these. None chosen means all."),
    )
    only = forms.ChoiceField(
        label=_("Only where the jury"),
        required=False,
        choices=[
            ("", _("all matches")),
            ("inconclusive", _("came to no decision")),
            ("split", _("was divided")),
        ],
    )
    size = forms.IntegerField(
        label=_("Matches at most"),
        required=False,
        min_value=1,
        help_text=_("Drawn at random. Empty means all."),
        widget=forms.NumberInput(attrs={"class": "input-number"}),
    )

    def __init__(self, *args: Any, team: Team, campaign: Campaign | None = None, **kwargs: Any) -> None:
        if campaign is not None:
            kwargs["initial"] = _initial(campaign)
        super().__init__(*args, **kwargs)
        tournaments = Tournament.objects.filter(team=team).exclude(status=Tournament.Status.DRAFT)
        field = self.fields["tournaments"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = tournaments.order_by("-created_at", "-pk")
        choices = choices_of(tournaments)
        self.fields["categories"].choices = [(one, one) for one in choices.categories]  # type: ignore[attr-defined]
        self.fields["candidates"].choices = choices.candidates  # type: ignore[attr-defined]
        if campaign is not None and campaign.status == Campaign.Status.OPEN:
            # What a vote rests on stays as it is; a browser's word for it is not asked.
            for name, locked in self.fields.items():
                locked.disabled = name not in {"name", "guidelines"}

    def cleaned_fields(self) -> CampaignFields:
        data = self.cleaned_data
        return CampaignFields(
            name=data["name"],
            tournaments=list(data["tournaments"]),
            guidelines=data["guidelines"],
            raters_per_pair=data["raters_per_pair"],
            repeat_share=data["repeat_percent"] / 100,
            gold_share=data["gold_percent"] / 100,
            allow_both_bad=data["allow_both_bad"],
            require_reason_on=data["require_reason_on"],
            reveal=data["reveal"],
            pairing=data["pairing"],
            self_identification=data["self_identification"],
            counts_unblinded=data["counts_unblinded"],
            filters=PoolFilter(
                categories=data["categories"], candidates=data["candidates"], only=data["only"], size=data["size"]
            ),
        )

    def clean_candidates(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["candidates"]
        if len(chosen) == 1:
            raise forms.ValidationError(_("Choose at least two candidates, or none for all."))
        return chosen


def _initial(campaign: Campaign) -> dict[str, Any]:
    newest = campaign.guidelines.order_by("-number").first()
    same = ("name", "raters_per_pair", "pairing", "reveal", "self_identification", "allow_both_bad")
    return {
        **{name: getattr(campaign, name) for name in (*same, "require_reason_on", "counts_unblinded")},
        "tournaments": list(campaign.tournaments.values_list("pk", flat=True)),
        "guidelines": newest.text if newest is not None else "",
        "repeat_percent": round(campaign.repeat_share * 100),
        "gold_percent": round(campaign.gold_share * 100),
        **PoolFilter.from_json(campaign.filters).as_json(),
    }


class GuestInvitationForm(forms.Form):
    label = forms.CharField(
        label=_("For whom"), max_length=200, help_text=_("An e-mail address or a name. The link works once.")
    )


class OpenLinkForm(forms.Form):
    max_sessions = forms.IntegerField(label=_("People at most"), initial=100, min_value=1, max_value=100_000)
    max_sessions_per_network = forms.IntegerField(
        label=_("From one network address"), initial=5, min_value=1, max_value=100_000
    )
    votes_per_session = forms.IntegerField(label=_("Votes of one person"), initial=100, min_value=1, max_value=100_000)


class ExportForm(forms.Form):
    """What of a campaign is taken along; everything may be left empty."""

    since = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("Until"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    rater = forms.CharField(label=_("Rater"), required=False, max_length=64, widget=forms.Select)
    category = forms.CharField(label=_("Category"), required=False, max_length=200, widget=forms.Select)
    source = forms.ChoiceField(
        label=_("Who decided"),
        required=False,
        choices=[("people", _("people")), ("jury", _("the jury")), ("both", _("both"))],
        help_text=_("Both: all events, and preferences on which people and jury agree."),
    )

    def __init__(self, *args: Any, campaign: Campaign, raters: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = choices_of(Tournament.objects.filter(campaigns=campaign))
        self.fields["rater"].widget.choices = [("", _("everybody")), *raters]
        categories = [("", _("all")), *((one, one) for one in choices.categories)]
        self.fields["category"].widget.choices = categories

    def chosen(self) -> ExportFilter:
        """After `is_valid`. What is unknown matches nothing, and the file is empty."""
        data = self.cleaned_data
        return ExportFilter(
            since=data["since"],
            until=data["until"],
            rater=data["rater"],
            category=data["category"],
            source=data["source"] or "people",
        )
