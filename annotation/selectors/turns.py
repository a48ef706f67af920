"""What a rater may be given next, read by few queries; taking it is `annotation.services.serving`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from annotation.models import Assignment, Campaign, CampaignItem, GoldItem, Rater, Side, Vote
from annotation.pairing import (
    REPEAT_DISTANCE,
    Candidates,
    Progress,
    SideCounts,
    Strength,
    at_random,
    balanced,
    informative,
    ordered,
)
from ratings.engine.comparisons import Comparisons
from ratings.engine.glicko2 import SCALE, START, Glicko2, period


@dataclass(frozen=True)
class PairLoad:
    # Votes and open assignments so far, and matches that this rater may still get.
    load: int
    left: int


def progress_of(rater: Rater) -> Progress:
    rows = Assignment.objects.filter(rater=rater).values_list("kind").annotate(n=Count("pk"))
    counts = dict(rows)
    return Progress(normal=counts.get("normal", 0), gold=counts.get("gold", 0), repeat=counts.get("repeat", 0))


def open_assignment(rater: Rater) -> Assignment | None:
    """The pair that stands before the rater: the same in every tab."""
    return with_texts().filter(rater=rater, answered=False).order_by("position").first()


def with_texts() -> QuerySet[Assignment]:
    """With all that a page of the pair shows but files: one query however it was found."""
    return Assignment.objects.select_related(
        "gold_item__sample",
        "match__sample",
        "match__first",
        "match__second",
        "item__match__first_trial",
        "item__match__second_trial",
    )


def _unseen(rater: Rater) -> Q:
    seen = Assignment.objects.filter(rater=rater).values("answers_key")
    return ~Q(answers_key__in=seen)


def loads(campaign: Campaign, rater: Rater) -> dict[Candidates, PairLoad]:
    items = CampaignItem.objects.filter(campaign=campaign, state__in=CampaignItem.SERVED_STATES)
    rows = items.values_list("first_model", "second_model").annotate(
        load=Sum(F("counted") + F("pending")),
        left=Count("pk", filter=Q(counted__lt=campaign.raters_per_pair) & _unseen(rater)),
    )
    found: dict[Candidates, PairLoad] = {}
    for first, second, load, left in rows.order_by():
        pair = ordered(first, second)
        before = found.get(pair, PairLoad(0, 0))
        found[pair] = PairLoad(before.load + load, before.left + left)
    return found


def pairs_in_turn(campaign: Campaign, rater: Rater, *, turn: int) -> list[Candidates]:
    """The pairs of models that have something left for this rater, in the order to be tried."""
    found = {pair: load for pair, load in loads(campaign, rater).items() if load.left}
    keys = {"secret": campaign.secret, "rater": rater.pk, "turn": turn}
    match campaign.pairing:
        case Campaign.Pairing.RANDOM:
            return at_random({pair: load.left for pair, load in found.items()}, **keys)  # type: ignore[arg-type]
        case Campaign.Pairing.INFORMATIVE:
            return informative(found, strengths_of(campaign, found), **keys)  # type: ignore[arg-type]
    return balanced({pair: load.load for pair, load in found.items()}, **keys)  # type: ignore[arg-type]


def strengths_of(campaign: Campaign, pairs: dict[Candidates, PairLoad]) -> dict[int, Strength]:
    """Glicko-2 over the people's counted votes and open assignments.

    All votes are one period: at most three rows a pair however many there are, so that it costs no more late
    than early. Open assignments narrow the deviations like ties, so that raters at work together spread out.
    """
    rows = (
        Vote.objects.counted()
        .filter(campaign=campaign, assignment__item__isnull=False)
        .order_by()
        .values_list("assignment__item__first_model", "assignment__item__second_model", "outcome")
        .annotate(n=Count("pk"))
    )
    items = CampaignItem.objects.filter(campaign=campaign, pending__gt=0).order_by()
    waiting = items.values_list("first_model", "second_model").annotate(n=Sum("pending"))
    counts = [*rows, *((first, second, "tie", n) for first, second, n in waiting)]
    models = sorted({key for pair in pairs for key in pair} | {key for row in counts for key in row[:2]})
    place = {key: number for number, key in enumerate(models)}
    state = Glicko2.start(len(models))
    if counts:
        played = [(place[first], place[second], outcome, n) for first, second, outcome, n in counts]
        state = period(state, Comparisons.from_rows(len(models), played))
    return {
        key: Strength((float(state.rating[at]) - START) / SCALE, float(state.deviation[at]) / SCALE)
        for key, at in place.items()
    }


def live_leases(now: dt.datetime, *, but: Rater) -> QuerySet[Assignment]:
    live = Assignment.objects.filter(kind=Assignment.Kind.NORMAL, answered=False, lease_until__gt=now)
    return live.exclude(rater=but).exclude(rater__could_see_names=True, campaign__counts_unblinded=False)


def items_of(campaign: Campaign, rater: Rater, pair: Candidates, now: dt.datetime) -> list[tuple[int, int]]:
    """(key, load) of the pair's matches that have a place left for this rater."""
    held = live_leases(now, but=rater).filter(item=OuterRef("pk")).order_by().values("item").annotate(n=Count("pk"))
    items = (
        CampaignItem.objects.filter(
            Q(first_model=pair.first, second_model=pair.second) | Q(first_model=pair.second, second_model=pair.first),
            _unseen(rater),
            campaign=campaign,
            state__in=CampaignItem.SERVED_STATES,
            counted__lt=campaign.raters_per_pair,
        )
        .annotate(held=Coalesce(Subquery(held.values("n"), output_field=IntegerField()), 0))
        .filter(held__lt=campaign.raters_per_pair - F("counted"))
    )
    return [(key, counted + pending) for key, counted, pending in items.values_list("pk", "counted", "pending")]


