"""When a board is fitted again: claimed by a lease, skipped where its input is the same."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from ratings import dataset
from ratings.models import Leaderboard, Rating, RatingRun, StyleCoefficient
from ratings.services import fitting
from ratings.services.boards import Source, Ties, boards_of_jury
from ratings.services.style_pass import STYLE_UP_TO

LEASE = dt.timedelta(minutes=2)
DRIFT_ALLOWED = 0.5
# Of a board's written runs, while matches are still open.
STYLE_EVERY = 4
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Refit:
    """How to fit, where a caller asks for something else than the usual."""

    # Also what length and style do, whatever the size of the board.
    style: bool = False
    # Leave out the votes of sessions that the anomaly screen rejects.
    screen: bool = True


USUAL = Refit()


def boards_due() -> list[int]:
    """Ids of boards whose rows no longer look as the last refit saw them. Tournaments' boards are made if missing."""
    now = timezone.now()
    due: list[int] = []
    unchanged: list[int] = []
    for board, marks in [*_of_juries(now), *_others()]:
        same = board.refit_wanted_at is None and board.checked == marks.to_json()
        (unchanged if same else due).append(board.pk)
    stale = Leaderboard.objects.filter(pk__in=unchanged, checked_at__lt=now - dataset.LOOK_AGAIN / 2)
    stale.update(checked_at=now)
    return due


def _of_juries(now: dt.datetime) -> list[tuple[Leaderboard, dataset.Marks]]:
    juries = list(dataset.juries_to_look_at(now).select_related("tournament"))
    marks = dataset.marks_of(juries)
    boards: dict[int, list[Leaderboard]] = {}
    for board in Leaderboard.objects.filter(jury__in=juries, source=Source.JURY).order_by("pk"):
        assert board.jury_id is not None
        boards.setdefault(board.jury_id, []).append(board)
    for jury in juries:
        if marks[jury.pk].decisions and {board.ties for board in boards.get(jury.pk, [])} != set(Ties.values):
            boards_of_jury(jury.tournament, jury)
            boards[jury.pk] = list(Leaderboard.objects.filter(jury=jury, source=Source.JURY).order_by("pk"))
    return [(board, marks[jury.pk]) for jury in juries for board in boards.get(jury.pk, [])]


def _others() -> list[tuple[Leaderboard, dataset.Marks]]:
    """Boards over several tournaments, and those that people vote for."""
    boards = list(Leaderboard.objects.exclude(scope=Leaderboard.Scope.TOURNAMENT, source=Source.JURY).order_by("pk"))
    if not boards:
        return []
    marks = dataset.marks_of_boards(boards)
    return [(board, marks[board.pk]) for board in boards]


def refit_due_boards(how: Refit = USUAL) -> list[RatingRun]:
    runs = [refit(board_id, how) for board_id in boards_due()]
    return [run for run in runs if run is not None]


@dataclass(frozen=True)
class _Claim:
    board: Leaderboard
    token: str
    claimed_at: dt.datetime

    @property
    def rows(self) -> Any:
        return Leaderboard.objects.filter(pk=self.board.pk, lease_token=self.token)


def refit(leaderboard_id: int, how: Refit = USUAL) -> RatingRun | None:
    """Fit a board on what is decided now. None where nothing changed or somebody else is at it."""
    claim = _claim(leaderboard_id)
    if claim is None:
        return None
    try:
        return _refit(claim, how)
    except BaseException:
        claim.rows.update(lease_until=None, lease_token="")
        raise


def _claim(leaderboard_id: int) -> _Claim | None:
    now, token = timezone.now(), secrets.token_hex(16)
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    rows = Leaderboard.objects.filter(free, pk=leaderboard_id)
    if not rows.update(lease_until=now + LEASE, lease_token=token):
        return None
    found = Leaderboard.objects.select_related("jury", "team").filter(pk=leaderboard_id, lease_token=token).first()
    return None if found is None else _Claim(found, token, now)


