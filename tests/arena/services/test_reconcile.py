"""The reconciler goes on past what it cannot deal with; a stop takes nothing from a tournament that starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from arena.models import CallStatus, Match, Tournament, Trial
from arena.selectors.cells import known_trials
from arena.services import claims, matches, reconcile, tournaments, wanted
from tests.arena.arena_world import make_arena_world
from tests.arena.call_world import NOWHERE, claim_one, lose, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]


def breaking_for(broken_id: int, action: Callable[..., None]) -> Callable[..., None]:
    def act(pk: int, *more: object) -> None:
        if pk == broken_id:
            raise LookupError("a broken row")
        action(pk, *more)

    return act


def test_one_match_that_breaks_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    tournament = started()
    Trial.objects.update(status=CallStatus.SUCCEEDED, answer="An answer.")
    first, *others = tournament.matches.order_by("pk")
    monkeypatch.setattr(matches, "begin_judging", breaking_for(first.pk, matches.begin_judging))
    reconcile.reconcile()
    assert set(tournament.matches.exclude(pk=first.pk).values_list("status", flat=True)) == {Match.Status.JUDGING}
    first.refresh_from_db()
    assert (first.status, len(others)) == (Match.Status.WAITING, 5)
    assert f"could not deal with match {first.pk}" in caplog.text


def test_one_tournament_that_breaks_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, other = (started(make_arena_world(NOWHERE, name=name)) for name in ("One", "Other"))
    Trial.objects.update(status=CallStatus.SUCCEEDED, answer="An answer.")
    advance = breaking_for(broken.pk, reconcile.advance_tournament)
    monkeypatch.setattr(reconcile, "advance_tournament", advance)
    reconcile.reconcile()
    assert set(broken.matches.values_list("status", flat=True)) == {Match.Status.WAITING}
    assert set(other.matches.values_list("status", flat=True)) == {Match.Status.JUDGING}


def test_one_lost_row_that_breaks_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = trials_of(started())
    for trial in (first, second):
        claim_one(trial)
        lose(trial)
    free_lost = claims.free_lost

    def breaking(row: Any, now: Any) -> bool:
        if row.pk == first.pk:
            raise LookupError("a broken row")
        return free_lost(row, now)

    monkeypatch.setattr(claims, "free_lost", breaking)
    reconcile.free_dead_claims()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == (CallStatus.RUNNING, CallStatus.QUEUED)


def test_only_one_reconciles_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    monkeypatch.setattr(reconcile, "reconcile", lambda: turns.append(1))
    reconcile.reconcile_in_turn()
    reconcile.reconcile_in_turn()
    assert turns == [1]


# A stop beside a start ------------------------------------------------------------------------------------------
def two_of_the_same_trials() -> tuple[Tournament, Tournament]:
    world = make_arena_world(NOWHERE)
    return started(world), world.create()


def start_and_stop(coming: Tournament, going: Tournament) -> list[Callable[[], None]]:
    return [
        partial(tournaments.start_tournament, tournament=coming),
        partial(tournaments.stop_tournament, tournament=going),
    ]


def assert_untouched(tournament: Tournament) -> None:
    tournament.refresh_from_db()
    assert tournament.status == Tournament.Status.RUNNING
    wanted = trials_of(tournament)
    assert len(wanted) > 3
    assert {trial.status for trial in wanted} == {CallStatus.QUEUED}
    needed = {pk for pair in tournament.matches.values_list("first_trial", "second_trial") for pk in pair}
    assert needed == {trial.pk for trial in wanted}


@pytest.mark.parametrize("first", ["start", "stop"])
def test_one_after_the_other(first: str) -> None:
    going, coming = two_of_the_same_trials()
    actions = start_and_stop(coming, going)
    for action in actions if first == "start" else actions[::-1]:
        action()
    assert_untouched(coming)


@pytest.mark.parametrize("first", ["start", "stop"])
def test_one_while_the_other_is_not_committed(first: str) -> None:
    going, coming = two_of_the_same_trials()
    actions = start_and_stop(coming, going)
    early, late = actions if first == "start" else actions[::-1]
    done, commit = threading.Event(), threading.Event()

    def act_early() -> None:
        with transaction.atomic():
            early()
            done.set()
            commit.wait(60)
        connection.close()

    def act_late() -> None:
        late()
        connection.close()

    threads = [threading.Thread(target=act_early), threading.Thread(target=act_late)]
    threads[0].start()
    assert done.wait(60)
    threads[1].start()
    threads[1].join(0.3)
    # What both want is locked, so the second waits for the first.
    assert threads[1].is_alive()
    commit.set()
    for thread in threads:
        thread.join(10)
    assert_untouched(coming)


def test_trials_that_end_between_two_looks_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    going, coming = two_of_the_same_trials()
    looks: list[bool] = []

    def look(team_id: int, cells: Any, *, lock: bool = False) -> Any:
        looks.append(lock)
        if len(looks) == 1:
            # Not committed yet.
            return {}
        if len(looks) == 2:
            Trial.objects.filter(requests__tournament=going).update(status=CallStatus.WITHDRAWN)
        return known_trials(team_id, cells, lock=lock)

    monkeypatch.setattr(wanted, "known_trials", look)
    tournaments.start_tournament(tournament=coming)
    assert looks == [True, True, True]
    assert_untouched(coming)
    assert not {trial.pk for trial in trials_of(going)} & {trial.pk for trial in trials_of(coming)}


def test_a_call_that_comes_back_after_the_stop_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was in flight when the tournament was stopped, and what it brought asks for another try."""
    tournament = started()
    late, *others = trials_of(tournament)
    shared = started(make_arena_world(NOWHERE, name="Other"))
    Trial.objects.filter(pk=late.pk).update(status=CallStatus.RUNNING)
    tournaments.stop_tournament(tournament=tournament)
    assert {trial.status for trial in trials_of(tournament)} == {CallStatus.RUNNING, CallStatus.WITHDRAWN}
    assert reconcile.stopped_with_calls() == []
    Trial.objects.filter(pk=late.pk).update(status=CallStatus.QUEUED)
    assert reconcile.stopped_with_calls() == [tournament.pk]
    reconcile.reconcile()
    assert {trial.status for trial in trials_of(tournament)} == {CallStatus.WITHDRAWN}
    assert {trial.status for trial in trials_of(shared)} == {CallStatus.QUEUED}
    assert len(others) > 1


def test_a_draft_whose_model_was_replaced_does_not_start() -> None:
    world = make_arena_world(NOWHERE)
    tournament = world.create()
    candidate = tournament.candidates.select_related("language_model").earliest("position")
    candidate.language_model.enabled = False
    candidate.language_model.save(update_fields=["enabled"])
    with pytest.raises(tournaments.TournamentError) as refused:
        tournaments.start_tournament(tournament=tournament)
    assert [problem for problem in refused.value.problems if candidate.language_model.full_id in problem]
    tournament.refresh_from_db()
    assert tournament.status == Tournament.Status.DRAFT
    assert trials_of(tournament) == []
