"""One trial, several tournaments: who pays, at which price, and in whose slot."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from arena.limits import slots
from arena.models import Call, CallStatus, LanguageModel, Price, Provider, Tournament, Trial
from arena.services import known, trials
from arena.services.claims import claim, free_lost
from tests.arena.arena_world import CANDIDATES, ArenaWorld, add_model, make_arena_world
from tests.arena.call_world import ANSWER_USD, NOWHERE, answer_calls, claim_one, lose, started, trials_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_process")]


@pytest.fixture
def world() -> ArenaWorld:
    return make_arena_world(NOWHERE)


def new_version(world: ArenaWorld, name: str) -> LanguageModel:
    """The same model entered anew, with a price that the old version has not."""
    old = world.models[name]
    Price.objects.filter(language_model=old).delete()
    LanguageModel.objects.filter(pk=old.pk).update(superseded_at=timezone.now())
    world.models[name] = add_model(world, name, family=old.family)
    assert world.models[name].fingerprint == old.fingerprint
    return world.models[name]


def trial_of(tournament: Tournament, model: LanguageModel) -> Trial:
    return next(trial for trial in trials_of(tournament) if trial.language_model_id == model.pk)


def test_a_trial_is_priced_by_the_candidate_of_the_tournament_that_pays(
    world: ArenaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = CANDIDATES[0]
    old = world.models[name]
    first = started(world)
    new = new_version(world, name)
    second = started(world, name="Second", budget_usd=Decimal(5))
    trial = trial_of(second, old)
    answer_calls(monkeypatch)
    trials.run_trial(trial.pk, second.pk)
    trial.refresh_from_db()
    second.refresh_from_db()
    assert (second.status, second.reason_text) == (Tournament.Status.RUNNING, "")
    assert trial.status == CallStatus.SUCCEEDED
    call = Call.objects.get()
    assert (call.tournament, call.language_model, call.cost_usd) == (second, new, ANSWER_USD)
    assert (second.spent_usd, second.reserved_usd) == (ANSWER_USD, 0)
    # The one that has chosen the version without a price pays without one.
    other = next(one for one in trials_of(first) if one.language_model_id == old.pk and one.pk != trial.pk)
    trials.run_trial(other.pk, first.pk)
    assert Call.objects.filter(tournament=first, language_model=old, cost_usd=None).count() == 1


def test_it_is_looked_up_once(world: ArenaWorld, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    old = world.models[CANDIDATES[0]]
    new = new_version(world, CANDIDATES[0])
    tournament = started(world)
    assert known.payers_model_of((tournament.pk, old.pk)) == new.pk
    with django_assert_num_queries(0):
        assert known.payers_model_of((tournament.pk, old.pk)) == new.pk


def test_another_provider_lends_no_price(world: ArenaWorld) -> None:
    old = world.models[CANDIDATES[0]]
    new = new_version(world, CANDIDATES[0])
    tournament = started(world)
    copy: dict[str, Any] = {
        field.attname: getattr(world.provider, field.attname)
        for field in Provider._meta.concrete_fields
        if field.name not in {"id", "public_id", "name"}
    }
    elsewhere = Provider.objects.create(name="the same host, another key", **copy)
    LanguageModel.objects.filter(pk=new.pk).update(provider=elsewhere)
    assert known.payers_model_of((tournament.pk, old.pk)) == old.pk


def test_a_trial_that_runs_for_another_tournament_keeps_no_slot(
    world: ArenaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = started(world), started(world, name="Second")
    trial = trials_of(first)[0]
    claim_one(trial)
    called = answer_calls(monkeypatch)
    slots().acquire(world.provider.pk, [f"{second.pk}:t{trial.pk}"], limit=8, per_minute=None)
    trials.run_trial(trial.pk, second.pk)
    assert not called
    assert slots().held(world.provider.pk) == []


def test_what_was_lost_is_noted_on_the_version_that_pays(world: ArenaWorld) -> None:
    old = world.models[CANDIDATES[0]]
    started(world)
    new = new_version(world, CANDIDATES[0])
    second = started(world, name="Second")
    trial = trial_of(second, old)
    assert claim(trial, payer=second, reserve_usd=None) is not None
    assert free_lost(lose(trial), timezone.now() + dt.timedelta(seconds=1))
    assert Call.objects.get().language_model == new
