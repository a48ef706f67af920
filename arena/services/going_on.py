"""A tournament that had ended runs again."""

from __future__ import annotations

from arena.dispatch import send, wake
from arena.models import Jury, Provider, Tournament


def go_on(tournament: Tournament) -> None:
    """Under its lock: a finished or failed one is set running; a paused one stays paused."""
    # The rate of a tournament that lay still says nothing.
    tournament.settings = {**tournament.settings, "continued": True}
    if tournament.status != Tournament.Status.PAUSED:
        tournament.status, tournament.reason, tournament.reason_text = Tournament.Status.RUNNING, "", ""
        tournament.finished_at = None
        tournament.juries.filter(primary=True).update(status=Jury.Status.RUNNING)
    tournament.save(update_fields=["settings", "status", "reason", "reason_text", "finished_at"])
    wake_all(tournament)
    # Matches whose answers are there already, or can never be, have no completion that would advance them.
    send("arena.tasks.advance_tournament_task", tournament.pk)


def wake_all(tournament: Tournament) -> None:
    """Wake every provider that this tournament may call."""
    candidates = Provider.objects.filter(language_models__candidacies__tournament=tournament)
    judges = Provider.objects.filter(language_models__judgeships__jury__tournament=tournament)
    wake([*candidates.values_list("pk", flat=True), *judges.values_list("pk", flat=True)])
