"""How a finished tournament may go on, and what that would call and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from arena.models import LanguageModel, TaskSet, Tournament
from arena.selectors.plan import Plan, plan_more
from arena.selectors.pool import lost_samples, pool_of
from arena.selectors.specs import TournamentSpec, budget_problems, model_problems, spec_of
from ratings.engine.pairing import remaining, sub_seed

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What is wanted beyond what was played. The limit counts all matches, those played too."""

    max_matches: int
    candidates: Sequence[LanguageModel] = ()
    # A later version of the task set; None keeps the one there is.
    task_set: TaskSet | None = None
    budget_usd: Decimal | None = None


def extensions_of(tournament: Tournament) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tournament.settings.get("extensions", [])
    return found


def seed_of_step(tournament: Tournament, number: int) -> int:
    """The seed that a step is planned from: an extension has one of its own."""
    before = [one for one in extensions_of(tournament) if one["after_step"] < number]
    return sub_seed(tournament.seed, len(before))


def counted(tournament: Tournament) -> int:
    """Matches that count towards the limit: where results are followed, withdrawn ones are made up for."""
    matches = tournament.matches.all()
    return matches.exclude(status="withdrawn").count() if tournament.follows_results else matches.count()


def later_versions(tournament: Tournament) -> list[TaskSet]:
    current = tournament.task_set
    rows = TaskSet.objects.filter(team=tournament.team_id, lineage=current.lineage, version__gt=current.version)
    return list(rows.order_by("-version"))


@dataclass(frozen=True)
class Entered:
    """Candidates as they were and as they would be."""

    old: list[LanguageModel]
    new: list[LanguageModel] = field(default_factory=list)


def entered_with(tournament: Tournament, extension: Extension) -> Entered:
    old = [row.language_model for row in tournament.candidates.select_related("language_model__provider")]
    return Entered(old, list(extension.candidates))


def problems_of_extension(tournament: Tournament, extension: Extension) -> list[str]:
    """Everything that keeps the tournament from going on; empty when it can."""
    if tournament.settings.get("imported"):
        return ["An imported record cannot go on: nobody can be asked for its answers."]
    if tournament.status != Tournament.Status.FINISHED:
        status = tournament.get_status_display()
        return [f"The tournament is {status}; only a finished one goes on."]
    problems = _candidate_problems(tournament, extension) + _task_set_problems(tournament, extension)
    if extension.max_matches < tournament.max_matches:
        problems.append(f"The limit was {tournament.max_matches} matches and can only be raised.")
    if problems:
        return problems
    n_samples = len(pool_of(tournament, extension.task_set))
    roster = range(tournament.candidates.count() + len(extension.candidates))
    left = remaining(roster, n_samples) - tournament.matches.count()
    if left <= 0:
        problems.append("Every pair has met on every sample. Add samples or a candidate.")
    elif extension.max_matches <= counted(tournament):
        problems.append(
            f"{counted(tournament)} matches are played already. Raise the limit above that; {left} more are possible."
        )
    return problems


def _candidate_problems(tournament: Tournament, extension: Extension) -> list[str]:
    entered = entered_with(tournament, extension)
    new = [model for model in entered.new if model.provider_id is not None]
    problems = model_problems(entered.new, team_id=tournament.team_id, budget_usd=None)
    pinned = {row.snapshot.get("fingerprint") for row in tournament.candidates.all()}
    problems += [f"{model.full_id} is a candidate already." for model in new if model.fingerprint in pinned]
    if len({model.fingerprint for model in new}) < len(new):
        problems.append("A candidate is named twice.")
    if extension.budget_usd is not None:
        jury = tournament.juries.get(primary=True)
        judges = [row.language_model for row in jury.judges.select_related("language_model__provider")]
        every = {model.pk: model for model in (*entered.old, *new, *judges)}
        problems += budget_problems(list(every.values()))
        if extension.budget_usd < tournament.spent_usd:
            problems.append(f"${tournament.spent_usd:.4f} is spent already, more than this budget.")
    return problems


def _task_set_problems(tournament: Tournament, extension: Extension) -> list[str]:
    task_set = extension.task_set
    if task_set is None:
        return []
    current = tournament.task_set
    if (
        task_set.lineage != current.lineage
        or task_set.team_id != current.team_id
        or task_set.version <= current.version
    ):
        return [f"{task_set} is not a later version of {current}."]
    lost = lost_samples(tournament, task_set)
    if not lost:
        return []
    names = ", ".join(sample.key for sample in lost[:SHOWN]) + (", …" if len(lost) > SHOWN else "")
    return [f"Samples can be added, and {len(lost)} that were played on are missing from {task_set}: {names}."]


def plan_of_extension(tournament: Tournament, extension: Extension) -> Plan:
    """A dry run: reads only, and calls nobody."""
    stored = spec_of(tournament)
    spec = TournamentSpec(
        name=tournament.name,
        task_set=extension.task_set or tournament.task_set,
        candidates=[*stored.candidates, *extension.candidates],
        judges=stored.judges,
        replacement_judges=stored.replacement_judges,
        protocol=stored.protocol,
        pairing=stored.pairing,
        max_matches=max(0, extension.max_matches - counted(tournament)),
        step_size=stored.step_size,
        seed=sub_seed(tournament.seed, len(extensions_of(tournament)) + 1),
        budget_usd=extension.budget_usd,
        baseline=stored.baseline,
        baseline_weight=stored.baseline_weight,
        categories=stored.categories,
    )
    problems = problems_of_extension(tournament, extension)
    if problems:
        return Plan(spec, problems)
    pool = pool_of(tournament, extension.task_set)
    place = {sample.pk: index for index, sample in enumerate(pool)}
    position = dict(tournament.candidates.values_list("pk", "position"))
    already = [
        (position[first], position[second], place[sample])
        for first, second, sample in tournament.matches.order_by("sequence").values_list("first", "second", "sample")
    ]
    return plan_more(spec, [sample.pk for sample in pool], already)
