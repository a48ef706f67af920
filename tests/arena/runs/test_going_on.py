"""Tournaments that go on, retries and other juries, under a real embedded worker against the demo endpoint."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from arena.judging.protocol import AUDITED, PRESETS
from arena.llm.demo.settings import DemoSettings, Faults
from arena.manifest import manifest_of
from arena.models import (
    AuditLog,
    Ballot,
    Call,
    Decision,
    Jury,
    Match,
    Sample,
    TaskSet,
    Tournament,
    Verdict,
    make_public_id,
)
from arena.selectors.extensions import Extension, plan_of_extension
from arena.selectors.rejudging import RejudgeSpec, plan_of_rejudge
from arena.selectors.retries import retryable_of
from arena.services.extensions import extend_tournament
from arena.services.rejudges import start_rejudge
from arena.services.retries import retry_rejudge, retry_tournament
from arena.services.tallies import recount
from arena.services.wire import forget_context
from tests.arena.arena_world import ArenaWorld, decisions_of, make_arena_world, play, tally, wait_for
from tests.arena.played import schedule_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
Starter = Callable[..., Any]
Status = Tournament.Status


def next_version(world: ArenaWorld, more: int) -> TaskSet:
    """The same samples in rows of their own, and some new ones."""
    old = world.task_set
    new = TaskSet.objects.create(team=world.team, name=old.name, lineage=old.lineage, version=2, content_hash="1" * 64)
    rows = list(old.samples.order_by("position"))
    for position, row in enumerate(rows):
        row.pk, row.task_set, row.position, row.public_id = None, new, position, make_public_id()
    asked = [[{"role": "user", "content": f"Summarise the note number {number}."}] for number in range(more)]
    extra = [
        Sample(task_set=new, position=len(rows) + n, key=f"new-{n}", messages=messages, input_hash=f"{n}" * 64,
               content_hash=f"{n}" * 64)
        for n, messages in enumerate(asked)
    ]  # fmt: skip
    Sample.objects.bulk_create([*rows, *extra])
    return new


def calls_by_model(server: Any) -> dict[str, int]:
    return {model: sum(counts.values()) for model, counts in server.stats()["calls"].items()}


def mend(world: ArenaWorld, base_url: str) -> None:
    """The provider is at another address, as if what was wrong with it were repaired."""
    world.provider.base_url = base_url
    world.provider.save()
    forget_context()


def rejudged(jury: Jury) -> Jury:
    until(lambda: not Jury.objects.get(pk=jury.pk).is_active, "the rejudge ends")
    return Jury.objects.get(pk=jury.pk)


@pytest.mark.parametrize("pairing", ["round_robin", "random", "glicko2", "elo"])
def test_a_finished_tournament_goes_on_and_repeats_no_call(
    demo_endpoint: Starter, worker: Starter, pairing: str
) -> None:
    worker()
    world = make_arena_world(demo_endpoint().base_url, samples=4)
    tournament = play(world.create(pairing=pairing, max_matches=6))
    before, decided = schedule_of(tournament), decisions_of(tournament)
    calls = Call.objects.filter(tournament=tournament, status=Call.Status.OK).count()
    task_set = next_version(world, more=2)
    wanted = Extension(max_matches=14, candidates=[world.models["page-mini"]], task_set=task_set)
    plan = plan_of_extension(tournament, wanted)
    assert (plan.problems, plan.matches) == ([], 8)
    extend_tournament(tournament=tournament, extension=wanted)
    wait_for(tournament)
    assert tournament.status == Status.FINISHED
    after = schedule_of(tournament)
    assert len(after) == 14
    assert after[:6] == before
    assert decisions_of(tournament)[: len(decided)] == decided
    # Nobody meets twice on what is the same input in both versions.
    cells = list(tournament.matches.values_list("first", "second", "sample__input_hash"))
    assert len(set(cells)) == 14
    assert tournament.candidates.get(full_id__contains="page-mini").matches_as_second.exists()
    # One call for each answer and verdict there is: none was made twice.
    made = Call.objects.filter(tournament=tournament, status=Call.Status.OK)
    assert made.count() > calls
    assert made.count() == tournament.trial_requests.count() + tournament.verdicts.count()
    [record] = manifest_of(tournament)["settings"]["extensions"]
    assert (record["after_sequence"], record["max_matches"], record["task_set"]) == (6, 14, "Prompts v2")
    entry = AuditLog.objects.get(action="tournament.extend")
    assert (entry.old["max_matches"], entry.new["max_matches"]) == (6, 14)


def test_what_failed_is_called_again_and_nothing_else(demo_endpoint: Starter, worker: Starter) -> None:
    broken = frozenset({"usher-2", "squire-1"})
    server = demo_endpoint(DemoSettings.quiet(2).with_faults(Faults(always_fail=broken, always_fail_status=400)))
    world = make_arena_world(server.base_url)
    worker()
    tournament = play(world.create(max_matches=6))
    found = retryable_of(tournament)
    assert found.answers
    assert found.verdicts
    first = Match.objects.filter(tournament=tournament, status=Match.Status.INCONCLUSIVE).earliest("sequence")
    [old] = first.decisions.all()
    good = Call.objects.filter(tournament=tournament, status=Call.Status.OK).count()
    mend(world, demo_endpoint().base_url)
    retry_tournament(tournament=tournament)
    wait_for(tournament)
    assert tournament.status == Status.FINISHED
    assert set(tally(tournament)) <= {Match.Status.DECIDED, Match.Status.INCONCLUSIVE}
    old.refresh_from_db()
    assert old.superseded_at is not None
    assert (old.outcome, old.counts["failed"]) == ("inconclusive", 1)
    assert first.decisions.filter(superseded_at=None).get().counts["failed"] == 0
    assert Verdict.objects.filter(match=first, ballot__judge__full_id__contains="usher-2").first().earlier
    # What had succeeded was not asked again.
    assert not Verdict.objects.filter(match=first, ballot__judge__full_id__contains="magistrate").exclude(earlier=[])
    ok = Call.objects.filter(tournament=tournament, status=Call.Status.OK)
    succeeded = tournament.trial_requests.filter(trial__status="succeeded").count() + tournament.verdicts.count()
    assert good < ok.count() == succeeded
    assert not retryable_of(tournament).anything
    # Void matches and the decisions before are counted no more.
    assert recount(tournament.juries.get(primary=True)) == 0


def test_another_jury_calls_judges_only_and_decides_for_itself(demo_endpoint: Starter, worker: Starter) -> None:
    server = demo_endpoint()
    world = make_arena_world(server.base_url)
    worker()
    tournament = play(world.create(max_matches=6))
    decided, before = decisions_of(tournament), calls_by_model(server)
    manifest = manifest_of(tournament)
    spec = RejudgeSpec(
        tournament=tournament,
        name="Majority of one",
        judges=[world.models["scrivener-4"]],
        protocol=PRESETS["majority"].with_overrides({"quorum": 1}),
        budget_usd=Decimal(5),
    )
    plan = plan_of_rejudge(spec)
    assert (plan.problems, plan.matches, plan.judge_calls, plan.trials_to_generate) == ([], 6, 6, 0)
    jury = rejudged(start_rejudge(spec=spec, actor=None))
    assert jury.status == Jury.Status.FINISHED
    now = calls_by_model(server)
    assert {model: n - before.get(model, 0) for model, n in now.items() if n != before.get(model, 0)} == {
        "scrivener-4": 6
    }
    assert Decision.objects.current().filter(jury=jury).count() == 6
    assert recount(jury) == recount(tournament.juries.get(primary=True)) == 0
    assert jury.reserved_usd == 0
    assert 0 < jury.spent_usd <= plan.worst_usd
    # The tournament is what it was.
    tournament.refresh_from_db()
    primary = tournament.juries.get(primary=True)
    assert tournament.status == Status.FINISHED
    assert [row for row in decisions_of(tournament) if row in decided] == decided
    assert Decision.objects.filter(jury=primary).count() == 6
    assert manifest_of(tournament) == manifest


def test_two_runs_of_the_same_answers_have_the_same_hashes(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    one, other = (manifest_of(play(arena_world.create(max_matches=3))) for _ in range(2))
    assert other["counts"]["trials_reused"] == other["counts"]["trials"]["succeeded"]
    for name in ("config_sha256", "prompts_sha256", "hosts", "hosts_reached"):
        assert one[name] == other[name]


def test_a_budget_pauses_a_rejudge_and_not_the_tournament(arena_world: ArenaWorld, worker: Starter) -> None:
    worker()
    tournament = play(arena_world.create())
    judges = [arena_world.models[name] for name in ("magistrate-1", "scrivener-4")]
    spec = RejudgeSpec(tournament=tournament, name="Poor", judges=judges, protocol=AUDITED, budget_usd=Decimal("0.02"))
    jury = start_rejudge(spec=spec, actor=None)
    until(lambda: Jury.objects.get(pk=jury.pk).status == Jury.Status.PAUSED, "the budget is reached")
    until(lambda: not Verdict.objects.filter(rejudge=jury, status="running").exists(), "the calls in flight end")
    jury.refresh_from_db()
    assert jury.reason == Tournament.Reason.BUDGET
    assert jury.spent_usd + jury.reserved_usd <= Decimal("0.02")
    tournament.refresh_from_db()
    assert (tournament.status, tournament.reserved_usd) == (Status.FINISHED, 0)


def test_a_rejudge_whose_judges_all_fail_ranks_nobody_and_can_be_retried(
    demo_endpoint: Starter, worker: Starter
) -> None:
    faults = Faults(always_fail=frozenset({"scrivener-4", "usher-2"}), always_fail_status=400)
    world = make_arena_world(demo_endpoint(DemoSettings.quiet(2).with_faults(faults)).base_url)
    worker()
    lenient = AUDITED.with_overrides({"quorum": 1})
    tournament = play(world.create(judges=["magistrate-1"], protocol=lenient))
    judges = [world.models["scrivener-4"], world.models["usher-2"]]
    spec = RejudgeSpec(tournament=tournament, name="Broken", judges=judges, protocol=lenient)
    jury = rejudged(start_rejudge(spec=spec, actor=None))
    assert (jury.status, jury.reason) == (Jury.Status.FAILED, Tournament.Reason.NO_VERDICTS)
    assert "no ranking" in jury.reason_text
    assert not Decision.objects.rated().filter(jury=jury).exists()
    mend(world, demo_endpoint().base_url)
    retry_rejudge(jury=jury)
    jury = rejudged(jury)
    assert jury.status == Jury.Status.FINISHED
    assert not Ballot.objects.filter(jury=jury, status=Ballot.Status.FAILED).exists()
    assert Decision.objects.filter(jury=jury).exclude(superseded_at=None).count() == 6
    assert recount(jury) == 0