def _release(claim: _Claim, marks: dataset.Marks) -> bool:
    """Give the board back, with what was seen of it. False where the lease had run out and is somebody else's."""
    wanted = Case(When(refit_wanted_at__lte=claim.claimed_at, then=Value(None)), default=F("refit_wanted_at"))
    changed = claim.rows.update(
        lease_until=None,
        lease_token="",
        checked=marks.to_json(),
        checked_at=claim.claimed_at,
        refit_wanted_at=wanted,
    )
    return bool(changed)


def _marks(board: Leaderboard) -> dataset.Marks:
    if board.jury is None or board.has_votes:
        return dataset.marks_of_boards([board])[board.pk]
    return dataset.marks_of([board.jury])[board.jury.pk]


def _refit(claim: _Claim, how: Refit) -> RatingRun | None:
    board = claim.board
    # Before the evidence: what is decided from here on makes the board due again.
    marks = _marks(board)
    evidence = dataset.evidence_of(board, at_most=marks.decided + marks.votes, screen=how.screen)
    method = fitting.method_of(board, evidence)
    digest = evidence_hash(evidence, method)
    newest = board.runs.order_by("-id").first()
    again = newest is not None and newest.evidence_hash == digest
    lacks_style = how.style and newest is not None and newest.length is None
    if (again and not lacks_style) or (newest is None and not evidence.triples):
        _release(claim, marks)
        return None
    start = _warm_start(board, evidence)
    fitted = fitting.fitted(board, evidence, method, start, style=how.style or _style_due(evidence, marks, start))
    fitted.run.evidence_hash = digest
    _tell_drift(fitted.run)
    return fitted.run if _store(fitted, lambda: _release(claim, marks)) else None


def _store(fitted: fitting.Fitted, release: Callable[[], bool]) -> bool:
    """The run with its ratings, or nothing of it."""
    with transaction.atomic():
        if not release():
            return False
        fitted.run.save(force_insert=True)
        Rating.objects.bulk_create(fitted.ratings)
        StyleCoefficient.objects.bulk_create(fitted.coefficients)
    return True


def _warm_start(board: Leaderboard, evidence: dataset.Evidence) -> fitting.Start:
    """The vector of the run before, unless somebody came or went; and whether this run starts from nothing anyway."""
    runs = RatingRun.objects.filter(leaderboard=board)
    written = runs.count()
    every = settings.FULL_REFIT_EVERY
    full = written == 0 or (every > 0 and written % every == 0)
    last = runs.filter(converged=True).order_by("-id").values_list("roster", "vector", "ties").first()
    if last is None:
        return fitting.Start(None, written, full=True)
    roster, vector, ties = last
    same = [row[0] for row in roster] == evidence.subject_ids and ties == board.ties
    return fitting.Start(vector if same else None, written, full=full or not same)


def _style_due(evidence: dataset.Evidence, marks: dataset.Marks, start: fitting.Start) -> bool:
    """With nothing left to play, and now and then while there is."""
    few = sum(count for *_, count in evidence.triples) <= STYLE_UP_TO
    waiting = marks.open or marks.open_campaigns
    return few and (not waiting or start.full or start.number % STYLE_EVERY == 0)


def _tell_drift(run: RatingRun) -> None:
    if run.drift is not None and run.drift > DRIFT_ALLOWED:
        logger.warning(
            "Board %s: a fit from nothing and one from the run before differ by %.2f standard errors.",
            run.leaderboard,
            run.drift,
        )


def evidence_hash(evidence: dataset.Evidence, method: dict[str, Any]) -> str:
    whole: dict[str, Any] = {"roster": evidence.roster, "triples": evidence.triples, "settings": method}
    if evidence.fine is not None:
        # Errors by sample hang on which sample a result came from.
        whole["samples"] = evidence.fine
    if evidence.voted is not None:
        whole["raters"] = sorted(evidence.voted)
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
