"""The statements that every call runs, written out.

The ORM builds its SQL anew each time, which takes 0.5 to 2 ms of CPU a statement; a call runs eight of them, and
that was most of what a call cost. The columns come from the models, so a renamed field fails at once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar, cast

from django.db import connection, models

from arena.models import (
    Ballot,
    BenchProbe,
    CallStatus,
    Candidate,
    Decision,
    Jury,
    Match,
    Step,
    Tally,
    Tournament,
    Trial,
    TrialRequest,
    Verdict,
)

PaidModel = type[Trial] | type[Verdict]
# Who pays for a call: a tournament, or the jury of a rejudge.
Payer = Tournament | Jury
QUEUED, RUNNING = CallStatus.QUEUED.value, CallStatus.RUNNING.value


def _table(model: type[models.Model]) -> str:
    return model._meta.db_table


DUE = f"""
    status = '{QUEUED}' AND (not_before IS NULL OR not_before <= %s) AND (dispatched_at IS NULL OR dispatched_at < %s)
"""
DUE_VERDICTS = f"""
    SELECT id FROM {_table(Verdict)} WHERE provider_id = %s AND tournament_id = %s AND rejudge_id IS NULL AND {DUE}
    ORDER BY id LIMIT %s
"""
DUE_REJUDGED = (
    f"SELECT id FROM {_table(Verdict)} WHERE provider_id = %s AND rejudge_id = %s AND {DUE} ORDER BY id LIMIT %s"
)
DUE_TRIALS = f"""
    SELECT trial.id FROM {_table(Trial)} trial
    JOIN {_table(TrialRequest)} request ON request.trial_id = trial.id
    WHERE trial.provider_id = %s AND request.tournament_id = %s AND {DUE} ORDER BY trial.id LIMIT %s
"""
UNFINISHED = f"""
    SELECT 1 FROM {_table(Verdict)}
    WHERE match_id = %s AND status IN ('{QUEUED}', '{RUNNING}') AND rejudge_id IS NULL LIMIT 1
"""
UNFINISHED_REJUDGED = f"""
    SELECT 1 FROM {_table(Verdict)}
    WHERE match_id = %s AND status IN ('{QUEUED}', '{RUNNING}') AND rejudge_id = %s LIMIT 1
"""
LOAD_VERDICT = f"""
    SELECT verdict.provider_id, verdict.tournament_id, verdict.match_id, verdict.seat_order, verdict.failures,
           verdict.waits, verdict.repairs, verdict.raw, verdict.finish_reason, verdict.rejudge_id, ballot.id,
           ballot.judge_id, ballot.jury_id, m.sequence, m.sample_id, one.id, one.answer, other.id, other.answer
    FROM {_table(Verdict)} verdict
    JOIN {_table(Ballot)} ballot ON ballot.id = verdict.ballot_id
    JOIN {_table(Match)} m ON m.id = verdict.match_id
    JOIN {_table(Trial)} one ON one.id = m.first_trial_id
    JOIN {_table(Trial)} other ON other.id = m.second_trial_id
    WHERE verdict.id = %s
"""
ENDED = f"('{CallStatus.SUCCEEDED.value}', '{CallStatus.FAILED.value}')"
WAITING = f"'{Match.Status.WAITING.value}'"
PROBED = f"SELECT step_id FROM {_table(BenchProbe)} WHERE trial_id = %s"
WAITING_FOR = f"""
    SELECT DISTINCT tournament_id FROM {_table(Match)}
    WHERE (first_trial_id = %s OR second_trial_id = %s) AND status = {WAITING}
"""
READY = f"""
    SELECT m.id, m.sequence FROM {_table(Match)} m
    JOIN {_table(Trial)} one ON one.id = m.first_trial_id
    JOIN {_table(Trial)} other ON other.id = m.second_trial_id
    WHERE m.tournament_id = %s AND m.status = {WAITING} AND one.status IN {ENDED} AND other.status IN {ENDED}
      AND (m.first_trial_id = %s OR m.second_trial_id = %s OR m.step_id IN (
          SELECT id FROM {_table(Step)} WHERE tournament_id = %s AND status <> '{Step.Status.COMPLETE.value}'
          ORDER BY number LIMIT %s))
    ORDER BY m.sequence
"""
UNANSWERED = f"""
    SELECT 1 FROM {_table(Match)} m
    JOIN {_table(Step)} step ON step.id = m.step_id
    JOIN {_table(Trial)} one ON one.id = m.first_trial_id
    JOIN {_table(Trial)} other ON other.id = m.second_trial_id
    WHERE m.tournament_id = %s AND m.sequence < %s AND step.number > %s
      AND (one.status <> '{CallStatus.SUCCEEDED.value}' OR other.status <> '{CallStatus.SUCCEEDED.value}') LIMIT 1
