"""A candidate that keeps failing sits out, the same at any concurrency, and comes back when it answers."""

from __future__ import annotations

from typing import Any

import pytest

from arena.judging.protocol import MAJORITY
from arena.models import BenchProbe, CallStatus, Candidate, Match, Tournament, Trial
from arena.services import benching, reconcile, steps, tournaments
from tests.arena.arena_world import ArenaWorld, decisions_of, make_arena_world
from tests.arena.call_world import NOWHERE
from tests.arena.played import always, play_rows, schedule_of, sometimes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_process")]
FOUR = ["lancer-large", "squire-1", "lancer-small", "page-mini"]
DEAD = "page-mini"


@pytest.fixture
def fresh_process() -> Any:
    from tests.arena.call_world import forget_process

    forget_process()
    yield
    forget_process()


def begin(name: str = "Yard", **changes: Any) -> Tournament:
    world: ArenaWorld = make_arena_world(NOWHERE, samples=20, name=name)
    values = {"candidates": FOUR, "judges": ["magistrate-1"], "protocol": MAJORITY, "max_matches": 30, "step_size": 6}
    tournament = world.create(**{**values, **changes})
    tournaments.start_tournament(tournament=tournament)
    return tournament


def candidate(tournament: Tournament, model: str = DEAD) -> Candidate:
    return tournament.candidates.get(snapshot__model_id=model)


def matches_with(tournament: Tournament, model: str = DEAD) -> list[tuple[int, str]]:
    return [
        (match.sequence, match.status)
        for match in tournament.matches.select_related("first", "second").order_by("sequence")
        if model in {match.first.snapshot["model_id"], match.second.snapshot["model_id"]}
    ]


@pytest.mark.parametrize("pairing", ["round_robin", "glicko2", "elo"])
def test_the_same_answers_give_the_same_tournament_in_any_order(pairing: str) -> None:
    runs = []
    for in_flight in (1, 8, 32):
        tournament = begin(f"Yard {in_flight}", pairing=pairing)
        play_rows(tournament, in_flight=in_flight, fails=sometimes(0.7, DEAD))
        assert tournament.status == Tournament.Status.FINISHED
        runs.append((schedule_of(tournament), decisions_of(tournament)))
    assert runs[0] == runs[1] == runs[2]
    # It is worth comparing: the candidate was benched at some time.
    assert Match.Status.WITHDRAWN in {row[-1] for row in runs[0][0]}


@pytest.mark.parametrize("pairing", ["round_robin", "random", "glicko2", "elo"])
def test_a_dead_candidate_is_benched_by_its_third_failure(pairing: str) -> None:
    tournament = play_rows(begin(pairing=pairing), in_flight=4, fails=always(DEAD))
    dead = matches_with(tournament)
    assert [status for _, status in dead[:3]] == [Match.Status.VOID] * 3
    assert {status for _, status in dead[3:]} <= {Match.Status.WITHDRAWN}
    assert candidate(tournament).benched
    assert tournament.status == Tournament.Status.FINISHED
    if tournament.follows_results:
        # Others take its place in the schedule.
        assert tournament.matches.exclude(status=Match.Status.WITHDRAWN).count() == 30
    # It was asked for one answer a step, and never for a match.
    probes = BenchProbe.objects.filter(candidate=candidate(tournament))
    assert probes.count() >= 2
    assert probes.count() == probes.values("step").distinct().count()


def test_a_dead_candidate_takes_under_a_twentieth_of_the_schedule() -> None:
    for pairing in ("round_robin", "glicko2"):
        tournament = begin(f"Yard {pairing}", pairing=pairing, max_matches=90, step_size=10)
        play_rows(tournament, in_flight=16, fails=always(DEAD))
        taken = sum(status != Match.Status.WITHDRAWN for _, status in matches_with(tournament))
        # Beside that, calls for answers that nobody is compared by.
        asked = Trial.objects.filter(requests__tournament=tournament, language_model__model_id=DEAD)
        assert taken == 3
        assert taken / 90 < 0.05
        assert (
            asked.exclude(status=CallStatus.WITHDRAWN).count()
            < 0.2 * Trial.objects.filter(requests__tournament=tournament).count()
        )


@pytest.mark.parametrize("pairing", ["round_robin", "glicko2"])
def test_it_comes_back_two_steps_after_the_one_in_which_it_answered(pairing: str) -> None:
    tournament = begin(pairing=pairing, max_matches=48)
    state = {"dead": True}

    def fails(model: str, _: str) -> str:
        if BenchProbe.objects.exists():
            state["dead"] = False
        return "API_ERROR" if model == DEAD and state["dead"] else ""

    play_rows(tournament, in_flight=1, fails=fails)
    probe = BenchProbe.objects.select_related("step").get()
    decided = [
        match.step.number
        for match in tournament.matches.decided().select_related("step", "first", "second")
        if DEAD in {match.first.snapshot["model_id"], match.second.snapshot["model_id"]}
    ]
    assert min(decided) == probe.step.number + 2
    assert not candidate(tournament).benched
    assert tournament.status == Tournament.Status.FINISHED


