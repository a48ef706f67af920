from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from annotation.models import Assignment, Campaign, CampaignItem, Rater, Vote
from annotation.services.campaigns import make_gold, open_campaign
from annotation.services.pools import scan_pool
from annotation.services.serving import Nothing, next_assignment
from annotation.services.votes import cast_vote
from arena.models import Match, Trial
from tests.annotation.world import draft, given, make_team, member, opened, played, rater, said, vote

pytestmark = pytest.mark.django_db


def finish(one: Rater, choice: str = "left") -> list[Assignment]:
    done = []
    while isinstance(found := next_assignment(one), Assignment):
        cast_vote(rater=one, token=found.token, said=said(choice))
        one.refresh_from_db()
        done.append(found)
    return done


def test_the_same_pair_stands_until_it_is_voted_on() -> None:
    one = rater(opened(make_team()))
    assert given(one) == given(one)
    assert Assignment.objects.count() == 1


def test_each_pair_comes_once_and_then_there_is_nothing_left() -> None:
    campaign = opened(make_team())
    one = rater(campaign)
    done = finish(one)
    assert sorted(a.match_id or 0 for a in done) == sorted(campaign.items.values_list("match", flat=True))
    assert next_assignment(one) == Nothing("done")
    assert len({a.token for a in done}) == len(done)
    assert all(len(a.token) == 32 for a in done)


def test_places_that_others_hold_are_not_given_out_until_the_lease_ends() -> None:
    campaign = opened(make_team(), raters_per_pair=1)
    first, second = rater(campaign), rater(campaign)
    held = given(first)
    assert held.match_id not in {a.match_id for a in finish(second)}
    assert next_assignment(second) == Nothing("busy")
    Assignment.objects.filter(pk=held.pk).update(lease_until="2020-01-01T00:00Z")
    assert [a.match_id for a in finish(second)] == [held.match_id]


def test_balanced_pairs_keep_their_counts_even() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=12))
    raters = [rater(campaign) for _ in range(2)]
    for turn in range(9):
        vote(raters[turn % 2])
    per_pair = Counter(Vote.objects.values_list("match__first", "match__second"))
    assert max(per_pair.values()) - min(per_pair.values()) <= 1


@pytest.mark.parametrize("pairing", Campaign.Pairing.values)
def test_every_way_of_pairing_gets_to_the_end(pairing: str) -> None:
    campaign = opened(make_team(), pairing=pairing, raters_per_pair=2)
    for _ in range(2):
        finish(rater(campaign))
    assert set(campaign.items.values_list("counted", "pending")) == {(2, 0)}
    assert Vote.objects.counted().count() == 2 * campaign.items.count()


def test_informative_pairing_turns_from_the_pair_that_is_clear() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=18), pairing="informative", raters_per_pair=5)
    first = CampaignItem.objects.order_by("pk")[0]
    clear = CampaignItem.objects.filter(first_model=first.first_model, second_model=first.second_model)
    for _ in range(3):
        one = rater(campaign)
        for number, item in enumerate(clear):
            made = Assignment.objects.create(
                campaign=campaign, rater=one, item=item, match=item.match, answers_key=item.answers_key,
                left="first", right="second", position=number + 1, lease_until="2020-01-01T00:00Z",
            )  # fmt: skip
            CampaignItem.objects.filter(pk=item.pk).update(pending=1)
            vote(one, "left", made)
    served = given(rater(campaign)).item
    assert served is not None
    assert {served.first_model_id, served.second_model_id} != {first.first_model_id, first.second_model_id}


def test_repeats_come_back_swapped_and_far_enough_on_and_take_no_place() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=60), repeat_share=0.1)
    done = finish(rater(campaign))
    repeats = [a for a in done if a.kind == "repeat"]
    assert abs(len(repeats) - 0.1 * len(done)) <= 1
    for repeat in repeats:
        original = repeat.repeat_of
        assert original is not None
        assert (repeat.left, repeat.right, repeat.match_id) == (original.right, original.left, original.match_id)
        assert repeat.position - original.position >= 20
    standings = Counter(Vote.objects.values_list("standing", flat=True))
    assert standings == {"counted": 60, "repeat": len(repeats)}


