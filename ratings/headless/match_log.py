"""One JSON line per match, appended as it resolves: complete and without doubles, whatever interrupts it.

Of a match that was decided anew the last line holds.
"""

from __future__ import annotations

import fcntl
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from django.db.models import Prefetch

from arena.models import Ballot, Call, Decision, Match, Sample, Tournament, Trial, Verdict

FORMAT = "tiltyard.matches"
SCHEMA_VERSION = 1
RESOLVED = (Match.Status.DECIDED, Match.Status.INCONCLUSIVE, Match.Status.VOID, Match.Status.WITHDRAWN)
BATCH = 100
SEATS = {"first": "A", "second": "B", "tie": "tie", "": None}
# Sums of calls, by the id of the trial or verdict they were made for. None is unknown, never nought.
Costs = dict[int, Decimal | None]


class LogError(Exception):
    """The file cannot be written to; the message says why."""


class MatchLog:
    """The file of one tournament. What it holds already is read from the file itself, not from memory."""

    def __init__(self, path: Path, tournament: Tournament) -> None:
        self.path, self._tournament = path, tournament
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            # Two commands on one tournament would each write every match.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._written = self._read()
        except OSError as error:
            self._file.close()
            raise LogError(f"Another command writes {path} at this moment.") from error
        except LogError:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append_resolved(self) -> int:
        """Write every match that resolved since; returns how many."""
        # A match withdrawn with a benched side may come back while the tournament goes on.
        statuses = [one for one in RESOLVED if one != Match.Status.WITHDRAWN or not self._tournament.is_active]
        resolved = Match.objects.filter(tournament=self._tournament, status__in=statuses)
        # One that was decided anew, after calls that had failed, has another moment and gets another line.
        ids = [
            pk
            for pk, public_id, decided_at in resolved.order_by("decided_at", "sequence").values_list(
                "pk", "public_id", "decided_at"
            )
            if self._written.get(public_id, ...) != (decided_at.timestamp() if decided_at else None)
        ]
        for start in range(0, len(ids), BATCH):
            for record in records(self._tournament, ids[start : start + BATCH]):
                # One write a line, so that a kill leaves at most one line torn, the last.
                self._file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                self._file.flush()
                self._written[record["match_id"]] = record["timestamp"]
        return len(ids)

    def _read(self) -> dict[str, float | None]:
        """The matches the file holds, and when each was decided. A torn last line is cut off and written again."""
        written: dict[str, float | None] = {}
        whole = 0
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            match = _match_of(line, self._tournament.public_id)
            if match is None:
                raise LogError(f"{self.path} holds something other than the matches of this tournament; move it away.")
            written[match[0]] = match[1]
            whole += len(line)
        self._file.truncate(whole)
        return written


def _match_of(line: bytes, tournament_id: str) -> tuple[str, float | None] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("tournament_id") != tournament_id:
        return None
    match_id = record.get("match_id")
    return (match_id, record.get("timestamp")) if isinstance(match_id, str) else None


# Records -----------------------------------------------------------------------------------------------------
def records(tournament: Tournament, match_ids: Sequence[int]) -> Iterator[dict[str, Any]]:
    """In the order of the ids."""
    ballots = Ballot.objects.filter(jury__primary=True).select_related("judge", "replaces__judge")
    ballots = ballots.order_by("judge__replacement", "judge__position").prefetch_related(
        Prefetch("verdicts", Verdict.objects.order_by("seat_order"))
    )
    decisions = Decision.objects.current().filter(jury__primary=True)
    found = (
        Match.objects.filter(pk__in=match_ids)
        .with_sides()
        .select_related("step")
        .prefetch_related(Prefetch("ballots", ballots), Prefetch("decisions", decisions))
        .in_bulk()
    )
    trials = {side for match in found.values() for side in (match.first_trial_id, match.second_trial_id) if side}
    answer_costs = _costs(Call.objects.filter(trial__in=trials).values_list("trial", "cost_usd"))
    judge_costs = _costs(
        Call.objects.filter(verdict__match__in=match_ids, rejudge=None).values_list("verdict", "cost_usd")
    )
    for match_id in match_ids:
        yield _record(tournament, found[match_id], answer_costs, judge_costs)


def _costs(rows: Iterable[tuple[int | None, Decimal | None]]) -> Costs:
    found: dict[int, list[Decimal | None]] = defaultdict(list)
    for subject, cost in rows:
        assert subject is not None
        found[subject].append(cost)
    return {
        subject: sum((cost for cost in costs if cost is not None), Decimal(0)) if None not in costs else None
        for subject, costs in found.items()
    }


