from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse

from arena.models import Judge, Match, Tournament
from tests.arena.ingest.recorded.builders import manifest, round_line
from tests.arena.tournament_world import judge, make_cast, make_tournament
from tests.personas import World


@pytest.fixture
def played(shared_world: World) -> Tournament:
    """Three matches: one for the first, one flipped by the first judge, one that the second judge failed on."""
    cast = make_cast(shared_world.own.team, prefix="jury-", provider=None)
    tournament = make_tournament(cast, matches=3)
    first, second, third = tournament.matches.all()
    judge(first, ["first", "first"])
    judge(second, ["flip", "second"], outcome="inconclusive", status=Match.Status.INCONCLUSIVE)
    judge(third, ["tie", "failed"], outcome="inconclusive", status=Match.Status.INCONCLUSIVE)
    return tournament


def url(world: World, name: str, tournament: Tournament | None = None, **kwargs: Any) -> str:
    found = {"team": world.own.team_id, **kwargs}
    return reverse(f"arena:{name}", kwargs=found | ({"tournament": tournament.public_id} if tournament else {}))


def page(world: World, address: str) -> str:
    response = world.client("member").get(address)
    assert response.status_code == 200
    return unescape(response.content.decode())


pytestmark = pytest.mark.django_db


def test_the_page_says_what_was_found(shared_world: World, played: Tournament) -> None:
    text = page(shared_world, url(shared_world, "jury", played))
    assert "2 of 3 judged matches (67%) have no result." in text
    assert 'aria-current="page">Jury<' in text
    assert "<title>Votes for the first seat: " in text
    assert "INVALID_JSON" in text


def test_every_link_of_the_page_leads_to_matches(shared_world: World, played: Tournament) -> None:
    matches = url(shared_world, "match-list", played)
    text = page(shared_world, url(shared_world, "jury", played))
    links = set(re.findall(rf'href="({re.escape(matches)}\?[^"]+)"', text))
    assert len(links) > 10
    for link in links:
        assert "field-wrong" not in page(shared_world, link)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("judge=1&did=flipped", [2]),
        ("judge=2&did=flipped", []),
        ("judge=1&did=abstained", [2]),
        ("judge=2&did=failed", [3]),
        ("judge=2&error=INVALID_JSON", [3]),
        ("judge=1&error=INVALID_JSON", []),
        ("judge=1&did=tie", [3]),
        ("judge=1&did=first_seat", [2]),
        ("judge=2&did=second_seat", []),
        ("judge=1", [1, 2, 3]),
        ("judge=1&other=2", []),
        ("votes=AA", [1]),
        ("votes=B-", [2]),
        ("votes=!t", [3]),
        ("votes=none", []),
        ("votes=%3Cscript%3E", [1, 2, 3]),
        ("judge=9&did=flipped", [1, 2, 3]),
    ],
)
def test_the_matches_behind_a_figure(shared_world: World, played: Tournament, query: str, numbers: list[int]) -> None:
    response = shared_world.client("member").get(f"{url(shared_world, 'match-list', played)}?{query}")
    assert [row.match.sequence for row in response.context["rows"]] == numbers


def test_matches_by_length_and_kin(shared_world: World, played: Tournament) -> None:
    match = played.matches.get(sequence=1)
    assert match.first_trial is not None
    match.first_trial.characters = 10_000
    match.first_trial.save()
    row = Judge.objects.filter(jury__tournament=played).earliest("position")
    row.snapshot |= {"family": match.first.snapshot["family"]}
    row.save()

    def numbers(query: str) -> list[int]:
        response = shared_world.client("member").get(f"{url(shared_world, 'match-list', played)}?{query}")
        return [row.match.sequence for row in response.context["rows"]]

    assert numbers("judge=1&did=longer") == [1]
    assert numbers("judge=1&did=shorter") == []
    assert numbers("judge=1&did=kin") == [1]
    assert numbers("judge=1&did=played") == []
    row.snapshot |= {"model_id": match.first.snapshot["model_id"]}
    row.save()
    assert numbers("judge=1&did=itself") == [1]
    assert (
        numbers("judge=1&did=not_itself") == [3] if played.matches.get(sequence=3).first_id == match.first_id else True
    )


def test_tables_download_as_csv_and_json(shared_world: World, played: Tournament) -> None:
    client = shared_world.client("member")
    response = client.get(url(shared_world, "jury-table", played, table="judges"))
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["flip_rate_count"] for row in rows] == ["1", "0"]
    assert client.get(url(shared_world, "jury-table", played, table="secrets")).status_code == 404
    data = json.loads(client.get(url(shared_world, "jury-json", played)).content)
    assert data["format"] == "tiltyard.audit"
    assert {row["votes"] for row in data["patterns"]} == {"AA", "B-", "!t"}
    assert data["errors"] == [{"judge": rows[1]["judge"], "error_code": "INVALID_JSON", "verdicts": 2}]


def test_before_the_first_verdict(shared_world: World) -> None:
    cast = make_cast(shared_world.own.team, prefix="early-")
    tournament = make_tournament(cast, matches=1)
    assert "No verdict yet" in page(shared_world, url(shared_world, "jury", tournament))


def test_the_page_reads_a_fixed_number_of_rows(
    shared_world: World, played: Tournament, django_assert_max_num_queries: Any
) -> None:
    client = shared_world.client("member")
    with django_assert_max_num_queries(24):
        assert client.get(url(shared_world, "jury", played)).status_code == 200


# Import ------------------------------------------------------------------------------------------------------
def upload(world: World, role: str, *files: tuple[str, Any], follow: bool = False) -> Any:
    contents = [ContentFile(json.dumps(value).encode(), name=name) for name, value in files]
    return world.client(role).post(url(world, "run-import"), {"record": contents}, follow=follow)


def test_an_admin_imports_a_run(shared_world: World) -> None:
    assert "choose both" in page_of_admin(shared_world)
    files = (("battles.jsonl", round_line()), ("battles.run.json", manifest()))
    response = upload(shared_world, "admin", *files)
    tournament = Tournament.objects.get(imported_hash__gt="")
    assert response["Location"] == url(shared_world, "tournament-detail", tournament)
    again = upload(shared_world, "admin", *files, follow=True)
    assert "This run was imported before" in unescape(again.content.decode())
    detail = url(shared_world, "match-detail", tournament, match=tournament.matches.get().public_id)
    text = page(shared_world, detail)
    assert "maker/judge-a says so." in text
    assert "were not recorded" in text
    audit = page(shared_world, url(shared_world, "jury", tournament))
    assert "not recorded" in audit
    assert "manifest.preflight.counts.matches" in audit


def page_of_admin(world: World) -> str:
    return unescape(world.client("admin").get(url(world, "run-import")).content.decode())


def test_what_is_wrong_is_told_and_nothing_stored(shared_world: World) -> None:
    response = upload(shared_world, "admin", ("battles.jsonl", round_line(winner="carol")))
    assert response.status_code == 422
    text = unescape(response.content.decode())
    assert "Nothing was imported." in text
    assert "battles.jsonl" in text
    assert "carol" in text
    assert not Tournament.objects.filter(imported_hash__gt="").exists()
    empty = shared_world.client("admin").post(url(shared_world, "run-import"), {})
    assert empty.status_code == 422


def test_markup_in_a_record_stays_text(shared_world: World) -> None:
    upload(shared_world, "admin", ("battles.jsonl", round_line(model_a="<b>ada</b>", winner="<b>ada</b>")))
    tournament = Tournament.objects.get(imported_hash__gt="")
    response = shared_world.client("member").get(url(shared_world, "jury", tournament))
    assert b"<b>ada" not in response.content
