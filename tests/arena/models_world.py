"""Results that rest on a language model."""

from __future__ import annotations

from arena.models import Candidate, Judge, Jury, LanguageModel, TaskSet, Tournament, Trial


def make_used(model: LanguageModel, *, by: str = "candidate", name: str = "A tournament") -> None:
    if by == "trial":
        Trial.objects.create(
            team=model.team,
            language_model=model,
            fingerprint=model.fingerprint,
            input_hash="0" * 64,
            origin="generated",
        )
        return
    task_set = TaskSet.objects.create(team=model.team, name=f"{name}, samples", version=1, content_hash="0" * 64)
    tournament = Tournament.objects.create(team=model.team, task_set=task_set, name=name, max_matches=1)
    if by == "candidate":
        Candidate.objects.create(tournament=tournament, language_model=model, label=model.label, position=0)
    else:
        jury = Jury.objects.create(tournament=tournament, primary=True, protocol={})
        Judge.objects.create(jury=jury, language_model=model, position=0)
