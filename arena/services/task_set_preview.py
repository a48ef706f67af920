"""What is kept of an inspection beside the draft: enough for its page, however large the upload is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arena.ingest import AttachmentDraft, Inspection, Problem, SampleDraft
from arena.llm.text import storable
from arena.services.task_set_spool import text_of

PREVIEW_SAMPLES = 5
PREVIEW_CHARACTERS = 4_000
SHOWN_CATEGORIES = 100


def inspection_json(inspection: Inspection) -> dict[str, Any]:
    largest = sorted(inspection.categories.items(), key=lambda item: (-item[1], item[0]))
    return {
        "dialect": inspection.dialect,
        "sample_count": inspection.sample_count,
        "good_count": inspection.good_count,
        "error_count": inspection.error_count,
        "warning_count": inspection.warning_count,
        "refused": inspection.refused,
        "clean": inspection.clean,
        "usable": inspection.usable,
        "content_hash": inspection.content_hash,
        "problems": [
            {
                "file": storable(problem.file),
                "line": problem.line,
                "field": storable(problem.field or ""),
                "message": storable(problem.message),
                "severity": problem.severity,
                "text": storable(str(problem)),
            }
            for problem in _by_weight(inspection.problems)
        ],
        "categories": [{"name": name, "samples": count} for name, count in largest[:SHOWN_CATEGORIES]],
        "category_count": len(largest),
        "attachments": [_attachment(draft) for draft in inspection.attachments],
        "preview": [_sample(sample) for sample in inspection.preview[:PREVIEW_SAMPLES]],
    }


def _by_weight(problems: Sequence[Problem]) -> list[Problem]:
    """What stops the whole upload, then what stops a sample, then warnings: a page shows only the first ones."""
    return sorted(problems, key=lambda problem: (problem.severity == "warning", problem.line is not None))


def _attachment(draft: AttachmentDraft) -> dict[str, Any]:
    # Without the text: ten thousand excerpts would be 20 MB in one row.
    return {
        "path": draft.path,
        "sha256": draft.sha256,
        "size": draft.size,
        "content_type": draft.content_type,
        "pages": draft.pages,
    }


def _sample(sample: SampleDraft) -> dict[str, Any]:
    messages = []
    left = PREVIEW_CHARACTERS
    for message in sample.messages:
        text = text_of([message], left + 1)
        messages.append({"role": message["role"], "text": text[:left], "cut": len(text) > left})
        left -= len(text)
        if left <= 0:
            break
    return {
        "position": sample.position,
        "key": sample.key,
        "category": sample.category,
        "messages": messages,
        "more_messages": len(sample.messages) - len(messages),
        "reference": sample.reference[:PREVIEW_CHARACTERS],
        "attachments": list(sample.attachment_paths[:20]),
    }
