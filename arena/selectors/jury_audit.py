"""The rows of a jury, read for its audit: a fixed number of queries, whatever the number of matches."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Q, Sum

from arena.judging import audit as pure
from arena.judging.protocol import Protocol
from arena.models import Ballot, Call, CallStatus, Candidate, Decision, Judge, Jury, Match, Verdict

RESAMPLES = 1000
# Raised with every change of what the figures are.
CACHE_VERSION = 1
KEPT_SECONDS = 24 * 60 * 60


def audit_of(jury: Jury, *, resamples: int = RESAMPLES, with_length_control: bool = False) -> pure.Audit:
    """All figures of a jury as they are now. Reading changes nothing and calls nobody."""
    return pure.audit(evidence_of(jury), resamples=resamples, with_length_control=with_length_control)


def kept_audit_of(jury: Jury) -> pure.Audit:
    """The same, computed once for as long as the rows it rests on look the same."""
    key = f"jury-audit:{CACHE_VERSION}:{jury.pk}:{_marks(jury)}"
    found: pure.Audit | None = cache.get(key)
    if found is None:
        found = audit_of(jury)
        cache.set(key, found, KEPT_SECONDS)
    return found


def _marks(jury: Jury) -> str:
    """Counts that change with every verdict, decision and call."""
    matches = Match.objects.filter(tournament=jury.tournament_id).order_by()
    marks = [
        sorted(matches.values_list("status").annotate(count=Count("pk"))),
        sorted(Verdict.objects.filter(ballot__jury=jury).order_by().values_list("status").annotate(count=Count("pk"))),
        Decision.objects.filter(jury=jury).aggregate(count=Count("pk"), newest=Max("pk")),
        Call.objects.filter(verdict__ballot__jury=jury).aggregate(count=Count("pk")),
    ]
    return hashlib.sha256(repr(marks).encode()).hexdigest()[:32]


def evidence_of(jury: Jury) -> pure.Evidence:
    outcomes = dict(Decision.objects.current().filter(jury=jury).values_list("match", "outcome"))
    imported = bool(jury.tournament.imported_hash) and jury.primary
    return pure.Evidence(
        candidates=[_model(row) for row in Candidate.objects.filter(tournament=jury.tournament_id)],
        judges=[_model(row, replacement=row.replacement) for row in Judge.objects.filter(jury=jury)],
        matches=_matches(jury, outcomes),
        ballots=[
            pure.Ballot(*row)
            for row in Ballot.objects.filter(jury=jury)
            .order_by("match", "judge__replacement", "judge__position")
            .values_list("match", "judge", "status", "vote", "flipped", "flip_kind")
        ],
        verdicts=_verdicts(jury),
        calls=None if imported else _calls(jury),
        seat_orders=Protocol.from_json(jury.protocol).seat_orders,
    )


def _model(row: Candidate | Judge, *, replacement: bool = False) -> pure.Model:
    pinned = row.snapshot
    return pure.Model(
        id=row.pk,
        position=row.position,
        full_id=row.full_id,
        label=row.label,
        model_id=str(pinned.get("model_id") or row.full_id),
        family=str(pinned.get("family") or ""),
        replacement=replacement,
        price=_price(pinned.get("price")),
    )


def _price(pinned: Any) -> tuple[Decimal, Decimal] | None:
    if not isinstance(pinned, Mapping):
        return None
    try:
        return Decimal(str(pinned["input_per_million"])), Decimal(str(pinned["output_per_million"]))
    except (KeyError, InvalidOperation):
        return None


_ANSWER = ("status", "truncated", "characters", "input_tokens", "output_tokens", "cost_usd")


def _matches(jury: Jury, outcomes: Mapping[int, str]) -> list[pure.Match]:
    sides = [f"{side}_trial{field}" for side in ("first", "second") for field in ("", *(f"__{n}" for n in _ANSWER))]
    rows = (
        Match.objects.filter(tournament=jury.tournament_id)
        .order_by("sequence")
        .values("id", "sample", "sample__category", "first", "second", "status", "forced_tie", "recorded", *sides)
    )
    return [
        pure.Match(
            id=row["id"],
            sample=row["sample"],
            category=row["sample__category"],
            first=row["first"],
            second=row["second"],
            status=_status(row["status"], outcomes.get(row["id"], "")),
            forced_tie=row["forced_tie"],
            outcome=outcomes.get(row["id"], ""),
            answers=tuple(_answer(row, side) for side in ("first", "second") if row[f"{side}_trial"] is not None),
            judge_input_tokens=row["recorded"].get("judge_tokens_in"),
            judge_output_tokens=row["recorded"].get("judge_tokens_out"),
        )
        for row in rows
    ]


def _status(stored: str, outcome: str) -> str:
    """As this jury left it: another jury of the tournament may have come to another end."""
    if stored not in (Match.Status.DECIDED, Match.Status.INCONCLUSIVE) or not outcome:
        return stored
    return Match.Status.INCONCLUSIVE.value if outcome == "inconclusive" else Match.Status.DECIDED.value


def _answer(row: Mapping[str, Any], side: str) -> pure.Answer:
    trial = f"{side}_trial"
    status, truncated, characters, tokens_in, tokens_out, cost = (row[f"{trial}__{name}"] for name in _ANSWER)
    return pure.Answer(
        trial=row[trial],
        candidate=row[side],
        succeeded=status == CallStatus.SUCCEEDED,
        truncated=truncated,
        characters=characters,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_usd=cost,
    )


def _verdicts(jury: Jury) -> list[pure.Verdict]:
    rows = (
        Verdict.objects.filter(ballot__jury=jury)
        .order_by("match", "ballot", "seat_order")
        .values_list(
            "match",
            "ballot__judge",
            "seat_order",
            "status",
            "winner",
            "error_code",
            "input_tokens",
            "output_tokens",
            "duration_ms",
        )
    )
    return [
        pure.Verdict(
            match=match,
            judge=judge,
            first_in_a=order == Verdict.SeatOrder.FIRST_IN_A,
            succeeded=status == CallStatus.SUCCEEDED,
            winner=winner,
            error_code=code,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            duration_ms=duration,
        )
        for match, judge, order, status, winner, code, tokens_in, tokens_out, duration in rows
    ]


def _calls(jury: Jury) -> dict[int, pure.CallSum]:
    rows = (
        Call.objects.filter(verdict__ballot__jury=jury)
        .order_by()
        .values_list("verdict__ballot__judge")
        .annotate(calls=Count("pk"), cost=Sum("cost_usd"), unknown=Count("pk", filter=Q(cost_usd=None)))
    )
    found: dict[int, pure.CallSum] = defaultdict(lambda: pure.CallSum(0, None, 0))
    for judge, calls, cost, unknown in rows:
        found[judge] = pure.CallSum(calls, cost, unknown)
    return dict(found)
