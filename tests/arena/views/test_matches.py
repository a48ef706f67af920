from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from arena.models import Ballot, Decision, Judge, Jury, Match, Sample, Tournament, Trial, Verdict
from tests.arena.tournament_world import judge, make_tournament
from tests.personas import World

# One of them asks whether the reader votes blind on these matches.
LIST_QUERIES = 14
DETAIL_QUERIES = 23
EVIL = (
    "<script>alert(1)</script>\n\n[x](javascript:alert(2)) ![p](http://evil.example/p.png)\n\n"
    "<img src=x onerror=alert(3)>"
)


@pytest.fixture
def tournament(world: World) -> Tournament:
    """Five matches: split, flipped, void, cut and tied, and one with a verdict that failed."""
    made = make_tournament(world.own.objects["cast"], name="Browsed", matches=6)
    matches = list(made.matches.all())
    judge(matches[0], ["first", "second"], outcome="inconclusive", status="inconclusive")
    judge(matches[1], ["flip", "second"], outcome="second")
    matches[2].status = "void"
    matches[2].save()
    trial = matches[2].first_trial
    assert trial is not None
    Trial.objects.filter(pk=trial.pk).update(
        status="failed", answer="", partial_answer="Half an ans", skip_code="TIMEOUT", error="Silence for 20 minutes."
    )
    judge(matches[3], ["first", "first"])
    Trial.objects.filter(pk=matches[3].second_trial_id).update(truncated=True)
    judge(matches[4], ["tie", "tie"], outcome="tie")
    judge(matches[5], ["failed", "excluded"], outcome="inconclusive", status="inconclusive")
    return made


def url(world: World, name: str, tournament: Tournament, **kwargs: object) -> str:
    return reverse(f"arena:{name}", kwargs={"team": world.own.team_id, "tournament": tournament.public_id, **kwargs})


def sequences(world: World, client: Client, tournament: Tournament, **query: Any) -> list[int]:
    response = client.get(url(world, "match-list", tournament), query)
    assert response.status_code == HTTPStatus.OK
    return [row.match.sequence for row in response.context["rows"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"candidate": "1"}, [1, 2, 4, 5]),
        ({"candidate": "1", "against": "2"}, [1, 4]),
        ({"candidate": "1", "result": "won"}, [4]),
        ({"candidate": "3", "result": "won"}, [2]),
        ({"candidate": "1", "result": "lost"}, [2]),
        ({"result": "decided"}, [2, 4, 5]),
        ({"result": "tie"}, [5]),
        ({"result": "inconclusive"}, [1, 6]),
        ({"result": "void"}, [3]),
        ({"result": "open"}, []),
        ({"split": "on"}, [1]),
        ({"flip": "on"}, [2]),
        # The answer that was cut serves the sixth match too.
        ({"truncated": "on"}, [4, 6]),
        ({"category": "b"}, [4, 5, 6]),
        ({"error": "INVALID_JSON"}, [6]),
        ({"candidate": "77"}, [1, 2, 3, 4, 5, 6]),
        ({"result": "won"}, [1, 2, 3, 4, 5, 6]),
        ({"candidate": "1", "against": "2", "category": "a", "flip": "on"}, []),
    ],
)
def test_filters(
    world: World, member: Client, tournament: Tournament, query: dict[str, str], expected: list[int]
) -> None:
    assert sequences(world, member, tournament, **query) == expected


def test_won_needs_to_know_by_whom(world: World, member: Client, tournament: Tournament) -> None:
    page = member.get(url(world, "match-list", tournament), {"result": "won"}).content.decode()
    assert "Choose the candidate who won or lost." in page


def test_answers_cut_for_the_judges_are_found_too(world: World, member: Client, tournament: Tournament) -> None:
    Verdict.objects.filter(match__sequence=2, tournament=tournament).update(cut=True)
    assert sequences(world, member, tournament, truncated="on") == [2, 4, 6]
    page = member.get(url(world, "match-list", tournament)).content.decode()
    assert page.count("cut for the judges") == 1


def test_errors_of_another_jury_are_not_offered(world: World, member: Client, tournament: Tournament) -> None:
    failed = Verdict.objects.filter(tournament=tournament, error_code="INVALID_JSON")
    assert "INVALID_JSON" in member.get(url(world, "match-list", tournament)).content.decode()
    Jury.objects.filter(tournament=tournament).update(primary=False)
    assert failed.exists()
    assert "INVALID_JSON" not in member.get(url(world, "match-list", tournament)).content.decode()


