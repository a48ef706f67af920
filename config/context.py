from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from arena.models import Team


def navigation(request: HttpRequest) -> dict[str, Any]:
    """What the frame of every page needs: the team at hand, the others, and whether this is a demo."""
    teams: Any = []
    if getattr(request, "user", None) is not None and request.user.is_authenticated:
        teams = Team.objects.visible_to(request.user).order_by("name")
    return {"nav_team": getattr(request, "team", None), "nav_teams": teams, "demo_mode": settings.DEMO}
