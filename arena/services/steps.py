"""Steps: which matches are played, which answers they need, and when it is over.

Pairings that look at no result are planned as a whole. The others are planned two steps ahead of the last
complete one and from what is decided up to that, so that there is always work, and the schedule is the same at
any concurrency. Steps close in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import Count, Max
from django.utils import timezone

from arena import statements
from arena.dispatch import send, wake
from arena.models import Ballot, CallStatus, Candidate, Match, Sample, Step, Tournament, Trial
from arena.selectors.cells import Cell
from arena.selectors.extensions import seed_of_step
from arena.selectors.pool import pool_of
from arena.selectors.standings import outlook_of
from arena.services import benching
from arena.services.wanted import cell_of, trials_for
from arena.signals import step_finished
from ratings.engine.pairing import Planned, pairs, remaining, step_seed

STEPS_AHEAD = 2
STEPS_LOOKED_AT = 5
UNFINISHED = [CallStatus.QUEUED, CallStatus.RUNNING]


def plan_first(tournament: Tournament) -> None:
    """Plan what can be planned at the start; call it under the tournament's lock."""
    if tournament.follows_results:
        plan_ahead(tournament, benching.lock_candidates(tournament.pk))
    else:
        plan_whole(tournament)
    # Matches whose answers are there already, or can never be, have no completion that would advance them.
    send("arena.tasks.advance_tournament_task", tournament.pk)


def plan_whole(tournament: Tournament) -> None:
    """Plan every step that is not planned yet, for pairings that do not look at results."""
    candidates = list(tournament.candidates.select_related("language_model__provider"))
    samples = pool_of(tournament)
    baseline = next((one.position for one in candidates if one.pk == tournament.baseline_id), None)
    last = tournament.matches.aggregate(step=Max("step__number"), sequence=Max("sequence"))
    step, sequence = (last["step"] or 0) + 1, (last["sequence"] or 0) + 1
    already = _already(tournament, candidates, samples)
    planned = pairs(
        tournament.pairing,
        [candidate.position for candidate in candidates],
        [sample.category for sample in samples],
        max(0, tournament.max_matches - len(already)),
        seed_of_step(tournament, step),
        already=already,
        baseline=baseline,
        baseline_weight=tournament.baseline_weight if baseline is not None else None,
    )
    _insert(tournament, candidates, samples, planned, step=step, sequence=sequence)


def _already(
    tournament: Tournament, candidates: Sequence[Candidate], samples: Sequence[Sample]
) -> list[tuple[int, int, int]]:
    position = {candidate.pk: candidate.position for candidate in candidates}
    place = {sample.pk: index for index, sample in enumerate(samples)}
    rows = tournament.matches.order_by("sequence").values_list("first", "second", "sample")
    return [(position[first], position[second], place[sample]) for first, second, sample in rows]


def plan_ahead(tournament: Tournament, candidates: Sequence[Candidate]) -> bool:
    """Under the lock: plan steps up to the second after the last complete one, if there is anything left to plan."""
    samples = pool_of(tournament)
    added = False
    while True:
        last = tournament.steps.aggregate(last=Max("number"))["last"] or 0
        if last >= candidates[0].counted_steps + STEPS_AHEAD:
            break
        planned = _next_step(tournament, candidates, samples, last + 1)
        if not planned:
            break
        sequence = (tournament.matches.aggregate(last=Max("sequence"))["last"] or 0) + 1
        _insert(tournament, candidates, samples, planned, step=last + 1, sequence=sequence)
        added = True
    if added:
        # Who was benched since the last complete step is still planned in, the same at any concurrency.
        benching.withdraw(tournament, candidates)
        send("arena.tasks.advance_tournament_task", tournament.pk)
    return added


