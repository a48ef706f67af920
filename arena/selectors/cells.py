"""Which answers there are, and who takes which files: what planning shows and what steps do must be the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Q

from arena.judging.protocol import Protocol
from arena.judging.skips import LASTING_SKIPS
from arena.models import CallStatus, LanguageModel, SampleAttachment, Trial

# The hash of an input, and the fingerprint of the model that answers it.
Cell = tuple[str, str]
REUSED = Q(status__in=[CallStatus.QUEUED, CallStatus.RUNNING, CallStatus.SUCCEEDED]) | Q(
    status=CallStatus.FAILED, skip_code__in=[code.value for code in LASTING_SKIPS]
)
BATCH = 500


def known_trials(team_id: int, cells: Collection[Cell], *, lock: bool = False) -> dict[Cell, Trial]:
    """The trials, without their texts, that a tournament would use for these cells as they are.

    Locked inside a transaction, none of them can be withdrawn before the tournament that wants them is committed.
    """
    wanted = set(cells)
    fingerprints = {fingerprint for _, fingerprint in wanted}
    hashes = sorted({input_hash for input_hash, _ in wanted})
    found: dict[Cell, Trial] = {}
    for start in range(0, len(hashes), BATCH):
        rows = Trial.objects.filter(
            REUSED,
            team=team_id,
            origin=Trial.Origin.GENERATED,
            fingerprint__in=fingerprints,
            input_hash__in=hashes[start : start + BATCH],
        ).defer("answer", "reasoning", "partial_answer")
        if lock:
            rows = rows.select_for_update(of=("self",))
        # A success after a lasting failure of the same cell is the newer row.
        found.update({(row.input_hash, row.fingerprint): row for row in rows.order_by("pk")})
    return {cell: trial for cell, trial in found.items() if cell in wanted}


def file_types_of(sample_ids: Iterable[int]) -> dict[int, set[str]]:
    types: dict[int, set[str]] = {}
    links = SampleAttachment.objects.filter(sample__in=sample_ids).values_list("sample_id", "attachment__content_type")
    for sample_id, content_type in links:
        types.setdefault(sample_id, set()).add(content_type)
    return types


def refused_types(model: LanguageModel, file_types: Iterable[str]) -> list[str]:
    """The types of file that the model is set to take none of."""
    takes = {"image": model.image_input, "application": model.pdf_input}
    return sorted(kind for kind in file_types if takes[kind.partition("/")[0]] == LanguageModel.Input.NONE)


def reads_as_judge(model: LanguageModel, file_types: Iterable[str], protocol: Protocol) -> bool:
    return all(protocol.pdf_as_text and kind == "application/pdf" for kind in refused_types(model, file_types))
