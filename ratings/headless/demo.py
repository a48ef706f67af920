"""The demo: a team of its own, invented models at an endpoint of our own, a task set, and a tournament."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.urls import reverse

from arena.judging.protocol import AUDITED
from arena.llm.demo.catalogue import DEMO_CANDIDATES, DEMO_JUDGES
from arena.models import Membership, Role, TaskSet, Team, Tournament, User
from arena.services import logins, task_sets, tournaments
from arena.services.language_models import register_demo
from arena.services.tournaments import TournamentSpec

TEAM_NAME = "Demo team"
OWNER_EMAIL = "demo@tiltyard.invalid"
STARTER = "demo"
MATCHES = 200
STEP_SIZE = 20


def demo_team() -> tuple[Team, User]:
    with transaction.atomic():
        owner, _ = User.objects.get_or_create(email=OWNER_EMAIL, defaults={"name": "Demo owner"})
        if owner.has_usable_password():
            owner.set_unusable_password()
            owner.save(update_fields=["password"])
        team = Team.objects.filter(name=TEAM_NAME, memberships__user=owner).first()
        if team is None:
            team = Team.objects.create(name=TEAM_NAME)
            Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    return team, owner


def demo_task_set(team: Team, owner: User) -> TaskSet:
    try:
        return task_sets.import_starter(team=team, starter_id=STARTER, actor=owner)
    except task_sets.NothingChanged as same:
        return same.task_set


def demo_tournament(team: Team, owner: User, base_url: str) -> Tournament:
    """A draft over the demo's models. A second one reuses the answers of the first and asks the judges anew."""
    models = {model.model_id: model for model in register_demo(team, base_url)}
    number = team.tournaments.count() + 1
    spec = TournamentSpec(
        name=f"Demo tournament {number}",
        task_set=demo_task_set(team, owner),
        candidates=[models[model_id] for model_id in DEMO_CANDIDATES],
        judges=[models[model_id] for model_id in DEMO_JUDGES],
        protocol=AUDITED,
        max_matches=MATCHES,
        step_size=STEP_SIZE,
    )
    return tournaments.create_tournament(spec=spec, actor=owner)


def login_link(owner: User, site: str) -> str:
    token = logins.create_login_link(user=owner)
    return f"{site}{reverse('arena:login-link', kwargs={'token': token})}"


def told_in(started_at: dt.datetime | None, finished_at: dt.datetime | None) -> str:
    if started_at is None or finished_at is None:
        return ""
    return f" in {(finished_at - started_at).total_seconds():.0f} s"


def address_of(tournament: Tournament, site: str) -> str:
    kwargs: dict[str, Any] = {"team": tournament.team.public_id, "tournament": tournament.public_id}
    return f"{site}{reverse('arena:tournament-detail', kwargs=kwargs)}"
