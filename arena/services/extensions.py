"""A finished tournament goes on: a higher limit, another candidate, more samples.

No call is repeated: what was answered, judged and decided stays. What is new is planned by the same pairing from
a seed of its own, in one transaction, so a kill leaves the tournament as it was or going on.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Max

from arena.models import Candidate, Tournament, User
from arena.selectors.extensions import Extension, extensions_of, problems_of_extension
from arena.selectors.specs import named
from arena.services import audit, benching, steps, tournaments
from arena.services.going_on import go_on
from arena.services.seats import snapshot_of
from arena.services.tournament_errors import TournamentError


@transaction.atomic
def extend_tournament(*, tournament: Tournament, extension: Extension, actor: User | None = None) -> None:
    candidates = benching.lock_candidates(tournament.pk)
    locked = Tournament.objects.select_for_update().get(pk=tournament.pk)
    problems = problems_of_extension(locked, extension)
    if problems:
        raise TournamentError(problems)
    before = _limits(locked)
    entered = _enter(locked, candidates, extension)
    # Who sat out for failed answers begins anew: what was wrong may be mended.
    benching.begin_anew(candidates)
    if extension.budget_usd != locked.budget_usd:
        tournaments.set_budget(tournament=locked, budget_usd=extension.budget_usd, actor=actor)
    _write_down(locked, extension, entered)
    go_on(locked)
    steps.plan_first(locked)
    audit.record(
        team=locked.team,
        actor=actor,
        action="tournament.extend",
        target=locked.name,
        old=before,
        new=_limits(locked) | {"entered": entered},
    )
    tournament.refresh_from_db()


def _limits(tournament: Tournament) -> dict[str, Any]:
    return {"max_matches": tournament.max_matches, "task_set": str(tournament.task_set)}


def _enter(tournament: Tournament, candidates: list[Candidate], extension: Extension) -> list[str]:
    """The new ones stand behind the others, as if they had sat through every step so far."""
    names = named([*(row.language_model for row in candidates), *extension.candidates])[len(candidates) :]
    for position, (model, label, full_id) in enumerate(names, start=max(row.position for row in candidates) + 1):
        Candidate.objects.create(
            tournament=tournament,
            language_model=model,
            position=position,
            label=label,
            full_id=full_id,
            snapshot=snapshot_of(model),
            counted_steps=candidates[0].counted_steps,
        )
    return [full_id for _, _, full_id in names]


def _write_down(tournament: Tournament, extension: Extension, entered: list[str]) -> None:
    last = tournament.matches.aggregate(step=Max("step__number"), sequence=Max("sequence"))
    if extension.task_set is not None:
        tournament.task_set = extension.task_set
    tournament.max_matches = extension.max_matches
    record = {
        "after_step": last["step"] or 0,
        "after_sequence": last["sequence"] or 0,
        "max_matches": extension.max_matches,
        "entered": entered,
        "task_set": str(tournament.task_set),
        "content_hash": tournament.task_set.content_hash,
    }
    tournament.settings = {**tournament.settings, "extensions": [*extensions_of(tournament), record]}
    tournament.save(update_fields=["task_set", "max_matches", "settings"])
