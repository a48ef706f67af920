"""The test button against a real endpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.db import transaction

from arena.llm.demo.catalogue import DEMO_KEY
from arena.llm.demo.server import DemoServer, serve_in_thread
from arena.llm.demo.settings import DemoSettings, Faults
from arena.llm.errors import ErrorCode, LLMError
from arena.llm.transport import open_lines
from arena.models import AuditLog, Call, LanguageModel, Price, Provider, Team
from arena.services.attempts import OpenTransaction
from arena.services.language_models import register_demo
from arena.services.probes import offered_models, probe_model, probe_models
from arena.services.providers import ProviderFields, create_provider, update_provider
from arena.services.wire import MissingKey

pytestmark = pytest.mark.django_db(transaction=True)
FAULTS = Faults(refused_parameters={"magistrate-1": frozenset({"temperature"})})


@pytest.fixture
def server() -> Iterator[DemoServer]:
    with serve_in_thread(settings=DemoSettings.quiet(latency_ms=5).with_faults(FAULTS)) as running, open_lines():
        yield running


@pytest.fixture
def models(server: DemoServer) -> dict[str, LanguageModel]:
    team = Team.objects.create(name="Team")
    return {model.model_id: model for model in register_demo(team, server.base_url)}


def with_key(provider: Provider, key: str) -> None:
    fields = ProviderFields(name=provider.name, base_url=provider.base_url, kind=provider.kind)
    update_provider(provider=provider, actor=None, fields=fields, key=key)


def test_a_model_that_takes_everything(models: dict[str, LanguageModel]) -> None:
    model = models["lancer-large"]
    result = probe_model(language_model=model, actor=None, with_pdf=True)
    assert result.ok
    assert (result.structured, result.pdf_accepted, result.streaming) == ("schema", True, True)
    model.refresh_from_db()
    stored = model.learned["probe"]
    assert (stored["ok"], stored["structured"], stored["pdf_accepted"]) == (True, "schema", True)
    calls = Call.objects.filter(language_model=model)
    assert {call.purpose for call in calls} == {Call.Purpose.PROBE}
    assert calls.count() == len(result.attempts) == stored["calls"] == 2
    price = Price.objects.get(language_model=model)
    for call in calls:
        assert call.input_tokens is not None
        assert call.output_tokens is not None
        spent = call.input_tokens * price.input_per_million + call.output_tokens * price.output_per_million
        assert call.cost_usd == (spent / 1_000_000).quantize(Decimal("1E-8"))
        assert call.input_price_usd == price.input_per_million
    assert Decimal(stored["cost_usd"]) == sum(call.cost_usd or 0 for call in calls)
    assert AuditLog.objects.filter(action="language_model.probe").count() == 1


def test_a_judge_without_schemas_is_remembered(models: dict[str, LanguageModel]) -> None:
    model = models["usher-2"]
    result = probe_model(language_model=model, actor=None)
    assert result.ok
    assert result.structured == "json"
    model.refresh_from_db()
    assert "no_schema" in model.learned["changes"]
    assert model.learned["probe"]["pdf_accepted"] is None
    refused = Call.objects.filter(language_model=model, status=Call.Status.ERROR)
    assert [call.cost_usd for call in refused] == [0] * refused.count()


def test_a_refused_parameter_is_left_out_and_remembered(models: dict[str, LanguageModel]) -> None:
    model = models["magistrate-1"]
    assert probe_model(language_model=model, actor=None).ok
    model.refresh_from_db()
    assert model.learned["changes"] == ["no:temperature"]


def test_what_goes_through_again_is_forgotten(models: dict[str, LanguageModel]) -> None:
    model = models["scrivener-4"]
    learned = {"changes": ["no_schema", "no:temperature", "no_stream_options"]}
    LanguageModel.objects.filter(pk=model.pk).update(learned=learned)
    assert probe_model(language_model=model, actor=None).structured == "schema"
    model.refresh_from_db()
    assert model.learned["changes"] == ["no_stream_options"]


def test_a_model_that_takes_no_pdf(models: dict[str, LanguageModel]) -> None:
    result = probe_model(language_model=models["scrivener-4"], actor=None, with_pdf=True)
    assert result.ok
    assert result.pdf_accepted is False


def test_a_wrong_key(models: dict[str, LanguageModel], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = models["squire-1"]
    assert model.provider is not None
    with_key(model.provider, "sk-a-wrong-secret")
    result = probe_model(language_model=model, actor=None)
    assert not result.ok
    assert result.error_code is ErrorCode.AUTH
    call = Call.objects.get(language_model=model)
    assert (call.status, call.http_status, call.error_code, call.cost_usd) == ("error", 401, "AUTH", Decimal(0))
    model.refresh_from_db()
    everything = f"{caplog.text} {call.error} {model.learned} {result!r}"
    assert "wrong-secret" not in everything
    assert "changes" not in model.learned


def test_a_model_that_is_not_there(models: dict[str, LanguageModel]) -> None:
    model = models["squire-1"]
    LanguageModel.objects.filter(pk=model.pk).update(model_id="gone")
    result = probe_model(language_model=model, actor=None)
    assert result.error_code is ErrorCode.NOT_FOUND


def test_no_call_leaves_inside_a_transaction(models: dict[str, LanguageModel], server: DemoServer) -> None:
    with transaction.atomic(), pytest.raises(OpenTransaction):
        probe_model(language_model=models["squire-1"], actor=None)
    assert not Call.objects.exists()


def test_imported_models_and_missing_keys_cannot_be_called(models: dict[str, LanguageModel]) -> None:
    model = models["squire-1"]
    Provider.objects.update(key_variable="TILTYARD_KEY_UNSET_IN_TESTS", encrypted_key="")
    with pytest.raises(MissingKey, match="TILTYARD_KEY_UNSET_IN_TESTS"):
        probe_model(language_model=model, actor=None)
    LanguageModel.objects.filter(pk=model.pk).update(provider=None)
    with pytest.raises(MissingKey):
        probe_model(language_model=model, actor=None)


def test_the_models_on_offer(models: dict[str, LanguageModel], server: DemoServer) -> None:
    team = Team.objects.get()
    fields = ProviderFields(name="local", base_url=server.base_url)
    provider = create_provider(team=team, actor=None, fields=fields, key=DEMO_KEY)
    assert offered_models(provider=provider) == sorted(models)
    with_key(provider, "sk-a-wrong-secret")
    with pytest.raises(LLMError) as error:
        offered_models(provider=Provider.objects.get(pk=provider.pk))
    assert error.value.code is ErrorCode.AUTH


def test_many_are_tested_at_once_and_each_by_one_call(
    models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [models[name] for name in ("lancer-large", "squire-1", "scrivener-4")]
    lost = models["herald-x"]
    assert lost.provider is not None
    fields = ("kind", "team_id", "base_url", "max_concurrency", "connect_timeout_s", "read_timeout_s")
    elsewhere = Provider.objects.create(
        name="by a variable",
        key_variable="TILTYARD_KEY_NOWHERE",
        **{name: getattr(lost.provider, name) for name in fields},
    )
    LanguageModel.objects.filter(pk=lost.pk).update(provider=elsewhere)
    monkeypatch.delenv("TILTYARD_KEY_NOWHERE", raising=False)
    problems = probe_models(language_models=[*chosen, lost], actor=None)
    assert list(problems) == [lost.pk]
    assert "TILTYARD_KEY_NOWHERE" in problems[lost.pk]
    for model in chosen:
        model.refresh_from_db()
        assert model.learned["probe"]["ok"]
        call = Call.objects.get(language_model=model)
        assert (call.purpose, call.status) == (Call.Purpose.PROBE, Call.Status.OK)
    assert Call.objects.count() == len(chosen)


def test_a_test_without_a_pdf_forgets_nothing_about_pdfs(models: dict[str, LanguageModel]) -> None:
    model = models["lancer-large"]
    probe_model(language_model=model, actor=None, with_pdf=True)
    probe_models(language_models=[model], actor=None)
    model.refresh_from_db()
    assert (model.learned["probe"]["pdf_accepted"], model.learned["probe"]["calls"]) == (True, 1)
