from __future__ import annotations

import os

from celery import Celery
from celery.signals import worker_init, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.embedded")

app = Celery("tiltyard")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def _begin(**_: object) -> None:
    """A worker process of a team installation beats, so that its rows are not taken for lost."""
    from django.conf import settings

    from arena.services import workers

    if not settings.EMBEDDED:
        workers.register(embedded=False)
        workers.Heart().start()
        app.send_task("arena.tasks.reconcile_task")


@worker_shutdown.connect
def _end(**_: object) -> None:
    from django.conf import settings

    from arena.services import workers

    if not settings.EMBEDDED:
        workers.forget()
