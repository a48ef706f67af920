"""A run from beginning to end, apart from the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from arena.models import Tournament
from arena.selectors.plan import Plan, plan_of
from arena.services import tournaments
from arena.services.tournaments import TournamentError, TournamentSpec
from ratings.headless.config import parse_config
from ratings.headless.endings import Ending, ending_of
from ratings.headless.entering import enter
from ratings.headless.interrupts import Interrupts
from ratings.headless.match_log import LogError, MatchLog
from ratings.headless.progress import Progress
from ratings.headless.results import Files
from ratings.headless.teams import team_for
from ratings.headless.watch import Hands, see_through
from ratings.headless.yaml_tree import ConfigError

Say = Callable[[str], None]
Status = Tournament.Status
ENDED = frozenset({Status.FINISHED, Status.STOPPED, Status.FAILED})


@dataclass(frozen=True, slots=True)
class Outcome:
    tournament: Tournament
    ending: Ending
    files: Files
    board: dict[str, Any]


def planned(path: Path, *, team: str, budget_usd: Decimal | None) -> tuple[TournamentSpec, Plan]:
    """Read a configuration, find or enter what it names, and plan; ConfigError with everything in the way."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"{path} cannot be read: {error.strerror}."]) from error
    config = parse_config(content, path.name)
    spec = enter(config, folder=path.resolve().parent, team=team_for(team), budget_usd=budget_usd)
    # What a file that is held against the run later has to be.
    spec.settings["headless"]["configuration_sha256"] = hashlib.sha256(content).hexdigest()
    plan = plan_of(spec)
    if plan.problems:
        raise ConfigError([f"{path.name}: {problem}" for problem in plan.problems])
    return spec, plan


def begin(spec: TournamentSpec) -> Tournament:
    try:
        return tournaments.create_tournament(spec=spec, actor=None)
    except TournamentError as error:
        raise ConfigError(error.problems) from error


def stored(public_id: str, *, team: str) -> Tournament:
    found = Tournament.objects.select_related("team").filter(public_id=public_id).first()
    if found is None or (team and team not in {found.team.name, found.team.public_id}):
        raise ConfigError([f"There is no tournament with the id {public_id}."])
    return found


def to_resume(public_id: str, *, team: str, budget_usd: Decimal | None) -> Tournament:
    """The tournament, with its budget as it shall be from here on."""
    found = stored(public_id, team=team)
    if budget_usd is not None and budget_usd != found.budget_usd:
        try:
            tournaments.set_budget(tournament=found, budget_usd=budget_usd)
        except TournamentError as error:
            raise ConfigError(error.problems) from error
    return found


def carry_out(tournament: Tournament, *, folder: Path, out: TextIO) -> Outcome:
    """Run or go on, until it stands still. Files are complete when this returns."""
    files = Files.of(folder, tournament)
    progress = Progress(out)
    try:
        log = MatchLog(files.matches, tournament)
    except (LogError, OSError) as error:
        raise ConfigError([str(error)]) from error
    with log:
        if tournament.status in ENDED:
            log.append_resolved()
        else:
            _work(tournament, log, progress)
    board = files.write_summaries(tournament)
    return Outcome(tournament, ending_of(tournament), files, board)


def _work(tournament: Tournament, log: MatchLog, progress: Progress) -> None:
    with Interrupts() as interrupts, Hands(progress.say) as hands:
        _set_going(tournament)
        see_through(tournament, hands=hands, log=log, progress=progress, interrupts=interrupts)


def _set_going(tournament: Tournament) -> None:
    """Nothing to do where it runs already, as after a kill."""
    try:
        if tournament.status == Status.DRAFT:
            tournaments.start_tournament(tournament=tournament)
        elif tournament.status == Status.PAUSED:
            tournaments.resume_tournament(tournament=tournament)
    except TournamentError as error:
        raise ConfigError(error.problems) from error
