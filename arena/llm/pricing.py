"""What calls cost. Unknown stays unknown: neither a missing price nor a missing count is taken for zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from arena.llm.messages import ChatRequest, TextPart, Usage

MILLION = Decimal(1_000_000)
# A page is billed as its image and its text; dense pages come close to this with the large vendors.
PDF_PAGE_TOKENS = 5_000
IMAGE_TOKENS = 5_000
# Role marks and separators that a chat template puts around a message.
MESSAGE_OVERHEAD_BYTES = 32


class TokenPrice(Protocol):
    """USD per million tokens."""

    @property
    def input_per_million(self) -> Decimal: ...
    @property
    def output_per_million(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class Price:
    input_per_million: Decimal
    output_per_million: Decimal


class SeedPrice(NamedTuple):
    input_per_million: Decimal
    output_per_million: Decimal
    source: str
    # When this price began, if the data says so.
    date: date | None


def seed_price(model_id: str, base_url: str, on: datetime | None = None) -> SeedPrice | None:
    """The published price of a model at this endpoint.

    None where the data does not know the endpoint: a proxy or a server of one's own may charge anything, or
    nothing, for a model of the same name.
    """
    # Takes long to import. It stays offline unless its updater is started, which it is not.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(model_id.removeprefix("models/"), None, None, base_url)
    except LookupError:
        return None
    on = on or datetime.now(UTC)
    prices: Any = model.get_prices(on)
    input_price, input_tiers = _base(prices.input_mtok)
    output_price, output_tiers = _base(prices.output_mtok)
    if input_price is None or output_price is None:
        return None
    source = f"genai-prices {_version()}"
    if input_tiers or output_tiers:
        source += ", base rate (long prompts cost more)"
    return SeedPrice(input_price, output_price, source, _valid_from(model, prices))


def _base(price: Any) -> tuple[Decimal | None, bool]:
    if price is None or isinstance(price, Decimal):
        return price, False
    return price.base, bool(price.tiers)


def _valid_from(model: Any, prices: Any) -> date | None:
    if not isinstance(model.prices, list):
        return None
    for conditional in model.prices:
        if conditional.prices is prices:
            start = getattr(conditional.constraint, "start_date", None)
            return start if isinstance(start, date) else None
    return None


def _version() -> str:
    from importlib.metadata import version

    return version("genai-prices")


def cost_usd(usage: Usage, price: TokenPrice | None) -> Decimal | None:
    """What the provider reports wins over what the price list says."""
    if usage.cost_usd is not None:
        return usage.cost_usd
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    billed = usage.billed_input_tokens
    return _sum(usage.input_tokens if billed is None else billed, usage.output_tokens, price)


def worst_case_usd(
    input_bytes: int, pdf_pages: int, max_tokens: int | None, price: TokenPrice | None, *, images: int = 0
) -> Decimal | None:
    """A bound before the call: no tokenizer makes more tokens than there are bytes of UTF-8."""
    if price is None or max_tokens is None:
        return None
    input_tokens = input_bytes + pdf_pages * PDF_PAGE_TOKENS + images * IMAGE_TOKENS
    return _sum(input_tokens, max_tokens, price)


def _sum(input_tokens: int | Decimal, output_tokens: int, price: TokenPrice) -> Decimal:
    return (input_tokens * price.input_per_million + output_tokens * price.output_per_million) / MILLION


def bound_input_bytes(request: ChatRequest) -> int:
    """Bytes of everything in a request that is billed as text. Files are counted by page and by image."""
    size = len(str(dict(request.json_schema)).encode("utf-8", "replace")) if request.json_schema else 0
    for message in request.messages:
        size += MESSAGE_OVERHEAD_BYTES + _extra_bytes(message.extra)
        for part in message.parts:
            if isinstance(part, TextPart):
                size += len(part.text.encode("utf-8", "replace")) + 1
    # Tools and the like are billed as input too.
    size += _extra_bytes(request.parameters)
    # What is written to a provider's cache costs up to twice the price of input.
    return 2 * size if "cache_control" in str(request.parameters) else size


def _extra_bytes(values: Mapping[str, object]) -> int:
    return len(str(dict(values)).encode("utf-8", "replace")) if values else 0


def estimate_tokens(text: str) -> int:
    """A guess for plans, not a bound: four ASCII characters a token, and one for each character beyond."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return -(-ascii_characters // 4) + len(text) - ascii_characters
