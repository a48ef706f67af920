from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.db.models import ForeignKey
from model_bakery import baker

from arena.models import (
    Attachment,
    Candidate,
    Judge,
    Jury,
    LanguageModel,
    Match,
    Membership,
    Provider,
    Role,
    Sample,
    SampleAttachment,
    Step,
    TaskSet,
    Team,
    Tournament,
    Trial,
    User,
)
from arena.selectors.teams import contents_of
from arena.services.teams import create_team, delete_team, rename_team
from tests.personas import World


def fill(team: Team) -> Attachment:
    """Rows that protect each other from deletion, as a played tournament leaves them."""
    provider = baker.make(Provider, team=team, name="house")
    model = baker.make(LanguageModel, team=team, provider=provider)
    task_set = baker.make(TaskSet, team=team)
    sample = baker.make(Sample, task_set=task_set, messages=[])
    attachment = Attachment(team=team, sha256="0" * 64, content_type="application/pdf", size=4)
    attachment.file.save("canary.pdf", ContentFile(b"%PDF"))
    baker.make(SampleAttachment, sample=sample, attachment=attachment, path="a.pdf")
    tournament = baker.make(Tournament, team=team, task_set=task_set, max_matches=1)
    step = baker.make(Step, tournament=tournament, number=1)
    candidates = [
        baker.make(
            Candidate,
            tournament=tournament,
            language_model=baker.make(LanguageModel, team=team, provider=provider),
            position=position,
        )
        for position in range(2)
    ]
    trials = [
        baker.make(
            Trial, team=team, language_model=candidate.language_model, sample=sample, fingerprint=str(candidate.pk)
        )
        for candidate in candidates
    ]
    baker.make(
        Match,
        tournament=tournament,
        step=step,
        sequence=1,
        sample=sample,
        first=candidates[0],
        second=candidates[1],
        first_trial=trials[0],
        second_trial=trials[1],
    )
    jury = baker.make(Jury, tournament=tournament)
    baker.make(Judge, jury=jury, language_model=model, position=0)
    return attachment


def rows_of(team_id: int) -> dict[str, int]:
    counts = {}
    for model in [*apps.get_app_config("arena").get_models(), *apps.get_app_config("ratings").get_models()]:
        fields = [field for field in model._meta.get_fields() if isinstance(field, ForeignKey)]
        if any(field.related_model is Team for field in fields):
            counts[model.__name__] = model._base_manager.filter(team_id=team_id).count()
    return counts


def test_who_creates_a_team_owns_it(db: None) -> None:
    user = User.objects.create_user("first@example.com")
    team = create_team(user=user, name="  First team ")
    assert team.name == "First team"
    assert Membership.objects.get(team=team).role == Role.OWNER


def test_a_rename_is_logged_with_both_names(world: World) -> None:
    rename_team(team=world.own.team, actor=world.own.user(Role.OWNER), name="Second name")
    entry = world.own.team.audit_log.get(action="team.rename")
    assert (entry.old, entry.new) == ({"name": "CANARY-OWN-team"}, {"name": "Second name"})


@pytest.mark.django_db(transaction=True)
def test_a_deleted_team_leaves_no_row_and_no_file() -> None:
    user = User.objects.create_user("owner@example.com")
    team, kept = create_team(user=user, name="Gone"), create_team(user=user, name="Kept")
    attachment, other = fill(team), fill(kept)
    team_id, before = team.pk, rows_of(kept.pk)
    contents = contents_of(team)
    assert (contents.task_sets, contents.samples, contents.matches, contents.answers) == (1, 1, 1, 2)
    delete_team(team=team, actor=user)
    assert not any(rows_of(team_id).values())
    assert not Team.objects.filter(pk=team_id).exists()
    assert rows_of(kept.pk) == before
    assert not Path(attachment.file.path).exists()
    assert Path(other.file.path).exists()
    assert User.objects.filter(pk=user.pk).exists()
