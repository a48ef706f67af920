from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from arena.models import Team, User


def navigation(request: HttpRequest) -> dict[str, Any]:
    """What the frame of every page needs: the team at hand and the role in it, the others, whether this is a demo."""
    team = getattr(request, "team", None)
    user = getattr(request, "user", None)
    # Only the menu inside a team lists the others, so other pages and fragments ask nothing.
    lists_teams = team is not None and isinstance(user, User)
    return {
        "nav_team": team,
        "nav_membership": getattr(request, "membership", None),
        "nav_teams": Team.objects.visible_to(user).order_by("name") if lists_teams else Team.objects.none(),
        "demo_mode": settings.DEMO,
    }
