"""Boards with a million comparisons behind them: reading the counts, the refit, and the page.

    python benchmarks/boards.py
    python benchmarks/boards.py --database sqlite --comparisons 100000

Makes a database of its own, fills it by SQL, and removes it. PostgreSQL is found at BENCH_POSTGRES_URL (a role that
may create databases).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parents[1]
POSTGRES = os.environ.get("BENCH_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres")
GOAL_REFIT_SECONDS, GOAL_PAGE_MS, GOAL_QUERIES = 2.0, 50.0, 12
PASSES, PAGES = 3, 20


@contextmanager
def postgres_database() -> Iterator[str]:
    import psycopg

    name = f"tiltyard_bench_boards_{os.getpid()}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def sqlite_database() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tiltyard-bench-") as folder:
        yield f"sqlite:///{folder}/boards.sqlite3"


DATABASES = {"postgresql": postgres_database, "sqlite": sqlite_database}


@dataclass(frozen=True)
class Taken:
    wall_s: float
    # Of this process and, on PostgreSQL, of the server's process for it: what is left of a busy machine's noise.
    cpu_s: float


def _server_cpu() -> float:
    """CPU seconds of the backend of this connection, where it runs on this machine."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def taken(function: Callable[[], Any]) -> Taken:
    server, own, begin = _server_cpu(), time.process_time(), time.perf_counter()
    function()
    wall, own = time.perf_counter() - begin, time.process_time() - own
    return Taken(wall, own + _server_cpu() - server)


def median(results: list[Taken]) -> Taken:
    return Taken(statistics.median(one.wall_s for one in results), statistics.median(one.cpu_s for one in results))


