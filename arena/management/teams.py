"""Which team a command is about."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db.models import Q

from arena.models import Team


def team_named(wanted: str) -> Team:
    teams = list(Team.objects.filter(Q(public_id=wanted) | Q(name=wanted)) if wanted else Team.objects.all()[:2])
    if len(teams) == 1:
        return teams[0]
    if wanted:
        how = "No team has" if not teams else "Several teams have"
        raise CommandError(f"{how} the name or id {wanted!r}." + (" Use the id." if teams else ""))
    raise CommandError(
        "There are several teams: say which by --team."
        if teams
        else "There is no team yet: make one on the site first."
    )
