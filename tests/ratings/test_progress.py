"""Ratings by step, and the chart of them on its own page and in the tournament's."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.models import Step
from ratings.engine import Comparisons, Glicko2
from ratings.engine.glicko2 import period
from ratings.selectors import progress_of
from ratings.selectors.progress import MOST_STEPS
from tests.personas import World
from tests.ratings.world import Played, tournament

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
NAMES = ["<b>Ada</b>", "Bram", "Cleo", "Dead"]


@pytest.fixture
def played(shared_world: World) -> Played:
    found = tournament(NAMES, [(0, 1, "first", 3), (0, 3, "void", 3)], team=shared_world.own.team)
    found.decide([(0, 2, "first", 2), (1, 2, "tie", 2)], step=2)
    found.candidates[3].benched = True
    found.candidates[3].save()
    return found


def address(found: Played, name: str) -> str:
    kwargs = {"team": found.tournament.team.public_id, "tournament": found.tournament.public_id}
    return reverse(f"ratings:{name}", kwargs=kwargs)


def text(response: Any) -> str:
    content: bytes = response.content
    return content.decode()


def test_a_step_is_a_period_and_who_has_not_played_is_not_drawn(played: Played) -> None:
    progress = progress_of(played.tournament)
    by_hand = period(Glicko2.start(4), Comparisons.from_rows(4, [(0, 1, "first", 3)]))
    after_one = by_hand
    by_hand = period(by_hand, Comparisons.from_rows(4, [(0, 2, "first", 2), (1, 2, "tie", 2)]))
    courses = {course.candidate.label: course for course in progress.courses}
    ada = courses["<b>Ada</b>"].readings
    assert [reading.step for reading in ada] == [1, 2]
    assert [reading.value for reading in ada] == pytest.approx([after_one.rating[0], by_hand.rating[0]])
    assert ada[1].margin == pytest.approx(1.959964 * by_hand.deviation[0])
    # From the step of its first match on.
    assert [reading.step for reading in courses["Cleo"].readings] == [2]
    assert courses["Dead"].readings == ()
    assert progress.courses[0].candidate.label == "<b>Ada</b>"
    assert progress.courses[-1].candidate.label == "Dead"


def test_a_step_that_is_not_complete_is_not_in_it(played: Played) -> None:
    Step.objects.filter(tournament=played.tournament, number=2).update(status=Step.Status.PLANNED)
    assert progress_of(played.tournament).last_step == 1


def test_many_steps_are_thinned_out_and_the_last_one_stays(played: Played) -> None:
    for number in range(3, 3 * MOST_STEPS):
        Step.objects.create(tournament=played.tournament, number=number, status=Step.Status.COMPLETE)
    played.decide([(0, 1, "tie", 1)], step=3 * MOST_STEPS)
    progress = progress_of(played.tournament)
    assert len(progress.steps) <= MOST_STEPS
    assert progress.steps[-1] == progress.last_step == 3 * MOST_STEPS
    assert progress.every == 3


def test_the_page_and_the_fragment_show_the_same_with_a_table_beside(played: Played, shared_world: World) -> None:
    member = shared_world.client("member")
    page = text(member.get(address(played, "progress")))
    fragment = text(member.get(address(played, "progress-fragment"), headers=HTMX))
    assert "<html" in page
    assert "<html" not in fragment
    for piece in ("<title id=", "<desc id=", "<polyline", "&lt;b&gt;Ada&lt;/b&gt;", '<th scope="col" class="num">Bram'):
        assert piece in page
        assert piece in fragment
    assert "<b>Ada</b>" not in page
    assert "Without a decided match" in page
    # Both steps as rows, the one that Cleo has not played without a number.
    assert fragment.count('<th scope="row" class="num">') == 2
    assert '<td class="num">–</td>' in fragment


def test_the_link_to_the_fragment_leads_to_the_page(played: Played, shared_world: World) -> None:
    response = shared_world.client("member").get(address(played, "progress-fragment"))
    assert response["Location"] == address(played, "progress")


@pytest.mark.parametrize(("status", "words"), [("running", "The chart begins with"), ("failed", "nothing to draw")])
def test_without_a_decided_match_it_says_why(status: str, words: str, shared_world: World) -> None:
    empty = tournament(NAMES, [], team=shared_world.own.team, status=status)
    client: Client = shared_world.client("member")
    assert words in text(client.get(address(empty, "progress")))


def test_the_page_of_the_tournament_asks_for_it(played: Played, shared_world: World) -> None:
    kwargs = {"team": played.tournament.team.public_id, "tournament": played.tournament.public_id}
    page = text(shared_world.client("member").get(reverse("arena:tournament-detail", kwargs=kwargs)))
    assert f'hx-get="{address(played, "progress-fragment")}"' in page
    # And says who sits out, and why.
    assert "Dead sits out" in page
    assert "benched" in page
