"""Entries of the audit log in words: what was done, and from what to what."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from arena.models import AuditLog

register = template.Library()
DIGEST = re.compile(r"[0-9a-f]{40,64}")
ACTIONS = {
    "invitation.create": gettext_lazy("invited"),
    "invitation.revoke": gettext_lazy("withdrew the invitation of"),
    "language_model.create": gettext_lazy("entered the model"),
    "language_model.delete": gettext_lazy("deleted the model"),
    "language_model.price": gettext_lazy("entered a price of"),
    "language_model.probe": gettext_lazy("tested the model"),
    "language_model.version": gettext_lazy("made a new version of"),
    "member.join": gettext_lazy("joined:"),
    "member.leave": gettext_lazy("left:"),
    "member.remove": gettext_lazy("removed the member"),
    "member.reset_link": gettext_lazy("made a login link for"),
    "member.role": gettext_lazy("changed the role of"),
    "provider.create": gettext_lazy("entered the provider"),
    "provider.delete": gettext_lazy("deleted the provider"),
    "provider.update": gettext_lazy("edited the provider"),
    "task_set.create": gettext_lazy("saved the task set"),
    "task_set.delete": gettext_lazy("deleted the task set"),
    "team.create": gettext_lazy("created the team"),
    "team.rename": gettext_lazy("renamed the team"),
    "tournament.budget": gettext_lazy("set the budget of"),
    "tournament.create": gettext_lazy("planned the tournament"),
    "tournament.delete": gettext_lazy("deleted the tournament"),
    "tournament.pause": gettext_lazy("paused the tournament"),
    "tournament.resume": gettext_lazy("resumed the tournament"),
    "tournament.start": gettext_lazy("started the tournament"),
    "tournament.stop": gettext_lazy("stopped the tournament"),
}


@dataclass(frozen=True)
class Change:
    name: str
    before: str
    after: str


@register.filter
def action_words(action: str) -> str:
    return str(ACTIONS.get(action, action))


@register.filter
def changes(entry: AuditLog) -> list[Change]:
    """What differs. A thing that was made or deleted names what it was made of."""
    old, new = entry.old or {}, entry.new or {}
    both = [(name, _in_words(old.get(name)), _in_words(new.get(name))) for name in sorted({**old, **new})]
    return [Change(name.replace("_", " "), before, after) for name, before, after in both if before != after]


def _in_words(value: object) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    return text[:12] if DIGEST.fullmatch(text) else text