def test_gold_is_served_at_its_share_and_never_counted() -> None:
    team = make_team()
    tournament = played(team, matches=30)
    for trial in Trial.objects.filter(team=team):
        Trial.objects.filter(pk=trial.pk).update(answer=f"{trial.answer}. " + "A careful sentence about it. " * 12)
    campaign = draft(team, tournament, gold_share=0.1)
    open_campaign(campaign=campaign, actor=None)
    made = make_gold(campaign=campaign, count=5)
    assert [gold.origin for gold in made] == ["degraded", "degraded", "degraded", "identical", "degraded"]
    assert {g.expected for g in made if g.origin == "identical"} == {"tie"}
    for gold in made:
        if gold.origin == "degraded":
            longer = max(("first", "second"), key=lambda side: len(getattr(gold, f"{side}_text")))
            assert gold.expected == longer
    done = finish(rater(Campaign.objects.get(pk=campaign.pk)))
    assert abs(sum(a.kind == "gold" for a in done) - 0.1 * len(done)) <= 1
    assert set(Vote.objects.filter(assignment__kind="gold").values_list("standing", "place")) == {("gold", None)}


def test_the_same_two_answers_of_two_tournaments_are_served_once() -> None:
    team = make_team()
    one = played(team, matches=3)
    again = played(team, matches=3, prefix="again-")
    # The second tournament met the same answers to the same inputs.
    for own, other in zip(one.matches.all(), again.matches.all(), strict=True):
        other.sample = own.sample
        other.first_trial, other.second_trial = own.second_trial, own.first_trial
        Match.objects.filter(pk=other.pk).update(
            sample=own.sample, first_trial=own.second_trial, second_trial=own.first_trial
        )
    campaign = opened(team, one, again)
    assert campaign.items.count() == 6
    assert len(finish(rater(campaign))) == 3


def test_items_are_searched_before_they_are_served_even_where_no_task_comes() -> None:
    campaign = open_campaign(campaign=draft(make_team()), actor=None)
    assert set(campaign.items.values_list("state", flat=True)) == {"new"}
    assert len(finish(rater(campaign))) == 6
    assert "new" not in set(campaign.items.values_list("state", flat=True))


def test_nobody_gets_a_pair_of_a_closed_campaign_or_after_being_blocked() -> None:
    campaign = opened(make_team())
    one = rater(campaign)
    one.blocked_at = campaign.opened_at
    assert next_assignment(one) == Nothing("blocked")
    campaign.status = Campaign.Status.CLOSED
    campaign.save()
    assert next_assignment(rater(opened(make_team()))) != Nothing("closed")
    assert next_assignment(Rater.objects.select_related("campaign").get(pk=one.pk)) == Nothing("closed")


RATERS, PLACES = 50, 3


@pytest.mark.team
@pytest.mark.django_db(transaction=True)
def test_fifty_raters_at_once_fill_every_place_and_lose_no_vote() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite writes one at a time")
    team = make_team()
    campaign = opened(team, played(team, matches=30), raters_per_pair=PLACES)
    keys = [Rater.objects.create(campaign=campaign, user=member(team).user).pk for _ in range(RATERS)]

    def work(key: int) -> int:
        one = Rater.objects.select_related("campaign", "open_link").get(pk=key)
        try:
            return len(finish(one, "right"))
        finally:
            connection.close()

    with ThreadPoolExecutor(RATERS) as pool:
        cast = sum(pool.map(work, keys))
    assert cast == Vote.objects.count() == 30 * PLACES
    places = Counter(Vote.objects.counted().values_list("match", flat=True))
    assert set(places.values()) == {PLACES}
    assert len(places) == 30
    for item in CampaignItem.objects.all():
        assert (item.counted, item.pending) == (PLACES, 0)
        assert abs(item.first_left - item.second_left) <= 1
    assert scan_pool(campaign) == 0
