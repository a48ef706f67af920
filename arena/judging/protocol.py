"""How a jury judges: two presets, any part of which a tournament may change."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Preset = Literal["audited", "majority"]
OnError = Literal["abstain", "tie"]
OnSkip = Literal["void", "forced_tie"]
Aggregation = Literal["plurality", "majority"]

ANSWER_CHARACTER_CAP = 200_000
RATE_LIMIT_WAITS = 8

_CHOICES: dict[str, tuple[object, ...]] = {
    "preset": ("audited", "majority"),
    "seat_orders": (1, 2),
    "on_error": ("abstain", "tie"),
    "on_skip": ("void", "forced_tie"),
    "aggregation": ("plurality", "majority"),
}
_RANGES: dict[str, tuple[int, int]] = {
    "quorum": (1, 1_000),
    "repair_attempts": (0, 5),
    "server_error_retries": (0, 20),
    "rate_limit_waits": (0, 1_000),
    "answer_character_cap": (1_000, 10_000_000),
}
CRITERIA_CHARACTER_CAP = 20_000
# The name goes into the prompt, so it has to stay a name: one line of letters.
_LANGUAGE = re.compile(r"[^\W\d_][\w ()'’\-]{1,39}")


class ProtocolError(ValueError):
    """Names every problem at once, each beginning with the field it is about."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Protocol:
    preset: Preset
    seat_orders: Literal[1, 2]
    on_error: OnError
    on_skip: OnSkip
    aggregation: Aggregation
    quorum: int
    repair_attempts: int
    server_error_retries: int
    rate_limit_waits: int = RATE_LIMIT_WAITS
    language: str = "en"
    criteria: str | None = None
    answer_character_cap: int = ANSWER_CHARACTER_CAP
    pdf_as_text: bool = False

    def __post_init__(self) -> None:
        problems = protocol_problems(asdict(self))
        if problems:
            raise ProtocolError(problems)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Protocol:
        """The named preset (`audited` where none is named) with the other keys laid over it."""
        if not isinstance(data, Mapping):
            raise ProtocolError(["protocol: must be an object"])
        preset = data.get("preset", "audited")
        if not isinstance(preset, str) or preset not in PRESETS:
            others = {key: value for key, value in data.items() if key != "preset"}
            problems = [_choice_problem("preset"), *_override_problems(AUDITED, others)]
            raise ProtocolError(problems)
        return PRESETS[preset].with_overrides(data)

    def with_overrides(self, overrides: Mapping[str, Any]) -> Protocol:
        problems = _override_problems(self, overrides)
        if overrides.get("preset", self.preset) != self.preset:
            # The name alone would change, and the settings that it stands for would not.
            problems.append("preset: cannot be overridden; start from the other preset")
        if problems:
            raise ProtocolError(problems)
        return Protocol(**{**asdict(self), **overrides})


def protocol_problems(values: Mapping[str, Any]) -> list[str]:
    problems = []
    for name, check in _CHECKS.items():
        problem = check(name, values[name])
        if problem is not None:
            problems.append(problem)
    return problems


def _override_problems(base: Protocol, overrides: Mapping[str, Any]) -> list[str]:
    names = [field.name for field in fields(Protocol)]
    unknown = [_unknown_key(key, names) for key in overrides if key not in names]
    known = {key: value for key, value in overrides.items() if key in names}
    return unknown + protocol_problems({**asdict(base), **known})


def _unknown_key(key: object, names: list[str]) -> str:
    close = difflib.get_close_matches(str(key), names, n=1)
    suggestion = f", did you mean {close[0]}?" if close else ""
    return f"{key}: unknown setting{suggestion}"


def _choice_problem(name: str) -> str:
    return f"{name}: must be one of {', '.join(str(choice) for choice in _CHOICES[name])}"


def _check_choice(name: str, value: object) -> str | None:
    # True equals 1, and is not a number of seat orders.
    if not isinstance(value, bool) and value in _CHOICES[name]:
        return None
    return _choice_problem(name)


def _check_range(name: str, value: object) -> str | None:
    low, high = _RANGES[name]
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return None
    return f"{name}: must be a whole number from {low} to {high}"


def _check_language(name: str, value: object) -> str | None:
    if isinstance(value, str) and _LANGUAGE.fullmatch(value):
        return None
    return f"{name}: must be the name of a language in at most 40 letters, such as en, ja or German"


def _check_criteria(name: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip() and len(value) <= CRITERIA_CHARACTER_CAP:
        return None
    return f"{name}: must be text of at most {CRITERIA_CHARACTER_CAP} characters that is not blank, or null"


def _check_flag(name: str, value: object) -> str | None:
    return None if isinstance(value, bool) else f"{name}: must be true or false"


_CHECKS: dict[str, Callable[[str, object], str | None]] = {
    **dict.fromkeys(_CHOICES, _check_choice),
    **dict.fromkeys(_RANGES, _check_range),
    "language": _check_language,
    "criteria": _check_criteria,
    "pdf_as_text": _check_flag,
}

AUDITED = Protocol(
    preset="audited",
    seat_orders=2,
    on_error="abstain",
    on_skip="void",
    aggregation="plurality",
    quorum=2,
    repair_attempts=1,
    server_error_retries=2,
)
MAJORITY = Protocol(
    preset="majority",
    seat_orders=1,
    on_error="tie",
    on_skip="forced_tie",
    aggregation="majority",
    quorum=1,
    repair_attempts=0,
    server_error_retries=2,
)
PRESETS: dict[str, Protocol] = {"audited": AUDITED, "majority": MAJORITY}


def seat_plan(protocol: Protocol, *, seed: int, sequence: int) -> tuple[bool, ...]:
    """For each seat order of a match: does `first` sit in seat A?

    A draw hangs on the seed and the match alone, so it is the same whatever ran before it.
    """
    if protocol.seat_orders == 2:
        return (True, False)
    digest = hashlib.sha256(f"seat:{seed}:{sequence}".encode()).digest()
    return (digest[0] % 2 == 0,)