def _next_step(
    tournament: Tournament, candidates: Sequence[Candidate], samples: Sequence[Sample], number: int
) -> list[Planned]:
    counted = candidates[0].counted_steps
    position = {candidate.pk: candidate.position for candidate in candidates}
    place = {sample.pk: index for index, sample in enumerate(samples)}
    rows = tournament.matches.order_by("sequence")
    found = list(rows.values_list("first", "second", "sample", "step__number", "status"))
    already = [(position[first], position[second], place[sample]) for first, second, sample, *_ in found]
    # What is withdrawn from steps still open is not certain yet; it is made up for when they are complete.
    played = sum(step > counted or status != Match.Status.WITHDRAWN for *_, step, status in found)
    standings = benching.standings_of(candidates)
    roster = [candidate.position for candidate in candidates if standings[candidate.pk].plays_in(number)]
    baseline = next((one.position for one in candidates if one.pk == tournament.baseline_id), None)
    baseline = baseline if baseline in roster else None
    pending = [match[:2] for match, row in zip(already, found, strict=True) if row[3] > counted]
    return pairs(
        tournament.pairing,
        roster,
        [sample.category for sample in samples],
        max(0, min(tournament.step_size, tournament.max_matches - played)),
        step_seed(seed_of_step(tournament, number), number),
        already=already,
        baseline=baseline,
        baseline_weight=tournament.baseline_weight if baseline is not None else None,
        outlook=outlook_of(tournament, counted, recent=[match[:2] for match in already], pending=pending),
    )


def _insert(
    tournament: Tournament,
    candidates: Sequence[Candidate],
    samples: Sequence[Sample],
    planned: Sequence[Planned],
    *,
    step: int,
    sequence: int,
) -> None:
    """Matches with the numbers from `sequence` on, cut into steps from `step` on, and the trials they need."""
    by_position = {candidate.position: candidate for candidate in candidates}
    wanted = [(by_position[side], samples[match.sample]) for match in planned for side in (match.first, match.second)]
    trials = trials_for(tournament, wanted)
    for number, start in enumerate(range(0, len(planned), tournament.step_size), start=step):
        batch = planned[start : start + tournament.step_size]
        _insert_step(tournament, number, sequence + start, batch, by_position, samples, trials)
    wake(trial.provider_id for trial in trials.values() if trial.provider_id is not None)


def _insert_step(
    tournament: Tournament,
    number: int,
    start: int,
    planned: Sequence[Planned],
    candidates: dict[int, Candidate],
    samples: Sequence[Sample],
    trials: dict[Cell, Trial],
) -> None:
    step = Step.objects.create(tournament=tournament, number=number)
    rows = []
    for sequence, (one, other, sample_index) in enumerate(planned, start=start):
        sample = samples[sample_index]
        # Canonical order is that of the candidates' keys, which is that of their positions.
        first, second = sorted((candidates[one], candidates[other]), key=lambda candidate: candidate.pk)
        rows.append(
            Match(
                tournament=tournament,
                step=step,
                sequence=sequence,
                sample=sample,
                first=first,
                second=second,
                first_trial=trials[cell_of(first, sample)],
                second_trial=trials[cell_of(second, sample)],
            )
        )
    Match.objects.bulk_create(rows)


def complete_when_done(step_id: int) -> None:
    """Close a step that is through, and those after it that waited for it; end the tournament after its last one."""
    following: int | None = step_id
    tournament_id = None
    while following is not None and not _is_open(following):
        with transaction.atomic():
            step = Step.objects.select_related("tournament").get(pk=following)
            candidates = benching.lock_candidates(step.tournament_id)
            # All looked at again under the lock: under READ COMMITTED two finishers could otherwise both leave.
            tournament = Tournament.objects.get(pk=step.tournament_id)
            tournament_id = tournament.pk
            earlier = tournament.steps.filter(number__lt=step.number).exclude(status=Step.Status.COMPLETE)
            if earlier.exists() or _is_open(following):
                return
            _close(tournament, step, candidates)
        later = tournament.steps.filter(number__gt=step.number).order_by("number")
        following = later.values_list("pk", flat=True).first()
    if following is None and tournament_id is not None:
        finish_when_done(tournament_id)


def first_open(tournament_id: int) -> list[int]:
    """The steps that are played now, where most calls are in flight."""
    steps = Step.objects.filter(tournament=tournament_id).exclude(status=Step.Status.COMPLETE)
    return list(steps.order_by("number").values_list("pk", flat=True)[:STEPS_LOOKED_AT])


def _is_open(step_id: int) -> bool:
    return (
        statements.has_open_matches(step_id)
        or Step.objects.filter(pk=step_id, probes__trial__status__in=UNFINISHED).exists()
    )


