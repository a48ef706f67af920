"""What failed and could be called again, of a tournament and of each of its juries."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from arena.judging.skips import LASTING_SKIPS
from arena.judging.verdict import ErrorCode
from arena.models import Ballot, CallStatus, Jury, Match, Tournament, Verdict

LASTING = [code.value for code in LASTING_SKIPS]
# A failed tournament is one in which nobody could answer or judge: the very case for trying again.
RETRIED = frozenset({Tournament.Status.FINISHED, Tournament.Status.FAILED, Tournament.Status.PAUSED})
RETRIED_JURIES = frozenset({Jury.Status.FINISHED, Jury.Status.FAILED, Jury.Status.PAUSED})


@dataclass(frozen=True)
class Retryable:
    """Counts; nothing of it is called before somebody says so."""

    void_matches: int = 0
    answers: int = 0
    # Withdrawn while a side sat out, which such a retry plays after all.
    withdrawn_matches: int = 0
    verdicts: int = 0
    judged_matches: int = 0

    @property
    def anything(self) -> bool:
        return bool(self.void_matches or self.verdicts)


def retryable_of(tournament: Tournament) -> Retryable:
    if tournament.status not in RETRIED or tournament.settings.get("imported"):
        return Retryable()
    void = void_matches(tournament)
    failed = {
        trial
        for side in ("first", "second")
        for trial in void.filter(**{f"{side}_trial__status": CallStatus.FAILED}).values_list(f"{side}_trial", flat=True)
    }
    verdicts = failed_verdicts(tournament.juries.get(primary=True))
    return Retryable(
        void_matches=void.count(),
        answers=len(failed),
        withdrawn_matches=withdrawn_matches(tournament).count() if failed else 0,
        verdicts=verdicts.count(),
        judged_matches=verdicts.order_by().values("match").distinct().count(),
    )


def void_matches(tournament: Tournament) -> QuerySet[Match]:
    """Void for answers that another attempt may bring; an input that a model takes none of stays what it is."""
    lasting = Q(first_trial__skip_code__in=LASTING) | Q(second_trial__skip_code__in=LASTING)
    return Match.objects.filter(tournament=tournament, status=Match.Status.VOID, imported=False).exclude(lasting)


def withdrawn_matches(tournament: Tournament) -> QuerySet[Match]:
    """Where results are followed others were planned in their place."""
    rows = Match.objects.filter(tournament=tournament, status=Match.Status.WITHDRAWN, imported=False)
    return rows.none() if tournament.follows_results else rows


def failed_verdicts(jury: Jury) -> QuerySet[Verdict]:
    """Failed judge calls that left a seat empty: one that a stand-in took is filled, and nobody votes twice for it."""
    spoke = [Ballot.Status.VOTE, Ballot.Status.ABSTAINED]
    filled = Ballot.objects.filter(replaces=OuterRef("ballot"), status__in=spoke)
    judged = [Match.Status.DECIDED, Match.Status.INCONCLUSIVE]
    return Verdict.objects.filter(
        ~Exists(filled),
        ballot__jury=jury,
        ballot__replaces=None,
        ballot__status=Ballot.Status.FAILED,
        match__status__in=judged,
        match__imported=False,
        status=CallStatus.FAILED,
    ).exclude(error_code=ErrorCode.UNSUPPORTED_INPUT)
