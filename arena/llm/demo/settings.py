"""How the endpoint behaves: its speed, and what goes wrong on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from arena.llm.demo.catalogue import DEMO_KEY, SchemaSupport

ForcedReply = Literal["malformed", "fenced", "wrong_case", "extra_keys", "empty", "refusal", "huge"]


@dataclass(frozen=True, slots=True)
class Latency:
    """From request to end of answer. A range is spread by model and content: a repeat takes as long."""

    low_ms: float = 60.0
    high_ms: float = 180.0
    # When the first piece of a stream leaves, as a share of the whole.
    first_piece_share: float = 0.4

    @classmethod
    def fixed(cls, latency_ms: float) -> Latency:
        return cls(latency_ms, latency_ms)


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares are drawn by request content: 0.33 hits the same third of the requests on every run."""

    rate_limit_share: float = 0.0
    server_error_share: float = 0.0
    disconnect_share: float = 0.0
    # The three shares above hit a request's first attempts only, as many as this says.
    faulty_attempts: int = 1
    # One of these is drawn for each 429.
    retry_after_s: tuple[int, ...] = (0, 1)
    # Verdicts whose first reply is broken JSON. None: of every judge.
    malformed_share: float = 0.0
    malformed_judges: frozenset[str] | None = None
    # Models that answer every call with `always_fail_status`.
    always_fail: frozenset[str] = frozenset()
    always_fail_status: int = 500
    # Models that take a call and send nothing; that fall silent after the first piece; that hang up there.
    silent: frozenset[str] = frozenset()
    stalling: frozenset[str] = frozenset()
    breaking: frozenset[str] = frozenset()
    # Model -> how each of its answers comes out.
    forced_replies: Mapping[str, ForcedReply] = field(default_factory=dict)
    huge_characters: int = 10_000_000
    # Model -> parameters it answers with 400.
    refused_parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)


# Rare enough not to disturb, frequent enough that a demo run shows one of each.
DEMO_FAULTS = Faults(rate_limit_share=0.01, malformed_share=0.015, malformed_judges=frozenset({"usher-2"}))


@dataclass(frozen=True, slots=True)
class DemoSettings:
    latency: Latency = Latency()
    faults: Faults = DEMO_FAULTS
    # Overrides what the catalogue says.
    schema_support: Mapping[str, SchemaSupport] = field(default_factory=dict)
    takes_pdf: Mapping[str, bool] = field(default_factory=dict)
    api_key: str = DEMO_KEY
    max_body_bytes: int = 128 * 1024 * 1024

    @classmethod
    def quiet(cls, latency_ms: float = 0.0) -> DemoSettings:
        """No faults and a fixed latency: the ground on which tests add their own."""
        return cls(latency=Latency.fixed(latency_ms), faults=Faults())

    def with_faults(self, faults: Faults) -> DemoSettings:
        return replace(self, faults=faults)
