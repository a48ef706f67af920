"""A campaign with votes of several raters, decisions of its jury, repeats and gold."""

from __future__ import annotations

from typing import Any

from annotation.models import Assignment, Campaign, Rater
from annotation.services.campaigns import add_gold
from annotation.services.serving import next_assignment
from arena.models import Ballot, Decision, Judge, Jury, Match, Role, Team
from tests.annotation.world import opened, played, rater, vote

CHOICES = ("left", "right", "both_good", "left", "both_bad")


def voted(team: Team, *, raters: int = 3, matches: int = 9, **fields: Any) -> Campaign:
    """Every rater has judged all there is. The last one said everything twice, and the first took one vote back."""
    tournament = played(team, matches=matches)
    campaign = opened(team, tournament, **{"gold_share": 0.1, "raters_per_pair": raters, **fields})
    sample = tournament.task_set.samples.order_by("position")[0]
    add_gold(
        campaign=campaign, sample=sample, first_text="=1+1", second_text="Zwölf 😀", expected="first", origin="agreed"
    )
    for number in range(raters):
        judge_all(rater(campaign), number)
    judge_all(rater(campaign, Role.ADMIN), 1, limit=2)
    decide(campaign)
    return Campaign.objects.select_related("team").get(pk=campaign.pk)


def judge_all(one: Rater, offset: int, *, limit: int = 1000) -> list[Assignment]:
    given: list[Assignment] = []
    while len(given) < limit:
        assignment = next_assignment(one)
        if not isinstance(assignment, Assignment):
            break
        choice = CHOICES[(len(given) + offset) % len(CHOICES)]
        if len(given) == 3:
            vote(one, "skip", assignment, reason="cannot_tell")
        else:
            stored = vote(one, choice, assignment, active_ms=1000 * (len(given) + 1))
            if len(given) == 1:
                vote(one, "right", assignment, replaces=stored.vote.idempotency_key)
        given.append(assignment)
        one.refresh_from_db()
    return given


def decide(campaign: Campaign) -> None:
    jury = Jury.objects.get(tournament=campaign.tournaments.get(), primary=True)
    judges = list(Judge.objects.filter(jury=jury))
    for number, match in enumerate(Match.objects.filter(tournament=jury.tournament).order_by("pk")):
        outcome = ("first", "second", "tie", "first")[number % 4]
        Decision.objects.create(jury=jury, match=match, outcome=outcome)
        for place, judge in enumerate(judges):
            vote_of_judge = outcome if place == 0 else "first"
            Ballot.objects.create(jury=jury, match=match, judge=judge, status=Ballot.Status.VOTE, vote=vote_of_judge)
