"""Who runs calls: every process has an id, beats, and keeps the leases of the rows it works on."""

from __future__ import annotations

import datetime as dt
import logging
import os
import socket
import threading
import uuid
from collections import defaultdict

from django.conf import settings
from django.db import close_old_connections, connection
from django.utils import timezone

from arena.limits import slots
from arena.models import CallStatus, Trial, Verdict, Worker

logger = logging.getLogger(__name__)
MODELS = {"t": Trial, "v": Verdict}


class ActiveClaims:
    """The rows that this process works on now. Their leases are renewed together, not call by call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By claim token: a second message for a row must not end what the first one holds.
        self._claims: dict[str, tuple[str, int, str]] = {}

    def add(self, token: str, *, kind: str, provider_id: int, holder: str) -> None:
        with self._lock:
            self._claims[token] = (kind, provider_id, holder)

    def remove(self, token: str) -> None:
        with self._lock:
            self._claims.pop(token, None)

    def snapshot(self) -> dict[str, tuple[str, int, str]]:
        with self._lock:
            return dict(self._claims)


active_claims = ActiveClaims()
_identity: dict[str, str] = {}
_registered: set[str] = set()


def worker_id() -> str:
    """This process's id; a forked child gets one of its own."""
    key = str(os.getpid())
    if key not in _identity:
        _identity.clear()
        _identity[key] = f"{os.getpid()}-{uuid.uuid4().hex[:20]}"
    return _identity[key]


def register(*, embedded: bool) -> Worker:
    host = socket.gethostname()
    _registered.add(worker_id())
    if embedded:
        # The caller holds the lock of the data folder, so no other embedded worker is alive: its rows are free.
        Worker.objects.filter(embedded=True).exclude(pk=worker_id()).delete()
    return Worker.objects.update_or_create(
        pk=worker_id(), defaults={"embedded": embedded, "host": host, "beat_at": timezone.now()}
    )[0]


def beat() -> None:
    if not Worker.objects.filter(pk=worker_id()).update(beat_at=timezone.now()):
        # It was silent for so long (a suspended machine, say) that it was taken for dead.
        register(embedded=settings.EMBEDDED)


def prove_alive() -> None:
    """Beat and renew at once: after a suspended machine wakes, before anybody looks for dead workers."""
    if worker_id() in _registered:
        beat()
        renew_leases()


def present() -> str:
    """This process's id, known to the others: the rows of a worker that nobody knows would be free to take."""
    if worker_id() not in _registered:
        register(embedded=settings.EMBEDDED)
    return worker_id()


def forget() -> None:
    _registered.discard(worker_id())
    Worker.objects.filter(pk=worker_id()).delete()


def somebody_works() -> bool:
    silent_since = timezone.now() - dt.timedelta(seconds=settings.WORKER_DEAD_SECONDS)
    return Worker.objects.filter(beat_at__gte=silent_since).exclude(pk=worker_id()).exists()


def renew_leases() -> None:
    claims = active_claims.snapshot()
    until = timezone.now() + dt.timedelta(seconds=settings.LEASE_SECONDS)
    for kind, model in MODELS.items():
        tokens = [token for token, claim in claims.items() if claim[0] == kind]
        if tokens:
            own = model._default_manager.filter(worker=worker_id(), status=CallStatus.RUNNING)
            own.filter(claim_token__in=tokens).update(lease_until=until)
    holders: dict[int, list[str]] = defaultdict(list)
    for _, provider_id, holder in claims.values():
        holders[provider_id].append(holder)
    for provider_id, names in holders.items():
        slots().renew(provider_id, names)


class Heart(threading.Thread):
    """Beats and renews until told to stop. A beat that fails is tried again; it must not end the process."""

    def __init__(self) -> None:
        super().__init__(name="tiltyard-heart", daemon=True)
        self._stopped = threading.Event()

    def run(self) -> None:
        beats = 0
        while not self._stopped.wait(settings.WORKER_BEAT_SECONDS):
            try:
                # Drops a connection that broke (a restarted database); no later beat would get through on it.
                close_old_connections()
                beat()
                beats += 1
                if beats * settings.WORKER_BEAT_SECONDS >= settings.LEASE_RENEW_SECONDS:
                    beats = 0
                    renew_leases()
            except Exception:
                logger.exception("The worker could not beat; it tries again.")
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
