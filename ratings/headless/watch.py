"""Seeing a tournament through: working on it in this process or watching others do so, until it stands still."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from django.conf import settings
from django.utils import timezone

from arena.embedded import AlreadyRunning, EmbeddedWorker
from arena.models import CallStatus, Tournament, Trial, Verdict
from arena.services import tournaments, workers
from ratings.headless.interrupts import Interrupts
from ratings.headless.match_log import MatchLog
from ratings.headless.progress import Progress, standing_of

POLL_SECONDS = 0.25
# How long an embedded command waits before it looks whether the server it left the work to is gone.
LOOK_FOR_WORKER_SECONDS = 5.0


class Hands:
    """Who does the work: a worker in this process where it is embedded and nobody else works, else the others."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._worker: EmbeddedWorker | None = None
        self._looked_at = 0.0
        self._told = False

    def __enter__(self) -> Self:
        self.look(force=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.stop()

    @property
    def are_ours(self) -> bool:
        return self._worker is not None

    def look(self, *, force: bool = False) -> None:
        """Take up the work if nobody does; a server that ran it may have gone."""
        now = time.monotonic()
        if self._worker is not None or (not force and now - self._looked_at < LOOK_FOR_WORKER_SECONDS):
            return
        self._looked_at = now
        if settings.EMBEDDED:
            self._take_up()
        elif not workers.somebody_works():
            self._tell("No worker is alive: the tournament waits until one is started.")

    def _take_up(self) -> None:
        worker = EmbeddedWorker()
        try:
            worker.start()
        except AlreadyRunning:
            self._tell("Another process works on this data and runs the tournament; this one watches.")
            return
        self._worker = worker

    def _tell(self, sentence: str) -> None:
        if not self._told:
            self._told = True
            self._say(sentence)


def see_through(
    tournament: Tournament, *, hands: Hands, log: MatchLog, progress: Progress, interrupts: Interrupts
) -> None:
    """Until the tournament stands still, with every match in the log. An interrupt pauses it and waits for calls."""
    paused_here = False
    while True:
        # The status first: what resolved before it was read is then sure to be seen below.
        tournament.refresh_from_db()
        still = tournament.status != Tournament.Status.RUNNING
        log.append_resolved()
        progress.show(standing_of(tournament))
        if still and not calls_in_flight(tournament):
            log.append_resolved()
            break
        if interrupts.wanted.is_set() and not still and not paused_here:
            paused_here = True
            _pause(tournament, progress)
            continue
        hands.look()
        if interrupts.wanted.is_set():
            time.sleep(POLL_SECONDS)
        else:
            interrupts.wanted.wait(POLL_SECONDS)
    tournament.refresh_from_db()
    progress.end(standing_of(tournament))


def _pause(tournament: Tournament, progress: Progress) -> None:
    try:
        tournaments.pause_tournament(tournament=tournament)
    except tournaments.TournamentError as error:
        # It ended, or somebody paused it, at this very moment.
        progress.say(" ".join(error.problems))
        return
    count = calls_in_flight(tournament)
    if count:
        progress.say(f"Paused. Waiting for {count} calls in flight, which are paid; Ctrl-C again leaves them.")


def calls_in_flight(tournament: Tournament) -> int:
    """Running under a live worker; those of a dead one will never come back."""
    now = timezone.now()
    verdicts = Verdict.objects.filter(tournament=tournament, rejudge=None, status=CallStatus.RUNNING)
    trials = Trial.objects.filter(payer=tournament, status=CallStatus.RUNNING)
    alive = verdicts.exclude(pk__in=Verdict.objects.lost(now).values("pk")).count()
    return alive + trials.exclude(pk__in=Trial.objects.lost(now).values("pk")).count()