def _record(tournament: Tournament, match: Match, answer_costs: Costs, judge_costs: Costs) -> dict[str, Any]:
    decision = next(iter(match.decisions.all()), None)
    ballots = list(match.ballots.all())
    verdicts = [verdict for ballot in ballots for verdict in ballot.verdicts.all()]
    outcome = decision.outcome if decision else ""
    winner = {"first": match.first, "second": match.second}.get(outcome)
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "tournament_id": tournament.public_id,
        "match_id": match.public_id,
        "sequence": match.sequence,
        "round_number": match.step.number,
        "status": match.status,
        "timestamp": match.decided_at.timestamp() if match.decided_at else None,
        **_sample(match.sample),
        "model_a": match.first.label,
        "model_b": match.second.label,
        "model_a_id": match.first.full_id,
        "model_b_id": match.second.full_id,
        **_answer("a", match.first_trial, answer_costs),
        **_answer("b", match.second_trial, answer_costs),
        "judge_votes": [_vote(ballot, judge_costs) for ballot in ballots],
        "majority_verdict": SEATS.get(outcome, outcome or None),
        "winner": winner.label if winner else outcome or None,
        "winner_id": winner.full_id if winner else None,
        "decision_reason": decision.reason if decision else None,
        "forced_tie": match.forced_tie,
        "judge_tokens_in": _total([match.recorded.get("judge_tokens_in"), *(v.input_tokens for v in verdicts)]),
        "judge_tokens_out": _total([match.recorded.get("judge_tokens_out"), *(v.output_tokens for v in verdicts)]),
        "judge_cost_usd": _money_total([judge_costs.get(verdict.pk) for verdict in verdicts]),
        "error": _error(match),
    }


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "sample": sample.key,
        "prompt_hash": sample.input_hash,
        "prompt_text": _prompt_text(sample.messages),
        "prompt_category": sample.category,
        "prompt_metadata": sample.metadata,
        "messages": sample.messages,
        "reference": sample.reference or None,
        "criteria": sample.criteria or None,
    }


def _prompt_text(messages: Sequence[dict[str, Any]]) -> str:
    """What the user said last, as text."""
    content = next((one["content"] for one in reversed(messages) if one.get("role") == "user"), "")
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")


def _answer(side: str, trial: Trial | None, costs: Costs) -> dict[str, Any]:
    if trial is None:
        return {f"response_{side}": None, f"error_{side}": "There is no answer."}
    return {
        f"response_{side}": trial.answer if trial.succeeded else None,
        f"partial_response_{side}": trial.partial_answer or None,
        f"error_{side}": trial.error or None,
        f"skip_code_{side}": trial.skip_code or None,
        f"tokens_{side}_in": trial.input_tokens,
        f"tokens_{side}_out": trial.output_tokens,
        f"tokens_{side}_reasoning": trial.reasoning_tokens,
        f"finish_reason_{side}": trial.finish_reason or None,
        f"truncated_{side}": trial.truncated,
        f"ttft_{side}_ms": trial.ttft_ms,
        f"duration_{side}_ms": trial.duration_ms,
        f"cost_{side}_usd": _money(costs.get(trial.pk)),
    }


def _vote(ballot: Ballot, costs: Costs) -> dict[str, Any]:
    verdicts = list(ballot.verdicts.all())
    return {
        "model": ballot.judge.full_id,
        "vote": SEATS[ballot.vote],
        "flipped": ballot.flipped,
        "completed": ballot.status in {Ballot.Status.VOTE, Ballot.Status.ABSTAINED},
        "replacement": ballot.judge.replacement,
        "explanation": next((verdict.reason for verdict in verdicts if verdict.reason), ballot.explanation),
        "status": ballot.status,
        "flip_kind": ballot.flip_kind or None,
        "replaces": ballot.replaces.judge.full_id if ballot.replaces else None,
        "verdicts": [_verdict(verdict, costs) for verdict in verdicts],
    }


def _verdict(verdict: Verdict, costs: Costs) -> dict[str, Any]:
    return {
        "first_in_seat": "A" if verdict.seat_order == Verdict.SeatOrder.FIRST_IN_A else "B",
        "status": verdict.status,
        # The seat that was named, and the answer that sat in it.
        "winner_seat": verdict.winner or None,
        "vote": SEATS[verdict.vote],
        "comment_on_seat_a": verdict.comment_a,
        "comment_on_seat_b": verdict.comment_b,
        "reason": verdict.reason,
        "error_code": verdict.error_code or None,
        "error": verdict.error or None,
        # What could not be read, so that it can be seen why.
        "raw": verdict.raw if verdict.error_code else None,
        "repairs": verdict.repairs,
        "structured": verdict.structured or None,
        "answers_cut": verdict.cut,
        "tokens_in": verdict.input_tokens,
        "tokens_out": verdict.output_tokens,
        "duration_ms": verdict.duration_ms,
        "cost_usd": _money(costs.get(verdict.pk)),
    }


def _error(match: Match) -> str | None:
    """Why a void match could not be judged."""
    if match.status != Match.Status.VOID:
        return None
    sides = ((match.first, match.first_trial), (match.second, match.second_trial))
    return " ".join(
        f"{candidate.full_id}: {trial.skip_code}: {trial.error}"
        for candidate, trial in sides
        if trial is not None and not trial.succeeded
    )


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _money_total(costs: Sequence[Decimal | None]) -> str | None:
    return None if not costs or None in costs else _money(sum((cost for cost in costs if cost), Decimal(0)))


def _money(value: Decimal | None) -> str | None:
    """As text: dollars are decimal, and a binary fraction would not be what was booked."""
    return None if value is None else format(value, "f")
