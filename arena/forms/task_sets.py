from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from arena.models import TaskSet, UploadDraft

ANY = ""
NEW = "new"
NO_CATEGORY = "-"


class UploadForm(forms.Form):
    # An empty file gets the reader's own sentence, as every other problem does.
    file = forms.FileField(label=_("File"), allow_empty_file=True)
    new_version_of = forms.CharField(required=False, max_length=16, widget=forms.HiddenInput)


class SaveDraftForm(forms.Form):
    replaces = forms.ChoiceField(
        label=_("Save as"),
        help_text=_("A new version keeps the name; tournaments that ran stay with the version they used."),
    )
    name = forms.CharField(
        label=_("Name of the task set"),
        max_length=200,
        error_messages={"required": _("Give the task set a name.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, draft: UploadDraft, task_sets: Sequence[TaskSet], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.task_sets = {task_set.public_id: task_set for task_set in task_sets}
        versions = [
            (task_set.public_id, _("Version %(number)d of “%(name)s”") % _next(task_set)) for task_set in task_sets
        ]
        replaces = self.fields["replaces"]
        assert isinstance(replaces, forms.ChoiceField)
        replaces.choices = [(NEW, _("A new task set")), *versions]
        # A new version keeps the name of its lineage.
        self.fields["name"].required = self.data.get("replaces", NEW) == NEW
        self.initial = {"name": draft.name, "replaces": _newest_id(draft, task_sets)}

    def replaced(self) -> TaskSet | None:
        return self.task_sets.get(self.cleaned_data["replaces"])


def _next(task_set: TaskSet) -> dict[str, Any]:
    return {"number": task_set.version + 1, "name": task_set.name}


def _newest_id(draft: UploadDraft, task_sets: Sequence[TaskSet]) -> str:
    lineage = draft.replaces.lineage if draft.replaces else None
    return next((task_set.public_id for task_set in task_sets if task_set.lineage == lineage), NEW)


class SampleFilter(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("Words of a prompt, or an id")}),
    )
    category = forms.ChoiceField(label=_("Category"), required=False)

    def __init__(self, *args: Any, categories: Sequence[tuple[str, int]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["category"]
        assert isinstance(field, forms.ChoiceField)
        named = [(name, f"{name} ({count})") for name, count in categories if name]
        unnamed = [(NO_CATEGORY, _("none (%(count)d)") % {"count": count}) for name, count in categories if not name]
        field.choices = [(ANY, _("All")), *named, *unnamed]

    def filters(self) -> dict[str, Any]:
        """What is understood; what is not shows its error and filters nothing."""
        self.is_valid()
        category = self.cleaned_data.get("category", ANY)
        return {
            "q": self.cleaned_data.get("q", ""),
            "category": None if category == ANY else "" if category == NO_CATEGORY else category,
        }
