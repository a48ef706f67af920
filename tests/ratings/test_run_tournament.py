from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings, Faults
from arena.models import LanguageModel, Price, Provider, TaskSet, Team, Tournament, Trial
from ratings.headless.endings import Exit
from ratings.headless.match_log import MatchLog
from ratings.management.commands.run_tournament import Command
from tests.arena.llm.vendor_server import KEYS, vendor_server
from tests.ratings.headless.runs import Run, lines_of, run, write_config

pytestmark = pytest.mark.django_db(transaction=True)
SHARED = Path(os.environ.get("TILTYARD_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
WIRES = """\
task_set: samples.jsonl
providers:
  claude: {{kind: anthropic, key_variable: TILTYARD_KEY_ANTHROPIC, base_url: "{anthropic}"}}
  gemini: {{kind: gemini, key_variable: TILTYARD_KEY_GEMINI, base_url: "{gemini}"}}
candidates:
  - {{provider: claude, model_id: sonnet-1, max_tokens: 200}}
  - {{provider: gemini, model_id: flash-2}}
judges:
  - {{provider: claude, model_id: judge-0, max_tokens: 200}}
  - {{provider: gemini, model_id: judge-0}}
max_matches: 4
"""
JUDGES = frozenset({"magistrate-1", "scrivener-4"})


def files_of(result: Run) -> dict[str, Path]:
    return {name: Path(path) for name, path in result.json["files"].items()}


def calls(server: DemoServer) -> dict[str, Any]:
    found: Any = server.stats()["calls"]
    return {model: dict(counts) for model, counts in found.items()}


@contextmanager
def interrupted_when(ready: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C, as the terminal would send it, once something is so."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if ready():
                os.kill(os.getpid(), signal.SIGINT)
                break
        connection.close()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def interrupted_after(server: DemoServer, *, calls: int) -> AbstractContextManager[None]:
    return interrupted_when(lambda: int(str(server.stats()["total_calls"])) >= calls)


def test_a_run_leaves_log_manifest_and_board(endpoint: DemoServer, folder: Path) -> None:
    config = write_config(folder, endpoint.base_url)
    result = run(config, "--yes", "--json", out=folder / "out")
    assert result.code == 0, result.err
    assert "9 of 9 matches" in result.err
    files = files_of(result)
    matches = lines_of(files["matches"])
    assert [line["sequence"] for line in sorted(matches, key=lambda line: line["sequence"])] == list(range(1, 10))
    assert {line["model_a_id"] for line in matches} <= {"demo/lancer-large", "demo/squire-1"}
    for line in matches:
        assert line["response_a"]
        assert {vote["model"] for vote in line["judge_votes"]} == {"demo/magistrate-1", "demo/scrivener-4"}
        assert all(len(vote["verdicts"]) == 2 for vote in line["judge_votes"])
    manifest = json.loads(files["manifest"].read_text(encoding="utf-8"))
    assert manifest["counts"]["matches_total"] == 9
    assert manifest["task_set"]["named_as"] == "samples.jsonl"
    assert manifest["hosts_reached"] == [f"127.0.0.1:{endpoint.port}"]
    board = json.loads(files["board"].read_text(encoding="utf-8"))
    assert board == result.json["board"]
    assert board["ratings"][0]["model"] == "demo/lancer-large"
    assert "Lancer" in board["verdict"]
    assert board["verdict"] in result.err
    decided = sum(line["status"] == "decided" for line in matches)
    assert decided == board["run"]["comparisons"] > 0
    winner = next(line for line in matches if line["winner_id"])
    side = "a" if winner["majority_verdict"] == "A" else "b"
    assert winner["winner_id"] == winner[f"model_{side}_id"]


def test_a_run_on_other_wires(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with vendor_server() as server:
        config = folder / "tournament.yaml"
        config.write_text(
            WIRES.format(anthropic=server.base_url("anthropic"), gemini=server.base_url("gemini")), encoding="utf-8"
        )
        for wire in ("anthropic", "gemini"):
            monkeypatch.setenv(f"TILTYARD_KEY_{wire.upper()}", KEYS[wire])
        result = run(config, "--yes", "--json", out=folder / "out")
        assert server.problems == []
    assert result.code == 0, result.err
    assert [row["model"] for row in result.json["board"]["ratings"]] == ["gemini/flash-2", "claude/sonnet-1"]
    matches = lines_of(files_of(result)["matches"])
    verdicts = [verdict for line in matches for vote in line["judge_votes"] for verdict in vote["verdicts"]]
    assert {verdict["structured"] for verdict in verdicts} == {"schema"}


def test_the_address_of_a_maker_is_known_and_a_missing_limit_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILTYARD_KEY_ANTHROPIC", "sk-1")
    monkeypatch.setenv("TILTYARD_KEY_GEMINI", "sk-2")
    text = WIRES.replace(', base_url: "{anthropic}"', "").replace(', base_url: "{gemini}"', "")
    config = folder / "tournament.yaml"
    config.write_text(text.replace("sonnet-1, max_tokens: 200", "sonnet-1").format(), encoding="utf-8")
    result = run(config, out=folder)
    assert result.code == 2
    assert "candidates[0].max_tokens" in result.err
    assert "base_url" not in result.err


def test_the_second_run_finds_everything_again(endpoint: DemoServer, folder: Path) -> None:
    config = write_config(folder, endpoint.base_url)
    first = run(config, "--yes", "--json", out=folder)
    answered = Trial.objects.count()
    endpoint.reset()
    second = run(config, "--yes", "--json", out=folder)
    assert (first.code, second.code) == (0, 0)
    assert second.json["tournament_id"] != first.json["tournament_id"]
    assert set(calls(endpoint)) == JUDGES
    assert "0 answers to generate" in second.err
    assert Trial.objects.count() == answered
    assert (Team.objects.count(), Provider.objects.count(), LanguageModel.objects.count()) == (1, 1, 5)
    assert (TaskSet.objects.count(), Price.objects.count()) == (1, 5)
    boards = [[row["rating"] for row in result.json["board"]["ratings"]] for result in (first, second)]
    # Fits begin where the one before ended, so the last digits hang on how often there was one.
    assert boards[0] == pytest.approx(boards[1], abs=1e-6)


def test_without_yes_in_a_pipe_there_is_the_plan_and_no_call(endpoint: DemoServer, folder: Path) -> None:
    result = run(write_config(folder, endpoint.base_url), out=folder)
    assert result.code == 2
    assert "9 matches of 18 possible" in result.out
    assert "15 answers to generate, 0 there already; 36 judge calls" in result.out
    assert "Add --yes" in result.out
    assert not Tournament.objects.exists()
    assert endpoint.stats()["total_calls"] == 0


def test_the_budget_stops_and_a_larger_one_goes_on(endpoint: DemoServer, folder: Path) -> None:
    config = write_config(folder, endpoint.base_url, extra="budget_usd: 0.06\n")
    stopped = run(config, "--yes", "--json", out=folder)
    assert stopped.code == 3, stopped.err
    assert "--resume" in stopped.json["ending"]
    tournament_id = stopped.json["tournament_id"]
    before = len(lines_of(files_of(stopped)["matches"]))
    assert before < 9
    again = run("--resume", tournament_id, "--json", out=folder)
    assert again.code == 3
    done = run("--resume", tournament_id, "--budget", "5", "--json", out=folder)
    assert done.code == 0, done.err
    assert files_of(done) == files_of(stopped)
    ids = [line["match_id"] for line in lines_of(files_of(done)["matches"])]
    assert len(ids) == len(set(ids)) == 9


def test_judges_that_all_fail_end_with_failures(folder: Path) -> None:
    faults = Faults(always_fail=JUDGES, always_fail_status=400)
    with serve_in_thread(settings=DemoSettings.quiet().with_faults(faults)) as server:
        result = run(write_config(folder, server.base_url), "--yes", "--json", out=folder)
    assert result.code == 4
    assert result.json["status"] == "failed"
    lines = lines_of(files_of(result)["matches"])
    assert {(line["status"], line["winner"]) for line in lines} == {("inconclusive", "inconclusive")}
    assert {verdict["error_code"] for line in lines for vote in line["judge_votes"] for verdict in vote["verdicts"]}
    assert result.json["board"]["ratings"] == []


def test_answers_that_fail_end_with_failures_and_are_told(folder: Path) -> None:
    faults = Faults(always_fail=frozenset({"page-mini"}), always_fail_status=400)
    with serve_in_thread(settings=DemoSettings.quiet().with_faults(faults)) as server:
        result = run(write_config(folder, server.base_url), "--yes", "--json", out=folder)
    assert result.code == 4
    assert "answers could not be had" in result.json["ending"]
    void = [line for line in lines_of(files_of(result)["matches"]) if line["status"] == "void"]
    assert void
    for line in void:
        assert "demo/page-mini: API_ERROR: " in line["error"]
        assert line["winner"] is None


def test_resuming_a_finished_run_mends_its_log(endpoint: DemoServer, folder: Path) -> None:
    result = run(write_config(folder, endpoint.base_url), "--yes", "--json", out=folder)
    log = files_of(result)["matches"]
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    endpoint.reset()
    again = run("--resume", result.json["tournament_id"], "--json", out=folder)
    assert again.code == 0
    ids = [line["match_id"] for line in lines_of(log)]
    assert len(ids) == len(set(ids)) == 9
    assert endpoint.stats()["total_calls"] == 0


def test_a_log_that_is_being_written_is_left_alone(endpoint: DemoServer, folder: Path) -> None:
    result = run(write_config(folder, endpoint.base_url), "--yes", "--json", out=folder)
    tournament = Tournament.objects.get(public_id=result.json["tournament_id"])
    with MatchLog(files_of(result)["matches"], tournament):
        again = run("--resume", tournament.public_id, out=folder)
    assert again.code == 2
    assert "Another command writes" in again.err


def test_a_file_that_is_no_log_of_the_run_is_left_alone(endpoint: DemoServer, folder: Path) -> None:
    result = run(write_config(folder, endpoint.base_url), "--yes", "--json", out=folder)
    log = files_of(result)["matches"]
    log.write_text('{"mine": 1}\n', encoding="utf-8")
    again = run("--resume", result.json["tournament_id"], out=folder)
    assert again.code == 2
    assert log.read_text(encoding="utf-8") == '{"mine": 1}\n'


def test_recorded_samples(endpoint: DemoServer, folder: Path) -> None:
    upload = SHARED / "data" / "juryarena_uploads" / "basic20-jmtbench-en.jsonl"
    if not upload.exists():
        pytest.skip(f"{upload} is not there")
    config = write_config(folder, endpoint.base_url, **{"task_set: samples.jsonl": f"task_set: {upload}"})
    result = run(config, "--yes", "--json", out=folder)
    assert result.code == 0, result.err
    assert TaskSet.objects.get().sample_count == 20
    assert len(lines_of(files_of(result)["matches"])) == 9


def test_an_interrupt_pauses_and_a_resume_goes_on(folder: Path) -> None:
    with serve_in_thread(settings=DemoSettings.quiet(latency_ms=100)) as server:
        config = write_config(folder, server.base_url, **{"max_concurrency: 16": "max_concurrency: 2"})
        with interrupted_after(server, calls=4):
            stopped = run(config, "--yes", "--json", out=folder)
        assert stopped.code == 130, stopped.err
        assert f"--resume {stopped.json['tournament_id']}" in stopped.json["ending"]
        assert stopped.json["status"] == "paused"
        # What was in flight was waited for, so nothing is called twice.
        done = run("--resume", stopped.json["tournament_id"], "--json", out=folder)
        assert done.code == 0, done.err
        assert server.stats()["repeated_completions"] == 0
    ids = [line["match_id"] for line in lines_of(files_of(done)["matches"])]
    assert len(ids) == len(set(ids)) == 9


def test_beside_a_worker_the_command_only_watches(endpoint: DemoServer, folder: Path) -> None:
    config = write_config(folder, endpoint.base_url)
    lock = (Path(settings.DATA_DIR) / "worker.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with interrupted_when(Tournament.objects.filter(status="running").exists):
            watched = run(config, "--yes", "--json", out=folder)
    finally:
        lock.close()
    assert watched.code == 130
    assert "Another process works on this data" in watched.err
    assert endpoint.stats()["total_calls"] == 0
    assert not Trial.objects.exclude(dispatched_at=None).exists()


# Before anything starts -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("samples.jsonl", "nothing.jsonl", "tournament.yaml line 2: task_set: there is no file, folder or archive at"),
        ("samples.jsonl", "starter:none", "tournament.yaml line 2: task_set: there is no such set to start with"),
        (
            "seed: 3",
            "seed: 3\ncategories: [odd, rare]",
            "line 15: categories[1]: the task set has no category rare; there are even, odd",
        ),
        (
            "model_id: squire-1",
            "provider: gone, model_id: squire-1",
            "line 7: candidates[1].provider: there is no provider gone",
        ),
        ("model_id: squire-1", "parameters: {stream: false}, model_id: squire-1", "line 7: candidates[1].parameters: "),
        ("seed: 3", "jury: {quorum: 3}", "The quorum is 3 votes, and there are 2 judges"),
        ("http://127", "http://me@127", "line 4: providers.demo.base_url: The base URL must not contain a user name"),
        ("seed: 3", "seed: three", "line 14: seed: must be a whole number"),
    ],
)
def test_what_keeps_a_run_from_starting(endpoint: DemoServer, folder: Path, old: str, new: str, expected: str) -> None:
    result = run(write_config(folder, endpoint.base_url, **{old: new}), "--yes", out=folder)
    assert result.code == 2
    assert expected in result.err
    assert not Tournament.objects.exists()
    assert not LanguageModel.objects.exists() or "quorum" in expected


def test_problems_of_the_database_come_together(endpoint: DemoServer, folder: Path) -> None:
    changes = {"samples.jsonl": "nothing.jsonl", "model_id: squire-1": "provider: gone, model_id: squire-1"}
    result = run(write_config(folder, endpoint.base_url, **changes), "--yes", out=folder)
    assert "task_set: there is no file" in result.err
    assert "there is no provider gone" in result.err
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "Give either a configuration or --resume ID"),
        (("nowhere.yaml",), "nowhere.yaml cannot be read: No such file or directory."),
        (("--resume", "nobody"), "There is no tournament with the id nobody."),
    ],
)
def test_wrong_calls(arguments: tuple[str, ...], expected: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert expected in result.err


def test_several_teams_need_a_name(endpoint: DemoServer, folder: Path) -> None:
    for name in ("East", "West"):
        Team.objects.create(name=name)
    config = write_config(folder, endpoint.base_url)
    assert "say which by --team: East, West" in run(config, "--yes", out=folder).err
    assert "No team has the name or id North" in run(config, "--team", "North", "--yes", out=folder).err
    assert run(config, "--team", "West", out=folder).code == 2
    assert LanguageModel.objects.filter(team__name="West").count() == 5


def test_the_exit_codes_are_in_the_help() -> None:
    told = Command().create_parser("manage.py", "run_tournament").format_help()
    for code in Exit:
        assert f"\n  {int(code)} " in told
