from __future__ import annotations

import pytest

from annotation.models import Assignment, Campaign
from annotation.selectors.campaigns import waiting_for
from annotation.selectors.pools import PoolFilter
from annotation.services.campaigns import (
    CampaignFields,
    close_campaign,
    create_campaign,
    open_campaign,
    reveal_campaign,
    take_in_new_matches,
    update_campaign,
)
from annotation.services.pools import scan_pool
from annotation.services.serving import next_assignment
from annotation.services.votes import assignment_of
from annotation.views.pairs import pair_shown
from arena.models import Match, Trial
from arena.services.members import Refused
from arena.services.teams import delete_team
from tests.annotation.world import draft, make_team, member, opened, played, rater, vote
from tests.arena.tournament_world import judge

pytestmark = pytest.mark.django_db


def test_it_goes_from_draft_to_revealed_and_never_back_to_blindness() -> None:
    campaign = draft(make_team())
    for act in (close_campaign, reveal_campaign):
        with pytest.raises(Refused):
            act(campaign=campaign, actor=None)
    open_campaign(campaign=campaign, actor=None)
    close_campaign(campaign=campaign, actor=None)
    assert open_campaign(campaign=campaign, actor=None).is_open
    close_campaign(campaign=campaign, actor=None)
    revealed = reveal_campaign(campaign=campaign, actor=None)
    assert revealed.revealed_at is not None
    with pytest.raises(Refused):
        open_campaign(campaign=campaign, actor=None)


def test_names_that_were_promised_never_to_be_shown_are_not() -> None:
    campaign = opened(make_team(), reveal="never")
    close_campaign(campaign=campaign, actor=None)
    with pytest.raises(Refused, match="promised"):
        reveal_campaign(campaign=campaign, actor=None)


def test_of_an_open_campaign_only_name_and_guidelines_change() -> None:
    team = make_team()
    campaign = opened(team, guidelines="First.")
    one = rater(campaign)
    vote(one)
    fields = CampaignFields(
        name="Renamed", tournaments=[played(team, prefix="b-")], guidelines="Second.", raters_per_pair=9
    )
    update_campaign(campaign=campaign, actor=None, fields=fields)
    changed = Campaign.objects.get(pk=campaign.pk)
    assert (changed.name, changed.raters_per_pair, changed.tournaments.count()) == ("Renamed", 3, 1)
    assert list(changed.guidelines.values_list("number", "text")) == [(1, "First."), (2, "Second.")]
    assert vote(one).vote.guideline_version == 2
    close_campaign(campaign=campaign, actor=None)
    with pytest.raises(Refused):
        update_campaign(campaign=campaign, actor=None, fields=fields)


def test_tournaments_of_another_team_are_refused() -> None:
    team = make_team()
    for chosen in ([], [played(make_team())]):
        with pytest.raises(Refused, match="tournament"):
            create_campaign(team=team, actor=None, fields=CampaignFields(name="Mine", tournaments=chosen))


def test_the_filter_and_the_draw_make_the_pool() -> None:
    team = make_team()
    tournament = played(team, matches=9)
    matches = list(tournament.matches.order_by("sequence"))
    judge(matches[0], ["first", "second"], outcome="inconclusive", status="inconclusive")
    judge(matches[1], ["first", "first"])
    Match.objects.filter(pk=matches[2].pk).update(status="void")
    Trial.objects.filter(pk=matches[3].first_trial_id).update(status="failed", answer="")
    left_out = {m.pk for m in Match.objects.filter(first_trial=matches[3].first_trial_id)} | {matches[2].pk}
    left_out |= {m.pk for m in Match.objects.filter(second_trial=matches[3].first_trial_id)}

    def pool(**chosen: object) -> set[int]:
        campaign = draft(team, tournament, filters=PoolFilter(**chosen))  # type: ignore[arg-type]
        open_campaign(campaign=campaign, actor=None)
        return set(campaign.items.values_list("match", flat=True))

    assert pool() == {m.pk for m in matches} - left_out
    assert pool(only="inconclusive") == pool(only="split") == {matches[0].pk}
    assert len(pool(size=2)) == 2
    category = matches[0].sample.category
    assert pool(categories=[category]) == {m.pk for m in matches if m.sample.category == category} - left_out
    ids = [matches[0].first.full_id, matches[0].second.full_id]
    assert {m.first.full_id for m in Match.objects.filter(pk__in=pool(candidates=ids))} == {ids[0]}
    with pytest.raises(Refused, match="filter"):
        pool(categories=["no such category"])


def test_the_pool_grows_with_the_tournament() -> None:
    team = make_team()
    tournament = played(team, matches=6)
    late = list(tournament.matches.order_by("-sequence")[:2])
    Match.objects.filter(pk__in=[m.pk for m in late]).update(status="void")
    campaign = opened(team, tournament)
    assert campaign.items.count() == 4
    Match.objects.update(status="judging")
    assert take_in_new_matches(campaign=campaign, actor=None) == 2
    assert take_in_new_matches(campaign=campaign, actor=None) == 0
    assert scan_pool(campaign) == 2


@pytest.mark.parametrize(
    ("policy", "states", "shown"),
    [("flag", {"leaks"}, "openai"), ("mask", {"leaks"}, "[…]"), ("exclude", {"excluded", "clean"}, "")],
)
def test_an_answer_that_names_its_model(policy: str, states: set[str], shown: str) -> None:
    team = make_team()
    tournament = played(team, matches=6)
    for trial in Trial.objects.filter(team=team):
        Trial.objects.filter(pk=trial.pk).update(answer=f"A plain answer. {trial.pk}")
    first = tournament.matches.order_by("sequence")[0].first
    for trial in Trial.objects.filter(team=team, language_model=first.language_model):
        Trial.objects.filter(pk=trial.pk).update(answer=f"<think>Hm.</think>I was trained by OpenAI. {trial.pk}")
    leaky = tournament.matches.filter(first=first).count()
    campaign = opened(team, tournament, self_identification=policy)
    assert set(campaign.items.filter(match__first=first).values_list("state", flat=True)) <= states
    assert campaign.items.filter(state__in=states - {"clean"}).count() == leaky
    assert Trial.objects.filter(answer__contains="<think>").exists()
    one, texts = rater(campaign), ""
    while isinstance(found := next_assignment(one), Assignment):
        assignment = assignment_of(one, found.token)
        assert assignment is not None
        pair = pair_shown(campaign, assignment)
        texts += f"{pair.left} {pair.right} ".lower()
        vote(one, "left", assignment)
    assert "think" not in texts
    assert "a plain answer." in texts
    assert texts.count(shown) == leaky if shown else "trained" not in texts


def test_waiting_is_what_is_open_and_not_answered_yet() -> None:
    team = make_team()
    person = member(team)
    campaign = draft(team)
    assert waiting_for(person) == []
    open_campaign(campaign=campaign, actor=None)
    assert waiting_for(person) == [campaign]
    assert waiting_for(member(make_team())) == []
    close_campaign(campaign=campaign, actor=None)
    assert waiting_for(person) == []


def test_a_team_with_votes_can_be_deleted() -> None:
    team = make_team()
    campaign = opened(team)
    vote(rater(campaign))
    delete_team(team=team, actor=member(make_team()).user)
    assert not Campaign.objects.exists()
