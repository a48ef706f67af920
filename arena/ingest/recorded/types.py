"""A tournament that another program played, in one shape whichever program it was.

What was not recorded is None or empty, and named in `not_recorded`. Sides are a and b as the record has them;
`a_sat_first` says whether side a sat in seat A, and is None where both orders were judged.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal

from arena.ingest.hashing import hash_json
from arena.ingest.types import Problem, SampleDraft

Side = Literal["a", "b", "tie"]
Outcome = Literal["a", "b", "tie", "inconclusive"]
BallotStatus = Literal["vote", "abstained", "failed"]
# Where something stood, and by what name: not part of what was recorded.
NOT_EVIDENCE = ("file", "line", "source")
SkipCode = Literal["", "UNSUPPORTED_INPUT", "CONTEXT_OVERFLOW", "API_ERROR", "TIMEOUT", "EMPTY_ANSWER", "OTHER_ERROR"]


@dataclass(frozen=True, slots=True)
class RecordedPrice:
    """US dollars per million tokens."""

    input_per_million: Decimal
    output_per_million: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class RecordedModel:
    full_id: str
    label: str
    parameters: dict[str, Any] = field(default_factory=dict)
    price: RecordedPrice | None = None


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """`key` tells answers apart: matches that share an answer name the same key."""

    key: str
    model: int
    sample: int
    text: str
    skip_code: SkipCode = ""
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: Decimal | None = None
    ttft_ms: float | None = None
    duration_ms: float | None = None
    finish_reason: str = ""
    truncated: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.skip_code)


@dataclass(frozen=True, slots=True)
class RecordedBallot:
    judge: int
    status: BallotStatus
    vote: Side | None = None
    flipped: bool = False
    replacement: bool = False
    explanation: str = ""
    # The judge's reply as it came, where one call was recorded.
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedMatch:
    file: str
    line: int | None
    sequence: int
    step: int
    sample: int
    a: int
    b: int
    answer_a: str
    answer_b: str
    ballots: tuple[RecordedBallot, ...]
    # None: void.
    outcome: Outcome | None
    a_sat_first: bool | None
    forced_tie: bool = False
    decided_at: dt.datetime | None = None
    # What no column holds, as the record has it.
    recorded: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    source: Literal["orq-arena", "juryarena"]
    source_id: str
    name: str
    samples: tuple[SampleDraft, ...]
    candidates: tuple[RecordedModel, ...]
    judges: tuple[RecordedModel, ...]
    replacement_judges: tuple[RecordedModel, ...]
    answers: tuple[RecordedAnswer, ...]
    matches: tuple[RecordedMatch, ...]
    # Preset and the parts of the protocol that the record names.
    protocol: dict[str, Any]
    pairing: str
    seed: int | None
    planned_matches: int
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    # Figures as the record states them, by a name that says what they are.
    recorded: dict[str, Any]
    not_recorded: tuple[str, ...]
    task_set_name: str = ""

    def content_hash(self) -> str:
        """The same for the same evidence, however its files are named and packed."""
        return hash_json(
            {
                "source": self.source,
                "source_id": self.source_id,
                "samples": [[draft.key, draft.content_hash] for draft in self.samples],
                **{
                    name: [_plain(asdict(entry)) for entry in getattr(self, name)]
                    for name in ("candidates", "judges", "replacement_judges", "answers", "matches")
                },
                "protocol": self.protocol,
                "recorded": _plain(self.recorded),
            }
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in NOT_EVIDENCE}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value


@dataclass(frozen=True, slots=True)
class RunReading:
    """What was read. With an error in it there are no runs: a record is taken whole or not at all."""

    runs: tuple[RecordedRun, ...]
    problems: tuple[Problem, ...]
    error_count: int
    warning_count: int
    refused: bool

    @property
    def clean(self) -> bool:
        return not self.refused and self.error_count == 0 and bool(self.runs)
