from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from arena.models import Team, User


def navigation(request: HttpRequest) -> dict[str, Any]:
    """What the frame of every page needs: the team at hand and the role in it, the others, whether this is a demo."""
    team, user = getattr(request, "team", None), getattr(request, "user", None)
    teams = Team.objects.none()
    # Only the menu inside a team lists the others, so other pages and fragments ask nothing.
    if team is not None and isinstance(user, User):
        teams = Team.objects.visible_to(user).order_by("name")
    return {
        "nav_team": team,
        "nav_membership": getattr(request, "membership", None),
        "nav_teams": teams,
        "demo_mode": settings.DEMO,
    }
