"""Two juries side by side."""

from __future__ import annotations

import pytest
from django.urls import reverse

from arena.judging.protocol import AUDITED
from arena.models import Decision, Jury, Tournament
from ratings import services
from ratings.selectors.comparison import comparison_of
from tests.personas import World
from tests.ratings.world import Played, tournament

pytestmark = pytest.mark.django_db


def rejudged(played: Played, swapped: int, **values: object) -> Jury:
    """A jury that decides as the first did, but turns the first so many decisions."""
    defaults = {"name": "Another panel", "status": "finished", "protocol": AUDITED.to_json(), "last_sequence": 10_000}
    jury = Jury.objects.create(tournament=played.tournament, primary=False, **{**defaults, **values})
    rows = Decision.objects.filter(jury=played.jury).order_by("match__sequence").values_list("match", "outcome")
    turned = {"first": "second", "second": "first", "tie": "inconclusive"}
    Decision.objects.bulk_create(
        Decision(jury=jury, match_id=match, outcome=turned[outcome] if number < swapped else outcome)
        for number, (match, outcome) in enumerate(rows)
    )
    return jury


@pytest.fixture
def played(world: World) -> Played:
    rows = [(0, 1, "first", 6), (0, 1, "second", 2), (1, 2, "first", 6), (1, 2, "second", 2), (0, 2, "first", 5),
            (0, 2, "second", 1)]  # fmt: skip
    return tournament(["ada", "bram", "cleo"], rows, team=world.own.team)


def test_boards_are_each_jurys_own_and_their_ranks_are_compared(played: Played) -> None:
    jury = rejudged(played, 3)
    services.refit_due_boards()
    found = comparison_of(played.jury, jury)
    assert (found.both, found.n_changed, found.same) == (22, 3, 19)
    assert [match.sequence for match in found.changed] == [1, 2, 3]
    assert found.ranks is not None
    # The first two change places.
    assert (found.ranks.n, found.ranks.spearman, found.ranks.kendall) == (3, 0.5, pytest.approx(1 / 3))
    orders = [[row.label for row in view.rows] for view in (found.one, found.other)]
    assert orders == [["ada", "bram", "cleo"], ["bram", "ada", "cleo"]]


def test_a_jury_decides_what_the_first_could_not(played: Played) -> None:
    match = played.tournament.matches.get(sequence=1)
    Decision.objects.filter(match=match).update(outcome="inconclusive")
    played.tournament.matches.filter(pk=match.pk).update(status="inconclusive")
    jury = rejudged(played, 0)
    Decision.objects.filter(jury=jury, match=match).update(outcome="first")
    assert Decision.objects.rated().filter(jury=jury).count() == 22
    assert Decision.objects.rated().filter(jury=played.jury).count() == 21


def test_the_page_says_that_there_is_no_ranking_where_every_judge_failed(played: Played, world: World) -> None:
    text = "No judge gave a usable verdict on any match, so there is no ranking."
    jury = rejudged(played, 0, status="failed", reason="no_verdicts", reason_text=text)
    Decision.objects.filter(jury=jury).update(outcome="inconclusive")
    services.refit_due_boards()
    response = world.client("member").get(_url(played.tournament))
    assert response.context["comparison"].ranks is None
    assert text in response.content.decode()


def test_the_page_lists_changed_decisions_with_links(played: Played, world: World) -> None:
    rejudged(played, 2)
    services.refit_due_boards()
    page = world.client("member").get(_url(played.tournament)).content.decode()
    for match in played.tournament.matches.filter(sequence__lte=2):
        assert f"matches/{match.public_id}/" in page
    assert f"matches/{played.tournament.matches.get(sequence=3).public_id}/" not in page
    assert "Another panel" in page


def test_with_one_jury_the_page_offers_another(played: Played, world: World) -> None:
    page = world.client("admin").get(_url(played.tournament)).content.decode()
    assert reverse("arena:rejudge-create", kwargs=_kwargs(played.tournament)) in page


def _kwargs(found: Tournament) -> dict[str, str]:
    return {"team": found.team.public_id, "tournament": found.public_id}


def _url(found: Tournament) -> str:
    return reverse("ratings:jury-compare", kwargs=_kwargs(found))
