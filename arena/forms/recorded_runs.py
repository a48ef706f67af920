from __future__ import annotations

from typing import Any

from django import forms
from django.core.files import File
from django.utils.translation import gettext_lazy as _

MAX_FILES = 20


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or several files."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[File[Any]]:
        given = data if isinstance(data, (list, tuple)) else [data]
        found = [super(FilesField, self).clean(one, initial) for one in given]
        if len(found) > MAX_FILES:
            raise forms.ValidationError(_("Choose at most %(count)d files, or a ZIP of them.") % {"count": MAX_FILES})
        return found


class RunForm(forms.Form):
    # An empty file gets the reader's own sentence, as every other problem does.
    record = FilesField(label=_("Files"), allow_empty_file=True)
