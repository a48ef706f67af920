from __future__ import annotations

import socket
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.llm import ChatMessage, ChatRequest, FilePart, Usage
from arena.llm.anthropic import CACHE_READ, CACHE_WRITE, CACHE_WRITE_1H
from arena.llm.pricing import (
    PDF_PAGE_TOKENS,
    Price,
    bound_input_bytes,
    cost_usd,
    estimate_tokens,
    seed_price,
    worst_case_usd,
)
from tests.arena.llm.loopback import question

PRICE = Price(Decimal("2.50"), Decimal(10))
ON = datetime(2026, 11, 30, tzinfo=UTC)


def test_factors_of_the_cache_are_those_of_the_price_list() -> None:
    _provider, model = get_snapshot().find_provider_model("claude-sonnet-4-5", None, "anthropic", None)
    prices = model.get_prices(ON)
    base, read, write, hour = (
        getattr(price, "base", price)
        for price in (prices.input_mtok, prices.cache_read_mtok, prices.cache_write_mtok, prices.cache_write_1h_mtok)
    )
    assert (read, write, hour) == (base * CACHE_READ, base * CACHE_WRITE, base * CACHE_WRITE_1H)


def test_what_may_be_written_to_a_cache_is_bounded_at_twice_its_price() -> None:
    plain = question(parameters={"note": "x" * 30})
    cached = question(parameters={"cache_control": {"type": "ephemeral"}})
    assert bound_input_bytes(cached) > 1.5 * bound_input_bytes(plain)


class TestSeeds:
    @pytest.fixture(autouse=True)
    def _no_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("prices must come from the installed data")

        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        monkeypatch.setattr(socket.socket, "connect", refuse)

    def test_known_model(self) -> None:
        price = seed_price("gpt-4o", "https://api.openai.com/v1", ON)
        assert price is not None
        assert (price.input_per_million, price.output_per_million) == (Decimal("2.5"), Decimal(10))
        assert price.source.startswith("genai-prices ")
        assert cost_usd(Usage(1_000_000, 0), price) == Decimal("2.5")

    def test_model_of_a_router(self) -> None:
        assert seed_price("openai/gpt-4o", "https://openrouter.ai/api/v1", ON) is not None

    def test_models_of_each_wire(self) -> None:
        claude = seed_price("claude-sonnet-4-5", "https://api.anthropic.com/v1", ON)
        flash = seed_price("models/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta", ON)
        assert claude is not None
        assert flash is not None
        assert (claude.input_per_million, claude.output_per_million) == (Decimal(3), Decimal(15))
        assert (flash.input_per_million, flash.output_per_million) == (Decimal("0.3"), Decimal("2.5"))
        assert seed_price("claude-sonnet-4-5", "https://gateway.example/v1", ON) is None

    def test_rates_that_grow_with_the_prompt_say_so(self) -> None:
        price = seed_price("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai", ON)
        assert price is not None
        assert price.input_per_million == Decimal("1.25")
        assert "base rate" in price.source

    def test_price_that_began_on_a_day(self) -> None:
        before = seed_price("o3", "https://api.openai.com/v1", datetime(2025, 1, 1, tzinfo=UTC))
        after = seed_price("o3", "https://api.openai.com/v1", ON)
        assert before is not None
        assert after is not None
        assert before.date is None
        assert after.date is not None
        assert after.input_per_million < before.input_per_million

    @pytest.mark.parametrize(
        ("model_id", "base_url"),
        [
            ("gpt-4o", "http://127.0.0.1:8000/v1"),
            ("gpt-4o", "https://proxy.example/v1"),
            ("our-own-model", "https://api.openai.com/v1"),
            ("text-embedding-3-small", "https://api.openai.com/v1"),
        ],
    )
    def test_unknown_stays_unknown(self, model_id: str, base_url: str) -> None:
        assert seed_price(model_id, base_url, ON) is None


class TestCost:
    def test_tokens_times_price(self) -> None:
        assert cost_usd(Usage(1000, 500), PRICE) == Decimal("0.0075")

    def test_reported_cost_wins(self) -> None:
        assert cost_usd(Usage(1000, 500, cost_usd=Decimal("0.001")), PRICE) == Decimal("0.001")
        assert cost_usd(Usage(1000, 500, cost_usd=Decimal(0)), None) == 0

    @pytest.mark.parametrize("usage", [Usage(), Usage(1000), Usage(output_tokens=5)])
    def test_missing_counts_are_not_zero(self, usage: Usage) -> None:
        assert cost_usd(usage, PRICE) is None

    def test_missing_price_is_not_zero(self) -> None:
        assert cost_usd(Usage(1, 1), None) is None

    def test_worst_case(self) -> None:
        expected = (4000 + 2 * PDF_PAGE_TOKENS) * Decimal("2.5") / 1_000_000 + Decimal("0.01")
        assert worst_case_usd(4000, 2, 1000, PRICE) == expected
        assert worst_case_usd(4000, 2, None, PRICE) is None
        assert worst_case_usd(4000, 2, 1000, None) is None

    def test_bound_covers_all_text(self) -> None:
        messages = (
            ChatMessage.of("system", "日本"),
            ChatMessage("user", (FilePart(b"x", "application/pdf", "a"),)),
        )
        small = bound_input_bytes(ChatRequest("m", messages))
        assert small >= 6
        tools = {"tools": [{"name": "x" * 100}]}
        assert bound_input_bytes(ChatRequest("m", messages, parameters=tools)) >= small + 100
        schema = {"type": "object", "title": "y" * 100}
        assert bound_input_bytes(ChatRequest("m", messages, json_schema=schema)) >= small + 100


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_estimate_is_within_the_bound(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= len(text.encode())


def test_estimate() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("four") == 1
    assert estimate_tokens("fives") == 2
    assert estimate_tokens("日本") == 2