def test_what_nobody_needs_any_more_is_not_called_for() -> None:
    tournament = begin()
    play_rows(tournament, in_flight=1, fails=always(DEAD))
    own = Trial.objects.filter(requests__tournament=tournament, language_model__model_id=DEAD)
    assert own.filter(status=CallStatus.WITHDRAWN).exists()
    assert not own.filter(status=CallStatus.QUEUED).exists()
    failed = own.filter(status=CallStatus.FAILED).count()
    assert failed == 3 + BenchProbe.objects.count()


def test_what_a_killed_worker_left_is_made_up_for() -> None:
    tournament = begin()
    # Three answers failed, and the worker died before it told anybody.
    first = [sequence for sequence, _ in matches_with(tournament)[:3]]
    for match in tournament.matches.filter(sequence__in=first):
        side = match.first_trial if match.first.snapshot["model_id"] == DEAD else match.second_trial
        Trial.objects.filter(pk=side.pk).update(status=CallStatus.FAILED, skip_code="API_ERROR")
    for _ in range(2):
        reconcile.advance_tournament(tournament.pk)
        assert {status for _, status in matches_with(tournament)[3:]} == {Match.Status.WITHDRAWN}
        assert candidate(tournament).benched


def test_a_step_that_was_not_closed_is_closed_and_the_next_planned_once() -> None:
    tournament = begin(pairing="glicko2")
    Match.objects.filter(step__number=1).update(status=Match.Status.INCONCLUSIVE)
    assert tournament.steps.count() == 2
    for _ in range(2):
        reconcile.advance_tournament(tournament.pk)
        assert list(tournament.steps.values_list("status", flat=True)) == ["complete", "planned", "planned"]
        assert tournament.matches.count() == 18


def test_steps_close_in_their_order() -> None:
    tournament = begin()
    first, second, *_ = tournament.steps.all()
    Match.objects.filter(step=second).update(status=Match.Status.INCONCLUSIVE)
    steps.complete_when_done(second.pk)
    second.refresh_from_db()
    assert second.status == "planned"
    Match.objects.filter(step=first).update(status=Match.Status.INCONCLUSIVE)
    steps.complete_when_done(first.pk)
    assert list(tournament.steps.values_list("status", flat=True))[:3] == ["complete", "complete", "planned"]


def test_while_paused_nothing_is_planned_and_nothing_ends() -> None:
    tournament = begin(pairing="glicko2", max_matches=18)
    tournaments.pause_tournament(tournament=tournament)
    Match.objects.filter(tournament=tournament).update(status=Match.Status.INCONCLUSIVE)
    reconcile.advance_tournament(tournament.pk)
    tournament.refresh_from_db()
    assert (tournament.status, tournament.steps.count()) == (Tournament.Status.PAUSED, 2)
    tournaments.resume_tournament(tournament=tournament)
    reconcile.advance_tournament(tournament.pk)
    assert tournament.steps.count() == 3


def test_a_stop_leaves_nothing_to_plan() -> None:
    tournament = begin(pairing="glicko2")
    tournaments.stop_tournament(tournament=tournament)
    reconcile.advance_tournament(tournament.pk)
    assert set(tournament.matches.values_list("status", flat=True)) == {Match.Status.WITHDRAWN}
    assert tournament.matches.count() == 12


def test_an_exhausted_pool_ends_the_tournament() -> None:
    world = make_arena_world(NOWHERE, samples=2)
    tournament = world.create(pairing="glicko2", max_matches=50, step_size=4)
    tournaments.start_tournament(tournament=tournament)
    play_rows(tournament, in_flight=4)
    assert (tournament.status, tournament.reason) == (Tournament.Status.FINISHED, Tournament.Reason.EXHAUSTED)
    assert tournament.matches.count() == 6


def test_the_standings_of_complete_steps_are_those_of_a_fold_over_all_matches() -> None:
    from arena.judging.bench import Standing, review

    tournament = begin()
    play_rows(tournament, in_flight=8, fails=always(DEAD, code="TIMEOUT"))
    rows = list(benching._rows(tournament.matches.all()))
    whole = review({one.pk: Standing() for one in tournament.candidates.all()}, rows)
    dead = candidate(tournament)
    assert whole.standings[dead.pk].benched_after == dead.benched_after == matches_with(tournament)[2][0]
    assert dead.counted_steps == tournament.steps.count()
