from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning"]
# JSON as it was read: a message is {"role", "content", ...}, a part {"type", ...}.
Message = dict[str, Any]
Part = dict[str, Any]

PREVIEW_SAMPLES = 20
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    packed_bytes: int = 200 * MEGABYTE
    unpacked_bytes: int = 1024 * MEGABYTE
    ratio: int = 100
    archive_entries: int = 10_000
    samples: int = 5_000
    line_bytes: int = 20 * MEGABYTE
    image_bytes: int = 20 * MEGABYTE
    pdf_bytes: int = 50 * MEGABYTE
    pdf_pages: int = 500
    pdf_seconds: float = 20.0
    pdf_memory_bytes: int = 1024 * MEGABYTE
    pdf_text_characters: int = 200_000
    excerpt_characters: int = 2_000
    stored_problems: int = 1_000


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Problem:
    file: str
    line: int | None
    field: str | None
    message: str
    severity: Severity = "error"

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file} line {self.line}"
        return ": ".join(part for part in (where, self.field, self.message) if part)


@dataclass(frozen=True, slots=True)
class AttachmentDraft:
    path: str
    sha256: str
    size: int
    content_type: str
    pages: int | None = None
    text_excerpt: str = ""
    has_text: bool = False


@dataclass(frozen=True, slots=True)
class SampleDraft:
    position: int
    key: str
    messages: list[Message]
    category: str
    reference: str
    criteria: str
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    json_schema: dict[str, Any] | None
    attachment_paths: tuple[str, ...]
    input_hash: str
    content_hash: str
    source_line: int | None


@dataclass(frozen=True, slots=True)
class Inspection:
    dialect: str
    sample_count: int
    good_count: int
    problems: tuple[Problem, ...]
    error_count: int
    warning_count: int
    refused: bool
    preview: tuple[SampleDraft, ...]
    categories: Mapping[str, int]
    attachments: tuple[AttachmentDraft, ...]
    content_hash: str
    dialects: Mapping[str, int] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not self.refused and self.error_count == 0 and self.good_count > 0

    @property
    def usable(self) -> bool:
        """At least the good samples can be imported."""
        return not self.refused and self.good_count > 0

    @property
    def problem_count(self) -> int:
        return self.error_count + self.warning_count


class UploadError(Exception):
    """An upload, or a sample in it, that cannot be taken."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class SourceError(Exception):
    """A stream that stops being readable part of the way: damaged, or over a limit."""
