"""A tournament that is over goes on, or is judged again, without the site."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from arena.models import CallStatus, Jury, LanguageModel, TaskSet, Tournament, Verdict
from arena.selectors.extensions import Extension, later_versions, plan_of_extension
from arena.selectors.jury_progress import progress_of
from arena.selectors.plan import Plan
from arena.selectors.rejudging import RejudgeSpec, plan_of_rejudge
from arena.services import rejudges
from arena.services.tournament_errors import TournamentError
from ratings.headless.config import parse_panel
from ratings.headless.endings import Exit
from ratings.headless.entering import enter_panel
from ratings.headless.interrupts import Interrupts
from ratings.headless.progress import Progress
from ratings.headless.results import write_board
from ratings.headless.runs import stored
from ratings.headless.watch import POLL_SECONDS, Hands
from ratings.headless.yaml_tree import ConfigError

TELL_SECONDS = 5.0


def planned_extension(
    public_id: str,
    *,
    team: str,
    max_matches: int | None,
    candidates: Sequence[str],
    newest_samples: bool,
    budget_usd: Decimal | None,
) -> tuple[Tournament, Extension, Plan]:
    """What the options ask for, and its plan; ConfigError with everything in the way."""
    tournament = stored(public_id, team=team)
    problems: list[str] = []
    models = [model for name in candidates if (model := _model(tournament, name, problems)) is not None]
    task_set = _newest(tournament, problems) if newest_samples else None
    extension = Extension(
        max_matches=tournament.max_matches if max_matches is None else max_matches,
        candidates=models,
        task_set=task_set,
        budget_usd=tournament.budget_usd if budget_usd is None else budget_usd,
    )
    plan = plan_of_extension(tournament, extension)
    if problems or plan.problems:
        raise ConfigError([*problems, *plan.problems])
    return tournament, extension, plan


def _model(tournament: Tournament, name: str, problems: list[str]) -> LanguageModel | None:
    usable = LanguageModel.objects.usable().filter(team=tournament.team_id, provider__isnull=False)
    rows = [row for row in usable.select_related("provider") if name in {row.full_id, row.model_id, row.public_id}]
    if len(rows) == 1:
        return rows[0]
    how = "Several models of the team are" if rows else "No model of the team is"
    problems.append(f"{how} called {name}; give provider/model_id, or the model's id.")
    return None


def _newest(tournament: Tournament, problems: list[str]) -> TaskSet | None:
    versions = later_versions(tournament)
    if not versions:
        problems.append(f"{tournament.task_set} has no later version. Import one with import_task_set.")
        return None
    return versions[0]


# Judging again -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rejudged:
    jury: Jury
    code: Exit
    sentence: str
    path: Path
    board: dict[str, Any]


def planned_rejudge(public_id: str, path: Path, *, team: str, budget_usd: Decimal | None) -> tuple[RejudgeSpec, Plan]:
    tournament = stored(public_id, team=team)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"{path} cannot be read: {error.strerror}."]) from error
    config = parse_panel(content, path.name)
    judges, replacements = enter_panel(config, team=tournament.team)
    spec = RejudgeSpec(
        tournament=tournament,
        name=config.name,
        judges=judges,
        replacement_judges=replacements,
        protocol=config.protocol,
        budget_usd=config.budget_usd if budget_usd is None else budget_usd,
    )
    plan = plan_of_rejudge(spec)
    if plan.problems:
        raise ConfigError([f"{path.name}: {problem}" for problem in plan.problems])
    return spec, plan


def rejudge_to_resume(tournament_id: str, jury_id: str, *, team: str, budget_usd: Decimal | None) -> Jury:
    """The rejudge, with its budget as it shall be from here on."""
    tournament = stored(tournament_id, team=team)
    rows = Jury.objects.select_related("tournament__team").filter(tournament=tournament, primary=False)
    jury = rows.filter(public_id=jury_id).first()
    if jury is None:
        raise ConfigError([f"The tournament has no rejudge with the id {jury_id}."])
    try:
        if budget_usd is not None and budget_usd != jury.budget_usd:
            rejudges.set_rejudge_budget(jury=jury, budget_usd=budget_usd)
        if jury.status == Jury.Status.PAUSED:
            rejudges.resume_rejudge(jury=jury)
    except TournamentError as error:
        raise ConfigError(error.problems) from error
    return jury


def see_rejudge_through(jury: Jury, *, folder: Path, progress: Progress) -> Rejudged:
    """Until it stands still; an interrupt pauses it and waits for the calls in flight."""
    with Interrupts() as interrupts, Hands(progress.say) as hands:
        _watch(jury, hands, interrupts, progress)
    jury.refresh_from_db()
    path, board = write_board(folder, jury.tournament, jury)
    code, sentence = _ending(jury)
    return Rejudged(jury, code, sentence, path, board)


def _watch(jury: Jury, hands: Hands, interrupts: Interrupts, progress: Progress) -> None:
    told_at, paused_here = 0.0, False
    while True:
        jury.refresh_from_db()
        still = jury.status != Jury.Status.RUNNING
        if still and not Verdict.objects.filter(rejudge=jury, status=CallStatus.RUNNING).exists():
            return
        if interrupts.wanted.is_set() and not still and not paused_here:
            paused_here = True
            rejudges.pause_rejudge(jury=jury)
        if time.monotonic() - told_at > TELL_SECONDS:
            told_at = time.monotonic()
            stands = progress_of(jury)
            progress.say(f"{stands.resolved} of {stands.matches} matches judged, {stands.calls} calls")
        hands.look()
        time.sleep(POLL_SECONDS)


def _ending(jury: Jury) -> tuple[Exit, str]:
    go_on = f"Go on with: manage.py rejudge {jury.tournament.public_id} --resume {jury.public_id}"
    if jury.status == Jury.Status.FINISHED:
        return Exit.FINISHED, f"Finished. {jury.reason_text}".strip()
    if jury.status == Jury.Status.PAUSED:
        if jury.reason == Tournament.Reason.BUDGET:
            return Exit.BUDGET, f"Paused by the budget of ${jury.budget_usd}. {jury.reason_text}\n{go_on} --budget USD"
        return Exit.INTERRUPTED, f"Paused. {go_on}"
    return Exit.FAILURES, f"The rejudge {jury.get_status_display()}: {jury.reason_text}".rstrip(": ")
