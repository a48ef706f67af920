from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from arena.models import Role
from arena.services.tallies import recount
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


def part(played: Played, name: str = "board-detail", **more: Any) -> str:
    """A page of the board that the team prefers."""
    board = Leaderboard.objects.get(tournament=played.tournament, preferred=True)
    return reverse(f"ratings:{name}", kwargs={"team": board.team.public_id, "board": board.public_id, **more})


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
    assert '<option value="half_win" selected>' in half
    assert '<option value="rao_kupper" selected>' in margin
    assert member.get(address(played), {"ties": "coin"}).status_code == 404


def test_an_admin_chooses_what_the_team_sees_first(admin: Client, member: Client, played: Played) -> None:
    button = "Show this board first"
    assert button not in text(member.get(address(played), {"ties": "rao_kupper"}))
    assert button in text(admin.get(address(played), {"ties": "rao_kupper"}))
    assert button not in text(admin.get(address(played)))
    response = admin.post(address(played, "board-prefer"), {"ties": "rao_kupper"})
    assert (response.status_code, response["Location"]) == (302, address(played))
    assert '<option value="rao_kupper" selected>' in text(member.get(address(played)))
    assert admin.post(address(played, "board-prefer"), {"ties": "coin"}).status_code == 404


def test_csv(member: Client, played: Played) -> None:
    response = member.get(part(played, "board-csv", table="ratings"))
    assert response.streaming
    assert 'filename="spring-check-ratings.csv"' in response["Content-Disposition"]
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
    data = json.loads(text(member.get(part(played, "board-json", table="ratings"))))
    assert data["verdict"].startswith("=1+1 ")
    assert data["run"]["comparisons"] == 31
    assert [row["label"] for row in data["candidates"]][-1] == "Dora"
    assert data["lead"]["separated"] is (data["lead"]["ci_lower"] > 0)


def test_history_and_evidence(member: Client, played: Played) -> None:
    played.decide([(0, 1, "first", 1)], step=2)
    services.refit_due_boards()
    board = Leaderboard.objects.get(tournament=played.tournament, preferred=True)
    page = text(member.get(part(played, "board-runs")))
    for run in board.runs.all():
        assert part(played, "run-evidence", run=run.public_id) in page
    newest = board.runs.order_by("-id")[0]
    data = json.loads(text(member.get(part(played, "run-evidence", run=newest.public_id))))
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
        member.get(part(played, "board-runs"))


def test_a_run_is_found_under_its_own_board_alone(world: World, member: Client, played: Played) -> None:
    other = tournament(NAMES, DECIDED, team=world.own.team)
    services.refit_due_boards()
    run = RatingRun.objects.filter(leaderboard__tournament=played.tournament, leaderboard__preferred=True).get()
    assert member.get(part(played, "run-evidence", run=run.public_id)).status_code == 200
    assert member.get(part(other, "run-evidence", run=run.public_id)).status_code == 404


PARTS = ["head-to-head", "compare", "cost", "categories", "over-time", "runs"]


@pytest.mark.parametrize("name", ["detail", *PARTS])
def test_queries_of_each_page_do_not_grow(name: str, world: World, member: Client) -> None:
    """Neither with the candidates nor with the matches; on the board itself twelve at most."""
    found = []
    for n in (3, 9):
        played = tournament([f"m{i}" for i in range(n)], simulated(n, n), team=world.own.team)
        services.refit_due_boards()
        with CaptureQueriesContext(connection) as queries:
            assert member.get(part(played, f"board-{name}")).status_code == 200
        found.append(len(queries))
    # One of them asks whether the board is kept from whoever votes blind.
    assert found[0] == found[1] <= (12 if name == "detail" else 13)


@pytest.mark.parametrize("name", ["detail", *PARTS])
def test_each_page_of_a_board_without_a_fit_says_what_to_do(name: str, world: World, member: Client) -> None:
    played = tournament(NAMES, team=world.own.team)
    services.leaderboard_for(played.tournament, played.jury)
    page = text(member.get(part(played, f"board-{name}")))
    assert ("No fit yet" in page) or ("No match was decided" in page)


def test_the_matrix_shows_the_share_of_points(member: Client, played: Played) -> None:
    page = text(member.get(part(played, "board-head-to-head")))
    # 8 of 11 against Bram, 7 of 9 against Cleo, and Bram against Cleo level.
    for share in ("73%", "27%", "78%", "22%", "50%"):
        assert share in page
    assert "Dora" not in page


def test_two_are_compared_in_a_sentence(member: Client, played: Played) -> None:
    ada, _, cleo, dora = played.candidates
    page = text(member.get(part(played, "board-compare"), {"one": ada.pk, "other": cleo.pk}))
    run = RatingRun.objects.get(leaderboard__tournament=played.tournament, leaderboard__preferred=True)
    ids = run.ahead[0]["candidates"] if run.ahead else []
    assert ids[0] == ada.pk
    share = (run.ahead or [])[0]["upper"][0][ids.index(cleo.pk) - 1]
    assert f"=1+1 is ahead of Cleo in {round(100 * share)}% of resamples." in page
    assert "=1+1 against Cleo directly: 7 won, 0 tied, 2 lost." in page
    backwards = text(member.get(part(played, "board-compare"), {"one": cleo.pk, "other": ada.pk}))
    assert f"=1+1 is ahead of Cleo in {round(100 * share)}% of resamples." in backwards
    # Who cannot be compared is not offered, and a number of somebody else chooses nobody.
    assert member.get(part(played, "board-compare"), {"one": dora.pk, "other": "x"}).status_code == 200


