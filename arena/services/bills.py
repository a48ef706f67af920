"""What an HTTP attempt cost: reported, by the price list, nothing because it was refused, or unknown."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from arena.llm.errors import LLMError
from arena.llm.messages import Usage
from arena.llm.pricing import cost_usd
from arena.models import Price
from arena.services.wire import money

# A gateway that gave up waiting says nothing of whether the answer was made, and charged for.
GAVE_UP = {408, 504}


class Bill(NamedTuple):
    cost_usd: Decimal | None
    source: str


def _has_begun(error: LLMError) -> bool:
    """An error inside a stream carries a status too, but what came before it was made, and may be charged for."""
    usage = error.usage
    return bool(error.partial_text or error.partial_reasoning or usage.input_tokens or usage.output_tokens)


def bill_for(error: LLMError | None, usage: Usage, price: Price | None) -> Bill:
    if error is not None and not error.sent:
        return Bill(Decimal(0), "the request never left")
    status = error.http_status if error is not None else None
    if error is not None and status is not None and status >= 400 and status not in GAVE_UP and not _has_begun(error):
        return Bill(Decimal(0), f"refused with HTTP {status}")
    cost = money(cost_usd(usage, price))
    if cost is None:
        return Bill(None, "")
    listed = usage.cost_usd is None and price is not None
    return Bill(cost, price.source if listed and price is not None else "reported by the provider")
