"""What a fit reads: counts per pair, by one GROUP BY whatever the number of decisions."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.models import Vote
from arena.models import Decision, Match, Sample, Tournament, TrialRequest
from ratings.dataset.scope import candidates_of, decisions_of, full_ids, juries_of, newest_of_lineages, tournaments_of
from ratings.dataset.votes import Screened, VoteRow, screened, vote_rows, votes_of
from ratings.engine import Comparisons, PairCounts, outcome_codes
from ratings.models import Leaderboard

# Subject id, subject id, outcome, count. The subject is a candidate or, on wider boards, a language model.
Triple = tuple[int, int, str, int]
# Subject id, subject id, outcome, sample, count.
FineRow = tuple[int, int, str, int, int]
# Beyond this many comparisons a fit reads counts per pair alone.
FINE_UP_TO = 200_000
SWAPPED = {"first": "second", "second": "first"}


@dataclass(frozen=True)
class Evidence:
    """What a board is fitted on. The roster holds everyone who entered, games or not."""

    # Id and full id.
    roster: list[tuple[int, str]]
    triples: list[Triple]
    # Decisions by sample; null where there are too many comparisons to read.
    fine: list[FineRow] | None = None
    # Votes by sample and rater; null there too. And by pair alone, of the votes among the triples.
    voted: list[VoteRow] | None = None
    vote_triples: list[Triple] = field(default_factory=list)
    screened: Screened | None = None
    # Of the samples in `fine`.
    categories: dict[int, str] = field(default_factory=dict)
    samples: int = 0
    tournaments: int = 1
    repeated: int = 0
    # Candidate to subject, where they differ.
    subjects: dict[int, int] = field(default_factory=dict)
    lineages: dict[int, str] = field(default_factory=dict)
    cutoff_at: dt.datetime = field(default_factory=timezone.now)

    @property
    def subject_ids(self) -> list[int]:
        return [subject for subject, _ in self.roster]

    @property
    def index(self) -> dict[int, int]:
        return {subject: position for position, subject in enumerate(self.subject_ids)}

    def pair_counts(self) -> PairCounts:
        return self.counts_of(self.triples)

    @property
    def votes(self) -> int:
        return sum(count for *_, count in self.vote_triples)

    @property
    def raters(self) -> int:
        """People behind the votes; nought where they could not be read apart."""
        return len({row[4] for row in self.voted or ()})

    @property
    def by_sample(self) -> list[FineRow] | None:
        """Decisions and votes by sample; None where there are too many to read them apart."""
        if self.fine is None:
            return None
        return [*self.fine, *((*row[:4], row[5]) for row in self.voted or ())]

    def comparisons(self) -> Comparisons | None:
        """With the sample of each, and where there are votes with the rater; None where there are too many.

        Each decision stands as a rater of its own: what decisions of one prompt share is its sample's.
        """
        if self.fine is None:
            return None
        if self.voted is None:
            return self.comparisons_of(self.fine)
        decided = [(*row[:4], -1 - number, row[4]) for number, row in enumerate(self.fine)]
        rows = [*decided, *self.voted]
        found = self.comparisons_of([(*row[:4], row[5]) for row in rows])
        return replace(found, rater=np.array([row[4] for row in rows], dtype=np.int64))

    def comparisons_of(self, rows: Sequence[FineRow]) -> Comparisons:
        index = self.index
        first, second, outcome, sample, count = zip(*rows, strict=True) if rows else ((),) * 5
        return Comparisons(
            len(index),
            np.array([index[one] for one in first], dtype=np.int64),
            np.array([index[one] for one in second], dtype=np.int64),
            outcome_codes(outcome),
            np.array(count, dtype=np.int64),
            np.array(sample, dtype=np.int64),
        )

    def counts_of(self, triples: Iterable[Triple]) -> PairCounts:
        index = self.index
        rows = [(index[first], index[second], outcome, count) for first, second, outcome, count in triples]
        return PairCounts.from_rows(len(index), rows)


def evidence_of(
    board: Leaderboard, *, fine_up_to: int = FINE_UP_TO, at_most: int | None = None, screen: bool = True
) -> Evidence:
    """Everything a fit reads. `at_most` is a bound on the comparisons, where one is known already; `screen` leaves
    out the sessions that the anomaly screen rejects, where the board does."""
    cutoff = timezone.now()
    juries = list(juries_of(board).values_list("pk", flat=True)) if board.has_decisions else []
    decisions = decisions_of(board, juries)
    sessions = screened(board, on=screen and board.anomaly_filter) if board.has_votes else None
    votes = votes_of(board).exclude(rater__in=sessions.left_out) if sessions is not None else None
    few = _are_few(decisions, votes, fine_up_to, at_most, board)
    rows, triples = _rows(decisions, few=few) if board.has_decisions else ([] if few else None, [])
    voted, vote_triples = _voted(votes, few=few) if votes is not None else (None, [])
    repeats = _repeats(board, decisions) if board.is_wide and board.has_decisions else []
    # Read after the decisions and votes, so that none of them names somebody unknown.
    roster, subjects, lineages = _roster(board)
    if board.is_wide:
        vote_triples = _merged(vote_triples, [], subjects)
        voted = None if voted is None else _merged_votes(voted, subjects)
        if rows is None:
            triples = _merged(triples, repeats, subjects)
        else:
            rows = _merged_fine(rows, repeats, subjects)
    # A database gives rows in any order, and a sum of floats hangs on the order in its last digits.
    if rows is not None:
        rows = sorted(rows)
        triples = _folded(rows)
    if voted is not None:
        voted = sorted(voted)
        vote_triples = _folded((*row[:4], row[5]) for row in voted)
    evidence = Evidence(
        roster,
        _together(triples, vote_triples),
        rows,
        voted,
        sorted(vote_triples),
        sessions,
        repeated=len(repeats),
        subjects=subjects,
        lineages=lineages,
        cutoff_at=cutoff,
    )
    by_sample = evidence.by_sample
    return replace(
        evidence,
        categories={} if by_sample is None else dict(_categories(board)),
        samples=_samples(board, decisions, votes) if by_sample is None else len({row[3] for row in by_sample}),
        tournaments=_compared_tournaments(board, votes) if board.is_wide else 1,
    )


def _are_few(
    decisions: QuerySet[Decision],
    votes: QuerySet[Vote] | None,
    fine_up_to: int,
    at_most: int | None,
    board: Leaderboard,
) -> bool:
    # A bound on votes is of whole campaigns, which may ask about other tournaments too.
    if at_most is not None and (at_most <= fine_up_to or not (board.category or board.has_votes)):
        return at_most <= fine_up_to
    if votes is None:
        return not decisions.order_by()[fine_up_to : fine_up_to + 1].exists()
    decided = decisions.order_by()[: fine_up_to + 1].count() if board.has_decisions else 0
    return decided + votes[: fine_up_to + 1].count() <= fine_up_to


def _rows(decisions: QuerySet[Decision], *, few: bool) -> tuple[list[FineRow] | None, list[Triple]]:
    """Counts by pair and sample, or by pair alone where the former would be too many."""
    columns = ("match__first", "match__second", "outcome")
    if few:
        fine = decisions.values_list(*columns, "match__sample").annotate(count=Count("id"))
        return [(first, second, outcome, sample, count) for first, second, outcome, sample, count in fine], []
    grouped = decisions.values_list(*columns).annotate(count=Count("id"))
    return None, [(first, second, outcome, count) for first, second, outcome, count in grouped]


def _voted(votes: QuerySet[Vote], *, few: bool) -> tuple[list[VoteRow] | None, list[Triple]]:
    if few:
        return list(vote_rows(votes)), []
    grouped = votes.values_list("match__first", "match__second", "outcome").annotate(count=Count("pk"))
    return None, [(first, second, outcome, count) for first, second, outcome, count in grouped]


def _samples(board: Leaderboard, decisions: QuerySet[Decision], votes: QuerySet[Vote] | None) -> int:
    if votes is not None:
        found = set(votes.values_list("match__sample", flat=True).distinct())
        if board.has_decisions:
            found |= set(decisions.order_by().values_list("match__sample", flat=True).distinct())
        return len(found)
    if board.jury is not None and not board.jury.primary:
        return decisions.order_by().values("match__sample").distinct().count()
    # A first jury decides every match that is decided, so one such match of a sample tells. Looked up by sample: a
    # database that has to find the different ones among a million matches reads all of these.
    tournaments = tournaments_of(board)
    met = Match.objects.decided().filter(tournament__in=tournaments, sample=OuterRef("pk"))
    samples = Sample.objects.filter(Exists(met), task_set__in=tournaments.values("task_set"))
    if board.category:
        samples = samples.filter(category=board.category)
    return samples.count()


def _compared_tournaments(board: Leaderboard, votes: QuerySet[Vote] | None) -> int:
    if votes is None:
        return _decided_tournaments(board).count()
    voted = Q(pk__in=votes.values("match__tournament"))
    if board.has_decisions:
        voted |= Q(pk__in=_decided_tournaments(board).values("pk"))
    return tournaments_of(board).filter(voted).count()


def _decided_tournaments(board: Leaderboard) -> QuerySet[Tournament]:
    matches = Match.objects.decided().filter(tournament=OuterRef("pk"))
    if board.category:
        matches = matches.filter(sample__category=board.category)
    return tournaments_of(board).filter(Exists(matches))


def _categories(board: Leaderboard) -> Iterable[tuple[int, str]]:
    sets = tournaments_of(board).values("task_set")
    return Sample.objects.filter(task_set__in=sets).order_by().values_list("pk", "category")


def _roster(board: Leaderboard) -> tuple[list[tuple[int, str]], dict[int, int], dict[int, str]]:
    candidates = candidates_of(board)
    if not board.is_wide:
        return list(candidates.values_list("pk", "full_id")), {}, {}
    rows = list(candidates.values_list("pk", "language_model", "language_model__lineage"))
    newest = newest_of_lineages(rows)
    names = full_ids(list(newest.values()))
    roster = sorted((model, names[model]) for model in newest.values())
    subjects = {candidate: newest[lineage] for candidate, _, lineage in rows}
    return roster, subjects, {model: lineage for lineage, model in newest.items()}


def _seen(first: int, second: int, outcome: str) -> tuple[int, int, str]:
    """The lower id first."""
    return (first, second, outcome) if first < second else (second, first, SWAPPED.get(outcome, outcome))


# Candidates, outcome and sample of a decision that a later one on the same two answers replaces.
Repeat = tuple[int, int, str, int]


def _repeats(board: Leaderboard, decisions: QuerySet[Decision]) -> list[Repeat]:
    """An answer is generated once and reused, so two tournaments may judge the same pair of answers: the latest counts.

    Only trials that several tournaments asked for can come up again, or those of an input that a set holds twice.
    """
    tournaments = tournaments_of(board)
    shared = TrialRequest.objects.filter(tournament__in=tournaments).order_by().values("trial")
    shared = shared.annotate(times=Count("id")).filter(times__gt=1).values("trial")
    inputs = Sample.objects.filter(task_set__in=tournaments.values("task_set")).order_by()
    doubled = inputs.values_list("task_set", "input_hash").annotate(times=Count("id")).filter(times__gt=1)
    hashes = {input_hash for _, input_hash, _ in doubled}
    if not hashes and not shared.exists():
        return []
    again = Q(match__first_trial__in=shared, match__second_trial__in=shared)
    if hashes:
        again |= Q(match__first_trial__input_hash__in=hashes)
    rows = decisions.filter(again).order_by("id")
    columns = ("match__first_trial", "match__second_trial", "match__first", "match__second", "outcome", "match__sample")
    latest: dict[tuple[int, int], Repeat] = {}
    repeats = []
    for one, other, first, second, outcome, sample in rows.values_list(*columns):
        pair = (min(one, other), max(one, other))
        if pair in latest:
            repeats.append(latest[pair])
        latest[pair] = (first, second, outcome, sample)
    return repeats


def _merged(triples: list[Triple], repeats: list[Repeat], subjects: dict[int, int]) -> list[Triple]:
    counts: Counter[tuple[int, int, str]] = Counter()
    for first, second, outcome, count in triples:
        counts[_seen(subjects[first], subjects[second], outcome)] += count
    for first, second, outcome, _ in repeats:
        counts[_seen(subjects[first], subjects[second], outcome)] -= 1
    # Two versions of one model that met each other are one subject here, and say nothing of it.
    return [(*key, count) for key, count in counts.items() if count and key[0] != key[1]]


def _merged_fine(rows: list[FineRow], repeats: list[Repeat], subjects: dict[int, int]) -> list[FineRow]:
    counts: Counter[tuple[int, int, str, int]] = Counter()
    for first, second, outcome, sample, count in rows:
        counts[*_seen(subjects[first], subjects[second], outcome), sample] += count
    for first, second, outcome, sample in repeats:
        counts[*_seen(subjects[first], subjects[second], outcome), sample] -= 1
    return [(*key, count) for key, count in counts.items() if count and key[0] != key[1]]


def _merged_votes(rows: list[VoteRow], subjects: dict[int, int]) -> list[VoteRow]:
    counts: Counter[tuple[int, int, str, int, int]] = Counter()
    for first, second, outcome, sample, rater, count in rows:
        counts[*_seen(subjects[first], subjects[second], outcome), sample, rater] += count
    return [(*key, count) for key, count in counts.items() if key[0] != key[1]]


def _together(*parts: list[Triple]) -> list[Triple]:
    """A decision and a vote weigh the same."""
    counts: Counter[tuple[int, int, str]] = Counter()
    for first, second, outcome, count in (row for part in parts for row in part):
        counts[first, second, outcome] += count
    return sorted((*key, count) for key, count in counts.items())


def _folded(rows: Iterable[FineRow]) -> list[Triple]:
    counts: Counter[tuple[int, int, str]] = Counter()
    for first, second, outcome, _, count in rows:
        counts[first, second, outcome] += count
    return [(*key, count) for key, count in counts.items()]
