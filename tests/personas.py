"""Two complete teams, and the people who may or may not see their pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from arena.models import Membership, Role, Team, User

PASSWORD = "a horse that counts to nine"
PERSONAS = ("owner", "admin", "member", "rater", "guest", "stranger", "anonymous")


@dataclass
class Side:
    """One of the two teams. Every name in it carries `canary`, so that a leak shows wherever it comes out."""

    name: str
    team: Team
    members: dict[Role, Membership]
    # What other areas add, by a name of their choice: see tests/url_samples.py.
    objects: dict[str, Any] = field(default_factory=dict)

    @property
    def canary(self) -> str:
        return f"CANARY-{self.name}"

    @property
    def team_id(self) -> str:
        return self.team.public_id

    def user(self, role: Role) -> User:
        return self.members[role].user


@dataclass
class World:
    own: Side
    other: Side

    def user(self, persona: str) -> User | None:
        """The stranger owns the other team; anonymous is nobody, and a guest has a cookie of one campaign alone."""
        if persona in {"anonymous", "guest"}:
            return None
        return self.other.user(Role.OWNER) if persona == "stranger" else self.own.user(Role(persona))

    def client(self, persona: str) -> Client:
        client = Client()
        if user := self.user(persona):
            client.force_login(user)
        if persona == "guest":
            client.cookies[self.own.objects["guest_cookie_name"]] = self.own.objects["guest_cookie"]
        return client


def make_side(name: str, extend: list[Callable[[Side], None]]) -> Side:
    team = Team.objects.create(name=f"CANARY-{name}-team")
    members = {}
    for role in Role:
        email = f"canary-{name}-{role.value}@example.com".lower()
        user = User.objects.create_user(email, PASSWORD, name=f"CANARY-{name}-{role.value}")
        members[role] = Membership.objects.create(team=team, user=user, role=role)
    side = Side(name=name, team=team, members=members)
    for function in extend:
        function(side)
    return side
