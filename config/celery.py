from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_shutdown, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.embedded")
# Celery runs the system checks and throws away what they say; a worker listens to them below.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("tiltyard")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


_hearts: list[Any] = []
_relays: list[Any] = []


@worker_init.connect
def _begin(**_: object) -> None:
    """A worker process of a team installation beats, so that its rows are not taken for lost."""
    from django.conf import settings
    from django.core.management import call_command
    from django.core.management.base import SystemCheckError
    from django.db import connection

    from arena.embedded import Every
    from arena.relay import Relay
    from arena.services import reconcile, workers

    if not settings.EMBEDDED:
        try:
            call_command("check", verbosity=0)
        except SystemCheckError as error:
            raise SystemExit(str(error)) from error
        # First, since it goes on trying where the database is not there yet: a worker must not work without.
        _hearts.append(workers.Heart())
        _hearts[-1].start()
        workers.register(embedded=False)
        # This thread only waits from now on; the pool needs the connection for those that work.
        connection.close()
        # In a thread of its own: behind a backlog of calls the task from beat would expire when it is needed most.
        clock = Every("tiltyard-reconciler", settings.RECONCILE_SECONDS, reconcile.reconcile_in_turn)
        clock.start()
        _hearts.append(clock)
        _relays.append(Relay(settings.WORKER_THREADS))
        _relays[-1].start()


@worker_shutting_down.connect
def _close(**_: object) -> None:
    for relay in _relays:
        relay.close()


@worker_shutdown.connect
def _end(**_: object) -> None:
    from django.conf import settings

    from arena.services import workers

    if not settings.EMBEDDED:
        while _relays:
            _relays.pop().join()
        # Stopped first: a last beat would register again what is about to be forgotten.
        while _hearts:
            heart = _hearts.pop()
            heart.stop()
            heart.join(timeout=5)
        workers.forget()
