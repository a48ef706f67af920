"""Counts of votes for each candidate, kept in the transaction of what they count."""

from __future__ import annotations

from collections import Counter, defaultdict

from django.db import transaction
from django.db.models import Count, F, Q

from annotation.models import Assignment, Campaign, Vote, VoteTally
from arena.models import Candidate, Match

COLUMNS = ("wins", "losses", "ties", "skips")
# By candidate.
Counts = dict[int, dict[str, int]]


def _counts_of(vote: Vote, campaign: Campaign) -> tuple[str, str] | None:
    """The columns in which a vote on a normal pair counts for the first and for the second; None where in none."""
    kept_apart = vote.could_see_names and not campaign.counts_unblinded
    return _columns(vote.choice, vote.outcome, vote.standing, kept_apart=kept_apart)


def _columns(choice: str, outcome: str, standing: str, *, kept_apart: bool) -> tuple[str, str] | None:
    if choice == Vote.Choice.SKIP:
        return None if kept_apart else ("skips", "skips")
    if standing != Vote.Standing.COUNTED:
        return None
    return {"first": ("wins", "losses"), "second": ("losses", "wins"), "tie": ("ties", "ties")}[outcome]


def count_vote(*, campaign: Campaign, match: Match, new: Vote, old: Vote | None) -> None:
    """Call it in the transaction that stores a vote on a normal pair, with the vote that it supersedes."""
    changes: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for vote, times in ((new, 1), (old, -1)):
        columns = None if vote is None else _counts_of(vote, campaign)
        for candidate, column in zip((match.first_id, match.second_id), columns or (), strict=False):
            changes[candidate][column] += times
    # All lock the rows in one order, so that two votes never wait for each other.
    for candidate, changed in sorted(changes.items()):
        added = {column: F(column) + times for column, times in changed.items() if times}
        if not added:
            continue
        rows = VoteTally.objects.filter(campaign=campaign, candidate=candidate)
        if not rows.update(**added):
            VoteTally.objects.bulk_create([VoteTally(campaign=campaign, candidate_id=candidate)], ignore_conflicts=True)
            rows.update(**added)


def recount_votes(campaign: Campaign) -> int:
    """Make the counts of a campaign anew from the rows; returns how many candidates' were wrong."""
    with transaction.atomic():
        # Votes wait for the item or the rater first and for these rows last: those stored meanwhile come after.
        candidates = Candidate.objects.filter(tournament__in=campaign.tournaments.values("pk")).order_by("pk")
        VoteTally.objects.bulk_create(
            [VoteTally(campaign=campaign, candidate=candidate) for candidate in candidates], ignore_conflicts=True
        )
        rows = list(VoteTally.objects.select_for_update().filter(campaign=campaign).order_by("candidate"))
        true = counts_from_rows(campaign)
        wrong = []
        for row in rows:
            fresh = {column: true.get(row.candidate_id, {}).get(column, 0) for column in COLUMNS}
            if any(getattr(row, column) != value for column, value in fresh.items()):
                for column, value in fresh.items():
                    setattr(row, column, value)
                wrong.append(row)
        VoteTally.objects.bulk_update(wrong, COLUMNS)
    return len(wrong)


def counts_from_rows(campaign: Campaign) -> Counts:
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    votes = (
        Vote.objects.current()
        .filter(Q(choice=Vote.Choice.SKIP) | Q(standing=Vote.Standing.COUNTED), campaign=campaign)
        .filter(assignment__kind=Assignment.Kind.NORMAL)
        .order_by()
    )
    columns = ("match__first", "match__second", "choice", "outcome", "standing", "could_see_names")
    for first, second, choice, outcome, standing, could_see, times in votes.values_list(*columns).annotate(
        times=Count("pk")
    ):
        counted = _columns(choice, outcome, standing, kept_apart=could_see and not campaign.counts_unblinded)
        for candidate, column in zip((first, second), counted or (), strict=False):
            found[candidate][column] += times
    return {candidate: dict(counts) for candidate, counts in found.items()}
