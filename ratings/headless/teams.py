"""Which team a run belongs to."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from arena.models import Team
from arena.services import audit
from ratings.headless.yaml_tree import ConfigError

FIRST_TEAM = "Headless"


def team_for(wanted: str) -> Team:
    """The one named, or the only one. An installation without any gets its first, so that a run needs no site."""
    named = Team.objects.filter(Q(public_id=wanted) | Q(name=wanted)) if wanted else Team.objects.all()
    found = list(named[:2])
    if len(found) == 1:
        return found[0]
    if not Team.objects.exists():
        return _first(wanted or FIRST_TEAM)
    names = ", ".join(Team.objects.order_by("name").values_list("name", flat=True)[:20])
    if not wanted:
        raise ConfigError([f"There are several teams; say which by --team: {names}."])
    how = "Several teams have" if found else "No team has"
    raise ConfigError([f"{how} the name or id {wanted}; there are {names}."])


@transaction.atomic
def _first(name: str) -> Team:
    team = Team(name=name)
    team.full_clean()
    team.save()
    audit.record(team=team, actor=None, action="team.create", target=team.name)
    return team