"""
STANDING_COLUMNS = ("id", "counted_steps", "failed_in_row", "has_answered", "benched_after", "back_in_step")
STANDINGS = f"SELECT {', '.join(STANDING_COLUMNS)} FROM {_table(Candidate)} WHERE tournament_id = %s ORDER BY id"
ROWS_UP_TO = f"""
    SELECT m.sequence, step.number, m.status, m.first_id, one.id, one.status, one.skip_code,
           m.second_id, other.id, other.status, other.skip_code
    FROM {_table(Match)} m
    JOIN {_table(Step)} step ON step.id = m.step_id
    LEFT JOIN {_table(Trial)} one ON one.id = m.first_trial_id
    LEFT JOIN {_table(Trial)} other ON other.id = m.second_trial_id
    WHERE m.tournament_id = %s AND m.sequence <= %s AND step.number > %s ORDER BY m.sequence
"""
LOCK_MATCH = f"""
    SELECT m.status, m.sequence, m.tournament_id, m.step_id, m.sample_id, m.first_id, m.second_id, m.decided_at,
           step.number, one.id, one.status, other.id, other.status
    FROM {_table(Match)} m
    JOIN {_table(Step)} step ON step.id = m.step_id
    LEFT JOIN {_table(Trial)} one ON one.id = m.first_trial_id
    LEFT JOIN {_table(Trial)} other ON other.id = m.second_trial_id
    WHERE m.id = %s
"""
OPEN_MATCH = f"""
    SELECT 1 FROM {_table(Match)}
    WHERE step_id = %s AND status IN ({WAITING}, '{Match.Status.JUDGING.value}') LIMIT 1
"""
BALLOTS = f"""
    SELECT id, judge_id, status, vote, replaces_id FROM {_table(Ballot)}
    WHERE jury_id = %s AND match_id = %s ORDER BY id
"""
VOTES = f"""
    SELECT ballot_id, vote, error_code FROM {_table(Verdict)}
    WHERE match_id = %s AND rejudge_id IS NULL ORDER BY ballot_id, seat_order
"""
VOTES_REJUDGED = f"""
    SELECT ballot_id, vote, error_code FROM {_table(Verdict)}
    WHERE match_id = %s AND rejudge_id = %s ORDER BY ballot_id, seat_order
"""
SUPERSEDE = f"""
    UPDATE {_table(Decision)} SET superseded_at = %s WHERE jury_id = %s AND match_id = %s AND superseded_at IS NULL
"""
LOAD_TRIAL = f"SELECT provider_id, language_model_id, sample_id, failures, waits FROM {_table(Trial)} WHERE id = %s"


VERDICT_COLUMNS = (
    "provider_id",
    "tournament_id",
    "match_id",
    "seat_order",
    "failures",
    "waits",
    "repairs",
    "raw",
    "finish_reason",
    "rejudge_id",
)


def moment(value: dt.datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def _rows(sql: str, params: Iterable[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params))
        return list(cursor.fetchall())


def _changed(sql: str, params: Iterable[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params))
        return int(cursor.rowcount)


def due(
    model: PaidModel,
    *,
    provider_id: int,
    tournament_id: int,
    rejudge_id: int = 0,
    now: dt.datetime,
    resend_before: dt.datetime,
    limit: int,
) -> list[int]:
    """Of a tournament; or, where a rejudge is named, of that one."""
    sql = DUE_REJUDGED if rejudge_id else DUE_VERDICTS if model is Verdict else DUE_TRIALS
    rows = _rows(sql, [provider_id, rejudge_id or tournament_id, moment(now), moment(resend_before), limit])
    return [row[0] for row in rows]


def mark_dispatched(model: PaidModel, ids: list[int], now: dt.datetime) -> None:
    marks = ", ".join(["%s"] * len(ids))
    sql = f"UPDATE {_table(model)} SET dispatched_at = %s WHERE id IN ({marks}) AND status = '{QUEUED}'"
    _changed(sql, [moment(now), *ids])


def probed_steps(trial_id: int) -> list[int]:
    """Steps with which a benched candidate is asked for this answer."""
    return [row[0] for row in _rows(PROBED, [trial_id])]


def waiting_tournaments(trial_id: int) -> list[int]:
    return [row[0] for row in _rows(WAITING_FOR, [trial_id, trial_id])]


def ready_matches(trial_id: int, tournament_id: int, steps: int) -> list[tuple[int, int]]:
    """Waiting matches whose trials have ended: those of this trial, and those of the first so many open steps."""
    return [(row[0], row[1]) for row in _rows(READY, [tournament_id, trial_id, trial_id, tournament_id, steps])]


def standings(tournament_id: int) -> list[Candidate]:
    """How the candidates stood after the last complete step, and no other fields."""
    return [
        _partial(Candidate, **dict(zip(STANDING_COLUMNS, row, strict=True)))
        for row in _rows(STANDINGS, [tournament_id])
    ]


def rows_up_to(tournament_id: int, sequence: int, after_step: int) -> list[tuple[Any, ...]]:
    """Matches of the steps after the one named, up to a number: step, status and both sides' answers."""
    return _rows(ROWS_UP_TO, [tournament_id, sequence, after_step])


