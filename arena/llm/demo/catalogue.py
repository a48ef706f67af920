"""What the demo endpoint offers. Models, makers and prices are invented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

DEMO_KEY = "demo"
DEMO_PROVIDER_NAME = "Demo endpoint"
DEMO_PRICE_SOURCE = "invented for the demo"
DEMO_LABEL = "Demo: invented models on your own machine. A smoke test that says nothing about any real model."

Role = Literal["candidate", "judge", "both"]
SchemaSupport = Literal["schema", "json", "none"]
Temper = Literal["careful", "first_seat", "length"]


@dataclass(frozen=True, slots=True)
class DemoModel:
    model_id: str
    display_name: str
    family: str
    role: Role
    description: str
    # US dollars per million tokens.
    input_price_usd: Decimal
    output_price_usd: Decimal
    max_tokens: int = 2048
    context_tokens: int = 128_000
    takes_pdf: bool = True
    schema_support: SchemaSupport = "schema"
    # 0 is the quickest model of the endpoint, 1 the slowest.
    slowness: float = 0.5
    temper: Temper | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_candidate(self) -> bool:
        return self.role != "judge"

    @property
    def is_judge(self) -> bool:
        return self.role != "candidate"


DEMO_MODELS: tuple[DemoModel, ...] = (
    DemoModel(
        model_id="lancer-large",
        display_name="Lancer Large",
        family="Lancer",
        role="both",
        description="The best of the five, thinks before it answers, and a careful judge.",
        input_price_usd=Decimal("4.00"),
        output_price_usd=Decimal("16.00"),
        slowness=1.0,
        temper="careful",
    ),
    DemoModel(
        model_id="squire-1",
        display_name="Squire 1",
        family="Squire",
        role="candidate",
        description="Second best, and the shortest answers.",
        input_price_usd=Decimal("0.80"),
        output_price_usd=Decimal("3.20"),
        slowness=0.3,
    ),
    DemoModel(
        model_id="lancer-small",
        display_name="Lancer Small",
        family="Lancer",
        role="candidate",
        description="In the middle: sound, but it leaves things out and repeats itself.",
        input_price_usd=Decimal("0.60"),
        output_price_usd=Decimal("2.40"),
        slowness=0.5,
    ),
    DemoModel(
        model_id="herald-x",
        display_name="Herald X",
        family="Herald",
        role="candidate",
        description="The longest answers, and second worst.",
        input_price_usd=Decimal("2.00"),
        output_price_usd=Decimal("8.00"),
        slowness=0.8,
    ),
    DemoModel(
        model_id="page-mini",
        display_name="Page Mini",
        family="Page",
        role="candidate",
        description="The weakest: quick, cheap and often wrong.",
        input_price_usd=Decimal("0.10"),
        output_price_usd=Decimal("0.40"),
        slowness=0.0,
    ),
    DemoModel(
        model_id="magistrate-1",
        display_name="Magistrate 1",
        family="Magistrate",
        role="judge",
        description="A careful judge.",
        input_price_usd=Decimal("2.50"),
        output_price_usd=Decimal("10.00"),
        slowness=0.7,
        temper="careful",
        parameters={"temperature": 0},
    ),
    DemoModel(
        model_id="usher-2",
        display_name="Usher 2",
        family="Usher",
        role="judge",
        description="A judge that prefers the answer in the first seat. Knows JSON mode but no schemas.",
        input_price_usd=Decimal("0.50"),
        output_price_usd=Decimal("2.00"),
        slowness=0.4,
        schema_support="json",
        temper="first_seat",
        parameters={"temperature": 0},
    ),
    DemoModel(
        model_id="scrivener-4",
        display_name="Scrivener 4",
        family="Scrivener",
        role="judge",
        description="A judge that prefers the longer answer. Takes no PDF.",
        input_price_usd=Decimal("0.30"),
        output_price_usd=Decimal("1.20"),
        slowness=0.4,
        takes_pdf=False,
        temper="length",
        parameters={"temperature": 0},
    ),
)

MODELS_BY_ID: Mapping[str, DemoModel] = {model.model_id: model for model in DEMO_MODELS}
DEMO_CANDIDATES: tuple[str, ...] = tuple(model.model_id for model in DEMO_MODELS if model.is_candidate)
DEMO_JUDGES: tuple[str, ...] = ("magistrate-1", "lancer-large", "usher-2", "scrivener-4")

# The truth behind every answer and every careful verdict; a board of the demo has to find this order.
DEMO_QUALITY: Mapping[str, float] = {
    "lancer-large": 3.5,
    "squire-1": 2.9,
    "lancer-small": 1.4,
    "herald-x": 0.8,
    "page-mini": 0.1,
}
