from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from arena.judging.protocol import MAJORITY
from arena.models import Decision, Jury, LanguageModel, Price, Provider, Team, Tournament
from ratings import services
from ratings.models import Leaderboard, RatingRun
from ratings.reports import Given, file_name, report_html
from ratings.reports.document import recorded_manifest
from ratings.reports.examples import Tellable
from ratings.reports.provenance import provenance_of
from tests.personas import World
from tests.ratings.report_world import EVIL, reported
from tests.ratings.world import Played, tournament

pytestmark = pytest.mark.django_db
MOST_BYTES = 2_000_000
# Attributes that name something to load or to go to.
ADDRESSES = frozenset(
    {
        "action",
        "background",
        "cite",
        "classid",
        "codebase",
        "data",
        "formaction",
        "href",
        "icon",
        "longdesc",
        "manifest",
    }
    | {"ping", "poster", "profile", "src", "srcset", "usemap", "xlink:href"}
)
LOADING = frozenset(
    {"applet", "audio", "base", "embed", "form", "frame", "iframe", "img", "input", "link", "object", "script"}
    | {"source", "video"}
)


@pytest.fixture(scope="module")
def _lasting(django_db_setup: None, django_db_blocker: Any) -> Iterator[Played]:
    """60 matches, put in once for the module."""
    with django_db_blocker.unblock(), transaction.atomic():
        cache.clear()
        yield reported(games=10)
        transaction.set_rollback(True)
    # Audits are kept by the keys of rows that are gone now.
    cache.clear()


@pytest.fixture
def played(_lasting: Played, django_db_blocker: Any) -> Iterator[Played]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield _lasting
        transaction.set_rollback(True)


def fresh(played: Played) -> Tournament:
    return Tournament.objects.select_related("team", "task_set").get(pk=played.tournament.pk)


