"""What a board reaches over: its juries, its decisions, and whom it rates."""

from __future__ import annotations

from django.db.models import QuerySet

from arena.models import Candidate, Decision, Jury, LanguageModel, Tournament
from ratings.models import Leaderboard


def tournaments_of(board: Leaderboard) -> QuerySet[Tournament]:
    if not board.is_wide:
        return Tournament.objects.filter(pk=board.tournament_id or 0)
    found = Tournament.objects.filter(team=board.team_id).exclude(status=Tournament.Status.DRAFT)
    if board.scope == Leaderboard.Scope.TASK_SET:
        found = found.filter(task_set__lineage=board.task_set_lineage)
    return found


def juries_of(board: Leaderboard) -> QuerySet[Jury]:
    """One jury of each tournament: a second opinion on the same matches would count them twice."""
    if not board.is_wide:
        return Jury.objects.filter(pk=board.jury_id or 0)
    return Jury.objects.filter(primary=True, tournament__in=tournaments_of(board))


def decisions_of(board: Leaderboard, juries: list[int]) -> QuerySet[Decision]:
    """All that may enter a fit."""
    found = Decision.objects.rated().filter(jury__in=juries)
    return found.filter(match__sample__category=board.category) if board.category else found


def candidates_of(board: Leaderboard) -> QuerySet[Candidate]:
    if not board.is_wide:
        return Candidate.objects.filter(tournament=board.tournament_id).order_by("position")
    return Candidate.objects.filter(tournament__in=tournaments_of(board)).order_by("pk")


def newest_of_lineages(candidates: list[tuple[int, int, str]]) -> dict[str, int]:
    """Of (candidate, language model, lineage) rows: the newest model that played, by lineage."""
    newest: dict[str, int] = {}
    for _, model, lineage in candidates:
        newest[lineage] = max(model, newest.get(lineage, 0))
    return newest


def full_ids(models: list[int]) -> dict[int, str]:
    found = LanguageModel.objects.filter(pk__in=models).select_related("provider")
    return {model.pk: model.full_id for model in found}
