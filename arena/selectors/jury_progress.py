"""How a rejudge stands, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Count, Q, Sum

from arena.models import Call, CallStatus, Decision, DecisionOutcome, Judge, Jury, Verdict
from arena.selectors.advice import meaning_of
from arena.selectors.rejudging import answered_matches
from arena.selectors.tournaments import ErrorLine


@dataclass(frozen=True)
class JuryProgress:
    matches: int
    decided: int
    inconclusive: int
    calls: int
    calls_of_unknown_cost: int
    spent_usd: Decimal
    in_flight: int
    queued: int
    judges: list[Judge] = field(default_factory=list)
    errors: list[ErrorLine] = field(default_factory=list)

    @property
    def resolved(self) -> int:
        return self.decided + self.inconclusive


def progress_of(jury: Jury) -> JuryProgress:
    matches = answered_matches(jury.tournament).filter(sequence__lte=jury.last_sequence or 0).count()
    inconclusive = Q(outcome=DecisionOutcome.INCONCLUSIVE)
    decisions = Decision.objects.current().filter(jury=jury)
    outcomes = decisions.aggregate(decided=Count("pk", filter=~inconclusive), open=Count("pk", filter=inconclusive))
    calls = Call.objects.filter(rejudge=jury).aggregate(
        n=Count("pk"), cost=Sum("cost_usd"), unknown=Count("pk", filter=Q(cost_usd=None))
    )
    verdicts = Verdict.objects.filter(rejudge=jury)
    statuses = dict(verdicts.order_by().values_list("status").annotate(n=Count("pk")))
    failed = verdicts.filter(status=CallStatus.FAILED).order_by().values_list("error_code").annotate(n=Count("pk"))
    return JuryProgress(
        matches=max(matches, outcomes["decided"] + outcomes["open"]),
        decided=outcomes["decided"],
        inconclusive=outcomes["open"],
        calls=calls["n"],
        calls_of_unknown_cost=calls["unknown"],
        spent_usd=calls["cost"] or Decimal(0),
        in_flight=statuses.get(CallStatus.RUNNING, 0),
        queued=statuses.get(CallStatus.QUEUED, 0),
        judges=list(jury.judges.all()),
        errors=[ErrorLine(code or "OTHER", n, *meaning_of(code or "OTHER")) for code, n in sorted(failed)],
    )
