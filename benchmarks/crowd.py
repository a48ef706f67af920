"""Run by the benchmark of fairness in processes of its own: many tournaments on one provider, counted for a while."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time

import django

from benchmarks.player import CANDIDATES, JUDGES, make_models, make_task_set, worker

# More calls than can be made meanwhile: nobody may run out of them.
SAMPLES, MATCHES = 60, 250


def setup(options: argparse.Namespace) -> None:
    from django.core.management import call_command

    from arena.judging.protocol import AUDITED
    from arena.services.tournaments import TournamentSpec, create_tournament

    call_command("migrate", verbosity=0)
    models = make_models(options)
    for number in range(options.tournaments):
        name = f"Tournament {number}"
        spec = TournamentSpec(
            name=name,
            # Prompts of its own: an answer that is there already would be no call.
            task_set=make_task_set(models[CANDIDATES[0]].team, name, SAMPLES),
            candidates=[models[one] for one in CANDIDATES],
            judges=[models[one] for one in JUDGES],
            protocol=AUDITED,
            max_matches=MATCHES,
        )
        create_tournament(spec=spec, actor=None)


def play(options: argparse.Namespace) -> None:
    from django.db.models import Count
    from django.utils import timezone

    from arena.models import Call, Tournament
    from arena.services.tournaments import start_tournament

    tournaments = list(Tournament.objects.order_by("pk"))
    with worker(options.pids):
        for tournament in tournaments:
            start_tournament(tournament=tournament)
        began = timezone.now()
        until = began + dt.timedelta(seconds=options.seconds)
        # What was answered in time may be stored a moment later.
        time.sleep(options.seconds + 1)
        calls = Call.objects.filter(ended_at__gt=began, ended_at__lte=until)
        counts = dict(calls.order_by().values_list("tournament").annotate(n=Count("pk")))
        failed = Call.objects.exclude(status=Call.Status.OK).count()
        running = Tournament.objects.filter(status=Tournament.Status.RUNNING).count()
    if running < len(tournaments):
        raise SystemExit(f"Only {running} tournaments still ran: the figures would compare nothing.")
    completed = [counts.get(tournament.pk, 0) for tournament in tournaments]
    print(json.dumps({"completed": completed, "failed": failed}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["setup", "play"])
    parser.add_argument("--url", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--tournaments", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--pids", type=int, nargs="*", default=[])
    options = parser.parse_args()
    django.setup()
    {"setup": setup, "play": play}[options.action](options)


if __name__ == "__main__":
    main()