class Markup(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        (self.styles if self._inside == "style" else self.words).append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


# The same for ever -------------------------------------------------------------------------------------------
def test_it_stays_the_same_whatever_is_changed_afterwards(played: Played, settings: Any) -> None:
    before = report_html(fresh(played))
    team = played.tournament.team
    LanguageModel.objects.filter(team=team).update(
        display_name="Renamed", family="renamed", parameters={"temperature": 2}, enabled=False, max_tokens=7
    )
    for model in LanguageModel.objects.filter(team=team):
        Price.objects.create(
            language_model=model,
            input_per_million=Decimal(999),
            output_per_million=Decimal(999),
            valid_from=timezone.now(),
        )
    Provider.objects.filter(team=team).update(name="renamed-vendor", base_url="https://elsewhere.example/v9")
    Team.objects.filter(pk=team.pk).update(name="Renamed team")
    Jury.objects.create(tournament=played.tournament, primary=False, protocol=MAJORITY.to_json())
    services.prefer_ties(tournament=played.tournament, jury=played.jury, ties="rao_kupper", actor=None)
    settings.RATING_RIDGE = 5.0
    board = Leaderboard.objects.get(jury=played.jury, ties="half_win")
    assert services.refit(board.pk) is not None
    settings.LANGUAGE_CODE, settings.TIME_ZONE = "ja", "Asia/Tokyo"
    cache.clear()
    with translation.override("ja"), timezone.override("Asia/Tokyo"):
        after = report_html(fresh(played))
    assert after == before
    assert "Renamed" not in after
    assert "elsewhere.example" not in after


def test_what_the_records_say_is_what_changes_it(played: Played) -> None:
    before = report_html(fresh(played))
    decision = Decision.objects.current().filter(jury=played.jury, outcome="first").first()
    assert decision is not None
    Decision.objects.filter(pk=decision.pk).update(superseded_at=timezone.now())
    Decision.objects.create(jury=played.jury, match=decision.match, outcome="second")
    services.refit(Leaderboard.objects.get(jury=played.jury, ties="half_win").pk)
    assert report_html(fresh(played)) != before


def test_of_runs_on_the_same_results_the_first_counts(played: Played) -> None:
    board = Leaderboard.objects.get(jury=played.jury, ties="half_win")
    first = board.runs.get()
    again = RatingRun.objects.get(pk=first.pk)
    again.pk, again._state.adding, again.public_id, again.evidence_hash = None, True, "later-run", "f" * 64
    again.save()
    html = report_html(fresh(played))
    assert first.evidence_hash in html
    assert again.evidence_hash not in html


# Alone and inert ---------------------------------------------------------------------------------------------
def test_nothing_is_loaded_and_nothing_leads_away(played: Played) -> None:
    markup = Markup(report_html(fresh(played)))
    addresses = [(tag, name, value) for tag, name, value in markup.attributes if name in ADDRESSES]
    assert addresses
    assert [found for found in addresses if not found[2].startswith("#")] == []
    assert LOADING.intersection(markup.tags) == set()
    assert [found for found in markup.attributes if found[1].startswith("on") or found[1] == "style"] == []
    assert {tag for tag, name, _ in markup.attributes if name == "http-equiv"} == {"meta"}
    assert "refresh" not in {value.casefold() for _, name, value in markup.attributes if name == "http-equiv"}
    styles = "".join(markup.styles)
    assert "--paper" in styles
    assert not re.search(r"url\s*\(|@import|@font-face|image-set|expression", styles, re.IGNORECASE)


def test_links_within_it_have_a_place_to_go_to(played: Played) -> None:
    markup = Markup(report_html(fresh(played)))
    ids = [value for _, name, value in markup.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in markup.attributes if name == "href"} <= set(ids)


def test_its_policy_allows_its_own_styles_alone(played: Played) -> None:
    html = report_html(fresh(played))
    markup = Markup(html)
    policy = next(value for _, name, value in markup.attributes if name == "content" and "default-src" in value)
    style = html.partition("<style>")[2].partition("</style>")[0]
    digest = hashlib.sha256(style.encode()).digest()
    assert "default-src 'none'" in policy
    assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert "unsafe" not in policy


def test_hostile_names_and_answers_are_words(played: Played) -> None:
    markup = Markup(report_html(fresh(played)))
    assert "<script>alert(1)</script>" in markup.text
    assert "Bram {{ view }}" in markup.text
    assert "Autumn <b>run</b>" in markup.text
    # What the models wrote is there to be read, without its addresses to follow.
    assert "the notes" in markup.text
    assert f"picture https://{EVIL}/pixel.png" in markup.text
    assert not [value for *_, value in markup.attributes if EVIL in value]


def test_it_is_small() -> None:
    played = reported(games=50)
    assert played.tournament.matches.count() == 300
    assert len(report_html(fresh(played)).encode()) < MOST_BYTES


# What it says ------------------------------------------------------------------------------------------------
def test_the_verdict_comes_first_and_every_part_is_there(played: Played) -> None:
    html = report_html(fresh(played))
    headings = re.findall(r'<h2 id="([a-z-]+)-title">', html)
    parts = [
        "board",
        "confidence",
        "length",
        "head-to-head",
        "money",
        "slices",
        "jury",
        "examples",
        "method",
        "settings",
    ]
    assert [name for name in headings if name in parts] == parts
    assert html.index("verdict-sentence") < html.index('id="board"')
    text = Markup(html).text
    for words in (
        "All this rests on 60 decided matches",
        "the longer answer won",
        "Mean length, characters",
        "<i>odd</i>",
        "Which seat the judges named is not known",
        "Which versions of the software played it was not recorded.",
        recorded_manifest(fresh(played))["config_sha256"],
    ):
        assert words in text


def test_matches_to_read(played: Played) -> None:
    text = Markup(report_html(fresh(played))).text
    # Votes of 2 to 1 in a quarter of the matches; one that contradicts itself in another.
    assert "Close" in text
    assert "Contested" in text
    assert "cut here: it has" in text
    numbers = re.findall(r"Match (\d+): ", text)
    assert len(numbers) == len(set(numbers)) == 6


@pytest.mark.parametrize(
    ("outcome", "votes", "flips", "close", "contested"),
    [
        ("first", ("first", "first", "first"), 0, False, False),
        ("first", ("first", "first", "second"), 0, True, True),
        ("first", ("first", "first"), 1, False, True),
        ("first", ("first", "tie", "first"), 0, False, False),
        ("tie", ("tie", "tie", "tie"), 0, True, False),
        ("inconclusive", ("first", "second"), 0, False, True),
        # One vote alone was not close: nobody stood against it.
        ("first", ("first",), 0, False, False),
    ],
)
def test_what_is_close_and_what_contested(
    outcome: str, votes: tuple[str, ...], flips: int, *, close: bool, contested: bool
) -> None:
    match = Tellable(1, "m", 1, (1, 2), outcome, votes, flips)
    assert (match.is_close, match.is_contested) == (close, contested)


def test_without_a_decided_match_it_says_so() -> None:
    empty = tournament(["Ada", "Bram"], [(0, 1, "void", 2)])
    text = Markup(report_html(empty.tournament)).text
    assert "No match was decided, so there is nothing to rate." in text
    assert "Nothing is rated, so there is no order to trust." in text
    assert "No verdict was given, so there is nothing to audit." in text


# Held against files ------------------------------------------------------------------------------------------
def said(played: Played, given: Given) -> str:
    found = fresh(played)
    statements = provenance_of(found, recorded_manifest(found), given)
    return " ".join(f"[{one.kind}] {one.sentence}" for one in statements)


def test_a_manifest_held_against_the_records(played: Played) -> None:
    manifest = recorded_manifest(fresh(played))

    def of(content: bytes) -> str:
        return said(played, Given(manifest=content, manifest_name="run.json"))

    assert "[good] The manifest run.json agrees" in of(json.dumps(manifest).encode())
    other = manifest | {"config_sha256": "0" * 64}
    assert "[warning] The manifest run.json disagrees with the records in config_sha256:" in of(
        json.dumps(other).encode()
    )
    for content in (b"{]", b"[]", b"\xff\xfe", b""):
        assert "[warning] The manifest run.json is not readable" in of(content)


def test_a_configuration_held_against_the_records(played: Played) -> None:
    given = Given(configuration=b"name: x\n", configuration_name="run.yaml")
    assert "[warning] The configuration run.yaml cannot be compared" in said(played, given)
    digest = hashlib.sha256(b"name: x\n").hexdigest()
    Tournament.objects.filter(pk=played.tournament.pk).update(settings={"headless": {"configuration_sha256": digest}})
    assert "[good] The configuration run.yaml is the file" in said(played, given)
    changed = Given(configuration=b"name: y\n", configuration_name="run.yaml")
    assert "[warning] The configuration run.yaml disagrees with the hash" in said(played, changed)
    assert "disagrees with the hash" in Markup(report_html(fresh(played), given=changed)).text


def test_a_record_without_a_manifest(played: Played) -> None:
    about = {"source": "orq-arena", "file": "log.jsonl", "recorded": {}, "not_recorded": ["seed", "judge_latency"]}
    Tournament.objects.filter(pk=played.tournament.pk).update(settings={"imported": about})
    text = Markup(report_html(fresh(played))).text
    assert "The record came without a readable manifest." in text
    assert "Not recorded: the seed and latency of the judges." in text
    theirs = {"tournament_id": "b1", "config_sha256": "12", "prompts_sha256": "34"}
    about["recorded"] = {"manifest": theirs}
    Tournament.objects.filter(pk=played.tournament.pk).update(settings={"imported": about})
    given = Given(manifest=json.dumps(theirs).encode(), manifest_name="run.json")
    assert "without a readable manifest" not in said(played, given)
    assert "[good] The manifest run.json agrees" in said(played, given)


# Doors -------------------------------------------------------------------------------------------------------
def test_the_command_writes_it(played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "deep" / "out.html"
    call_command("report", played.tournament.public_id, out=target)
    assert f"Wrote {target}" in capsys.readouterr().out
    assert target.read_text(encoding="utf-8") == report_html(fresh(played))
    with pytest.raises(CommandError, match="No tournament has the id 'nobody'"):
        call_command("report", "nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("report", played.tournament.public_id, out=target, manifest=tmp_path / "none.json")


def test_the_page_offers_it_as_a_file(member: Client, world: World) -> None:
    played = reported(world.own.team, games=5)
    kwargs = {"team": world.own.team_id, "tournament": played.tournament.public_id}
    address = reverse("ratings:report", kwargs=kwargs)
    assert address in member.get(reverse("arena:tournament-detail", kwargs=kwargs)).content.decode()
    response = member.get(address)
    assert response.headers["Content-Disposition"].startswith("attachment; ")
    assert file_name(played.tournament) in response.headers["Content-Disposition"]
    assert response.content.decode() == report_html(fresh(played))
