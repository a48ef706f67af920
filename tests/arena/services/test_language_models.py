"""Models of a team: immutability, versions, prices, the demo."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from arena.llm.demo.catalogue import DEMO_MODELS, DEMO_PRICE_SOURCE
from arena.models import AuditLog, Candidate, LanguageModel, Price, Provider, Role, Team, Tournament, User
from arena.services.language_models import (
    ModelFields,
    PriceFields,
    add_price,
    create_language_model,
    delete_language_model,
    register_demo,
    set_enabled,
    update_language_model,
)
from arena.services.members import Refused
from arena.services.providers import ProviderFields, create_provider, delete_provider, update_provider
from arena.services.wire import MovedEndpoint, model_context
from tests.arena.models_world import make_used
from tests.personas import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(world: World) -> Team:
    return world.own.team


@pytest.fixture
def actor(world: World) -> User:
    return world.own.user(Role.ADMIN)


def a_provider(team: Team, base_url: str = "https://llm.example.com/v1", **fields: Any) -> Provider:
    return create_provider(
        team=team, actor=None, fields=ProviderFields(name=fields.pop("name", "house"), base_url=base_url, **fields)
    )


def a_model(provider: Provider, price: PriceFields | None = None, **fields: Any) -> LanguageModel:
    fields = {"model_id": "gpt-mini", **fields}
    return create_language_model(
        team=provider.team, actor=None, fields=ModelFields(provider=provider, **fields), price=price
    )


def edited(model: LanguageModel, **changes: Any) -> ModelFields:
    values = {name: getattr(model, name) for name in ModelFields.__dataclass_fields__}
    return ModelFields(**values | changes)


PRICE = PriceFields(input_per_million=Decimal("1.5"), output_per_million=Decimal("6"))


def test_an_unused_model_is_edited_in_place(team: Team, actor: User) -> None:
    model = a_model(a_provider(team))
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, parameters={"top_p": 0.5}))
    assert after.pk == model.pk
    assert after.fingerprint == after.compute_fingerprint() != model.fingerprint
    assert LanguageModel.objects.filter(lineage=model.lineage).count() == 1


@pytest.mark.parametrize("changes", [{"parameters": {"top_p": 0.5}}, {"system_prompt": "Be brief."}, {"max_tokens": 9}])
@pytest.mark.parametrize("by", ["candidate", "judge", "trial"])
def test_a_used_model_gets_a_next_version(team: Team, actor: User, by: str, changes: dict[str, Any]) -> None:
    model = a_model(a_provider(team), price=PRICE)
    make_used(model, by=by)
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, **changes))
    before = LanguageModel.objects.get(pk=model.pk)
    assert after.pk != model.pk
    assert after.public_id != model.public_id
    assert (after.lineage, after.superseded_at) == (model.lineage, None)
    assert before.superseded_at is not None
    assert before.fingerprint == model.fingerprint != after.fingerprint
    for name in changes:
        assert getattr(before, name) == getattr(model, name)
    assert AuditLog.objects.filter(action="language_model.version").count() == 1


def test_a_new_display_name_makes_a_next_version_of_a_used_model(team: Team, actor: User) -> None:
    model = a_model(a_provider(team))
    make_used(model)
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, display_name="The new one"))
    assert after.pk != model.pk
    assert after.fingerprint == model.fingerprint


@pytest.mark.parametrize("changes", [{"enabled": False}, {"family": "other"}, {"context_tokens": 1000}])
def test_what_changes_no_answer_and_no_name_needs_no_version(team: Team, actor: User, changes: dict[str, Any]) -> None:
    model = a_model(a_provider(team))
    make_used(model)
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, **changes))
    assert after.pk == model.pk


def test_the_next_version_takes_the_price_in_force_along(team: Team, actor: User) -> None:
    model = a_model(a_provider(team), price=PRICE)
    make_used(model)
    newer = PriceFields(input_per_million=Decimal(2), output_per_million=Decimal(8), source="price list")
    add_price(language_model=model, actor=actor, price=newer)
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, max_tokens=10))
    price = Price.objects.get(language_model=after)
    assert (price.input_per_million, price.output_per_million) == (Decimal(2), Decimal(8))
    assert price.source == "price list"
    assert Price.objects.filter(language_model=model).count() == 2


def test_another_model_id_does_not_inherit_the_price(team: Team, actor: User) -> None:
    model = a_model(a_provider(team), price=PRICE)
    after = update_language_model(language_model=model, actor=actor, fields=edited(model, model_id="other"))
    assert not Price.objects.filter(language_model=after).exists()


def test_a_superseded_row_cannot_be_edited(team: Team, actor: User) -> None:
    model = a_model(a_provider(team))
    make_used(model)
    update_language_model(language_model=model, actor=actor, fields=edited(model, max_tokens=10))
    with pytest.raises(Refused):
        update_language_model(language_model=model, actor=actor, fields=edited(model, max_tokens=11))


def test_published_prices_are_seeded_with_their_source(team: Team) -> None:
    model = a_model(a_provider(team, "https://api.openai.com/v1"), model_id="gpt-4o-mini")
    price = Price.objects.get(language_model=model)
    assert price.source.startswith("genai-prices")
    assert price.input_per_million > 0


def test_an_endpoint_of_ones_own_has_no_price(team: Team) -> None:
    assert not Price.objects.filter(language_model=a_model(a_provider(team), model_id="gpt-4o-mini")).exists()


def test_a_price_is_neither_of_the_future_nor_older_than_the_last(team: Team, actor: User) -> None:
    model = a_model(a_provider(team), price=PRICE)
    today = timezone.localdate()
    for day in (today + dt.timedelta(days=2), today - dt.timedelta(days=2)):
        price = PriceFields(input_per_million=Decimal(1), output_per_million=Decimal(1), valid_from=day)
        with pytest.raises(ValidationError):
            add_price(language_model=model, actor=actor, price=price)
    assert Price.objects.filter(language_model=model).count() == 1


def test_the_same_price_again_adds_no_row(team: Team, actor: User) -> None:
    model = a_model(a_provider(team), price=PRICE)
    update_language_model(language_model=model, actor=actor, fields=edited(model), price=PRICE)
    assert Price.objects.filter(language_model=model).count() == 1


@pytest.mark.parametrize(
    "parameters",
    [{"messages": []}, {"model": "x"}, {"stream": False}, {"n": 2}, {"max_tokens": 1}, {"a": float("nan")}],
)
def test_parameters_of_the_application_are_refused(team: Team, parameters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        a_model(a_provider(team), parameters=parameters)
    assert "parameters" in error.value.message_dict


def test_the_same_model_twice_is_refused(team: Team) -> None:
    provider = a_provider(team)
    a_model(provider)
    with pytest.raises(ValidationError):
        a_model(provider)
    a_model(provider, parameters={"temperature": 1})


def test_enabling_and_disabling_is_logged(team: Team, actor: User) -> None:
    model = a_model(a_provider(team))
    set_enabled(language_model=model, actor=actor, enabled=False)
    assert not LanguageModel.objects.usable().filter(pk=model.pk).exists()
    assert AuditLog.objects.filter(action="language_model.disable", actor=actor).count() == 1


def test_another_address_makes_next_versions_of_used_models_only(team: Team, actor: User) -> None:
    provider = a_provider(team)
    used, unused = a_model(provider, price=PRICE), a_model(provider, model_id="unused")
    make_used(used)
    fields = ProviderFields(name="house", base_url="https://other.example.com/v1")
    update_provider(provider=provider, actor=actor, fields=fields)
    old = LanguageModel.objects.get(pk=used.pk)
    assert old.superseded_at is not None
    assert old.fingerprint == used.fingerprint
    with pytest.raises(MovedEndpoint):
        model_context(old.pk)
    new = LanguageModel.objects.current().get(lineage=used.lineage)
    assert model_context(new.pk).endpoint.base_url == "https://other.example.com/v1"
    assert new.fingerprint == new.compute_fingerprint() != used.fingerprint
    assert Price.objects.filter(language_model=new).count() == 1
    kept = LanguageModel.objects.get(lineage=unused.lineage)
    assert kept.pk == unused.pk
    assert kept.fingerprint == kept.compute_fingerprint() != unused.fingerprint


def test_the_address_stays_while_a_tournament_runs(team: Team, actor: User) -> None:
    provider = a_provider(team)
    model = a_model(provider)
    make_used(model)
    tournament = Candidate.objects.get(language_model=model).tournament
    tournament.status = "paused"
    tournament.save()
    fields = ProviderFields(name="house", base_url="https://other.example.com/v1")
    with pytest.raises(ValidationError) as error:
        update_provider(provider=provider, actor=actor, fields=fields)
    assert tournament.name in error.value.message_dict["base_url"][0]
    provider.refresh_from_db()
    assert provider.base_url == "https://llm.example.com/v1"


def test_a_provider_with_results_keeps_its_name_and_stays(team: Team, actor: User) -> None:
    provider = a_provider(team)
    model = a_model(provider)
    make_used(model)
    fields = ProviderFields(name="renamed", base_url=provider.base_url)
    with pytest.raises(ValidationError):
        update_provider(provider=provider, actor=actor, fields=fields)
    with pytest.raises(Refused, match="gpt-mini"):
        delete_provider(provider=provider, actor=actor)
    with pytest.raises(Refused):
        delete_language_model(language_model=model, actor=actor)


def test_an_unused_provider_goes_with_its_models(team: Team, actor: User) -> None:
    provider = a_provider(team)
    a_model(provider)
    delete_provider(provider=provider, actor=actor)
    assert not Provider.objects.filter(pk=provider.pk).exists()
    assert AuditLog.objects.get(action="provider.delete").old["models"] == ["gpt-mini"]


def test_the_demo_is_entered_once(team: Team) -> None:
    first = register_demo(team, "http://127.0.0.1:4001/v1")
    again = register_demo(team, "http://127.0.0.1:4001/v1")
    assert [model.pk for model in first] == [model.pk for model in again]
    assert [model.model_id for model in first] == [model.model_id for model in DEMO_MODELS]
    assert set(Price.objects.filter(language_model__in=first).values_list("source", flat=True)) == {DEMO_PRICE_SOURCE}


def test_the_demo_on_another_port_is_the_same_demo(team: Team) -> None:
    first = register_demo(team, "http://127.0.0.1:4001/v1")
    make_used(first[0])
    Tournament.objects.filter(candidates__language_model=first[0]).update(status="running")
    again = register_demo(team, "http://127.0.0.1:4002/v1")
    assert [(model.pk, model.fingerprint) for model in first] == [(model.pk, model.fingerprint) for model in again]
    provider = Provider.objects.get(team=team, kind="demo")
    assert provider.base_url == "http://127.0.0.1:4002/v1"
    assert provider.encrypted_key
    assert again[0].compute_fingerprint() == again[0].fingerprint


def test_the_demo_kind_leads_to_this_machine_only(team: Team) -> None:
    with pytest.raises(ValidationError):
        a_provider(team, "https://elsewhere.example.com/v1", kind=Provider.Kind.DEMO)


def test_each_wire_has_its_own_parameters_and_limits(team: Team) -> None:
    claude = a_provider(team, name="claude", kind=Provider.Kind.ANTHROPIC)
    with pytest.raises(ValidationError) as error:
        a_model(claude, parameters={"output_config": {"format": {}}}, max_tokens=None)
    assert set(error.value.message_dict) == {"parameters", "max_tokens"}
    a_model(claude, parameters={"thinking": {"type": "adaptive"}}, max_tokens=8192)
    gemini = a_provider(team, name="gemini", kind=Provider.Kind.GEMINI)
    with pytest.raises(ValidationError) as error:
        a_model(gemini, parameters={"generationConfig": {"topK": 1}})
    assert set(error.value.message_dict) == {"parameters"}
    a_model(gemini, parameters={"topK": 1})


def test_one_address_in_two_formats_is_two_endpoints(team: Team) -> None:
    kinds = (Provider.Kind.OPENAI, Provider.Kind.ANTHROPIC, Provider.Kind.GEMINI)
    models = [a_model(a_provider(team, name=kind, kind=kind), max_tokens=100) for kind in kinds]
    assert len({model.fingerprint for model in models}) == 3


@pytest.mark.parametrize(("kind", "model_id"), [("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-flash")])
def test_published_prices_of_each_wire(team: Team, kind: str, model_id: str) -> None:
    model = a_model(a_provider(team, "", name=kind, kind=kind), model_id=model_id, max_tokens=100)
    assert model.prices.get().source.startswith("genai-prices")
    own = a_model(a_provider(team, name=f"{kind}-gateway", kind=kind), model_id=model_id, max_tokens=100)
    assert not own.prices.exists()
