from __future__ import annotations

import datetime as dt
from decimal import Decimal
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from model_bakery import baker
from pytest_django import DjangoAssertNumQueries

from arena.models import AuditLog, Call, LanguageModel, Match, Price, Tournament, Trial, Verdict
from arena.services.tournaments import pause_for_budget
from tests.arena.tournament_world import judge, make_task_set, make_tournament
from tests.personas import World
from tests.samples.tournaments import plan_data

HTMX = {"HX-Request": "true"}
LIVE_QUERIES = 12
LIST_QUERIES = 9


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery.current_app.send_task", lambda *_args, **_kwargs: None)


def url(world: World, name: str, tournament: Tournament | None = None, **kwargs: object) -> str:
    more = {"tournament": tournament.public_id} if tournament else {}
    return reverse(f"arena:{name}", kwargs={"team": world.own.team_id, **more, **kwargs})


def own(world: World) -> Tournament:
    tournament: Tournament = world.own.objects["tournament"]
    return tournament


def plan(world: World, client: Client, action: str = "update", **values: Any) -> Any:
    headers = values.pop("headers", {})
    data = plan_data(world.own, action, **values)
    return client.post(url(world, "tournament-plan"), data, headers=headers)


# The plan ---------------------------------------------------------------------------------------------------
def test_the_plan_follows_the_choices(world: World, admin: Client) -> None:
    before = Tournament.objects.count()
    page = plan(world, admin, headers=HTMX, name="").content.decode()
    assert "<html" not in page
    assert 'id="plan-summary"' in page
    assert "Judge calls" in page
    assert "hx-swap-oob" not in page
    assert "You are an impartial judge" in page
    assert Tournament.objects.count() == before


@pytest.mark.parametrize("action", ["draft", "start", "review"])
def test_a_change_saves_nothing_whatever_button_came_along(world: World, admin: Client, action: str) -> None:
    before = Tournament.objects.count()
    assert 'id="plan-summary"' in plan(world, admin, action, headers=HTMX).content.decode()
    assert Tournament.objects.count() == before


def test_the_budget_is_held_against_both_costs(world: World, admin: Client) -> None:
    free = plan(world, admin, headers=HTMX).context["plan"]
    assert (free.expected_share, free.worst_share) == (None, None)
    budget = round(2 * free.expected_usd, 4)
    found = plan(world, admin, headers=HTMX, budget_usd=str(budget))
    reckoned = found.context["plan"]
    assert reckoned.expected_share == float(reckoned.expected_usd / budget)
    assert reckoned.worst_share == float(reckoned.worst_usd / budget) > 1
    page = found.content.decode()
    assert "of it expected" in page
    assert "at worst" in page
    assert 'data-code="worst_over_budget"' in page
    assert 'data-code="small_budget"' not in page


def test_own_criteria_and_language_show_in_the_preview(world: World, admin: Client) -> None:
    page = plan(world, admin, headers=HTMX, language="ja", criteria="Be kind to <b>beginners</b>.").content.decode()
    assert "Be kind to &lt;b&gt;beginners&lt;/b&gt;." in page
    assert "あなたは公正な審査員です" in page
    assert "1. 正確性" not in page
    assert "You are an impartial judge" not in page


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "1. Accuracy: is what it says correct?"),
        ({"language": "ja"}, "1. 正確性: 述べている内容は正しいか。"),
        ({"language": "other", "language_other": "German"}, "1. Accuracy: is what it says correct?"),
        ({"criteria": "My own."}, "My own."),
    ],
)
def test_the_standard_criteria_can_be_written_out_and_edited(
    world: World, admin: Client, values: dict[str, str], expected: str
) -> None:
    response = plan(world, admin, "criteria", **values)
    assert response.context["form"]["criteria"].value().startswith(expected)
    assert response.context["plan"].spec.protocol.criteria.startswith(expected)
    assert Tournament.objects.filter(name__endswith="planned").count() == 0


def test_judges_may_read_extracted_text_and_shorter_answers(world: World, admin: Client) -> None:
    plan(world, admin, "draft", pdf_as_text="on", answer_character_cap="5000")
    protocol = Tournament.objects.get(name=f"{world.own.canary}-planned").juries.get().protocol
    assert (protocol["pdf_as_text"], protocol["answer_character_cap"]) == (True, 5000)
    page = plan(world, admin, answer_character_cap="10").content.decode()
    assert "greater than or equal to 1000" in page


