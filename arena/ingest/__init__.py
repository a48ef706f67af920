"""Pure readers of uploads: typed drafts, and every problem with file, line and field. Nothing is written."""

from arena.ingest.inspection import inspect_upload, open_attachment, open_attachments, read_samples
from arena.ingest.pdf import PdfReader, PdfReport, read_pdf
from arena.ingest.starter import Starter, list_starters, starter_path
from arena.ingest.types import (
    DEFAULT_LIMITS,
    AttachmentDraft,
    Inspection,
    Limits,
    Problem,
    SampleDraft,
    UploadError,
)
from arena.ingest.writing import export_zip, write_jsonl

__all__ = [
    "DEFAULT_LIMITS",
    "AttachmentDraft",
    "Inspection",
    "Limits",
    "PdfReader",
    "PdfReport",
    "Problem",
    "SampleDraft",
    "Starter",
    "UploadError",
    "export_zip",
    "inspect_upload",
    "list_starters",
    "open_attachment",
    "open_attachments",
    "read_pdf",
    "read_samples",
    "starter_path",
    "write_jsonl",
]
