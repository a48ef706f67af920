"""One tournament with a candidate and a judge on each wire, under a real embedded worker over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from arena.llm.transport import open_lines
from arena.models import Call, LanguageModel, Match, Price, Provider, Tournament
from arena.services.language_models import ModelFields, PriceFields, create_language_model
from arena.services.probes import probe_model
from arena.services.providers import ProviderFields, create_provider
from tests.arena.arena_world import ArenaWorld, make_arena_world, play, tally
from tests.arena.llm.vendor_server import KEYS, VendorServer, vendor_server

pytestmark = pytest.mark.django_db(transaction=True)
WIRES = ("openai", "anthropic", "gemini")
CANDIDATES = ["candidate-openai-1", "candidate-anthropic-2", "candidate-gemini-3"]
JUDGES = [f"judge-{wire}-0" for wire in WIRES]
# Of each judge, so that it has to find another form and to remember it.
REFUSED = ("openai:json_schema", "anthropic:schema", "gemini:schema")


def world_of(server: VendorServer) -> ArenaWorld:
    world = make_arena_world("http://127.0.0.1:9/v1", samples=2)
    world.models.clear()
    price = PriceFields(input_per_million=Decimal(3), output_per_million=Decimal(15))
    for wire in WIRES:
        fields = ProviderFields(name=wire, kind=wire, base_url=server.base_url(wire))
        provider = create_provider(team=world.team, actor=None, fields=fields, key=KEYS[wire])
        for name in (name for name in (*CANDIDATES, *JUDGES) if f"-{wire}-" in name):
            model = ModelFields(provider=provider, model_id=name, max_tokens=500, pdf_input=LanguageModel.Input.BASE64)
            world.models[name] = create_language_model(team=world.team, actor=None, fields=model, price=price)
    return world


def test_a_tournament_on_three_wires(transactional_db: None, worker: Callable[..., Any]) -> None:
    with vendor_server(*REFUSED) as server:
        world = world_of(server)
        worker()
        tournament = play(world.create(candidates=CANDIDATES, judges=JUDGES, max_matches=6))
        assert server.problems == []
        asked = dict(server.asked)
    assert tournament.status == Tournament.Status.FINISHED
    assert tally(tournament) == {Match.Status.DECIDED: 6}
    # The careful judges of all wires agree on the better one, in both orders.
    better = {"candidate-openai-1": 0, "candidate-anthropic-2": 2, "candidate-gemini-3": 4}
    wins = dict.fromkeys(CANDIDATES, 0)
    for match in tournament.matches.select_related("first__language_model", "second__language_model"):
        decision = match.decisions.get()
        winner = match.first if decision.outcome == "FIRST" else match.second
        wins[winner.language_model.model_id] += 1
        assert decision.counts
    assert wins == better
    for request in tournament.trial_requests.select_related("trial"):
        assert request.trial.answer.startswith("An answer of quality=")
        assert request.trial.reasoning == "Hm."
    forms = {
        name: set(
            tournament.verdicts.filter(ballot__judge__full_id__endswith=name).values_list("structured", flat=True)
        )
        for name in JUDGES
    }
    assert forms == {"judge-openai-0": {"json"}, "judge-anthropic-0": {"tool"}, "judge-gemini-0": {"openapi"}}
    calls = Call.objects.filter(tournament=tournament, status=Call.Status.OK)
    assert calls.count() == 6 + 6 * 3 * 2
    assert not calls.filter(cost_usd=None).exists()
    gemini = calls.filter(language_model=world.models["candidate-gemini-3"]).first()
    assert gemini is not None
    # 11 tokens in, 8 of the answer and 5 of thought out.
    assert (gemini.input_tokens, gemini.output_tokens, gemini.reasoning_tokens) == (11, 13, 5)
    assert gemini.cost_usd == Decimal("0.000228")
    for name, first in zip(JUDGES, ("json_schema", "schema", "schema"), strict=True):
        wire = name.split("-")[1]
        # Learnt from the first calls in flight, and not asked for again after that.
        assert 1 <= asked[wire, name, first] < 12
        assert LanguageModel.objects.get(model_id=name).learned["changes"] == ["no_schema"]


@pytest.mark.parametrize("wire", WIRES)
def test_the_test_button(transactional_db: None, wire: str) -> None:
    with vendor_server() as server, open_lines():
        world = world_of(server)
        model = world.models[f"judge-{wire}-0"]
        result = probe_model(language_model=model, actor=None, with_pdf=True)
        assert server.problems == []
    assert (result.ok, result.structured, result.streaming) == (True, "schema", True)
    assert (result.pdf_accepted, result.pdf_read) == (True, True)
    assert result.latency_ms is not None
    assert Call.objects.filter(language_model=model, purpose=Call.Purpose.PROBE).count() == 2
    assert Price.objects.filter(language_model=model).count() == 1
    assert Provider.objects.get(name=wire).kind == wire