def test_models_are_tested_on_demand(world: World, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    cast = world.own.objects["cast"]
    asked: list[str] = []

    def probe_models(*, language_models: list[LanguageModel], actor: Any) -> dict[int, str]:
        asked.extend(model.model_id for model in language_models)
        good, bad, *_rest = language_models
        stored = {"at": timezone.now().isoformat(), "cost_usd": "0.0001", "latency_ms": 340.0}
        LanguageModel.objects.filter(pk=good.pk).update(
            learned={"probe": {**stored, "ok": True, "sentence": "It answered."}}
        )
        LanguageModel.objects.filter(pk=bad.pk).update(
            learned={"probe": {**stored, "ok": False, "sentence": "The provider refused the key. <i>401</i>"}}
        )
        return {_rest[0].pk: "The environment variable TILTYARD_KEY_X is not set."}

    monkeypatch.setattr("arena.views.plans.probe_models", probe_models)
    address = url(world, "tournament-plan-test")
    page = admin.post(address, plan_data(world.own, "test"), headers=HTMX).content.decode()
    assert sorted(asked) == sorted(model.model_id for model in (*cast.candidates, *cast.judges))
    assert "<html" not in page
    assert "answered in 340 ms" in page
    assert "The provider refused the key. &lt;i&gt;401" in page
    assert "TILTYARD_KEY_X is not set" in page
    assert page.count("not tested yet") == 2
    assert "2 models do not answer" in page
    # It stays known, warns, and without JavaScript the whole page comes back.
    later = plan(world, admin).content.decode()
    assert 'data-code="failed_test"' in later
    assert "answered in 340 ms" in later
    whole = admin.post(address, plan_data(world.own, "test", criteria="Kept criteria")).content.decode()
    assert "<html" in whole
    assert "Kept criteria" in whole
    assert f'action="{url(world, "tournament-plan")}"' in whole


def test_models_of_other_teams_are_not_tested(world: World, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.views.plans.probe_models", lambda **_: pytest.fail("somebody was called"))
    theirs = [model.public_id for model in world.other.objects["cast"].candidates]
    response = admin.post(url(world, "tournament-plan-test"), plan_data(world.own, "test", candidates=theirs))
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_without_javascript_the_whole_page_comes_back_as_it_was_filled_in(world: World, admin: Client) -> None:
    page = plan(world, admin, name="Kept name", criteria="Kept criteria").content.decode()
    assert "<html" in page
    assert "Kept name" in page
    assert "Kept criteria" in page
    assert "Judge calls" in page


def test_another_preset_brings_its_own_parts(world: World, admin: Client) -> None:
    page = plan(world, admin, headers=HTMX, preset="majority").content.decode()
    assert 'id="plan-parts" hx-swap-oob="true"' in page
    assert plan(world, admin, "draft", preset="majority", name="Majority").status_code == HTTPStatus.SEE_OTHER
    protocol = Tournament.objects.get(name="Majority").juries.get().protocol
    assert (protocol["seat_orders"], protocol["aggregation"], protocol["on_error"]) == (1, "majority", "tie")


def test_another_task_set_brings_its_own_categories(world: World, admin: Client) -> None:
    other = make_task_set(world.own.team, 3, name="other", categories=("zebra",))
    page = plan(world, admin, headers=HTMX, task_set=other.public_id, categories=["a"]).content.decode()
    assert "zebra" in page
    assert 'id="plan-categories" hx-swap-oob="true"' in page


def test_a_draft_holds_what_was_chosen(world: World, admin: Client) -> None:
    response = plan(
        world,
        admin,
        "draft",
        quorum="1",
        language="other",
        language_other="German",
        criteria="Be kind.",
        categories=["a"],
        budget_usd="5",
        baseline=world.own.objects["cast"].candidates[1].public_id,
        baseline_percent="40",
    )
    assert response.status_code == HTTPStatus.SEE_OTHER
    draft = Tournament.objects.get(name=f"{world.own.canary}-planned")
    assert (draft.status, draft.categories, draft.budget_usd) == ("draft", ["a"], Decimal(5))
    assert draft.baseline is not None
    assert draft.baseline.language_model == world.own.objects["cast"].candidates[1]
    assert draft.baseline_weight == 0.4
    protocol = draft.juries.get().protocol
    assert (protocol["quorum"], protocol["language"], protocol["criteria"]) == (1, "German", "Be kind.")
    page = admin.get(url(world, "tournament-detail", draft)).content.decode()
    assert "Judge calls" in page


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": ""}, "This field is required"),
        ({"candidates": []}, "at least two candidates"),
        ({"judges": []}, "at least one judge"),
        ({"quorum": "9"}, "The quorum is 9 votes"),
        ({"quorum": "x"}, "Enter a whole number"),
        ({"max_matches": "0"}, "greater than or equal to 1"),
        ({"language": "other"}, "Name the language"),
        ({"language": "other", "language_other": "x; y"}, "must be the name of a language"),
        ({"baseline_percent": "50"}, "Choose which candidate"),
        ({"budget_usd": "-1"}, "greater than or equal"),
        ({"candidates": ["nonsense"]}, "not one of the available choices"),
        ({"seed": "99999999999999999999"}, "less than or equal"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_lost(world: World, admin: Client, values: Any, said: str) -> None:
    before = Tournament.objects.count()
    response = plan(world, admin, "draft", criteria="Kept criteria", **values)
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    page = response.content.decode()
    assert said in page
    assert "Kept criteria" in page
    assert Tournament.objects.count() == before


def test_a_budget_names_what_it_lacks(world: World, admin: Client) -> None:
    Price.objects.all().delete()
    page = plan(world, admin, "draft", budget_usd="5").content.decode()
    assert "A budget needs a price for" in page


def test_models_of_other_teams_cannot_enter(world: World, admin: Client) -> None:
    theirs = [model.public_id for model in world.other.objects["cast"].candidates]
    assert plan(world, admin, "draft", candidates=theirs).status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_the_start_asks_once_more_with_the_ceiling(world: World, admin: Client) -> None:
    before = Tournament.objects.count()
    response = plan(world, admin, "review", budget_usd="5")
    page = response.content.decode()
    assert response.status_code == HTTPStatus.OK
    assert "It may cost up to $5.00, its budget" in page
    assert Tournament.objects.count() == before
    started = plan(world, admin, "start", budget_usd="5", name="Started")
    assert started.status_code == HTTPStatus.SEE_OTHER
    tournament = Tournament.objects.get(name="Started")
    assert tournament.status == Tournament.Status.RUNNING
    assert tournament.created_by == world.own.user("admin")  # type: ignore[arg-type]
    assert tournament.matches.count() == 6


def test_an_empty_team_is_told_what_to_do_first(world: World, admin: Client) -> None:
    Tournament.objects.filter(team=world.own.team).delete()
    world.own.team.task_sets.all().delete()
    assert "Upload a task set" in admin.get(url(world, "tournament-plan")).content.decode()


# A draft ----------------------------------------------------------------------------------------------------
def test_a_draft_is_started_once(world: World, admin: Client) -> None:
    draft = world.own.objects["tournament_draft"]
    assert "is expected to cost" in admin.get(url(world, "tournament-start", draft)).content.decode()
    for _ in range(2):
        assert admin.post(url(world, "tournament-start", draft)).status_code == HTTPStatus.SEE_OTHER
    draft.refresh_from_db()
    assert draft.status == Tournament.Status.RUNNING
    assert AuditLog.objects.filter(action="tournament.start").count() == 1


def test_a_draft_can_be_deleted_and_nothing_else_can(world: World, admin: Client) -> None:
    draft = world.own.objects["tournament_draft"]
    assert admin.post(url(world, "tournament-delete", draft)).status_code == HTTPStatus.SEE_OTHER
    assert not Tournament.objects.filter(pk=draft.pk).exists()
    page = admin.post(url(world, "tournament-delete", own(world)), follow=True).content.decode()
    assert "only drafts can be deleted" in page
    assert Tournament.objects.filter(pk=own(world).pk).exists()


# The live page ----------------------------------------------------------------------------------------------
def test_the_live_page_tells_how_it_stands(world: World, member: Client) -> None:
    tournament = own(world)
    Verdict.objects.filter(tournament=tournament).update(waits=2)
    trial = Trial.objects.filter(requests__tournament=tournament).earliest("pk")
    Trial.objects.filter(pk=trial.pk).update(status="failed", skip_code="TIMEOUT", answer="")
    for cost, code in ((Decimal("0.25"), ""), (None, "SERVER_ERROR")):
        Call.objects.create(
            team=tournament.team,
            tournament=tournament,
            purpose="trial",
            status="error" if code else "ok",
            error_code=code,
            started_at=timezone.now(),
            ended_at=timezone.now(),
            cost_usd=cost,
        )
    page = member.get(url(world, "tournament-detail", tournament)).content.decode()
    for words in ("1 of 4 matches", "$0.2500", "1 call of unknown cost", "no answer in time", "the provider failed"):
        assert words in page
    assert 'hx-trigger="every 2s"' in page
    assert "Raise the timeouts of the provider" in page


def test_polling_asks_little_and_ends(
    world: World, member: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    address = url(world, "tournament-detail", own(world))
    with django_assert_max_num_queries(LIVE_QUERIES):
        response = member.get(address, headers=HTMX)
    assert response.status_code == HTTPStatus.OK
    assert "<html" not in response.content.decode()
    Tournament.objects.filter(pk=own(world).pk).update(status="finished")
    response = member.get(address, headers=HTMX)
    assert response.status_code == 286
    page = response.content.decode()
    assert "every 2s" not in page
    assert 'id="board"' in page
    assert member.get(address).status_code == HTTPStatus.OK


def test_pause_resume_and_stop(world: World, admin: Client) -> None:
    tournament = own(world)
    for name, status in (("pause", "paused"), ("resume", "running"), ("pause", "paused"), ("stop", "stopped")):
        assert admin.post(url(world, f"tournament-{name}", tournament)).status_code == HTTPStatus.SEE_OTHER
        tournament.refresh_from_db()
        assert tournament.status == status
    assert set(tournament.matches.values_list("status", flat=True)) == {"decided", "withdrawn"}
    page = admin.post(url(world, "tournament-resume", tournament), follow=True).content.decode()
    assert "cannot resume" in page


def test_a_budget_that_is_used_up_says_so_and_can_be_raised(world: World, admin: Client, member: Client) -> None:
    tournament = own(world)
    Tournament.objects.filter(pk=tournament.pk).update(budget_usd=1)
    pause_for_budget(
        tournament, "The next call may cost $0.5, and the budget has less than that left.", needed_usd=None
    )
    address = url(world, "tournament-detail", tournament)
    page = admin.get(address).content.decode()
    assert "the budget does not cover the next call" in page
    assert "The next call may cost $0.5" in page
    assert "Change the budget" in page
    assert "Change the budget" not in member.get(address).content.decode()
    response = admin.post(url(world, "tournament-budget", tournament), {"budget_usd": "9", "resume": "1"})
    assert response.status_code == HTTPStatus.SEE_OTHER
    tournament.refresh_from_db()
    assert (tournament.budget_usd, tournament.status, tournament.reason) == (Decimal(9), "running", "")


def test_a_running_tournament_keeps_its_budget(world: World, admin: Client) -> None:
    response = admin.post(url(world, "tournament-budget", own(world)), {"budget_usd": "7"})
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Pause the tournament" in response.content.decode()


def test_members_see_no_buttons(world: World, member: Client) -> None:
    page = member.get(url(world, "tournament-detail", own(world))).content.decode()
    assert "Pause" not in page
    assert "Plan a tournament" not in member.get(url(world, "tournament-list")).content.decode()


def test_the_list_asks_the_same_whatever_its_length(
    world: World, member: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        make_tournament(world.own.objects["cast"], name=f"Run {number}", matches=2)
    with django_assert_max_num_queries(LIST_QUERIES):
        page = member.get(url(world, "tournament-list")).content.decode()
    assert "Run 4" in page
    assert "1 / 4" in page


def test_the_list_says_what_it_cannot_count(world: World, member: Client) -> None:
    tournament = own(world)
    for cost in (Decimal("0.5"), None, None):
        baker.make(Call, tournament=tournament, team=world.own.team, cost_usd=cost, status=Call.Status.OK)
    assert "and 2 calls of unknown cost" in member.get(url(world, "tournament-list")).content.decode()


def test_speed_counts_from_the_last_matches(world: World, member: Client) -> None:
    tournament = own(world)
    address = url(world, "tournament-detail", tournament)
    assert "unknown" in member.get(address).content.decode()
    now = timezone.now()
    for number in range(2, 20):
        source = tournament.matches.get(sequence=1)
        Match.objects.create(
            tournament=tournament,
            step=source.step,
            sequence=100 + number,
            sample=source.sample,
            first=source.first,
            second=source.second,
            imported=True,
            status="decided",
            decided_at=now - dt.timedelta(seconds=number * 3),
        )
    page = member.get(address).content.decode()
    assert "unknown" not in page
    assert "19 of 22 matches" in page


def test_judged_matches_cover_the_session(world: World, member: Client) -> None:
    tournament = own(world)
    for match in tournament.matches.filter(sequence__in=[2, 3]):
        judge(match, ["tie", "tie"], outcome="tie")
    tournament.matches.filter(sequence=4).update(status="void")
    assert "75%" in member.get(url(world, "tournament-detail", tournament)).content.decode()