def _close(tournament: Tournament, step: Step, candidates: Sequence[Candidate]) -> None:
    if (
        not Step.objects.filter(pk=step.pk)
        .exclude(status=Step.Status.COMPLETE)
        .update(status=Step.Status.COMPLETE, completed_at=timezone.now())
    ):
        return
    hint = partial(step_finished.send, sender=Step, tournament_id=tournament.pk, step_number=step.number)
    transaction.on_commit(hint)
    if not tournament.is_active:
        return
    benching.count_step(tournament, step, candidates)
    if _plans(tournament):
        plan_ahead(tournament, candidates)
    benching.withdraw(tournament, candidates)


def _plans(tournament: Tournament) -> bool:
    return tournament.follows_results and tournament.status == Tournament.Status.RUNNING


def plan_when_due(tournament_id: int) -> None:
    """Plan what a pause kept from being planned, and withdraw what a killed worker did not."""
    failed = Trial.objects.filter(requests__tournament=tournament_id, status=CallStatus.FAILED)
    tournament = Tournament.objects.get(pk=tournament_id)
    if not _plans(tournament) and not failed.exists():
        return
    with transaction.atomic():
        candidates = benching.lock_candidates(tournament_id)
        tournament = Tournament.objects.get(pk=tournament_id)
        if not tournament.is_active or not candidates:
            return
        benching.withdraw(tournament, candidates)
        if _plans(tournament):
            plan_ahead(tournament, candidates)


def finish_when_done(tournament_id: int) -> None:
    unfinished = Step.objects.filter(tournament=tournament_id).exclude(status=Step.Status.COMPLETE)
    if unfinished.exists():
        return
    with transaction.atomic():
        candidates = benching.lock_candidates(tournament_id)
        tournament = Tournament.objects.select_for_update().filter(pk=tournament_id).first()
        if tournament is None or not tournament.is_active or unfinished.exists():
            return
        # Of steps that were complete before calls that had failed were made again.
        if tournament.matches.open().exists():
            return
        if tournament.follows_results and (
            # What comes next is planned when it goes on.
            tournament.status == Tournament.Status.PAUSED or plan_ahead(tournament, candidates)
        ):
            return
        tournament.status, tournament.reason, tournament.reason_text = _ending(tournament)
        tournament.finished_at = timezone.now()
        tournament.save(update_fields=["status", "reason", "reason_text", "finished_at"])
        tournament.juries.filter(primary=True).update(status="finished")


def _ending(tournament: Tournament) -> tuple[str, str, str]:
    counts = dict(tournament.matches.values_list("status").annotate(n=Count("pk")))
    Reason, Status = Tournament.Reason, Tournament.Status
    if counts.get(Match.Status.DECIDED):
        exhausted = _exhausted(tournament, sum(counts.values()) - counts.get(Match.Status.WITHDRAWN, 0))
        return (Status.FINISHED, Reason.EXHAUSTED, exhausted) if exhausted else (Status.FINISHED, Reason.NONE, "")
    if not counts.get(Match.Status.INCONCLUSIVE):
        text = f"None of the {sum(counts.values())} matches found two answers."
        return Status.FAILED, Reason.NO_ANSWERS, text
    ballots = Ballot.objects.filter(match__tournament=tournament, jury__primary=True)
    voted = ballots.filter(status__in=["vote", "abstained"]).exists()
    if voted:
        text = "Every match is inconclusive: judges contradicted themselves or each other, or the quorum was missed."
        return Status.FINISHED, Reason.NONE, text
    return Status.FAILED, Reason.NO_VERDICTS, "No judge gave a usable verdict on any match; see the errors by code."


def _exhausted(tournament: Tournament, played: int) -> str:
    """Why fewer matches were played than wanted, where it is that there were no others."""
    candidates = list(tournament.candidates.all())
    possible = remaining([candidate.position for candidate in candidates], len(pool_of(tournament)), ())
    if tournament.max_matches > possible:
        return f"There are {possible} different matches, fewer than the limit of {tournament.max_matches}."
    benched = ", ".join(candidate.label for candidate in candidates if candidate.benched)
    if tournament.follows_results and benched and played < tournament.max_matches:
        return f"The other candidates have met on every sample while {benched} sat out."
    return ""
