from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from arena.models import (
    AuditLog,
    Invitation,
    LanguageModel,
    LoginLink,
    Match,
    Membership,
    Role,
    Sample,
    TaskSet,
    Team,
    Tournament,
    Trial,
    User,
)
from arena.tokens import hash_token

# Owners first: a CASE would say the same at more length, and no team has thousands of members.
_RANK = {role: rank for rank, role in enumerate(Role.values)}
NEWEST = 5


def may_create_team(user: User) -> bool:
    """Superusers may; so may the first account of an installation that has no team yet."""
    if user.is_superuser:
        return True
    if Team.objects.exists():
        return False
    return User.objects.order_by("pk").values_list("pk", flat=True).first() == user.pk


def memberships_of(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("team").order_by("team__name", "pk")


def members_of(team: Team) -> list[Membership]:
    members = Membership.objects.filter(team=team).select_related("user")
    return sorted(members, key=lambda member: (_RANK[member.role], str(member.user).casefold()))


def open_invitations(team: Team) -> QuerySet[Invitation]:
    return Invitation.objects.open().filter(team=team).select_related("invited_by").order_by("-created_at")


def invitation_by_token(token: str) -> Invitation | None:
    return Invitation.objects.select_related("team", "invited_by").filter(token_hash=hash_token(token)).first()


def is_open(invitation: Invitation) -> bool:
    unused = invitation.accepted_at is None and invitation.revoked_at is None
    return unused and invitation.expires_at > timezone.now()


def account_exists(email: str) -> bool:
    return User.objects.filter(email__iexact=email).exists()


def login_link_by_token(token: str) -> LoginLink | None:
    """A link that still opens something; used and expired ones are as good as absent."""
    return (
        LoginLink.objects.select_related("user")
        .filter(token_hash=hash_token(token), used_at=None, expires_at__gt=timezone.now(), user__is_active=True)
        .first()
    )


def audit_entries(team: Team) -> QuerySet[AuditLog]:
    return AuditLog.objects.filter(team=team).select_related("actor").order_by("-created_at", "-pk")


@dataclass(frozen=True)
class TeamContents:
    """What a deletion destroys."""

    members: int
    task_sets: int
    samples: int
    language_models: int
    tournaments: int
    matches: int
    answers: int


def contents_of(team: Team) -> TeamContents:
    return TeamContents(
        members=Membership.objects.filter(team=team).count(),
        task_sets=TaskSet.objects.filter(team=team).count(),
        samples=Sample.objects.filter(task_set__team=team).count(),
        language_models=LanguageModel.objects.filter(team=team).count(),
        tournaments=Tournament.objects.filter(team=team).count(),
        matches=Match.objects.filter(tournament__team=team).count(),
        answers=Trial.objects.filter(team=team).count(),
    )


@dataclass(frozen=True)
class TeamHome:
    task_set_count: int
    task_sets: list[TaskSet]
    language_model_count: int
    language_models: list[LanguageModel]
    tournament_count: int
    tournaments: list[Tournament]

    @property
    def current(self) -> Tournament | None:
        """The newest tournament that has been started: its board is the one to look at."""
        return next((one for one in self.tournaments if one.status != Tournament.Status.DRAFT), None)

    @property
    def next_step(self) -> str:
        """Where a new team stands on the way to its first result; empty once it has a tournament."""
        if not self.task_set_count:
            return "task_set"
        if self.language_model_count < 2:
            return "language_model"
        return "" if self.tournament_count else "tournament"


def home_of(team: Team) -> TeamHome:
    task_sets = TaskSet.objects.filter(team=team).newest_versions().order_by("-created_at", "-pk")
    models = LanguageModel.objects.filter(team=team).usable().select_related("provider").order_by("-created_at", "-pk")
    tournaments = Tournament.objects.filter(team=team).select_related("task_set").order_by("-created_at", "-pk")
    return TeamHome(
        task_set_count=task_sets.count(),
        task_sets=list(task_sets[:NEWEST]),
        language_model_count=models.count(),
        language_models=list(models[:NEWEST]),
        tournament_count=tournaments.count(),
        tournaments=list(tournaments[:NEWEST]),
    )
