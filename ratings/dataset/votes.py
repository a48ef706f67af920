"""People's votes as fits read them, and which sessions the anomaly screen leaves out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from annotation.models import Campaign, Rater, Vote
from ratings.dataset.scope import tournaments_of
from ratings.engine import SessionVotes, screen
from ratings.models import Leaderboard

# Subject id, subject id, outcome, sample, rater, count.
VoteRow = tuple[int, int, str, int, int, int]


@dataclass(frozen=True)
class ScreenedSession:
    """A session that some test rejected, or about which an admin said something."""

    rater: str
    name: str
    votes: int
    left: int
    right: int
    volume_p: float | None
    volume_p_others: float | None
    position_p: float | None
    median_gap_s: float | None
    reasons: list[str]
    screening: str
    excluded: bool


@dataclass(frozen=True)
class Screened:
    on: bool
    sessions: int = 0
    listed: list[ScreenedSession] = field(default_factory=list)
    # Keys of the raters whose votes stay out.
    left_out: frozenset[int] = frozenset()

    def to_json(self) -> dict[str, Any]:
        return {"on": self.on, "sessions": self.sessions, "listed": [asdict(one) for one in self.listed]}


def campaigns_of(board: Leaderboard) -> QuerySet[Campaign]:
    """Those that ask about matches of the board, open or done."""
    through = Campaign.tournaments.through._default_manager
    over = through.filter(tournament__in=tournaments_of(board)).values("campaign")
    return Campaign.objects.filter(team=board.team_id, pk__in=over).exclude(status=Campaign.Status.DRAFT)


def votes_of(board: Leaderboard) -> QuerySet[Vote]:
    """All that may enter a fit: current, on normal pairs, with a place, cast before any names were revealed."""
    votes = Vote.objects.counted().filter(match__tournament__in=tournaments_of(board), campaign__team=board.team_id)
    votes = votes.filter(Q(campaign__revealed_at=None) | Q(created_at__lte=F("campaign__revealed_at")))
    if board.category:
        votes = votes.filter(match__sample__category=board.category)
    if board.drop_both_bad:
        votes = votes.exclude(choice=Vote.Choice.BOTH_BAD)
    if _some_take_part_twice(board):
        # One person counts once on the same two answers, whatever the campaign: the latest vote.
        later = Vote.objects.counted().filter(
            rater__user=OuterRef("rater__user"),
            assignment__answers_key=OuterRef("assignment__answers_key"),
            match__tournament__in=tournaments_of(board),
            pk__gt=OuterRef("pk"),
        )
        votes = votes.exclude(Exists(later))
    return votes.order_by()


def _some_take_part_twice(board: Leaderboard) -> bool:
    members = Rater.objects.filter(campaign__in=campaigns_of(board), user__isnull=False).order_by()
    return members.values("user").annotate(times=Count("pk")).filter(times__gt=1).exists()


def person_key(user: int | None, rater: int) -> int:
    """One number for one person: members by their account, so that two campaigns do not make two of them."""
    return 2 * user if user is not None else 2 * rater + 1


def vote_rows(votes: QuerySet[Vote]) -> Iterator[VoteRow]:
    """By pair, sample and rater, in one GROUP BY."""
    columns = ("match__first", "match__second", "outcome", "match__sample", "rater__user", "rater")
    for first, second, outcome, sample, user, rater, count in votes.values_list(*columns).annotate(count=Count("pk")):
        yield first, second, outcome, sample, person_key(user, rater), count


def screened(board: Leaderboard, *, on: bool) -> Screened:
    """Look at every anonymous session of the board's campaigns. With the screen off nobody is left out by it.

    A session is judged by all it cast, repeats and gold items included, and by when it first answered each pair.
    """
    raters = {
        rater.pk: rater
        for rater in Rater.objects.filter(campaign__in=campaigns_of(board), open_link__isnull=False).order_by("pk")
    }
    if not raters:
        return Screened(on)
    sides: dict[int, dict[str, int]] = defaultdict(dict)
    cast = Vote.objects.current().filter(rater__in=raters).exclude(outcome="").order_by()
    for rater, choice, count in cast.values_list("rater", "choice").annotate(count=Count("pk")):
        sides[rater][choice] = count
    times: dict[int, list[float]] = defaultdict(list)
    acted = Vote.objects.filter(rater__in=raters, supersedes=None).order_by()
    for rater, at in acted.values_list("rater", "created_at").iterator(chunk_size=5000):
        times[rater].append(at.timestamp())
    found = screen(
        [
            SessionVotes(
                session=rater,
                left=sides[rater].get(Vote.Choice.LEFT, 0),
                right=sides[rater].get(Vote.Choice.RIGHT, 0),
                ties=sides[rater].get(Vote.Choice.BOTH_GOOD, 0) + sides[rater].get(Vote.Choice.BOTH_BAD, 0),
                times_s=times[rater],
            )
            for rater in raters
        ],
        rule="all" if settings.ANOMALY_VOLUME_EXCLUDES else "position_and_speed",
    )
    listed, left_out = [], set()
    for key, one in zip(raters, found, strict=True):
        rater = raters[key]
        excluded = on and one.excluded
        if rater.screening:
            excluded = rater.screening == Rater.Screening.EXCLUDED
        if excluded:
            left_out.add(key)
        if one.flagged or rater.screening:
            listed.append(
                ScreenedSession(
                    rater=rater.public_id,
                    name=str(rater),
                    votes=one.votes,
                    left=one.left,
                    right=one.right,
                    volume_p=one.volume_p,
                    volume_p_others=one.volume_p_others,
                    position_p=one.position_p,
                    median_gap_s=one.median_gap_s,
                    reasons=list(one.reasons),
                    screening=rater.screening,
                    excluded=excluded,
                )
            )
    return Screened(on, len(raters), listed, frozenset(left_out))
