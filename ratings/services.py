"""Boards and their refits. What is due is derived from rows; a signal only makes it happen sooner."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from arena.models import Jury, Tournament, User
from arena.services import audit
from ratings import dataset
from ratings.engine import Board, PairCounts, default_ridge_for, error_to_display, fit, rate
from ratings.engine.arrays import BoolArray, FloatArray
from ratings.engine.intervals import Z_95
from ratings.models import Leaderboard, Rating, RatingRun

LEASE = dt.timedelta(minutes=2)
COVARIANCE_UP_TO = 60
# Pairs for which a likelihood ratio is taken, a fit each; beyond, they count as not separated.
SWEEPS_UP_TO = 2_000
SWEEP_RIDGE = 1e-4
# The drop of log-likelihood that six wins out of six against an equal make: the shortest sweep with p < 0.05.
SIX_STRAIGHT_WINS = 6 * math.log(2) - 0.01
# Part of the evidence: a change of the method is a reason to fit again.
METHOD = {"intervals": "fisher", "confidence": 0.95, "anchor": "mean", "mode": "full", "version": 1}
Ties = Leaderboard.Ties


def board_key(jury: Jury, ties: str) -> str:
    return f"jury:{jury.public_id}:{ties}"


def leaderboard_for(tournament: Tournament, jury: Jury, *, ties: str | None = None) -> Leaderboard:
    """The board of a tournament and a jury under a tie model; without one, the board that pages show first."""
    if ties is None:
        preferred = Leaderboard.objects.filter(jury=jury, preferred=True).first()
        if preferred is not None:
            return preferred
    chosen = Ties(ties or Ties.HALF_WIN)
    return Leaderboard.objects.get_or_create(
        key=board_key(jury, chosen),
        defaults={
            "team_id": tournament.team_id,
            "tournament": tournament,
            "jury": jury,
            "ties": chosen,
            # Others become preferred by `prefer_ties` alone, which makes this one exist first.
            "preferred": chosen == Ties.HALF_WIN,
        },
    )[0]


def boards_of_jury(tournament: Tournament, jury: Jury) -> list[Leaderboard]:
    return [leaderboard_for(tournament, jury, ties=ties) for ties in Ties.values]


@transaction.atomic
def prefer_ties(*, tournament: Tournament, jury: Jury, ties: str, actor: User | None) -> Leaderboard:
    boards = {board.ties: board for board in boards_of_jury(tournament, jury)}
    chosen = boards[ties]
    # One lock for all who change the preference of this jury.
    rows = Leaderboard.objects.select_for_update().filter(jury=jury).order_by("pk")
    before = next((board.ties for board in rows if board.preferred), None)
    if before != ties:
        Leaderboard.objects.filter(jury=jury, preferred=True).update(preferred=False)
        Leaderboard.objects.filter(pk=chosen.pk).update(preferred=True)
        audit.record(
            team=tournament.team,
            actor=actor,
            action="board.ties",
            target=tournament.name,
            old={"ties": before},
            new={"ties": ties},
        )
    chosen.refresh_from_db()
    return chosen


def want_refit(tournament_id: int) -> list[Leaderboard]:
    """Note that the boards of a tournament should be fitted again; they come to exist if they do not yet."""
    jury = Jury.objects.select_related("tournament").filter(tournament=tournament_id, primary=True).first()
    if jury is None:
        return []
    boards = boards_of_jury(jury.tournament, jury)
    Leaderboard.objects.filter(pk__in=[board.pk for board in boards]).update(refit_wanted_at=timezone.now())
    return boards


def boards_due() -> list[int]:
    """Ids of boards whose rows no longer look as the last refit saw them. Makes the boards that are missing."""
    now = timezone.now()
    juries = list(dataset.juries_to_look_at(now).select_related("tournament"))
    marks = dataset.marks_of(juries)
    boards: dict[int, list[Leaderboard]] = {}
    for board in Leaderboard.objects.filter(jury__in=juries).order_by("pk"):
        boards.setdefault(board.jury_id, []).append(board)
    due: list[int] = []
    unchanged: list[int] = []
    for jury in juries:
        found = boards.get(jury.pk, [])
        if len(found) < len(Ties) and marks[jury.pk].decisions:
            found = boards_of_jury(jury.tournament, jury)
        for board in found:
            same = board.refit_wanted_at is None and board.checked == marks[jury.pk].to_json()
            (unchanged if same else due).append(board.pk)
    stale = Leaderboard.objects.filter(pk__in=unchanged, checked_at__lt=now - dataset.LOOK_AGAIN / 2)
    stale.update(checked_at=now)
    return due


def refit_due_boards() -> list[RatingRun]:
    runs = [refit(board_id) for board_id in boards_due()]
    return [run for run in runs if run is not None]


@dataclass(frozen=True)
class _Claim:
    board: Leaderboard
    token: str
    claimed_at: dt.datetime

    @property
    def rows(self) -> Any:
        return Leaderboard.objects.filter(pk=self.board.pk, lease_token=self.token)


def refit(leaderboard_id: int) -> RatingRun | None:
    """Fit a board on what is decided now. None where nothing changed or somebody else is at it."""
    claim = _claim(leaderboard_id)
    if claim is None:
        return None
    try:
        return _refit(claim)
    except BaseException:
        claim.rows.update(lease_until=None, lease_token="")
        raise


def _claim(leaderboard_id: int) -> _Claim | None:
    now, token = timezone.now(), secrets.token_hex(16)
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    rows = Leaderboard.objects.filter(free, pk=leaderboard_id)
    if not rows.update(lease_until=now + LEASE, lease_token=token):
        return None
    board = Leaderboard.objects.select_related("jury").filter(pk=leaderboard_id, lease_token=token).first()
    return None if board is None else _Claim(board, token, now)


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


def _refit(claim: _Claim) -> RatingRun | None:
    board = claim.board
    # Before the evidence: what is decided from here on makes the board due again.
    marks = dataset.marks_of([board.jury])[board.jury_id]
    evidence = dataset.evidence_of(board)
    method = {**METHOD, "ties": board.ties, "ridge": board.ridge, "fallback_ridge": settings.RATING_RIDGE}
    digest = evidence_hash(evidence, method)
    newest = board.runs.order_by("-id").values_list("evidence_hash", flat=True).first()
    if newest == digest or (newest is None and not evidence.triples):
        _release(claim, marks)
        return None
    run, ratings = _fitted(board, evidence, method)
    run.evidence_hash = digest
    with transaction.atomic():
        if not _release(claim, marks):
            return None
        run.save(force_insert=True)
        Rating.objects.bulk_create(ratings)
    return run


def evidence_hash(evidence: dataset.Evidence, method: dict[str, Any]) -> str:
    whole = {"roster": evidence.roster, "triples": evidence.triples, "settings": method}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _fitted(board: Leaderboard, evidence: dataset.Evidence, method: dict[str, Any]) -> tuple[RatingRun, list[Rating]]:
    counts = evidence.pair_counts()
    begin = time.perf_counter()
    by_default = board.ridge is None and default_ridge_for(counts, board.ties) > 0  # type: ignore[arg-type]
    ridge = board.ridge if board.ridge is not None else (settings.RATING_RIDGE if by_default else 0.0)
    # Cold every time: the ratings then follow from the stored triples alone, to the last digit.
    result = rate(counts, ties=board.ties, ridge=ridge)  # type: ignore[arg-type]
    duration_ms = (time.perf_counter() - begin) * 1000
    places = _places(result, counts)
    figures = dataset.answer_figures(board.tournament_id)
    order = [candidate for component in places.components for candidate in component]
    run = RatingRun(
        leaderboard=board,
        computed_at=timezone.now(),
        step_number=dataset.last_step_of(board.tournament_id),
        ties=board.ties,
        ridge=ridge,
        ridge_by_default=by_default,
        settings=method,
        triples=evidence.triples,
        roster=evidence.roster,
        vector=[_number(value) for value in result.fit.parameters],
        eta=_number(result.fit.eta),
        eta_unbounded=result.fit.eta_unbounded,
        comparisons=counts.total,
        samples=dataset.samples_behind(board.jury_id),
        leader_id=evidence.roster[order[0]][0] if order else None,
        covariance=_covariances(result, places.components, evidence.candidate_ids),
        iterations=result.fit.iterations,
        gradient_norm=result.fit.gradient_norm,
        converged=result.fit.converged,
        duration_ms=duration_ms,
    )
    ratings = [
        _rating(run, candidate_id, index, result, places, figures.get(candidate_id, dataset.AnswerFigures()))
        for index, candidate_id in enumerate(evidence.candidate_ids)
    ]
    return run, ratings


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


@dataclass(frozen=True)
class _Places:
    # Indexes in rank order, the largest component first.
    components: list[list[int]]
    component: dict[int, int]
    rank: dict[int, int]
    rank_from: dict[int, int]
    rank_to: dict[int, int]
    next_std_error: dict[int, float | None]
    ahead_of_next: dict[int, bool]


def _places(board: Board, counts: PairCounts) -> _Places:
    grouped: dict[int, list[int]] = {}
    for index in board.ranking().tolist():
        grouped.setdefault(int(board.component[index]), []).append(index)
    components = sorted(grouped.values(), key=lambda group: (-len(group), -int(board.games[group].sum()), min(group)))
    places = _Places(components, {}, {}, {}, {}, {}, {})
    std_error = _difference_errors(board)
    for number, group in enumerate(components):
        ahead = _separated(board, counts, group, std_error[np.ix_(group, group)])
        for position, index in enumerate(group):
            places.component[index] = number
            places.rank[index] = position + 1
            places.rank_from[index] = 1 + int(ahead[:, position].sum())
            places.rank_to[index] = len(group) - int(ahead[position].sum())
            if position + 1 < len(group):
                places.next_std_error[index] = _number(std_error[index, group[position + 1]])
                places.ahead_of_next[index] = bool(ahead[position, position + 1])
    return places


def _difference_errors(board: Board) -> FloatArray:
    """Standard errors of all differences, in display points; NaN where one is not known."""
    covariance = board.intervals.covariance
    variances = np.diag(covariance)
    with np.errstate(invalid="ignore"):
        spread = variances[:, None] + variances[None, :] - 2 * covariance
    errors: FloatArray = error_to_display(np.sqrt(np.maximum(spread, 0.0)))
    return errors


def _separated(board: Board, counts: PairCounts, group: list[int], std_error: FloatArray) -> BoolArray:
    """Whether row is ahead of column: the 95 % interval of the difference lies above nought."""
    rating = board.rating[group]
    with np.errstate(invalid="ignore"):
        difference = rating[:, None] - rating[None, :]
        ahead: BoolArray = difference - Z_95 * std_error > 0
    # Where all results between two groups went one way the difference has no maximum, and its error at the
    # prior's is far too wide: somebody unbeaten in fifty matches would pass for level with everybody.
    strong = board.fit.groups[group]
    apart = np.argwhere((strong[:, None] != strong[None, :]) & np.triu(np.ones_like(ahead), 1))
    if 0 < len(apart) <= SWEEPS_UP_TO:
        free = fit(counts, ridge=SWEEP_RIDGE).log_likelihood
        for row, column in apart.tolist():
            if difference[row, column] > 0:
                drop = free - _log_likelihood_if_level(counts, group[row], group[column])
                ahead[row, column] = drop > SIX_STRAIGHT_WINS
    return ahead


def _log_likelihood_if_level(counts: PairCounts, one: int, other: int) -> float:
    """Of the results if the two were equally strong: a mass of ties between them holds them level."""
    mass = 10_000 * counts.total
    held = PairCounts.from_rows(counts.n_candidates, [*counts.rows(), (one, other, "tie", mass)])
    return fit(held, ridge=SWEEP_RIDGE).log_likelihood + mass * math.log(2)


def _covariances(board: Board, components: Iterable[list[int]], candidate_ids: list[int]) -> list[Any] | None:
    if len(candidate_ids) > COVARIANCE_UP_TO:
        return None
    points = error_to_display(1.0) ** 2 * board.intervals.covariance
    return [
        {
            "candidates": [candidate_ids[index] for index in group],
            # Row by row from the diagonal on.
            "upper": [[_number(points[i, j]) for j in group[position:]] for position, i in enumerate(group)],
        }
        for group in components
    ]


def _rating(
    run: RatingRun, candidate_id: int, index: int, board: Board, places: _Places, figures: dataset.AnswerFigures
) -> Rating:
    return Rating(
        run=run,
        candidate_id=candidate_id,
        rating=_number(board.rating[index]),
        rating_std_error=_number(board.std_error[index]),
        ci_lower=_number(board.lower[index]),
        ci_upper=_number(board.upper[index]),
        component_id=places.component.get(index),
        group_id=int(board.fit.groups[index]) if index in places.component else None,
        rank=places.rank.get(index),
        rank_from=places.rank_from.get(index),
        rank_to=places.rank_to.get(index),
        next_std_error=places.next_std_error.get(index),
        ahead_of_next=places.ahead_of_next.get(index),
        win_share=_number(board.win_share[index]),
        held_by_prior=bool(board.held_by_prior[index]),
        games=int(board.games[index]),
        wins=int(board.wins[index]),
        losses=int(board.losses[index]),
        ties=int(board.ties[index]),
        **asdict(figures),
    )
