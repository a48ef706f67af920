from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from arena.models import Decision, Match, Tally, Trial
from arena.services import tallies
from tests.ratings.world import Played, tournament

pytestmark = pytest.mark.django_db
ROWS = [
    (0, 1, "first", 3),
    (0, 1, "second", 1),
    (1, 2, "tie", 2),
    (0, 2, "inconclusive", 1),
    (1, 2, "void", 1),
    (0, 2, "forced", 2),
]


@pytest.fixture
def played() -> Played:
    played = tournament(["Ada", "Bram", "Cleo"], ROWS)
    # Void because Cleo did not answer.
    void = Match.objects.filter(status="void").values_list("second_trial", flat=True)
    Trial.objects.filter(pk__in=void, language_model=played.candidates[2].language_model).update(status="failed")
    return played


def stored(played: Played) -> dict[str, tuple[int, ...]]:
    names = ("wins", "losses", "ties", "inconclusive", "voids", "forced_ties", "skips")
    rows = Tally.objects.filter(jury=played.jury).select_related("candidate")
    return {row.candidate.label: tuple(getattr(row, name) for name in names) for row in rows}


def test_a_recount_makes_the_counts_of_the_rows(played: Played) -> None:
    assert tallies.recount(played.jury) == 3
    assert stored(played) == {
        "Ada": (3, 1, 0, 1, 2, 2, 0),
        "Bram": (1, 3, 2, 0, 1, 0, 0),
        "Cleo": (0, 0, 2, 1, 3, 2, 3),
    }
    assert tallies.recount(played.jury) == 0


def test_what_is_counted_along_equals_the_rows(played: Played) -> None:
    matches = Match.objects.filter(tournament=played.tournament).select_related("first_trial", "second_trial")
    decisions = {decision.match_id: decision for decision in Decision.objects.all()}
    for match in matches:
        if match.pk in decisions:
            tallies.count_decision(match, played.jury.pk, decisions[match.pk].outcome)
        else:
            tallies.count_void(match, played.jury.pk, forced_tie=match.forced_tie)
    assert tallies.recount(played.jury) == 0
    # The first is decided again, the other way.
    match = matches[0]
    Decision.objects.filter(match=match).update(superseded_at=timezone.now())
    tallies.take_back_decision(match, played.jury.pk, "first")
    Decision.objects.create(jury=played.jury, match=match, outcome="second")
    tallies.count_decision(match, played.jury.pk, "second")
    assert stored(played)["Ada"][:2] == (2, 2)
    assert tallies.recount(played.jury) == 0


def test_an_unknown_outcome_is_no_tie(played: Played) -> None:
    with pytest.raises(ValueError, match="draw"):
        tallies.count_decision(Match.objects.all()[0], played.jury.pk, "draw")


def test_the_command_says_what_it_corrected(played: Played) -> None:
    first, second = StringIO(), StringIO()
    call_command("recount", stdout=first)
    call_command("recount", stdout=second)
    assert "Spring check: counts of 3 candidates corrected" in first.getvalue()
    assert second.getvalue() == "All counts agree with the decisions and votes.\n"


def test_win_rate_counts_no_tie_and_is_nought_without_a_decision(played: Played) -> None:
    tallies.recount(played.jury)
    rates = {tally.candidate.label: tally.win_rate for tally in Tally.objects.select_related("candidate")}
    assert rates == {"Ada": 0.75, "Bram": 1 / 6, "Cleo": 0.0}
    assert Tally().win_rate == 0.0
