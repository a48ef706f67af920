"""Counts for each candidate, kept in the transaction of what they count."""

from __future__ import annotations

from collections import defaultdict

from django.db import transaction
from django.db.models import Count, F, Q

from arena import statements
from arena.models import CallStatus, Candidate, Decision, DecisionOutcome, Jury, Match, Tally

Counts = dict[int, dict[str, int]]


def outcome_counts(first: int, second: int, outcome: str, times: int = 1) -> Counts:
    """What an outcome is for either side, by candidate. An unknown outcome raises."""
    sides = {
        DecisionOutcome.FIRST: ("wins", "losses"),
        DecisionOutcome.SECOND: ("losses", "wins"),
        DecisionOutcome.TIE: ("ties", "ties"),
        DecisionOutcome.INCONCLUSIVE: ("inconclusive", "inconclusive"),
    }
    of_first, of_second = sides[DecisionOutcome(outcome)]
    return {first: {of_first: times}, second: {of_second: times}}


def count_decision(match: Match, jury_id: int, outcome: str) -> None:
    """Call it in the transaction that stores the decision."""
    statements.add_to_tallies(jury_id, outcome_counts(match.first_id, match.second_id, outcome))


def take_back_decision(match: Match, jury_id: int, outcome: str) -> None:
    """Call it in the transaction that supersedes the decision."""
    counts = outcome_counts(match.first_id, match.second_id, outcome)
    for candidate, (name,) in sorted((candidate, tuple(one)) for candidate, one in counts.items()):
        Tally.objects.filter(jury=jury_id, candidate=candidate).update(**{name: F(name) - 1})


def count_void(match: Match, jury_id: int, *, forced_tie: bool) -> None:
    """Call it in the transaction that makes the match void."""
    counts: Counts = {}
    for candidate, trial in ((match.first_id, match.first_trial), (match.second_id, match.second_trial)):
        answered = trial is not None and trial.succeeded
        counts[candidate] = {"voids": 1, "forced_ties": int(forced_tie), "skips": int(not answered)}
    statements.add_to_tallies(jury_id, counts)


def recount(jury: Jury) -> int:
    """Make the counts of a jury anew from the rows; returns how many candidates' were wrong."""
    with transaction.atomic():
        candidates = list(Candidate.objects.filter(tournament=jury.tournament_id).values_list("pk", flat=True))
        if not candidates:
            return 0
        # From here on a decision waits before its counts, and so before it can be seen.
        for candidate in sorted(candidates):
            statements.add_to_tallies(jury.pk, {candidate: {}})
        rows = list(Tally.objects.select_for_update().filter(jury=jury).order_by("candidate"))
        true = counts_from_rows(jury)
        wrong = []
        for row in rows:
            counted = true.get(row.candidate_id, {})
            fresh = {name: counted.get(name, 0) for name in statements.TALLY_COLUMNS}
            if any(getattr(row, name) != value for name, value in fresh.items()):
                for name, value in fresh.items():
                    setattr(row, name, value)
                wrong.append(row)
        Tally.objects.bulk_update(wrong, statements.TALLY_COLUMNS)
    return len(wrong)


def counts_from_rows(jury: Jury) -> Counts:
    found: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    decided = Decision.objects.current().filter(jury=jury).order_by()
    columns = ("match__first", "match__second", "outcome")
    for first, second, outcome, times in decided.values_list(*columns).annotate(times=Count("id")):
        for candidate, counts in outcome_counts(first, second, outcome, times).items():
            for name, number in counts.items():
                found[candidate][name] += number
    if jury.primary:
        for side in ("first", "second"):
            for candidate, voids, forced, skips in _voids(jury, side):
                for name, number in (("voids", voids), ("forced_ties", forced), ("skips", skips)):
                    found[candidate][name] += number
    return {candidate: dict(counts) for candidate, counts in found.items()}


def _voids(jury: Jury, side: str) -> list[tuple[int, int, int, int]]:
    matches = Match.objects.filter(tournament=jury.tournament_id, status=Match.Status.VOID).order_by()
    answered = Q(**{f"{side}_trial__status": CallStatus.SUCCEEDED})
    rows = matches.values_list(side).annotate(
        voids=Count("id"), forced=Count("id", filter=Q(forced_tie=True)), answered=Count("id", filter=answered)
    )
    return [(candidate, voids, forced, voids - answered) for candidate, voids, forced, answered in rows]
