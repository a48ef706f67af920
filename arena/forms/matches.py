from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from arena.models import Candidate, Judge
from arena.selectors.matches import MatchCriteria, place_of

ANY, NO_CATEGORY = "", "-"
RESULTS = [
    (ANY, _("any")),
    ("decided", _("decided")),
    ("won", _("won by the candidate")),
    ("lost", _("lost by the candidate")),
    ("tie", _("tie")),
    ("inconclusive", _("inconclusive")),
    ("void", _("void")),
    ("open", _("not yet played")),
    ("withdrawn", _("withdrawn")),
]


DEEDS = [
    (ANY, _("sat on it")),
    ("flipped", _("contradicted itself")),
    ("tie", _("voted for a tie")),
    ("first_seat", _("named the first seat each time")),
    ("second_seat", _("named the second seat each time")),
    ("longer", _("voted for the longer answer")),
    ("shorter", _("voted for the shorter answer")),
    ("played", _("judged a match it played in")),
    ("itself", _("voted for itself")),
    ("not_itself", _("played and did not vote for itself")),
    ("kin", _("voted for its family")),
    ("abstained", _("abstained")),
    ("failed", _("failed")),
    ("excluded", _("was left out as a contestant")),
    ("input_skipped", _("could not read the files")),
]


class MatchFilter(forms.Form):
    """Candidates are named by their place in the tournament, which no outsider can use."""

    candidate = forms.ChoiceField(label=_("Candidate"), required=False)
    against = forms.ChoiceField(label=_("Against"), required=False)
    result = forms.ChoiceField(label=_("Result"), required=False, choices=RESULTS)
    category = forms.ChoiceField(label=_("Category"), required=False)
    judge = forms.ChoiceField(label=_("Judge"), required=False)
    did = forms.ChoiceField(label=_("Who"), required=False, choices=DEEDS)
    other = forms.ChoiceField(label=_("Unlike judge"), required=False)
    error = forms.ChoiceField(label=_("Judge error"), required=False)
    votes = forms.RegexField(
        r"\A(?:none|[AB\-!t]{1,40})\Z",
        label=_("Votes"),
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid": _("Votes are signs out of A, B, -, ! and t.")},
    )
    split = forms.BooleanField(label=_("Split jury"), required=False)
    flip = forms.BooleanField(label=_("Flip"), required=False)
    truncated = forms.BooleanField(label=_("Cut answer"), required=False)

    def __init__(
        self,
        *args: Any,
        candidates: Sequence[Candidate],
        categories: Sequence[str],
        errors: Sequence[str],
        judges: Sequence[Judge] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.by_place = {str(row.position + 1): row.pk for row in candidates}
        self.judge_by_place = {place_of(row): row.pk for row in judges}
        seats = [(ANY, _("any")), *((place_of(row), row.label) for row in judges)]
        self._choices("judge", seats)
        self._choices("other", seats)
        names = [(ANY, _("any")), *((str(row.position + 1), row.label) for row in candidates)]
        self._choices("candidate", names)
        self._choices("against", names)
        self._choices("category", [(ANY, _("all")), *((name or NO_CATEGORY, name or _("none")) for name in categories)])
        self._choices("error", [(ANY, _("any")), *((code, code) for code in errors)])

    def _choices(self, name: str, choices: Sequence[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def criteria(self) -> MatchCriteria:
        """What is understood; what is not shows its error and filters nothing."""
        self.is_valid()
        data = self.cleaned_data
        category = data.get("category", ANY)
        return MatchCriteria(
            candidate=self.by_place.get(data.get("candidate", ANY)),
            against=self.by_place.get(data.get("against", ANY)),
            result=data.get("result", ANY),
            category=None if category == ANY else "" if category == NO_CATEGORY else category,
            error=data.get("error", ANY),
            judge=self.judge_by_place.get(data.get("judge", ANY)),
            did=data.get("did", ANY),
            other=self.judge_by_place.get(data.get("other", ANY)),
            votes=data.get("votes", ANY),
            split=data.get("split", False),
            flip=data.get("flip", False),
            truncated=data.get("truncated", False),
        )
