from __future__ import annotations

import logging

from django.core.files.storage import default_storage
from django.db import transaction

from arena.models import (
    Attachment,
    Call,
    LanguageModel,
    Match,
    Membership,
    Provider,
    RenderedText,
    Role,
    TaskSet,
    Team,
    Tournament,
    Trial,
    UploadDraft,
    User,
)
from arena.services import audit

logger = logging.getLogger(__name__)


@transaction.atomic
def create_team(*, user: User, name: str) -> Team:
    team = Team(name=name.strip())
    team.full_clean()
    team.save()
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    audit.record(team=team, actor=user, action="team.create", target=team.name)
    return team


@transaction.atomic
def rename_team(*, team: Team, actor: User, name: str) -> None:
    old, team.name = team.name, name.strip()
    if old == team.name:
        return
    team.full_clean()
    team.save(update_fields=["name"])
    audit.record(
        team=team, actor=actor, action="team.rename", target=team.name, old={"name": old}, new={"name": team.name}
    )


@transaction.atomic
def delete_team(*, team: Team, actor: User) -> None:
    """Destroy a team with everything in it, files included.

    Bottom up, since rows that others rely on are protected from a plain cascade. The team's audit log goes
    with it, so the server's own log keeps the one line that it happened.
    """
    names = [
        *Attachment.objects.filter(team=team).values_list("file", flat=True),
        *UploadDraft.objects.filter(team=team).values_list("file", flat=True),
    ]
    Call.objects.filter(team=team).delete()
    Match.objects.filter(tournament__team=team).delete()
    Tournament.objects.filter(team=team).delete()
    Trial.objects.filter(team=team).delete()
    UploadDraft.objects.filter(team=team).delete()
    TaskSet.objects.filter(team=team).delete()
    Attachment.objects.filter(team=team).delete()
    LanguageModel.objects.filter(team=team).delete()
    Provider.objects.filter(team=team).delete()
    RenderedText.objects.filter(team=team).delete()
    public_id = team.public_id
    team.delete()
    transaction.on_commit(lambda: _drop_files(names))
    logger.warning("Team %s was deleted by user %s.", public_id, actor.pk)


def _drop_files(names: list[str]) -> None:
    for name in names:
        try:
            default_storage.delete(name)
        except OSError:
            logger.exception("The file %s of a deleted team could not be removed. Remove it by hand.", name)