def seconds(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def fill(comparisons: int, candidates: int) -> Any:
    """A finished tournament in which every pair met equally often; who is earlier is better."""
    from django.utils import timezone

    from arena.judging.protocol import AUDITED
    from arena.models import (
        Candidate,
        Jury,
        LanguageModel,
        Membership,
        Provider,
        Role,
        Sample,
        Step,
        TaskSet,
        Team,
        Tournament,
        Trial,
        TrialRequest,
        User,
    )

    team = Team.objects.create(name="Bench")
    user = User.objects.create_user("bench@example.com", "a horse that counts to nine", name="Bench")
    Membership.objects.create(team=team, user=user, role=Role.OWNER)
    provider = Provider.objects.create(team=team, name="bench", base_url="http://127.0.0.1:9/v1")
    pairs = candidates * (candidates - 1) // 2
    meetings = -(-comparisons // pairs)
    task_set = TaskSet.objects.create(team=team, name="Bench", content_hash="bench", sample_count=meetings)
    samples = Sample.objects.bulk_create(
        Sample(task_set=task_set, position=n, key=f"s{n}", messages=[], category=f"c{n % 5}", input_hash=f"i{n}")
        for n in range(meetings)
    )
    now = timezone.now()
    tournament = Tournament.objects.create(
        team=team, task_set=task_set, name="Bench", status="finished", max_matches=comparisons, finished_at=now
    )
    models = LanguageModel.objects.bulk_create(
        LanguageModel(team=team, provider=provider, model_id=f"m{n}", fingerprint=f"f{n}") for n in range(candidates)
    )
    Candidate.objects.bulk_create(
        Candidate(
            tournament=tournament,
            language_model=model,
            position=n,
            label=model.model_id,
            full_id=model.full_id,
            snapshot={"fingerprint": model.fingerprint},
        )
        for n, model in enumerate(models)
    )
    Trial.objects.bulk_create(
        (
            Trial(
                team=team,
                language_model=model,
                sample=sample,
                input_hash=sample.input_hash,
                fingerprint=model.fingerprint,
                status="succeeded",
                cost_usd="0.001",
                duration_ms=900.0,
            )
            for model in models
            for sample in samples
        ),
        batch_size=5000,
    )
    TrialRequest.objects.bulk_create(
        (TrialRequest(tournament=tournament, trial_id=trial) for trial in Trial.objects.values_list("pk", flat=True)),
        batch_size=5000,
    )
    jury = Jury.objects.create(tournament=tournament, protocol=AUDITED.to_json(), status="finished")
    step = Step.objects.create(tournament=tournament, number=1, status="complete", completed_at=now)
    _matches(tournament.pk, step.pk, jury.pk, comparisons)
    return tournament, jury, user


def _matches(tournament: int, step: int, jury: int, comparisons: int) -> None:
    """All matches and their decisions in two statements that both databases understand."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Six foreign keys of each of a million rows would be checked for minutes.
            cursor.execute("SET session_replication_role = replica")
        # Without it SQLite looks for the trials of each match among all of a model's.
        cursor.execute("ANALYZE")
        cursor.execute(
            """
            INSERT INTO arena_match (public_id, created_at, sequence, status, forced_tie, imported, recorded,
                                     decided_at, first_id, second_id, sample_id, step_id, tournament_id,
                                     first_trial_id, second_trial_id)
            SELECT 'b' || row_number() OVER (), CURRENT_TIMESTAMP, row_number() OVER (), 'decided', false, false, '{}',
                   CURRENT_TIMESTAMP, one.id, other.id, sample.id, %s, %s, first_trial.id, second_trial.id
            FROM arena_candidate one
            JOIN arena_candidate other ON other.id > one.id
            CROSS JOIN arena_sample sample
            JOIN arena_trial first_trial
              ON first_trial.language_model_id = one.language_model_id AND first_trial.sample_id = sample.id
            JOIN arena_trial second_trial
              ON second_trial.language_model_id = other.language_model_id AND second_trial.sample_id = sample.id
            LIMIT %s
            """,
            [step, tournament, comparisons],
        )
        # A draw that is the same everywhere; chances fall with the distance of the two.
        cursor.execute(
            """
            INSERT INTO arena_decision (outcome, reason, counts, created_at, jury_id, match_id)
            SELECT CASE WHEN draw < 150 THEN 'tie'
                        WHEN draw < 575 + (second_id - first_id) * 3 THEN 'first' ELSE 'second' END,
                   'plurality', '{}', CURRENT_TIMESTAMP, %s, id
            FROM (SELECT id, first_id, second_id, (id * 7919 + first_id * 104729 + second_id * 1299709) %% 1000 AS draw
                  FROM arena_match) matches
            """,
            [jury],
        )
        if connection.vendor == "postgresql":
            cursor.execute("SET session_replication_role = DEFAULT")
            # What the server does by itself in the minutes after so many new rows.
            cursor.execute("VACUUM")
        cursor.execute("ANALYZE")


def measured(function: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> Taken:
    """On the clock with the plans that the server chooses; in CPU time with one process, which then is all of it."""
    from django.db import connection

    found = []
    for workers in ("DEFAULT", "0"):
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET max_parallel_workers_per_gather = {workers}")
        passes = []
        for _ in range(PASSES):
            before()
            passes.append(taken(function))
        found.append(median(passes))
    return Taken(found[0].wall_s, found[1].cpu_s)


def measure(comparisons: int, candidates: int) -> dict[str, Any]:
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import reverse

    from ratings import dataset, services
    from ratings.models import Leaderboard

    call_command("migrate", verbosity=0)
    tournament, jury, user = fill(comparisons, candidates)
    client = Client()
    client.force_login(user)
    figures: dict[str, Any] = {}
    fisher = services.Method(errors=Leaderboard.Errors.FISHER)
    boards = {
        "tournament": services.board_of_jury(tournament, jury, fisher),
        "team": services.wide_board(tournament.team, services.Method(ties="rao_kupper", errors="fisher")),
    }
    for name, board in boards.items():
        dataset.evidence_of(board)

        def aggregate(board: Leaderboard = board) -> None:
            dataset.evidence_of(board, at_most=comparisons)

        def refit(board: Leaderboard = board) -> None:
            services.refit(board.pk)

        def forget(board: Leaderboard = board) -> None:
            board.runs.all().delete()

        read, fitted = measured(aggregate), measured(refit, before=forget)
        run = board.runs.get()
        url = reverse("ratings:board-detail", kwargs={"team": tournament.team.public_id, "board": board.public_id})
        assert client.get(url).status_code == 200
        with CaptureQueriesContext(connection) as queries:
            client.get(url)
            asked = len(queries)
        page = median([taken(lambda url=url: client.get(url)) for _ in range(PAGES)])
        figures[name] = {
            "comparisons": run.comparisons,
            "aggregate_s": round(read.wall_s, 3),
            "aggregate_cpu_s": round(read.cpu_s, 3),
            "refit_s": round(fitted.wall_s, 3),
            "refit_cpu_s": round(fitted.cpu_s, 3),
            "fit_ms": round(run.duration_ms, 1),
            "page_ms": round(1000 * page.wall_s, 1),
            "page_cpu_ms": round(1000 * page.cpu_s, 1),
            "queries": asked,
        }
    figures["due_s"] = round(seconds(services.boards_due), 3)
    return figures


def child(database: str, url: str, comparisons: int, candidates: int) -> dict[str, Any]:
    environment = {**os.environ, "TEST_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    arguments = ["--child", database, "--comparisons", str(comparisons), "--candidates", str(candidates)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=DATABASES, nargs="+", default=list(DATABASES))
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        import django

        sys.path.insert(0, str(ROOT))
        django.setup()
        print(json.dumps(measure(options.comparisons, options.candidates)))
        return
    print(f"goals: refit under {GOAL_REFIT_SECONDS} s, page under {GOAL_PAGE_MS} ms and {GOAL_QUERIES} queries")
    figures = {}
    for name in options.database:
        with DATABASES[name]() as url:
            figures[name] = child(name, url, options.comparisons, options.candidates)
        for board in ("tournament", "team"):
            print(name, board, figures[name][board])
        print(name, "looking for what is due:", figures[name]["due_s"], "s")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