def side_counts(item: CampaignItem, rater: Rater) -> SideCounts:
    """What decides the sides: the match's own counts, then how the rater has seen the two models."""
    balance = {item.first_model: 0, item.second_model: 0}
    involved = [item.first_model, item.second_model]
    rows = (
        Assignment.objects.filter(
            Q(item__first_model__in=involved) | Q(item__second_model__in=involved),
            rater=rater,
            kind=Assignment.Kind.NORMAL,
        )
        .order_by()
        .values_list("item__first_model", "item__second_model", "left")
        .annotate(n=Count("pk"))
    )
    for first, second, left, n in rows:
        on_left, on_right = (first, second) if left == Side.FIRST else (second, first)
        if on_left in balance:
            balance[on_left] += n
        if on_right in balance:
            balance[on_right] -= n
    return SideCounts(
        match_first=item.first_left,
        match_second=item.second_left,
        rater_first=balance[item.first_model],
        rater_second=balance[item.second_model],
    )


def given_far_back(rater: Rater, *, position: int) -> QuerySet[Assignment]:
    """Own pairs far enough back that have not come back yet, voted on or not: for pairs that are given ahead."""
    return Assignment.objects.filter(
        rater=rater,
        kind=Assignment.Kind.NORMAL,
        repeat__isnull=True,
        position__lte=position - REPEAT_DISTANCE,
    ).order_by("position")


def repeatable(rater: Rater, *, position: int) -> QuerySet[Assignment]:
    """Own pairs with a choice that stands, far enough back, that have not come back yet; the oldest first."""
    chosen = Vote.objects.current().filter(outcome__in=["first", "second", "tie"])
    return Assignment.objects.filter(
        rater=rater,
        kind=Assignment.Kind.NORMAL,
        answered=True,
        repeat__isnull=True,
        position__lte=position - REPEAT_DISTANCE,
        pk__in=chosen.values("assignment"),
    ).order_by("position")


def unused_gold(campaign: Campaign, rater: Rater) -> QuerySet[GoldItem]:
    given = Assignment.objects.filter(rater=rater, kind=Assignment.Kind.GOLD).values("gold_item")
    return GoldItem.objects.filter(campaign=campaign, active=True).exclude(pk__in=given).order_by("pk")
