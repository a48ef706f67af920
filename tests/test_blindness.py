"""Raters judge without knowing whose answers they see: nothing that is sent to them names a model or its host."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction

from annotation.services.raters import join_as_member
from arena.models import Candidate, LanguageModel, Price, Provider, Role
from ratings import services
from tests.personas import World
from tests.url_samples import named_urls, samples, send

SAMPLES = samples()
# A page that opens for raters is added here by hand, so that somebody thinks of what it shows.
OPEN_TO_RATERS = {"arena:team-home", "arena:team-leave", "annotation:waiting-fragment"}
TEAM_URLS = sorted(name for name, url in named_urls().items() if "team" in url.arguments)


def secrets(world: World) -> set[str]:
    team = world.own.team
    found: set[str] = set()
    for model in LanguageModel.objects.filter(team=team).select_related("provider"):
        found |= {model.model_id, model.display_name, model.full_id, model.public_id, model.fingerprint}
        found.add(model.system_prompt)
    for provider in Provider.objects.filter(team=team):
        found |= {provider.name, provider.base_url, provider.public_id}
    found |= set(Candidate.objects.filter(tournament__team=team).values_list("label", flat=True))
    found |= set(Price.objects.filter(language_model__team=team).values_list("source", flat=True))
    # Short words, as some fixtures have them, stand on any page.
    return {text for text in found if len(text) >= 8 and text != team.name}


def disguises(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield raw
    yield quote(secret, safe="").encode()
    yield "".join(f"%{byte:02X}" for byte in raw).encode()
    yield raw.hex().encode()
    for shift in range(3):
        # What stands before a text decides how it comes out; the characters shared with neighbours are left off.
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        inner = encoded[-(-shift * 8 // 6) : -1]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))


def found_in(sent: bytes, names: set[str]) -> set[str]:
    lowered = sent.lower()
    return {name for name in names if any(form.lower() in lowered for form in disguises(name))}


def everything_sent(response: Any) -> bytes:
    body = b"".join(response.streaming_content) if response.streaming else response.content
    lines = [f"{name}: {value}".encode() for name, value in response.items()]
    cookies = [f"{name}={morsel.value}" for name, morsel in response.cookies.items()]
    return b"\n".join([body, *lines, *(cookie.encode() for cookie in cookies), *unpacked(" ".join(cookies))])


def unpacked(cookies: str) -> Iterator[bytes]:
    """Signed cookies are base64, and deflated where that is shorter."""
    for part in re.findall(r"[A-Za-z0-9_-]{8,}", cookies):
        try:
            decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        except binascii.Error:
            continue
        yield decoded
        try:
            yield zlib.decompress(decoded)
        except zlib.error:
            continue


def answers(world: World, persona: str, names: list[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        for method in SAMPLES[name].methods:
            # What one request does must not change what the next one finds.
            with transaction.atomic():
                kwargs = SAMPLES[name].kwargs(world.own)
                yield f"{method} {name}", send(world.client(persona), name, SAMPLES[name], method, world.own, kwargs)
                transaction.set_rollback(True)


# A guest is asked to sign in by a page of the team, whose address the guest named and the answer repeats.
FOR_GUESTS = [name for name in sorted(SAMPLES) if name not in TEAM_URLS]


@pytest.mark.parametrize("persona", ["rater", "guest"])
def test_nothing_sent_to_a_rater_names_a_model(persona: str, world: World) -> None:
    names = secrets(world)
    assert len(names) > 20
    sent = sorted(SAMPLES) if persona == "rater" else FOR_GUESTS
    assert "annotation:rate" in sent
    leaks = {
        where: leaked
        for where, response in answers(world, persona, sent)
        if (leaked := found_in(everything_sent(response), names))
    }
    assert leaks == {}


def test_the_same_search_finds_the_names_where_they_may_be(world: World) -> None:
    names = secrets(world)
    named = ["arena:model-list", "arena:match-list", "ratings:board", "ratings:board-csv"]
    for where, response in answers(world, "member", named):
        assert found_in(everything_sent(response), names), where


def test_a_rater_is_turned_away_from_every_other_page_of_the_team(world: World) -> None:
    statuses = {where: response.status_code for where, response in answers(world, "rater", TEAM_URLS)}
    opened = {where.split()[1] for where, status in statuses.items() if status != 404}
    assert opened == OPEN_TO_RATERS


@pytest.mark.parametrize("source", ["jury", "human", "both"])
def test_a_member_who_votes_is_shown_no_board_that_reaches_the_matches(source: str, world: World) -> None:
    """Neither by its id nor in the list; of the team or of the task set as little as of the tournament."""
    campaign = world.own.objects["campaign"]
    voted_on = campaign.tournaments.get()
    jury = voted_on.juries.get(primary=True)
    method = services.Method(ties="rao_kupper", source=source)
    lineage = voted_on.task_set.lineage
    boards = [
        services.board_of_jury(voted_on, jury, method),
        services.wide_board(world.own.team, method, task_set_lineage=lineage),
        services.wide_board(world.own.team, method),
    ]
    pages = {
        name for name in SAMPLES if name.startswith("ratings:board-") and "board" in SAMPLES[name].kwargs(world.own)
    }
    assert len(pages) > 6

    def statuses(persona: str) -> set[int]:
        found = set()
        for board in boards:
            for name in sorted(pages):
                kwargs = SAMPLES[name].kwargs(world.own) | {"board": board.public_id}
                found.add(send(world.client(persona), name, SAMPLES[name], "GET", world.own, kwargs).status_code)
        return found

    assert statuses("admin") == {200}
    join_as_member(campaign=campaign, membership=world.own.members[Role.MEMBER])
    assert statuses("member") == {404}


def test_the_pages_of_a_rater_link_to_none_that_turns_raters_away(world: World) -> None:
    client = world.client("rater")
    for name in [*sorted(OPEN_TO_RATERS), "arena:profile", "arena:team-list"]:
        response = send(client, name, SAMPLES[name], "GET", world.own, SAMPLES[name].kwargs(world.own))
        links = set(re.findall(r'<a [^>]*href="(/[^"#]*)"', response.content.decode()))
        assert links
        for link in sorted(links):
            assert client.get(link).status_code < 400, f"{name} links to {link}"


def test_what_is_sent_to_somebody_signed_in_is_kept_by_no_shared_cache(world: World) -> None:
    for persona in ("rater", "owner"):
        for where, response in answers(world, persona, sorted(SAMPLES)):
            kept = response.get("Cache-Control", "")
            assert "private" in kept, where
            if response["Content-Type"].startswith("text/html"):
                assert "no-store" in kept, where


@pytest.mark.parametrize("prefix", [b"", b"x", b"xy", b"xyz"])
def test_a_disguised_name_is_found(prefix: bytes) -> None:
    name = "CANARY-OWN-provider"
    whole = prefix + name.encode() + b" and more"
    compressed = base64.urlsafe_b64encode(zlib.compress(whole)).rstrip(b"=").decode()
    packed = b"\n".join(unpacked(f"a=.{compressed}:sig"))
    for sent in (whole, whole.upper(), whole.hex().encode(), base64.b64encode(whole), packed):
        assert found_in(sent, {name}) == {name}
    assert found_in(prefix + b"nothing of the kind", {name}) == set()
