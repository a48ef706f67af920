"""The samples that the matches of a tournament are drawn from."""

from __future__ import annotations

from arena.models import Sample, TaskSet, Tournament


def pool_of(tournament: Tournament, task_set: TaskSet | None = None) -> list[Sample]:
    """Of its task set, or of the version that it is to go on with.

    An input that was played on keeps the row that it was played on: in a later version it is another row, on which
    the same pair would meet again with the same two answers.
    """
    samples = (task_set or tournament.task_set).samples.order_by("position")
    if tournament.categories:
        samples = samples.filter(category__in=tournament.categories)
    found = list(samples)
    earlier: dict[str, list[Sample]] = {}
    for sample in _played_elsewhere(tournament, found):
        earlier.setdefault(sample.input_hash, []).append(sample)
    return [earlier[one.input_hash].pop(0) if earlier.get(one.input_hash) else one for one in found]


def lost_samples(tournament: Tournament, task_set: TaskSet) -> list[Sample]:
    """Those that were played on and that a version no longer has: its matches would have nowhere to belong."""
    pool = {sample.pk for sample in pool_of(tournament, task_set)}
    played = Sample.objects.filter(matches__tournament=tournament).distinct().order_by("position", "pk")
    return [sample for sample in played if sample.pk not in pool]


def _played_elsewhere(tournament: Tournament, samples: list[Sample]) -> list[Sample]:
    here = {sample.pk for sample in samples}
    played = Sample.objects.filter(matches__tournament=tournament).distinct().order_by("task_set", "position")
    if tournament.task_set_id is not None and samples:
        played = played.exclude(task_set=samples[0].task_set_id)
    return [sample for sample in played if sample.pk not in here]
