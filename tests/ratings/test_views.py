from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.models import Role
from ratings import services
from ratings.models import Leaderboard, RatingRun
from ratings.views.downloads import safe_cell
from tests.personas import World
from tests.ratings.test_services import DECIDED
from tests.ratings.world import Played, simulated, tournament

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
NAMES = ["=1+1", "Bram", "Cleo", "Dora"]


@pytest.fixture
def played(world: World) -> Played:
    played = tournament(NAMES, DECIDED, team=world.own.team, costs=["0.002", None, "0.004", "0.1"])
    services.refit_due_boards()
    return played


def address(played: Played, name: str = "board", **more: Any) -> str:
    kwargs = {"team": played.tournament.team.public_id, "tournament": played.tournament.public_id, **more}
    return reverse(f"ratings:{name}", kwargs=kwargs)


def text(response: Any) -> str:
    content: bytes = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode()


def test_the_fragment_is_the_part_of_the_page(member: Client, played: Played) -> None:
    page = text(member.get(address(played)))
    fragment = text(member.get(address(played, "board-fragment"), headers=HTMX))
    assert "<html" in page
    assert "<html" not in fragment
    for piece in ("verdict-sentence", "board-bar", "Dora", "unknown"):
        assert piece in page
        assert piece in fragment


def test_the_link_to_the_fragment_leads_to_the_page(member: Client, played: Played) -> None:
    assert member.get(address(played, "board-fragment"))["Location"] == address(played)


@pytest.mark.parametrize("n", [2, 8])
def test_queries_do_not_grow_with_the_candidates(
    n: int, world: World, member: Client, django_assert_num_queries: Any
) -> None:
    played = tournament([f"m{i}" for i in range(n)], simulated(n, 3), team=world.own.team)
    services.refit_due_boards()
    with django_assert_num_queries(10):
        member.get(address(played, "board-fragment"), headers=HTMX)
    with django_assert_num_queries(11):
        member.get(address(played))


def test_reading_writes_nothing(world: World, member: Client) -> None:
    played = tournament(NAMES, DECIDED, team=world.own.team)
    assert member.get(address(played)).status_code == 200
    assert not Leaderboard.objects.filter(tournament=played.tournament).exists()


def test_members_see_both_tie_models(member: Client, played: Played) -> None:
    half, margin = (text(member.get(address(played), {"ties": ties})) for ties in ("half_win", "rao_kupper"))
    assert "?ties=rao_kupper" in half
    assert "?ties=half_win" in margin
    assert member.get(address(played), {"ties": "coin"}).status_code == 404


def test_an_admin_chooses_what_the_team_sees_first(admin: Client, member: Client, played: Played) -> None:
    button = "Show this board first"
    assert button not in text(member.get(address(played), {"ties": "rao_kupper"}))
    assert button in text(admin.get(address(played), {"ties": "rao_kupper"}))
    assert button not in text(admin.get(address(played)))
    response = admin.post(address(played, "board-prefer"), {"ties": "rao_kupper"})
    assert (response.status_code, response["Location"]) == (302, address(played))
    assert "?ties=half_win" in text(member.get(address(played)))
    assert admin.post(address(played, "board-prefer"), {"ties": "coin"}).status_code == 404


def test_csv(member: Client, played: Played) -> None:
    response = member.get(address(played, "board-csv"))
    assert response.streaming
    assert 'filename="spring-check-board.csv"' in response["Content-Disposition"]
    rows = {row["label"]: row for row in csv.DictReader(io.StringIO(text(response).removeprefix("\ufeff")))}
    assert rows["'=1+1"]["mean_cost_usd"] == "0.00200000"
    assert (rows["Bram"]["mean_cost_usd"], rows["Bram"]["answers_of_known_cost"]) == ("", "0")
    assert (rows["Dora"]["rating"], rows["Dora"]["group"], rows["Dora"]["games"]) == ("", "", "0")
    board = Leaderboard.objects.get(tournament=played.tournament, preferred=True)
    stored = board.runs.get().ratings.get(candidate__label="Cleo")
    assert float(rows["Cleo"]["rating"]) == stored.rating


def test_cells_never_begin_a_formula() -> None:
    dangerous = ["=1", "+1", "-1", "@x", "\tx", "\rx"]
    assert [safe_cell(cell) for cell in dangerous] == [f"'{cell}" for cell in dangerous]
    assert [safe_cell(cell) for cell in ("a=1", -1.5, None)] == ["a=1", -1.5, None]


def test_json(member: Client, played: Played) -> None:
    data = json.loads(text(member.get(address(played, "board-json"))))
    assert data["verdict"].startswith("=1+1 ")
    assert data["run"]["comparisons"] == 31
    assert [row["label"] for row in data["candidates"]][-1] == "Dora"
    assert data["lead"]["separated"] is (data["lead"]["ci_lower"] > 0)


def test_history_and_evidence(member: Client, played: Played) -> None:
    played.decide([(0, 1, "first", 1)], step=2)
    services.refit_due_boards()
    board = Leaderboard.objects.get(tournament=played.tournament, preferred=True)
    page = text(member.get(address(played, "run-list")))
    for run in board.runs.all():
        assert address(played, "run-evidence", run=run.public_id) in page
    newest = board.runs.order_by("-id")[0]
    data = json.loads(text(member.get(address(played, "run-evidence", run=newest.public_id))))
    assert sum(row["count"] for row in data["triples"]) == 32
    assert [row["full_id"] for row in data["roster"]] == [c.full_id for c in played.candidates]
    assert data["evidence_hash"] == newest.evidence_hash
    assert [row["rating"] for row in data["ratings"]][3] is None


def test_the_history_takes_the_same_queries_for_any_number_of_runs(
    member: Client, played: Played, django_assert_num_queries: Any
) -> None:
    for step in (2, 3, 4):
        played.decide([(0, 1, "first", 1)], step=step)
        services.refit_due_boards()
    with django_assert_num_queries(10):
        member.get(address(played, "run-list"))


def test_a_run_is_found_under_its_own_tournament_alone(world: World, member: Client, played: Played) -> None:
    other = tournament(NAMES, team=world.own.team)
    run = RatingRun.objects.filter(leaderboard__tournament=played.tournament).first()
    assert run is not None
    assert member.get(address(other, "run-evidence", run=run.public_id)).status_code == 404


def test_raters_stay_blind(world: World, played: Played) -> None:
    assert world.own.user(Role.RATER) is not None
    assert world.client("rater").get(address(played)).status_code == 404
