"""Sending: what cannot be sent blocks no slot and costs no answer."""

from __future__ import annotations

from typing import Any

import pytest

from arena import dispatch
from arena.limits import slots
from arena.models import Provider, Tournament, Trial
from tests.arena.arena_world import make_arena_world
from tests.arena.call_world import NOWHERE, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]


class Broker:
    """Takes messages until it breaks."""

    def __init__(self, most: int = 1000) -> None:
        self.messages: list[tuple[str, list[int]]] = []
        self.most = most

    def __call__(self, task: str, *, args: list[int]) -> None:
        if len(self.messages) >= self.most:
            raise ConnectionError("the broker is away")
        self.messages.append((task, args))


@pytest.fixture
def tournament() -> Tournament:
    return started(make_arena_world(NOWHERE, limit=4))


def open_door(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> Broker:
    monkeypatch.setattr(dispatch.door, "worker_is_here", True)
    monkeypatch.setattr("arena.dispatch.current_app.send_task", broker)
    return broker


def the_provider(tournament: Tournament) -> int:
    return Provider.objects.values_list("pk", flat=True).get(team=tournament.team)


def test_as_many_rows_are_sent_as_there_are_slots(tournament: Tournament, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = open_door(monkeypatch, Broker())
    dispatch.fill(the_provider(tournament))
    due = trials_of(tournament)[:4]
    assert broker.messages == [("arena.tasks.run_trial_task", [trial.pk, tournament.pk]) for trial in due]
    assert slots().held(the_provider(tournament)) == [f"{tournament.pk}:t{trial.pk}" for trial in due]
    dispatch.fill(the_provider(tournament))
    assert len(broker.messages) == 4


def test_slots_of_rows_that_were_not_sent_are_free_again(
    tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_door(monkeypatch, Broker(most=1))
    with pytest.raises(ConnectionError):
        dispatch.fill(the_provider(tournament))
    first = trials_of(tournament)[0]
    assert slots().held(the_provider(tournament)) == [f"{tournament.pk}:t{first.pk}"]


def test_a_provider_can_be_filled_after_it_could_not(tournament: Tournament, monkeypatch: pytest.MonkeyPatch) -> None:
    open_door(monkeypatch, Broker(most=0))
    with pytest.raises(ConnectionError):
        dispatch.fill(the_provider(tournament))
    Trial.objects.update(dispatched_at=None)
    broker = open_door(monkeypatch, Broker())
    dispatch.fill(the_provider(tournament))
    assert len(broker.messages) == 4


def test_rows_whose_messages_lie_in_the_broker_do_not_hide_the_others(
    tournament: Tournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = trials_of(tournament)
    slots().acquire(
        the_provider(tournament), [f"{tournament.pk}:t{one.pk}" for one in trials[:3]], limit=4, per_minute=None
    )
    broker = open_door(monkeypatch, Broker())
    dispatch.fill(the_provider(tournament))
    assert [args for _, args in broker.messages] == [[trials[3].pk, tournament.pk]]


def test_waking_and_sending_fail_quietly(tournament: Tournament, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    open_door(monkeypatch, Broker(most=0))
    dispatch.wake([the_provider(tournament)])
    dispatch.send("arena.tasks.advance_tournament_task", tournament.pk)
    assert "could not be filled" in caplog.text
    assert "advance_tournament_task could not be sent" in caplog.text
