"""What an attempt cost: nothing, a sum, or unknown. Unknown is never taken for nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest

from arena.llm.errors import ErrorCode, LLMError
from arena.llm.messages import Usage
from arena.models import Price
from arena.services.bills import Bill, bill_for

PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(4), source="a list")
COUNTED = Usage(input_tokens=100, output_tokens=50)
COST = Decimal("0.0003")


def an_error(http_status: int | None = None, *, partial_text: str = "", sent: bool = True) -> LLMError:
    error = LLMError(ErrorCode.OTHER, "no", http_status=http_status, partial_text=partial_text)
    error.sent = sent
    return error


def test_what_was_never_sent_cost_nothing() -> None:
    assert bill_for(an_error(sent=False), Usage(), PRICE).cost_usd == 0
    # Not even without a price.
    assert bill_for(an_error(sent=False), Usage(), None) == Bill(Decimal(0), "the request never left")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_cost_nothing(status: int) -> None:
    assert bill_for(an_error(status), Usage(), PRICE) == Bill(Decimal(0), f"refused with HTTP {status}")


@pytest.mark.parametrize("status", [408, 504, None])
def test_who_gave_up_waiting_may_have_been_charged(status: int | None) -> None:
    assert bill_for(an_error(status), Usage(), PRICE) == (None, "")


def test_an_answer_broken_off_is_priced_where_it_was_counted() -> None:
    assert bill_for(an_error(500, partial_text="Half an"), Usage(), PRICE).cost_usd is None
    assert bill_for(an_error(500, partial_text="Half an"), COUNTED, PRICE) == (COST, "a list")


def test_an_error_inside_a_stream_is_no_refusal() -> None:
    error = an_error(529)
    error.partial_reasoning = "Hm"
    assert bill_for(error, Usage(), PRICE).cost_usd is None
    error = an_error(529)
    error.usage = Usage(input_tokens=100)
    assert bill_for(error, error.usage, PRICE).cost_usd is None


def test_an_answer_is_priced_as_reported_or_by_the_list() -> None:
    assert bill_for(None, COUNTED, PRICE) == (COST, "a list")
    reported = Usage(input_tokens=100, output_tokens=50, cost_usd=Decimal("0.5"))
    assert bill_for(None, reported, PRICE) == (Decimal("0.5"), "reported by the provider")
    assert bill_for(None, COUNTED, None) == (None, "")


@pytest.mark.parametrize("cost", ["1000000", "-1E+9", "Infinity", "NaN", "1E+400"])
def test_an_absurd_cost_is_unknown(cost: str) -> None:
    assert bill_for(None, Usage(cost_usd=Decimal(cost)), PRICE) == (None, "")