def test_the_list_asks_the_same_whatever_its_length(
    world: World, member: Client, tournament: Tournament, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(LIST_QUERIES):
        page = member.get(url(world, "match-list", tournament)).content.decode()
    for words in ("split", "1 flip", "1 : 1", "0 : 0, 2 =", "void"):
        assert words in page


def test_a_match_shows_every_ballot_in_both_orders(
    world: World, member: Client, tournament: Tournament, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    match = tournament.matches.get(sequence=2)
    address = url(world, "match-detail", tournament, match=match.public_id)
    member.get(address)
    with django_assert_max_num_queries(DETAIL_QUERIES):
        page = member.get(address).content.decode()
    assert "contradicts itself: another winner in each order" in page
    assert f"first seat → {match.first.label}" in page
    assert f"second seat → {match.second.label}" in page
    assert "A is short." in page
    assert "Reason of" in page
    assert f"votes for {match.second.label}" in page
    assert "Answer of" in page
    assert "&lt;b&gt;raw" not in page


def test_failures_and_exclusions_are_told_with_their_reason(
    world: World, member: Client, tournament: Tournament
) -> None:
    match = tournament.matches.get(sequence=6)
    page = member.get(url(world, "match-detail", tournament, match=match.public_id)).content.decode()
    assert "INVALID_JSON" in page
    assert "The reply is no JSON." in page
    assert "it plays in this match itself" in page


def test_a_stand_in_says_for_whom(world: World, member: Client, tournament: Tournament) -> None:
    match = tournament.matches.get(sequence=6)
    failed = Ballot.objects.get(match=match, status="failed")
    spare = Judge.objects.create(
        jury=failed.jury,
        language_model=world.own.objects["cast"].candidates[2],
        position=0,
        replacement=True,
        label="Spare judge",
        full_id="spare",
    )
    Ballot.objects.create(jury=failed.jury, match=match, judge=spare, status="vote", vote="first", replaces=failed)
    page = member.get(url(world, "match-detail", tournament, match=match.public_id)).content.decode()
    assert f"stands in for {failed.judge.label}" in page


def test_a_void_match_shows_its_error_and_what_was_received(
    world: World, member: Client, tournament: Tournament
) -> None:
    match = tournament.matches.get(sequence=3)
    page = member.get(url(world, "match-detail", tournament, match=match.public_id)).content.decode()
    for words in ("Void:", "TIMEOUT", "Silence for 20 minutes.", "Half an ans", "What was received before it failed"):
        assert words in page


def test_decisions_of_the_past_stay_visible(world: World, member: Client, tournament: Tournament) -> None:
    match = tournament.matches.get(sequence=4)
    decision = Decision.objects.get(match=match)
    Decision.objects.filter(pk=decision.pk).update(superseded_at=timezone.now(), reason="below_quorum")
    Decision.objects.create(jury=decision.jury, match=match, outcome="second", reason="plurality", counts={"second": 2})
    page = member.get(url(world, "match-detail", tournament, match=match.public_id)).content.decode()
    assert "Earlier decisions" in page
    assert "votes of the quorum" in page
    assert f"2 for {match.second.label}" in page


def test_next_and_previous_stay_within_the_filter(world: World, member: Client, tournament: Tournament) -> None:
    by_sequence = {match.sequence: match.public_id for match in tournament.matches.all()}
    address = url(world, "match-detail", tournament, match=by_sequence[4])
    response = member.get(f"{address}?result=decided")
    assert response.context["before"].public_id == by_sequence[2]
    assert response.context["after"].public_id == by_sequence[5]
    assert "?result=decided" in response.content.decode()


def test_raw_texts_are_plain(world: World, member: Client, tournament: Tournament) -> None:
    match = tournament.matches.get(sequence=2)
    verdict = Verdict.objects.filter(match=match).earliest("pk")
    addresses = [
        url(world, "verdict-raw", tournament, match=match.public_id, verdict=verdict.pk),
        url(world, "match-answer", tournament, match=match.public_id, side="first"),
    ]
    for address in addresses:
        response = member.get(address)
        assert response["Content-Type"] == "text/plain; charset=utf-8"
        assert response["X-Content-Type-Options"] == "nosniff"
    assert "<b>raw</b>" in member.get(addresses[0]).content.decode()
    elsewhere = tournament.matches.get(sequence=4)
    wrong = url(world, "verdict-raw", tournament, match=elsewhere.public_id, verdict=verdict.pk)
    assert member.get(wrong).status_code == HTTPStatus.NOT_FOUND
    for side in ("third", "first-other"):
        odd = url(world, "match-answer", tournament, match=match.public_id, side=side)
        assert member.get(odd).status_code == HTTPStatus.NOT_FOUND


def import_answers(tournament: Tournament, texts: list[str], **values: Any) -> Match:
    source = tournament.matches.get(sequence=1)
    trials = [
        Trial.objects.create(
            team=tournament.team,
            language_model=side.language_model,
            sample=source.sample,
            input_hash=source.sample.input_hash,
            fingerprint="imported",
            origin="imported",
            replicate=number,
            status="succeeded",
            answer=text,
            characters=len(text),
            **values,
        )
        for number, (side, text) in enumerate(zip((source.first, source.second), texts, strict=True))
    ]
    return Match.objects.create(
        tournament=tournament,
        step=source.step,
        sequence=500,
        sample=source.sample,
        first=source.first,
        second=source.second,
        first_trial=trials[0],
        second_trial=trials[1],
        imported=True,
    )


def test_hostile_texts_stay_texts(world: World, member: Client, tournament: Tournament) -> None:
    match = import_answers(tournament, [EVIL, "Fine"], reasoning=EVIL)
    Sample.objects.filter(pk=match.sample_id).update(messages=[{"role": "user", "content": EVIL}])
    page = member.get(url(world, "match-detail", tournament, match=match.public_id)).content.decode()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert 'href="javascript' not in page
    assert 'src="http://evil' not in page


@pytest.mark.parametrize("text", ["word " * 2_000_000, "x" * 1_000_000, "*" * 300_000], ids=["10 MB", "line", "marks"])
def test_huge_answers_do_no_harm(world: World, member: Client, tournament: Tournament, text: str) -> None:
    match = import_answers(tournament, [text, "Fine"], reasoning=text[:1_000_000])
    address = url(world, "match-detail", tournament, match=match.public_id)
    started = time.perf_counter()
    page = member.get(address).content.decode()
    assert time.perf_counter() - started < 20
    assert len(page) < 1_000_000
    assert "Cut here" in page
    whole = member.get(url(world, "match-answer", tournament, match=match.public_id, side="first"))
    assert len(whole.content) == len(text)


def test_two_answers_word_by_word(world: World, member: Client, tournament: Tournament) -> None:
    match = import_answers(tournament, ["The bridge opens at nine.", f"{EVIL}\n\nThe bridge opens at ten."])
    address = url(world, "match-detail", tournament, match=match.public_id)
    plain = member.get(f"{address}?result=open").content.decode()
    assert f'href="{address}?result=open&amp;compare=1#comparison"' in plain
    assert "<mark>" not in plain
    response = member.get(f"{address}?result=open&compare=1")
    page = response.content.decode()
    assert "opens at <mark>nine</mark>." in page
    assert "opens at <mark>ten</mark>." in page
    assert "1 of 6 words only here" in page
    assert "<script>alert" not in page
    # Nothing but this page carries it on.
    assert response.context["query"] == "?result=open"
    assert f'href="{address}?result=open#answers"' in page


def test_a_huge_answer_is_compared_as_far_as_it_goes(world: World, member: Client, tournament: Tournament) -> None:
    match = import_answers(tournament, ["y x x " * 700_000, "x y " * 700_000])
    page = member.get(url(world, "match-detail", tournament, match=match.public_id), {"compare": "1"}).content.decode()
    assert "Only the beginnings are compared" in page
    assert len(page) < 2_000_000


def test_one_answer_alone_is_not_compared(world: World, member: Client, tournament: Tournament) -> None:
    match = import_answers(tournament, ["Alone", ""], partial_answer="")
    page = member.get(url(world, "match-detail", tournament, match=match.public_id), {"compare": "1"}).content.decode()
    assert "Compare word by word" not in page
    assert "Word by word" not in page


def test_what_was_received_of_a_failed_answer_is_compared(world: World, member: Client, tournament: Tournament) -> None:
    match = tournament.matches.get(sequence=3)
    page = member.get(url(world, "match-detail", tournament, match=match.public_id), {"compare": "1"}).content.decode()
    assert "<mark>Half an ans</mark>" in page
