"""Steps: which matches are played, which answers they need, and when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from arena import statements
from arena.dispatch import send, wake
from arena.models import (
    Ballot,
    CallStatus,
    Candidate,
    Match,
    Sample,
    Step,
    Tournament,
    Trial,
    TrialRequest,
)
from arena.selectors.cells import Cell, file_types_of, known_trials, refused_types
from arena.signals import step_finished
from ratings.engine.pairing import Planned, pairs, remaining


def samples_of(tournament: Tournament) -> list[Sample]:
    samples = tournament.task_set.samples.order_by("position")
    if tournament.categories:
        samples = samples.filter(category__in=tournament.categories)
    return list(samples)


# Each look fails only where another tournament ended the same trial in between.
MOST_LOOKS = 5


def plan_whole(tournament: Tournament) -> None:
    """Plan every step. For pairings that do not look at results; call it under the tournament's lock."""
    candidates = list(tournament.candidates.select_related("language_model__provider"))
    samples = samples_of(tournament)
    baseline = next((one.position for one in candidates if one.pk == tournament.baseline_id), None)
    planned = pairs(
        tournament.pairing,
        [candidate.position for candidate in candidates],
        [sample.category for sample in samples],
        tournament.max_matches,
        tournament.seed,
        baseline=baseline,
        baseline_weight=tournament.baseline_weight if baseline is not None else None,
    )
    by_position = {candidate.position: candidate for candidate in candidates}
    wanted = [
        (by_position[position], samples[match.sample]) for match in planned for position in (match.first, match.second)
    ]
    trials = _trials(tournament, wanted)
    for number, start in enumerate(range(0, len(planned), tournament.step_size), start=1):
        batch = planned[start : start + tournament.step_size]
        _insert_step(tournament, number, start, batch, by_position, samples, trials)
    wake(trial.provider_id for trial in trials.values() if trial.provider_id is not None)
    # Matches whose answers are there already, or can never be, have no completion that would advance them.
    send("arena.tasks.advance_tournament_task", tournament.pk)


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
    for sequence, (one, other, sample_index) in enumerate(planned, start=start + 1):
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
                first_trial=trials[_cell(first, sample)],
                second_trial=trials[_cell(second, sample)],
            )
        )
    Match.objects.bulk_create(rows)


def _cell(candidate: Candidate, sample: Sample) -> Cell:
    return sample.input_hash, candidate.snapshot["fingerprint"]


def _trials(tournament: Tournament, wanted: Iterable[tuple[Candidate, Sample]]) -> dict[Cell, Trial]:
    """The trials that matches need: those there are, and new rows for the rest."""
    cells = {_cell(candidate, sample): (candidate, sample) for candidate, sample in wanted}
    types = file_types_of({sample.pk for _, sample in cells.values()})
    trials = known = known_trials(tournament.team_id, cells, lock=True)
    for _ in range(MOST_LOOKS):
        missing = [
            _new_trial(tournament, candidate, sample, types.get(sample.pk, set()))
            for cell, (candidate, sample) in cells.items()
            if cell not in trials
        ]
        if not missing:
            break
        # Another tournament may insert the same cell at this moment: the unique key decides, and both use its
        # row, unless it fails or is withdrawn before it is locked here.
        Trial.objects.bulk_create(missing, ignore_conflicts=True)
        trials = known_trials(tournament.team_id, cells, lock=True)
    TrialRequest.objects.bulk_create(
        [
            TrialRequest(tournament=tournament, trial=trial, cached=cell in known and trial.succeeded)
            for cell, trial in trials.items()
        ],
        ignore_conflicts=True,
    )
    return trials


def _new_trial(tournament: Tournament, candidate: Candidate, sample: Sample, file_types: set[str]) -> Trial:
    model = candidate.language_model
    refused = refused_types(model, file_types)
    trial = Trial(
        team_id=tournament.team_id,
        language_model=model,
        provider_id=model.provider_id,
        sample=sample,
        input_hash=sample.input_hash,
        fingerprint=candidate.snapshot["fingerprint"],
    )
    if refused:
        trial.status, trial.skip_code = CallStatus.FAILED, Trial.SkipCode.UNSUPPORTED_INPUT
        trial.finished_at = timezone.now()
        trial.error = f"The sample has a file of type {', '.join(refused)}, and the model is set to take none."
    return trial


def complete_when_done(step_id: int) -> None:
    """Close a step without open matches, tell who listens, and end the tournament after its last step."""
    if statements.has_open_matches(step_id):
        return
    with transaction.atomic():
        step = Step.objects.select_for_update().filter(pk=step_id).first()
        if step is None or statements.has_open_matches(step_id):
            return
        if step.status != Step.Status.COMPLETE:
            step.status, step.completed_at = Step.Status.COMPLETE, timezone.now()
            step.save(update_fields=["status", "completed_at"])
            hint = partial(step_finished.send, sender=Step, tournament_id=step.tournament_id, step_number=step.number)
            transaction.on_commit(hint)
    finish_when_done(step.tournament_id)


def finish_when_done(tournament_id: int) -> None:
    if Step.objects.filter(tournament=tournament_id).exclude(status=Step.Status.COMPLETE).exists():
        return
    with transaction.atomic():
        tournament = Tournament.objects.select_for_update().filter(pk=tournament_id).first()
        if tournament is None or not tournament.is_active:
            return
        if tournament.steps.exclude(status=Step.Status.COMPLETE).exists():
            return
        tournament.status, tournament.reason, tournament.reason_text = _ending(tournament)
        tournament.finished_at = timezone.now()
        tournament.save(update_fields=["status", "reason", "reason_text", "finished_at"])
        tournament.juries.update(status="finished")


def _ending(tournament: Tournament) -> tuple[str, str, str]:
    counts = dict(tournament.matches.values_list("status").annotate(n=Count("pk")))
    Reason, Status = Tournament.Reason, Tournament.Status
    if counts.get(Match.Status.DECIDED):
        left = remaining(
            [candidate.position for candidate in tournament.candidates.all()], len(samples_of(tournament)), ()
        )
        exhausted = tournament.max_matches > left
        text = f"There are {left} different matches, fewer than the limit of {tournament.max_matches}."
        return (Status.FINISHED, Reason.EXHAUSTED, text) if exhausted else (Status.FINISHED, Reason.NONE, "")
    if not counts.get(Match.Status.INCONCLUSIVE):
        return Status.FAILED, Reason.NO_ANSWERS, f"All {sum(counts.values())} matches are void: no pair of answers."
    voted = Ballot.objects.filter(match__tournament=tournament, status__in=["vote", "abstained"]).exists()
    if voted:
        text = "Every match is inconclusive: judges contradicted themselves or each other, or the quorum was missed."
        return Status.FINISHED, Reason.NONE, text
    return Status.FAILED, Reason.NO_VERDICTS, "No judge gave a usable verdict on any match; see the errors by code."