def has_unanswered_before(tournament_id: int, sequence: int, after_step: int) -> bool:
    """Whether an earlier match, of the steps after the one named, lacks an answer or has had a failed one."""
    return bool(_rows(UNANSWERED, [tournament_id, sequence, after_step]))


def has_open_matches(step_id: int) -> bool:
    return bool(_rows(OPEN_MATCH, [step_id]))


def has_unfinished_verdicts(match_id: int, rejudge_id: int | None = None) -> bool:
    if rejudge_id is not None:
        return bool(_rows(UNFINISHED_REJUDGED, [match_id, rejudge_id]))
    return bool(_rows(UNFINISHED, [match_id]))


M = TypeVar("M", bound=models.Model)


def _partial(model: type[M], **values: Any) -> M:
    """An instance with these columns alone; reading another one asks the database."""
    names = [field.attname for field in model._meta.concrete_fields if field.attname in values]
    return model.from_db("default", names, [values[name] for name in names])


def load_trial(trial_id: int) -> Trial | None:
    rows = _rows(LOAD_TRIAL, [trial_id])
    if not rows:
        return None
    names = ("provider_id", "language_model_id", "sample_id", "failures", "waits")
    return _partial(Trial, id=trial_id, **dict(zip(names, rows[0], strict=True)))


def load_verdict(verdict_id: int) -> Verdict | None:
    """A verdict with the ballot, match and answers that its call needs, and no other fields."""
    rows = _rows(LOAD_VERDICT, [verdict_id])
    if not rows:
        return None
    width = len(VERDICT_COLUMNS)
    own, (ballot_id, judge_id, jury_id, sequence, sample_id, *answers) = rows[0][:width], rows[0][width:]
    verdict = _partial(Verdict, id=verdict_id, ballot_id=ballot_id, **dict(zip(VERDICT_COLUMNS, own, strict=True)))
    verdict.match = _partial(Match, id=verdict.match_id, sequence=sequence, sample_id=sample_id)
    verdict.match.first_trial = _partial(Trial, id=answers[0], answer=answers[1])
    verdict.match.second_trial = _partial(Trial, id=answers[2], answer=answers[3])
    verdict.ballot = _partial(Ballot, id=ballot_id, judge_id=judge_id, jury_id=jury_id)
    return verdict


def lock_match(match_id: int) -> Match | None:
    """A match, locked until the transaction ends, with whether its trials have ended, and no other fields."""
    lock = " FOR UPDATE OF m" if connection.vendor == "postgresql" else ""
    rows = _rows(LOCK_MATCH + lock, [match_id])
    if not rows:
        return None
    names = ("status", "sequence", "tournament_id", "step_id", "sample_id", "first_id", "second_id", "decided_at")
    match = _partial(Match, id=match_id, **dict(zip(names, rows[0][:8], strict=True)))
    number, one, one_status, other, other_status = rows[0][8:]
    match.step = _partial(Step, id=match.step_id, number=number)
    match.first_trial = None if one is None else _partial(Trial, id=one, status=one_status)
    match.second_trial = None if other is None else _partial(Trial, id=other, status=other_status)
    return match


def ballots_of(jury_id: int, match_id: int) -> list[Ballot]:
    names = ("id", "judge_id", "status", "vote", "replaces_id")
    rows = _rows(BALLOTS, [jury_id, match_id])
    return [_partial(Ballot, jury_id=jury_id, match_id=match_id, **dict(zip(names, row, strict=True))) for row in rows]


def votes_of(match_id: int, rejudge_id: int | None = None) -> list[tuple[int, str, str]]:
    """Of every verdict of a jury on a match: its ballot, vote and error code, in the order of the seats."""
    sql, params = (VOTES, [match_id]) if rejudge_id is None else (VOTES_REJUDGED, [match_id, rejudge_id])
    return [(row[0], row[1], row[2]) for row in _rows(sql, params)]


def supersede(jury_id: int, match_id: int, now: dt.datetime) -> None:
    """The decision so far stays as evidence, and makes room for the next."""
    _changed(SUPERSEDE, [moment(now), jury_id, match_id])


