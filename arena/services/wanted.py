"""The trials that a tournament wants: those there are, and new rows for the rest."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from arena.models import CallStatus, Candidate, Sample, Tournament, Trial, TrialRequest
from arena.selectors.cells import Cell, file_types_of, known_trials, refused_types

# Each look fails only where another tournament ended the same trial in between.
MOST_LOOKS = 5


def cell_of(candidate: Candidate, sample: Sample) -> Cell:
    return sample.input_hash, candidate.snapshot["fingerprint"]


def trials_for(tournament: Tournament, wanted: Iterable[tuple[Candidate, Sample]]) -> dict[Cell, Trial]:
    """Inside a transaction; whoever calls it wakes the providers of what is queued."""
    cells = {cell_of(candidate, sample): (candidate, sample) for candidate, sample in wanted}
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
