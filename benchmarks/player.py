"""Run by the benchmark in processes of its own, on a database of their own.

`setup` makes the team, the models and a tournament; `play` starts it, sees it to its end and prints the figures.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import time
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from typing import Any

import django

from benchmarks.usage import peak_memory_mb, usage_of

CANDIDATES = ["lancer-large", "squire-1", "lancer-small", "herald-x"]
JUDGES = ["magistrate-1", "usher-2", "scrivener-4"]
PROMPT = "Sum up the report of branch {number} for its board: what changed, why, and what is to be decided. "
POLL_SECONDS = 0.5
MEASURED, WARM_UP = "Measured", "Warm-up"
WARM_UP_SIZE = (2, 12)


def setup(options: argparse.Namespace) -> None:
    from django.core.management import call_command

    from arena.judging.protocol import AUDITED
    from arena.services.tournaments import TournamentSpec, create_tournament

    call_command("migrate", verbosity=0)
    models = make_models(options)
    for name, samples, matches in ((WARM_UP, *WARM_UP_SIZE), (MEASURED, options.samples, options.matches)):
        spec = TournamentSpec(
            name=name,
            task_set=make_task_set(models[CANDIDATES[0]].team, name, samples),
            candidates=[models[one] for one in CANDIDATES],
            judges=[models[one] for one in JUDGES],
            protocol=AUDITED.with_overrides({"seat_orders": options.orders}),
            max_matches=matches,
        )
        create_tournament(spec=spec, actor=None)


def make_models(options: argparse.Namespace) -> dict[str, Any]:
    from arena.encryption import encrypt
    from arena.llm.demo.catalogue import DEMO_KEY
    from arena.models import Provider, Team

    team = Team.objects.create(name="Benchmark")
    provider = Provider.objects.create(
        team=team,
        name="endpoint",
        kind=Provider.Kind.DEMO,
        base_url=options.url,
        encrypted_key=encrypt(DEMO_KEY),
        max_concurrency=options.limit,
    )
    return {name: make_model(team, provider, name) for name in [*CANDIDATES, *JUDGES]}


def make_task_set(team: Any, name: str, samples: int) -> Any:
    from arena.models import Sample, TaskSet

    task_set = TaskSet.objects.create(team=team, name=name, content_hash=sha256_hex(name))
    prompts = [f"{name}. " + PROMPT.format(number=number) * 5 for number in range(samples)]
    Sample.objects.bulk_create(
        Sample(
            task_set=task_set,
            position=number,
            key=f"sample-{number}",
            messages=[{"role": "user", "content": prompt}],
            input_hash=sha256_hex(prompt),
            content_hash=sha256_hex(prompt),
        )
        for number, prompt in enumerate(prompts)
    )
    return task_set


def sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_model(team: Any, provider: Any, name: str) -> Any:
    from arena.models import LanguageModel, Price

    model = LanguageModel(team=team, provider=provider, model_id=name, max_tokens=2048)
    model.fingerprint = model.compute_fingerprint()
    model.save()
    Price.objects.create(
        language_model=model,
        input_per_million=Decimal(1),
        output_per_million=Decimal(4),
        source="invented for the benchmark",
        valid_from=dt.date(2026, 1, 1),
    )
    return model


def worker(pids: list[int]) -> AbstractContextManager[Any]:
    """The embedded worker, or the wait for the workers of a team installation."""
    if not pids:
        from arena.embedded import EmbeddedWorker

        return EmbeddedWorker()
    from config.celery import app

    until = time.monotonic() + 60
    while len(app.control.inspect(timeout=1).ping() or {}) < len(pids):
        if time.monotonic() > until:
            raise TimeoutError("The workers did not answer.")
    return nullcontext()


def play(options: argparse.Namespace) -> None:
    from arena.models import Tournament

    tournament = Tournament.objects.get(name=MEASURED)
    pids = options.pids or [os.getpid()]
    with worker(options.pids):
        warm_up(Tournament.objects.get(name=WARM_UP))
        load, before, began = os.getloadavg()[0], usage_of(pids), time.time()
        run(tournament)
        after, memory = usage_of(pids), sum(map(peak_memory_mb, pids))
    tournament.refresh_from_db()
    assert tournament.finished_at is not None
    busy = (after.machine_busy_s - before.machine_busy_s) / (after.machine_total_s - before.machine_total_s)
    figures = {
        "status": tournament.status,
        "wall_s": tournament.finished_at.timestamp() - began,
        "cpu_s": after.cpu_s - before.cpu_s,
        "memory_mb": memory,
        "load": load,
        "machine_busy": busy,
        **call_figures(tournament),
    }
    print(json.dumps(figures), flush=True)


def warm_up(tournament: Any) -> None:
    """What a worker imports for its first call and its first board belongs to no tournament."""
    from config.celery import app

    run(tournament)
    for _ in range(4):
        app.send_task("ratings.tasks.refit_due_boards_task")
    time.sleep(5)


def run(tournament: Any) -> None:
    from arena.services.tournaments import start_tournament

    start_tournament(tournament=tournament)
    while tournament.status == tournament.Status.RUNNING:
        time.sleep(POLL_SECONDS)
        tournament.refresh_from_db(fields=["status"])


def call_figures(tournament: Any) -> dict[str, Any]:
    from django.db.models import Avg, Count, Max, Min, Q

    found = tournament.calls.aggregate(
        calls=Count("pk"),
        failed_calls=Count("pk", filter=~Q(status="ok")),
        first=Min("started_at"),
        last=Max("ended_at"),
        call_ms=Avg("duration_ms"),
    )
    first, last = found.pop("first"), found.pop("last")
    decided = tournament.matches.filter(status="decided").count()
    return {**found, "calls_wall_s": (last - first).total_seconds(), "decided": decided}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["setup", "play"])
    parser.add_argument("--url", default="")
    for name in ("limit", "samples", "matches", "orders"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--pids", type=int, nargs="*", default=[])
    options = parser.parse_args()
    django.setup()
    {"setup": setup, "play": play}[options.action](options)


if __name__ == "__main__":
    main()