@lru_cache(maxsize=8)
def _claim_sql(model: PaidModel, payer_model: type[Payer], *, has_budget: bool) -> str:
    payer = ", payer_id = %s" if model is Trial else ""
    # A budget set a moment ago must not be passed by a claim that does not know of it.
    budget = "" if has_budget else " AND budget_usd IS NULL"
    return f"""
        UPDATE {_table(model)}
        SET status = '{RUNNING}', claim_token = %s, worker = %s, lease_until = %s, reserved_usd = %s,
            not_before = NULL{payer}
        WHERE id = %s AND status = '{QUEUED}' AND (not_before IS NULL OR not_before <= %s) AND EXISTS (
            SELECT 1 FROM {_table(payer_model)} WHERE id = %s AND status = 'running'{budget})
    """.strip()


def claim(
    row: Trial | Verdict,
    *,
    token: str,
    worker: str,
    now: dt.datetime,
    lease_until: dt.datetime,
    payer: Payer,
    reserved_usd: Decimal | None,
) -> bool:
    model = type(row)
    reserved = connection.ops.adapt_decimalfield_value(reserved_usd, 14, 8)
    params = [token, worker, moment(lease_until), reserved]
    params += [payer.pk] if model is Trial else []
    sql = _claim_sql(model, type(payer), has_budget=payer.budget_usd is not None)
    return bool(_changed(sql, [*params, row.pk, moment(now), payer.pk]))


def book(payer: Payer, spent_usd: Decimal) -> None:
    """Charge a budget for a call that reserved nothing; without one there is nothing to charge."""
    table = _table(type(payer))
    amount = connection.ops.adapt_decimalfield_value(spent_usd, 14, 8)
    if connection.vendor == "postgresql":
        # Who sets a budget at this moment waits until the call can be seen, or is waited for here.
        _rows(f"SELECT 1 FROM {table} WHERE id = %s FOR KEY SHARE", [payer.pk])
    _changed(
        f"UPDATE {table} SET spent_usd = spent_usd + %s WHERE id = %s AND budget_usd IS NOT NULL", [amount, payer.pk]
    )


def _sets(row: models.Model, changes: Mapping[str, Any]) -> tuple[str, list[Any]]:
    fields = [cast("models.Field[Any, Any]", row._meta.get_field(name)) for name in changes]
    values = [field.get_db_prep_save(value, connection) for field, value in zip(fields, changes.values(), strict=True)]
    return ", ".join(f"{field.column} = %s" for field in fields), values


def settle(row: Trial | Verdict, *, token: str, changes: Mapping[str, Any]) -> bool:
    """Store the outcome of a claim that is still its own."""
    fields = [cast("models.Field[Any, Any]", row._meta.get_field(name)) for name in changes]
    sets = ", ".join(f"{field.column} = %s" for field in fields)
    values = [field.get_db_prep_save(value, connection) for field, value in zip(fields, changes.values(), strict=True)]
    sql = f"UPDATE {_table(type(row))} SET {sets} WHERE id = %s AND claim_token = %s AND status = '{RUNNING}'"
    return bool(_changed(sql, [*values, row.pk, token]))


def update(row: models.Model, changes: Mapping[str, Any]) -> None:
    """Store some fields of a row that the caller holds locked."""
    sets, values = _sets(row, changes)
    _changed(f"UPDATE {_table(type(row))} SET {sets} WHERE id = %s", [*values, row.pk])


@lru_cache(maxsize=8)
def _insertable(model: type[models.Model]) -> tuple[str, str, list[Any]]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns, marks = ", ".join(str(field.column) for field in fields), ", ".join(["%s"] * len(fields))
    return f"INSERT INTO {_table(model)} ({columns}) VALUES ", f"({marks})", fields


def insert(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model and set their keys."""
    sql, marks, fields = _insertable(type(rows[0]))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields]
    found = _rows(f"{sql}{', '.join([marks] * len(rows))} RETURNING id", values)
    for row, (key,) in zip(rows, found, strict=True):
        row.pk = key


TALLY_COLUMNS = ("wins", "losses", "ties", "inconclusive", "voids", "forced_ties", "skips")


@lru_cache(maxsize=4)
def _tally_sql(rows: int) -> str:
    table = _table(Tally)
    marks = ", ".join([f"({', '.join(['%s'] * (2 + len(TALLY_COLUMNS)))})"] * rows)
    sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in TALLY_COLUMNS)
    columns = ", ".join(("jury_id", "candidate_id", *TALLY_COLUMNS))
    return f"INSERT INTO {table} ({columns}) VALUES {marks} ON CONFLICT (jury_id, candidate_id) DO UPDATE SET {sums}"


def add_to_tallies(jury_id: int, counts: Mapping[int, Mapping[str, int]]) -> None:
    """Add to the counts of some candidates, by candidate; rows that are missing begin at nought."""
    # All lock the rows in one order, so that two decisions never wait for each other.
    ordered = sorted(counts.items())
    values = [[jury_id, candidate, *(one.get(name, 0) for name in TALLY_COLUMNS)] for candidate, one in ordered]
    _changed(_tally_sql(len(values)), [value for row in values for value in row])