def test_cost_and_speed_have_a_frontier_and_a_table(member: Client, played: Played) -> None:
    page = text(member.get(part(played, "board-cost")))
    assert page.count("board-plot") == 2
    rows = json.loads(text(member.get(part(played, "board-json", table="cost"))))
    best = {row["full_id"].split("/")[1]: row["efficient_on_cost"] for row in rows}
    # Ada is best and cheapest; of Bram no cost is known, which is not free.
    assert best == {"=1+1": True, "Bram": False, "Cleo": False, "Dora": False}
    assert "unknown" in page


def test_ratings_over_time_are_one_point_a_fit(member: Client, played: Played) -> None:
    played.decide([(0, 1, "first", 1)], step=2)
    services.refit_due_boards()
    page = text(member.get(part(played, "board-over-time"), {"show": [played.candidates[1].pk]}))
    assert page.count("chart-point") == 2
    assert "The last 2 fits" in page
    rows = json.loads(text(member.get(part(played, "board-json", table="over-time"))))
    assert sorted({row["comparisons"] for row in rows}) == [31, 32]


def test_categories_too_thin_are_listed(member: Client, played: Played) -> None:
    for sample in played.samples:
        sample.category = "rare" if sample.position < 6 else "=usual"
        sample.save()
    played.decide([(0, 1, "first", 1)], step=2)
    services.refit_due_boards()
    page = text(member.get(part(played, "board-categories")))
    assert "Too few to say" in page
    lines = list(csv.DictReader(io.StringIO(text(member.get(part(played, "board-csv", table="categories")))[1:])))
    assert {line["category"] for line in lines} == {"'=usual", "rare"}
    opened = member.get(
        reverse("ratings:board-open", args=[played.tournament.team.public_id]),
        {
            "tournament": played.tournament.public_id,
            "category": "=usual",
        },
    )
    board = Leaderboard.objects.get(category="=usual")
    assert opened["Location"].endswith(f"/boards/{board.public_id}/")


@pytest.mark.parametrize("table", ["ratings", "head-to-head", "comparisons", "over-time", "cost", "categories", "runs"])
def test_every_table_can_be_taken_along(table: str, member: Client, played: Played) -> None:
    lines = list(csv.reader(io.StringIO(text(member.get(part(played, "board-csv", table=table)))[1:])))
    data = json.loads(text(member.get(part(played, "board-json", table=table))))
    records = data["candidates"] if table == "ratings" else data
    assert len(lines) - 1 == len(records) or (not records and lines == [[]])
    assert not any(cell.startswith(("=", "+", "@")) for line in lines for cell in line)
    assert member.get(part(played, "board-csv", table="secrets")).status_code == 404


def test_wide_boards_come_to_exist_when_first_opened(member: Client, played: Played) -> None:
    team = played.tournament.team
    listing = reverse("ratings:board-list", args=[team.public_id])
    assert "not opened yet" in text(member.get(listing))
    assert not Leaderboard.objects.exclude(scope="tournament").exists()
    opener = reverse("ratings:board-open", args=[team.public_id])
    first = member.get(opener)
    assert member.get(opener)["Location"] == first["Location"]
    board = Leaderboard.objects.exclude(scope="tournament").get()
    assert (board.scope, board.ties) == ("team", "rao_kupper")
    assert "Their ratings follow within a minute" in text(member.get(first["Location"]))
    services.refit_due_boards()
    assert re.search(r"of [2-9] tournaments", text(member.get(first["Location"])))
    assert f"/boards/{board.public_id}/" in text(member.get(listing))
    lineage = played.tournament.task_set.lineage
    assert member.get(opener, {"task_set": lineage})["Location"] != first["Location"]


@pytest.mark.parametrize(
    "asked",
    [
        {"ties": "coin"},
        {"ridge": "0.02"},
        {"ridge": "many"},
        {"ridge": "nan"},
        {"errors": "none"},
        {"task_set": "nothing"},
        {"tournament": "nothing"},
        {"category": "nothing"},
    ],
    ids=str,
)
def test_what_no_board_offers_is_not_found(asked: dict[str, str], world: World, member: Client, played: Played) -> None:
    before = Leaderboard.objects.count()
    assert member.get(reverse("ratings:board-open", args=[world.own.team_id]), asked).status_code == 404
    assert Leaderboard.objects.count() == before


def test_a_board_rated_otherwise_is_never_the_one_that_a_tournament_shows(member: Client, played: Played) -> None:
    opener = reverse("ratings:board-open", args=[played.tournament.team.public_id])
    member.get(opener, {"tournament": played.tournament.public_id, "ridge": "1", "ties": "half_win"})
    board = Leaderboard.objects.get(ridge=1.0)
    services.refit(board.pk)
    assert "ridge 1.0" in text(
        member.get(reverse("ratings:board-detail", args=[board.team.public_id, board.public_id]))
    )
    assert "without a prior" in text(member.get(address(played)))
    assert "without a prior" in text(member.get(address(played), {"ties": "half_win"}))


def test_counts_stand_before_the_first_fit(world: World, member: Client) -> None:
    played = tournament(NAMES, DECIDED, team=world.own.team)
    recount(played.jury)
    page = text(member.get(address(played)))
    assert "Counts so far" in page
    assert page.index("=1+1") < page.index("Cleo")


def test_raters_stay_blind(world: World, played: Played) -> None:
    assert world.own.user(Role.RATER) is not None
    assert world.client("rater").get(address(played)).status_code == 404
