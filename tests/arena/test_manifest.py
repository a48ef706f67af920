from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from arena.encryption import encrypt
from arena.manifest import manifest_of, versions
from arena.models import Call, Provider, Sample, Team, Tournament
from tests.arena.tournament_world import Cast, make_cast, make_tournament

pytestmark = pytest.mark.django_db
KEY = "sk-nobody-may-read-this"


@pytest.fixture
def cast() -> Cast:
    return make_cast(Team.objects.create(name="East"))


@pytest.fixture
def tournament(cast: Cast) -> Tournament:
    made = make_tournament(cast)
    Tournament.objects.filter(pk=made.pk).update(settings={"versions": versions(), "headless": {"task_set": "a.jsonl"}})
    made.refresh_from_db()
    return made


def call(tournament: Tournament, **values: Any) -> Call:
    candidate = tournament.candidates.first()
    assert candidate is not None
    now = timezone.now()
    return Call.objects.create(
        team=tournament.team,
        tournament=tournament,
        language_model=candidate.language_model,
        purpose=Call.Purpose.TRIAL,
        status=Call.Status.OK,
        started_at=now,
        ended_at=now,
        **values,
    )


def text_of(tournament: Tournament) -> str:
    return json.dumps(manifest_of(tournament))


def test_the_same_rows_give_the_same_text(tournament: Tournament) -> None:
    first = text_of(tournament)
    assert text_of(Tournament.objects.get(pk=tournament.pk)) == first
    manifest = json.loads(first)
    assert list(manifest) == sorted(manifest)
    assert list(manifest["settings"]["protocol"]) == sorted(manifest["settings"]["protocol"])


def test_it_writes_nothing(tournament: Tournament) -> None:
    with CaptureQueriesContext(connection) as queries:
        manifest_of(tournament)
    assert {query["sql"].split()[0] for query in queries.captured_queries} == {"SELECT"}


def test_no_key_material_is_in_it(tournament: Tournament, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_KEY_MAIN", KEY)
    secret = encrypt(KEY)
    Provider.objects.update(encrypted_key=secret)
    for pinned in tournament.candidates.all():
        pinned.snapshot["base_url"] = f"https://me:{KEY}@host.example/v1"
        pinned.save()
    text = text_of(tournament)
    assert "host.example" in text
    for hidden in (KEY, secret, "TILTYARD_KEY", "base_url", "encrypted_key"):
        assert hidden not in text


def test_what_was_pinned_counts_not_what_is_live(tournament: Tournament) -> None:
    before = manifest_of(tournament)
    model = tournament.candidates.get(position=0).language_model
    model.system_prompt, model.parameters = "Changed.", {"temperature": 2}
    model.save()
    assert manifest_of(tournament) == before


@pytest.mark.parametrize("change", [{"seed": 99}, {"max_matches": 3}, {"pairing": "random"}])
def test_settings_are_in_the_hash(tournament: Tournament, change: dict[str, Any]) -> None:
    before = manifest_of(tournament)["config_sha256"]
    Tournament.objects.filter(pk=tournament.pk).update(**change)
    tournament.refresh_from_db()
    assert manifest_of(tournament)["config_sha256"] != before


def test_a_price_and_a_name_are_not(tournament: Tournament) -> None:
    before = manifest_of(tournament)["config_sha256"]
    candidate = tournament.candidates.get(position=0)
    candidate.snapshot |= {"price": None, "display_name": "Other"}
    candidate.save()
    Tournament.objects.filter(pk=tournament.pk).update(name="Other")
    tournament.refresh_from_db()
    assert manifest_of(tournament)["config_sha256"] == before


@pytest.mark.parametrize("change", [{"input_hash": "other"}, {"category": "other"}])
def test_text_files_and_categories_are_in_the_hash_of_the_prompts(
    tournament: Tournament, change: dict[str, Any]
) -> None:
    before = manifest_of(tournament)["prompts_sha256"]
    first = tournament.task_set.samples.order_by("position").first()
    assert first is not None
    Sample.objects.filter(pk=first.pk).update(**change)
    assert manifest_of(tournament)["prompts_sha256"] != before


def test_only_the_categories_played_are_in_it(tournament: Tournament) -> None:
    Sample.objects.filter(task_set=tournament.task_set, position=0).update(category="alone")
    tournament.categories = ["alone"]
    assert manifest_of(tournament)["prompt_count"] == 1


def test_prices_hosts_and_spend_are_those_of_the_calls(tournament: Tournament) -> None:
    call(tournament, host="one.example", cost_usd="0.25", input_price_usd="1.5", output_price_usd="2", input_tokens=7)
    call(tournament, host="one.example", cost_usd=None)
    manifest = manifest_of(tournament)
    assert "one.example" in manifest["hosts_reached"]
    assert manifest["spend"]["cost_usd"] == "0.25"
    assert manifest["spend"]["calls_of_unknown_cost"] == 1
    assert manifest["counts"]["calls"] == {"trial": 2}
    prices = [(row["input_per_million_usd"], row["output_per_million_usd"]) for row in manifest["prices_used"]]
    assert sorted(prices, key=str) == [("1.5", "2"), (None, None)]


def test_reasoning_parameters_are_named(tournament: Tournament) -> None:
    candidate = tournament.candidates.get(position=0)
    candidate.snapshot["parameters"] = {"reasoning_effort": "low", "top_p": 1}
    candidate.save()
    flags = [entrant["reasoning"] for entrant in manifest_of(tournament)["candidates"]]
    assert flags[0] == {"reasoning_effort": "low"}
    assert set(map(str, flags[1:])) == {"vendor-default"}
