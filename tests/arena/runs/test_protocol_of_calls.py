"""Runs under a real embedded worker against the demo endpoint over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from arena.llm.demo.settings import DemoSettings, Faults
from arena.models import Ballot, Call, CallStatus, Match, Provider, Tournament, Trial, TrialRequest, Verdict
from arena.services import tournaments, trials
from arena.services.attempts import OpenTransaction
from arena.services.tallies import recount
from tests.arena.arena_world import ArenaWorld, decisions_of, make_arena_world, play, seats_of, tally, wait_for
from tests.arena.played import schedule_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
Starter = Callable[..., Any]
Status = Tournament.Status


def start_without_sending(world: ArenaWorld, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Tournament:
    tournament = world.create(**changes)
    with monkeypatch.context() as patch:
        patch.setattr("arena.dispatch.current_app.send_task", lambda *_a, **_k: None)
        tournaments.start_tournament(tournament=tournament)
    return tournament


def nothing_runs() -> bool:
    return not any(model.objects.filter(status=CallStatus.RUNNING).exists() for model in (Trial, Verdict))


def test_twelve_claims_of_one_trial_make_one_call(demo_endpoint: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    server = demo_endpoint(DemoSettings.quiet(50))
    world = make_arena_world(server.base_url, limit=64)
    tournament = start_without_sending(world, monkeypatch)
    trial = Trial.objects.earliest("pk")
    monkeypatch.setattr("arena.dispatch.current_app.send_task", lambda *_a, **_k: None)
    barrier = threading.Barrier(12)

    def run() -> None:
        barrier.wait()
        trials.run_trial(trial.pk, tournament.pk)
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trial.refresh_from_db()
    assert trial.status == CallStatus.SUCCEEDED
    assert server.stats()["total_calls"] == 1
    assert Call.objects.filter(trial=trial).count() == 1


def test_no_call_leaves_inside_a_transaction(arena_world: ArenaWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = start_without_sending(arena_world, monkeypatch)
    trial = Trial.objects.earliest("pk")
    with pytest.raises(OpenTransaction), transaction.atomic():
        trials.run_trial(trial.pk, tournament.pk)
    assert not Call.objects.exists()


def test_a_tournament_runs_to_its_end(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    tournament = play(arena_world.create(max_matches=9))
    assert tournament.status == Status.FINISHED
    assert set(tally(tournament)) <= {Match.Status.DECIDED, Match.Status.INCONCLUSIVE}
    assert tally(tournament)[Match.Status.DECIDED] >= 3
    assert tournament.steps.count() == 3
    # What was counted in the transactions of the decisions is what the rows say.
    jury = tournament.juries.get()
    counted = {row.candidate_id: row for row in jury.tallies.all()}
    assert sum(row.decided for row in counted.values()) == 2 * tally(tournament)[Match.Status.DECIDED]
    assert recount(jury) == 0
    # Both orders of both judges, and every call on the books with its cost.
    assert tournament.verdicts.count() == 9 * 4
    calls = Call.objects.filter(tournament=tournament, status=Call.Status.OK)
    assert calls.count() == tournament.verdicts.count() + tournament.trial_requests.count()
    assert not calls.filter(cost_usd=None).exists()


def test_answers_are_generated_once_and_reused(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    play(arena_world.create(max_matches=9))
    second = play(arena_world.create(max_matches=9))
    assert second.status == Status.FINISHED
    assert not Call.objects.filter(tournament=second, purpose=Call.Purpose.TRIAL).exists()
    assert not TrialRequest.objects.filter(tournament=second, cached=False).exists()


def test_a_judge_is_not_called_on_its_own_matches(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    tournament = play(arena_world.create(judges=["magistrate-1", "usher-2", "lancer-large"]))
    own = Ballot.objects.filter(match__tournament=tournament, judge__snapshot__model_id="lancer-large")
    for ballot in own.select_related("match__first", "match__second"):
        contestants = {ballot.match.first.snapshot["model_id"], ballot.match.second.snapshot["model_id"]}
        assert (ballot.status == Ballot.Status.EXCLUDED) == ("lancer-large" in contestants)
        assert ballot.verdicts.exists() == ("lancer-large" not in contestants)
    assert own.filter(status=Ballot.Status.EXCLUDED).exists()


@pytest.mark.parametrize("share", [0.34])
def test_rate_limits_change_no_decision(demo_endpoint: Starter, worker: Starter, share: float) -> None:
    worker(threads=16)
    calm = play(make_arena_world(demo_endpoint().base_url).create(max_matches=9))
    faults = Faults(rate_limit_share=share, retry_after_s=(0, 1))
    pressed_server = demo_endpoint(DemoSettings.quiet(2).with_faults(faults))
    pressed = play(make_arena_world(pressed_server.base_url, name="Pressed").create(max_matches=9))
    assert pressed_server.stats()["statuses"]["429"] > 10
    assert pressed.status == Status.FINISHED
    assert decisions_of(pressed) == decisions_of(calm)
    # A wait is not a failure.
    assert not Verdict.objects.filter(tournament=pressed, failures__gt=0).exists()
    assert Verdict.objects.filter(tournament=pressed, waits__gt=0).exists()


def test_when_every_judge_fails_nothing_is_decided(demo_endpoint: Starter, worker: Starter) -> None:
    faults = Faults(always_fail=frozenset({"magistrate-1", "usher-2"}), always_fail_status=400)
    world = make_arena_world(demo_endpoint(DemoSettings.quiet(2).with_faults(faults)).base_url)
    worker()
    tournament = play(world.create())
    assert tally(tournament) == {Match.Status.INCONCLUSIVE: 6}
    assert tournament.status == Status.FAILED
    assert tournament.reason == Tournament.Reason.NO_VERDICTS
    assert "No judge" in tournament.reason_text


def test_when_no_candidate_answers_no_match_is_judged(demo_endpoint: Starter, worker: Starter) -> None:
    faults = Faults(always_fail=frozenset({"lancer-large", "squire-1", "lancer-small"}), always_fail_status=400)
    world = make_arena_world(demo_endpoint(DemoSettings.quiet(2).with_faults(faults)).base_url)
    worker()
    tournament = play(world.create())
    # Two of three candidates were benched by their third failure, and the last two matches withdrawn.
    assert tally(tournament) == {Match.Status.VOID: 4, Match.Status.WITHDRAWN: 2}
    assert sum(row.voids for row in tournament.juries.get().tallies.all()) == 8
    assert recount(tournament.juries.get()) == 0
    assert (tournament.status, tournament.reason) == (Status.FAILED, Tournament.Reason.NO_ANSWERS)
    # Answers that only those two would have needed may be withdrawn or still under way.
    assert set(Trial.objects.filter(status=CallStatus.FAILED).values_list("skip_code", flat=True)) == {"API_ERROR"}
    assert not Trial.objects.filter(status=CallStatus.SUCCEEDED).exists()


OUTCOMES = {
    "malformed": ("failed", "INVALID_JSON"),
    "fenced": ("succeeded", ""),
    "wrong_case": ("succeeded", ""),
    "extra_keys": ("succeeded", ""),
    "empty": ("failed", "EMPTY"),
    "refusal": ("failed", "REFUSED"),
    # Ten million characters of comment are a verdict all the same; what is stored of them is cut.
    "huge": ("succeeded", ""),
}


@pytest.mark.parametrize("reply", OUTCOMES)
def test_each_kind_of_reply_has_its_outcome(demo_endpoint: Starter, worker: Starter, reply: Any) -> None:
    faults = Faults(forced_replies={"usher-2": reply}, huge_characters=10_000_000)
    world = make_arena_world(demo_endpoint(DemoSettings.quiet(2).with_faults(faults)).base_url, samples=1)
    worker(threads=4)
    tournament = play(world.create(max_matches=1, candidates=["lancer-large", "page-mini"]))
    verdicts = Verdict.objects.filter(tournament=tournament, ballot__judge__snapshot__model_id="usher-2")
    assert set(verdicts.values_list("status", "error_code")) == {OUTCOMES[reply]}
    # The one repair attempt of the audited preset was made where there was something to repair.
    expected = {"malformed": {1}, "empty": {1}}.get(reply, {0})
    assert set(verdicts.values_list("repairs", flat=True)) == expected
    assert all(len(comment) <= 4000 for comment in verdicts.values_list("comment_a", flat=True))
    others = Ballot.objects.filter(match__tournament=tournament, judge__snapshot__model_id="magistrate-1")
    assert set(others.values_list("status", flat=True)) <= {"vote", "abstained"}


@pytest.mark.parametrize("threads", [8, 32])
def test_the_same_seed_gives_the_same_tournament_at_any_concurrency(
    demo_endpoint: Starter, worker: Starter, threads: int
) -> None:
    server = demo_endpoint(DemoSettings.quiet(3))
    one_by_one = make_arena_world(server.base_url, limit=1)
    at_once = make_arena_world(server.base_url, limit=threads, name="At once")
    worker(threads=threads + 4)
    slow, fast = (play(world.create(max_matches=9, seed=7)) for world in (one_by_one, at_once))
    assert decisions_of(slow) == decisions_of(fast)
    assert seats_of(slow) == seats_of(fast)


def test_a_tournament_that_follows_results_is_the_same_at_any_concurrency(
    demo_endpoint: Starter, worker: Starter
) -> None:
    faults = Faults(always_fail=frozenset({"page-mini"}), always_fail_status=400)
    server = demo_endpoint(DemoSettings.quiet(3).with_faults(faults))
    worker(threads=36)
    four = ["lancer-large", "squire-1", "lancer-small", "page-mini"]
    runs = []
    for limit in (1, 8, 32):
        world = make_arena_world(server.base_url, limit=limit, name=f"Limit {limit}")
        tournament = play(world.create(pairing="glicko2", candidates=four, max_matches=12, seed=5))
        assert tournament.status == Status.FINISHED
        runs.append((schedule_of(tournament), decisions_of(tournament), seats_of(tournament)))
    assert runs[0] == runs[1] == runs[2]
    assert Match.Status.WITHDRAWN in {row[-1] for row in runs[0][0]}


def test_the_limit_of_calls_in_flight_holds(demo_endpoint: Starter, worker: Starter) -> None:
    server = demo_endpoint(DemoSettings.quiet(30))
    world = make_arena_world(server.base_url, limit=3)
    worker(threads=16)
    play(world.create())
    assert server.stats()["peak_in_flight"] == 3


def test_pause_sends_nothing_more_and_resume_goes_on(demo_endpoint: Starter, worker: Starter) -> None:
    server = demo_endpoint(DemoSettings.quiet(60))
    world = make_arena_world(server.base_url, limit=2)
    worker(threads=6)
    tournament = world.create()
    tournaments.start_tournament(tournament=tournament)
    until(Trial.objects.filter(status=CallStatus.SUCCEEDED).exists, "an answer is in")
    tournaments.pause_tournament(tournament=tournament)
    # What was claimed before the pause may still be on its way to the endpoint.
    until(nothing_runs, "all that was claimed is stored")
    before = server.stats()["total_calls"]
    threading.Event().wait(0.8)
    assert server.stats()["total_calls"] == before
    assert not Call.objects.filter(status=Call.Status.LATE).exists()
    tournaments.resume_tournament(tournament=tournament)
    assert wait_for(tournament).status == Status.FINISHED


def test_stop_withdraws_what_is_undecided_and_keeps_late_answers(demo_endpoint: Starter, worker: Starter) -> None:
    server = demo_endpoint(DemoSettings.quiet(300))
    world = make_arena_world(server.base_url, limit=2)
    worker(threads=6)
    tournament = world.create()
    tournaments.start_tournament(tournament=tournament)
    until(lambda: server.stats()["in_flight"] == 2, "two calls are in flight")
    tournaments.stop_tournament(tournament=tournament)
    until(lambda: Trial.objects.filter(status=CallStatus.SUCCEEDED).count() == 2, "both answers are stored")
    threading.Event().wait(0.5)
    assert tally(tournament) == {Match.Status.WITHDRAWN: 6}
    # What was paid for is kept, and the rest was never sent.
    assert Trial.objects.filter(status=CallStatus.SUCCEEDED).count() == server.stats()["total_calls"] == 2
    assert not Trial.objects.filter(status__in=[CallStatus.QUEUED, CallStatus.RUNNING]).exists()


def test_the_budget_is_a_hard_stop(arena_world: ArenaWorld, worker: Starter) -> None:
    from decimal import Decimal

    worker(threads=16)
    tournament = play(arena_world.create(budget_usd=Decimal("0.03")))
    assert (tournament.status, tournament.reason) == (Status.PAUSED, Tournament.Reason.BUDGET)

    def settled() -> bool:
        tournament.refresh_from_db()
        return nothing_runs() and not tournament.reserved_usd

    until(settled, "what was reserved is settled")
    spent = sum(Call.objects.filter(tournament=tournament).values_list("cost_usd", flat=True))
    assert tournament.spent_usd == spent <= tournament.budget_usd
    tournaments.set_budget(tournament=tournament, budget_usd=Decimal(20))
    tournaments.resume_tournament(tournament=tournament)
    assert wait_for(tournament).status == Status.FINISHED


def test_a_stand_in_is_called_once_for_a_judge_that_failed(demo_endpoint: Starter, worker: Starter) -> None:
    faults = Faults(always_fail=frozenset({"usher-2"}), always_fail_status=400)
    world = make_arena_world(demo_endpoint(DemoSettings.quiet(2).with_faults(faults)).base_url)
    worker()
    tournament = play(world.create(replacement_judges=["scrivener-4"]))
    assert tournament.status == Status.FINISHED
    stand_ins = Ballot.objects.filter(match__tournament=tournament, judge__replacement=True)
    assert stand_ins.count() == 6
    assert set(stand_ins.values_list("replaces__status", flat=True)) == {Ballot.Status.FAILED}


def test_a_missing_key_is_said_on_the_row(arena_world: ArenaWorld, worker: Starter) -> None:
    Provider.objects.filter(pk=arena_world.provider.pk).update(encrypted_key="", key_variable="TILTYARD_KEY_NOWHERE")
    worker()
    tournament = play(arena_world.create())
    assert tournament.status == Status.FAILED
    assert "TILTYARD_KEY_NOWHERE is not set" in Trial.objects.earliest("pk").error
    assert not Call.objects.exists()


def test_a_verdict_tells_which_form_of_reply_was_finally_asked_for(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    tournament = play(arena_world.create(judges=["magistrate-1", "usher-2"]))
    verdicts = Verdict.objects.filter(tournament=tournament)
    forms = set(verdicts.values_list("ballot__judge__snapshot__model_id", "structured"))
    # This endpoint takes no schema from usher-2, and is asked for plain JSON instead.
    assert forms == {("magistrate-1", "schema"), ("usher-2", "json")}


def test_the_worker_drops_what_expired(worker: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = threading.Event()
    monkeypatch.setattr("arena.services.reconcile.drop_expired", dropped.set)
    worker(threads=2)
    assert dropped.wait(60)
