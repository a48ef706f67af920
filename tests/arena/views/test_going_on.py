from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.models import Decision, Jury, Match, Tournament, Verdict
from tests.arena.tournament_world import make_model, make_task_set
from tests.personas import World
from tests.samples.tournaments import rejudge_data


@pytest.fixture
def db(shared_world: World) -> None:
    """In place of the one that would begin every test with an empty database."""


@pytest.fixture
def world(db: None, shared_world: World) -> World:
    return shared_world


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery.current_app.send_task", lambda *_args, **_kwargs: None)


def over(world: World) -> Tournament:
    found: Tournament = world.own.objects["over"]
    return Tournament.objects.get(pk=found.pk)


def url(world: World, name: str, **kwargs: object) -> str:
    named = {"team": world.own.team_id, "tournament": over(world).public_id, **kwargs}
    return reverse(f"arena:{name}", kwargs=named)


def test_continuing_shows_a_plan_before_it_goes_on(admin: Client, world: World) -> None:
    model = make_model(world.own.objects["cast"].candidates[0].provider, "herald", display_name="Herald")
    where = url(world, "tournament-extend")
    assert "Herald" in admin.get(where).content.decode()
    data = {"max_matches": "8", "candidates": [model.public_id]}
    shown = admin.post(where, {**data, "action": "plan"})
    assert (shown.status_code, shown.context["plan"].matches) == (HTTPStatus.OK, 5)
    assert over(world).status == Tournament.Status.FINISHED
    gone_on = admin.post(where, {**data, "action": "start"})
    assert gone_on["Location"] == url(world, "tournament-detail")
    found = over(world)
    assert (found.status, found.max_matches, found.matches.count()) == (Tournament.Status.RUNNING, 8, 8)
    assert found.candidates.get(language_model=model).position == 3
    assert list(found.matches.order_by("sequence").values_list("step__number", flat=True)) == [1, 1, 1, 2, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"max_matches": "3"}, "can only be raised"),
        ({"max_matches": "9", "budget_usd": "0.0001", "candidates": "unpriced"}, "A budget needs a price"),
        ({"max_matches": "9", "task_set": "later"}, "missing from"),
    ],
)
def test_what_keeps_it_from_going_on_is_told(admin: Client, world: World, data: dict[str, str], sentence: str) -> None:
    cast = world.own.objects["cast"]
    later = make_task_set(world.own.team, 2, name="shorter")
    later.lineage, later.version = cast.task_set.lineage, cast.task_set.version + 1
    later.save()
    unpriced = make_model(cast.candidates[0].provider, "unpriced", priced=False)
    words = {"later": later.public_id, "unpriced": unpriced.public_id}
    sent = {name: words.get(value, value) for name, value in data.items()}
    response = admin.post(url(world, "tournament-extend"), {**sent, "action": "start"})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert sentence in response.content.decode()
    assert over(world).status == Tournament.Status.FINISHED


def test_a_retry_queues_only_what_failed(admin: Client, world: World) -> None:
    tournament = over(world)
    failed = Verdict.objects.filter(tournament=tournament, status="failed")
    assert failed.count() == 2
    keys = set(failed.values_list("pk", flat=True))
    page = admin.get(url(world, "tournament-retry")).content.decode()
    assert "2 failed, on 1 matches" in page
    admin.post(url(world, "tournament-retry"), {"verdicts": "on"})
    queued = Verdict.objects.filter(tournament=tournament, status="queued")
    assert set(queued.values_list("pk", flat=True)) == keys
    assert [verdict.earlier[0]["error_code"] for verdict in queued] == ["INVALID_JSON", "INVALID_JSON"]
    assert over(world).status == Tournament.Status.RUNNING
    judging = tournament.matches.get(status=Match.Status.JUDGING)
    # Until the new one is there, the old decision stands.
    assert Decision.objects.current().filter(match=judging).count() == 1


def test_a_stop_in_a_retry_keeps_the_decision_there_was(admin: Client, world: World) -> None:
    admin.post(url(world, "tournament-retry"), {"verdicts": "on"})
    admin.post(url(world, "tournament-stop"), {})
    match = over(world).matches.get(sequence=1)
    assert match.status == Match.Status.DECIDED
    assert Decision.objects.rated().filter(match=match).count() == 1
    assert set(Verdict.objects.filter(match=match, ballot__status="failed").values_list("status", flat=True)) == {
        "failed"
    }


def test_a_rejudge_is_planned_and_started(admin: Client, world: World) -> None:
    where = url(world, "rejudge-create")
    assert admin.get(where).status_code == HTTPStatus.OK
    planned = admin.post(where, rejudge_data(world.own, "update"))
    # Two judged matches; judges that see both orders.
    assert (planned.context["plan"].matches, planned.context["plan"].judge_calls) == (2, 8)
    started = admin.post(where, rejudge_data(world.own, "start", name="Second look", criteria="Only tone."))
    jury = Jury.objects.get(tournament=over(world), name="Second look")
    assert started["Location"] == url(world, "rejudge-detail", jury=jury.public_id)
    assert (jury.primary, jury.protocol["criteria"], jury.last_sequence) == (False, "Only tone.", 2)
    page = admin.get(started["Location"]).content.decode()
    assert "Second look" in page
    for action, status in (("pause", "paused"), ("budget", "paused"), ("resume", "running"), ("stop", "stopped")):
        admin.post(url(world, "rejudge-act", jury=jury.public_id, action=action), {"budget_usd": "2"})
        jury.refresh_from_db()
        assert jury.status == status
    assert jury.budget_usd == 2


def test_a_rejudge_without_judges_is_refused(admin: Client, world: World) -> None:
    data: dict[str, Any] = {**rejudge_data(world.own, "start"), "judges": []}
    response = admin.post(url(world, "rejudge-create"), data)
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Choose at least one judge." in response.content.decode()
    assert over(world).juries.count() == 2


def test_the_manifest_is_a_page_and_a_file(member: Client, world: World) -> None:
    page = member.get(url(world, "tournament-manifest"))
    manifest = json.loads(member.get(url(world, "tournament-manifest-json")).content)
    assert manifest["config_sha256"] in page.content.decode()
    assert manifest["prompts_sha256"] in page.content.decode()
    assert manifest["tournament_id"] == over(world).public_id
