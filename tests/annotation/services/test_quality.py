from __future__ import annotations

import datetime as dt

import pytest

from annotation.models import Adjudication, Assignment, Campaign, CampaignItem, Rater, Vote
from annotation.quality import rated
from annotation.selectors.anchor import anchor_of, people_tallies
from annotation.selectors.quality import adjudication_queue, excluded_raters, quality_of, votes_in
from annotation.services.quality import (
    adjudicate,
    adjudication_token,
    leave_out_match,
    set_screening,
    switch_screen,
)
from annotation.services.raters import create_open_link, join_by_open_link
from annotation.services.votes import report_leak
from arena.models import AuditLog
from arena.services.members import Refused
from tests.annotation.quality_world import decide, judge_all
from tests.annotation.world import given, make_team, member, opened, played, rater, vote

pytestmark = pytest.mark.django_db


def one_sided(campaign: Campaign) -> Rater:
    """An anonymous session that always says left, at a human pace."""
    link, _token = create_open_link(campaign=campaign, actor=member(campaign.team).user)
    session, _cookie = join_by_open_link(link=link, network="192.0.2.1")
    session = Rater.objects.select_related("campaign", "open_link").get(pk=session.pk)
    for number in range(20):
        stored = vote(session, "left")
        moment = stored.vote.created_at + dt.timedelta(seconds=20 * number)
        Vote.objects.filter(pk=stored.vote.pk).update(created_at=moment)
    return session


def test_a_one_sided_session_is_left_out_until_an_admin_restores_it() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=21))
    session = one_sided(campaign)
    vote(rater(campaign), "right")

    def kept() -> int:
        votes = votes_in([campaign])
        return len(rated(votes, excluded_raters([campaign], votes)))

    assert kept() == 1
    assert sum(tally.count for tally in people_tallies(campaign)) == 1
    set_screening(rater=session, actor=None, screening="kept")
    assert kept() == 21
    set_screening(rater=session, actor=None, screening="")
    assert kept() == 1
    switch_screen(campaign=campaign, actor=None, on=False)
    campaign.refresh_from_db()
    assert kept() == 21
    set_screening(rater=session, actor=None, screening="excluded")
    assert kept() == 1
    row = quality_of(campaign, wanted=63, counted=21).sessions[0]
    assert (row.rater.pk, row.excluded, row.found.reasons[-1]) == (session.pk, True, "position")
    # Nothing was done to a vote, and all of it is in the log.
    assert Vote.objects.current().filter(rater=session, standing="counted").count() == 20
    assert AuditLog.objects.filter(team=team, action__startswith="campaign.screen").count() == 4
    with pytest.raises(Refused):
        set_screening(rater=Rater.objects.exclude(pk=session.pk).get(), actor=None, screening="excluded")


def test_a_decision_stands_beside_the_votes_and_each_is_a_row() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=1))
    raters = [rater(campaign) for _ in range(3)]
    for one, choice in zip(raters, ("both_good", "both_bad", "both_bad"), strict=True):
        vote(one, choice)
    (row,) = adjudication_queue(campaign)
    assert row.found.share == pytest.approx(2 / 3)
    token = adjudication_token(campaign, row.item.pk)
    admin = member(team).user
    first = adjudicate(campaign=campaign, token=token, actor=admin, choice="left")
    assert first.outcome == first.left
    second = adjudicate(campaign=campaign, token=token, actor=admin, choice="both_bad")
    assert (second.supersedes, second.outcome) == (first, "tie")
    assert list(Adjudication.objects.current()) == [second]
    assert Vote.objects.filter(campaign=campaign).count() == 3
    for choice, key in (("skip", token), ("left", "0" * 32)):
        with pytest.raises(Refused):
            adjudicate(campaign=campaign, token=key, actor=admin, choice=choice)


def test_a_reported_match_can_be_left_out() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=2))
    one = rater(campaign)
    assignment = given(one)
    report_leak(rater=one, token=assignment.token, note="says GPT")
    (report,) = quality_of(campaign, wanted=6, counted=0).leaks
    assert report.leak_note == "says GPT"
    leave_out_match(assignment=report, actor=None)
    item = CampaignItem.objects.get(pk=report.item_id)
    assert item.state == CampaignItem.State.EXCLUDED
    assert not Assignment.objects.filter(rater=rater(campaign)).exists()


def test_the_anchor_of_people_who_follow_one_judge_names_that_judge() -> None:
    team = make_team()
    campaign = opened(team, played(team, matches=24), raters_per_pair=1)
    judge_all(rater(campaign), 0)
    decide(campaign)
    found = anchor_of([campaign])
    assert (found.voters, found.pooled.rounds) == (1, found.votes)
    assert len(found.raters) == 1
    assert found.raters[0].found.kappa == found.pooled.kappa
    assert [judge.found.rounds for judge in found.judges] == [found.votes, found.votes]
    assert found.pooled.ranks.n == 3
    # The first judge says what the jury decides.
    as_jury = next(judge for judge in found.judges if judge.found.kappa == found.pooled.kappa)
    assert as_jury.found.ranks == found.pooled.ranks
