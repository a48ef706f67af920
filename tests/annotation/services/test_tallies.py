from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from annotation.models import Assignment, Campaign, Rater, VoteTally
from annotation.services.tallies import COLUMNS, counts_from_rows, recount_votes
from annotation.services.votes import undo_vote
from arena.models import Role
from tests.annotation.world import given, make_team, opened, rater, said, vote

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign() -> Campaign:
    return opened(make_team(), raters_per_pair=1)


def kept(campaign: Campaign) -> dict[int, dict[str, int]]:
    rows = VoteTally.objects.filter(campaign=campaign).values_list("candidate", *COLUMNS)
    found = {key: {name: n for name, n in zip(COLUMNS, counts, strict=True) if n} for key, *counts in rows}
    return {key: counts for key, counts in found.items() if counts}


def sums(campaign: Campaign) -> dict[str, int]:
    return {name: sum(counts.get(name, 0) for counts in kept(campaign).values()) for name in COLUMNS}


def fresh(one: Rater) -> Rater:
    return Rater.objects.select_related("campaign").get(pk=one.pk)


def test_counts_are_those_of_the_rows_after_every_step(campaign: Campaign) -> None:
    one = rater(campaign)
    expected = {"wins": 0, "losses": 0, "ties": 0, "skips": 0}
    for choice, column in (("left", "wins"), ("both_good", "ties"), ("both_bad", "ties")):
        vote(one, choice)
        expected[column] += 1 if column == "wins" else 2
        expected["losses"] = expected["wins"]
        assert sums(campaign) == expected
        assert kept(campaign) == counts_from_rows(campaign)
    vote(one, "skip", reason="other")
    assert sums(campaign) == expected | {"skips": 2}
    assert kept(campaign) == counts_from_rows(campaign)


def test_an_edit_and_an_undo_move_the_counts(campaign: Campaign) -> None:
    one = rater(campaign)
    assignment = given(one)
    first = vote(one, "left", assignment).vote
    before = kept(campaign)
    vote(one, "right", assignment, replaces=first.idempotency_key)
    assert kept(campaign) == counts_from_rows(campaign) != before
    undo_vote(rater=one, token=assignment.token, key=said().key)
    assert kept(campaign) == counts_from_rows(campaign) == {}


def test_what_is_kept_apart_is_not_counted(campaign: Campaign) -> None:
    admin = rater(campaign, Role.ADMIN)
    assert vote(admin, "left").vote.standing == "could_see_names"
    vote(admin, "skip", reason="other")
    one, other = rater(campaign), rater(campaign)
    served = given(one)
    item = Assignment.objects.filter(pk=served.pk).values_list("item", flat=True)[0]
    # The lease ran out, so another has the same pair, and the later vote has no place.
    Assignment.objects.filter(pk=served.pk).update(lease_until=served.served_at)
    again = given(other)
    while again.item_id != item:
        vote(other, "left", again)
        again = given(fresh(other))
    vote(other, "left", again)
    before = kept(campaign)
    assert vote(one, "left", served).vote.standing == "over_quota"
    assert kept(campaign) == before == counts_from_rows(campaign)


def test_recount_corrects_what_is_wrong_and_nothing_else(campaign: Campaign) -> None:
    one = rater(campaign)
    vote(one, "left")
    true = kept(campaign)
    VoteTally.objects.filter(candidate=min(true)).update(wins=7)
    output, second = StringIO(), StringIO()
    call_command("recount", stdout=output)
    assert f"{campaign}: counts of votes on 1 candidates corrected" in output.getvalue()
    assert kept(campaign) == true
    VoteTally.objects.all().delete()
    assert recount_votes(campaign) == 2
    call_command("recount", stdout=second)
    assert second.getvalue() == "All counts agree with the decisions and votes.\n"
