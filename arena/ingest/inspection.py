from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from arena.ingest.archive import MAGIC, open_zip
from arena.ingest.attachments import AttachmentReader
from arena.ingest.dialects import JURY_ARENA, OURS
from arena.ingest.paths import BadPath, clean_path, suffix_of
from arena.ingest.pdf import PdfReader
from arena.ingest.problems import ProblemLog, clip
from arena.ingest.reading import UploadPass
from arena.ingest.sniff import describe
from arena.ingest.sources import SAMPLES_SUFFIXES, PlainSource, Source, open_folder
from arena.ingest.types import (
    DEFAULT_LIMITS,
    PREVIEW_SAMPLES,
    Inspection,
    Limits,
    Problem,
    SampleDraft,
    SourceError,
    UploadError,
)


def inspect_upload(path: Path, filename: str, *, limits: Limits = DEFAULT_LIMITS) -> Inspection:
    """Reads an upload (a file or a folder) once and says all that is wrong with it. Writes nothing."""
    preview: list[SampleDraft] = []
    categories: Counter[str] = Counter()
    log = ProblemLog(_shown_name(filename), limits.stored_problems)
    with _opened(path, filename, limits, log) as source:
        if source is None:
            return _inspection(log, None, None, preview, categories)
        with PdfReader(limits) as pdf_reader:
            attachments = AttachmentReader(source, limits, log, pdf_reader)
            upload = UploadPass(source, limits, log, attachments)
            for sample in upload.samples():
                categories[sample.category] += 1
                if len(preview) < PREVIEW_SAMPLES:
                    preview.append(sample)
            return _inspection(log, upload, attachments, preview, categories)


def read_samples(
    path: Path, filename: str, *, limits: Limits = DEFAULT_LIMITS, only_good: bool = False
) -> Iterator[SampleDraft]:
    """The samples of an upload, streamed. Raises UploadError at the first error, or, with only_good, if the
    whole upload is refused; that may be after samples were yielded, so take them in one transaction."""
    log = ProblemLog(_shown_name(filename), limits.stored_problems)
    with _opened(path, filename, limits, log) as source:
        if source is not None:
            with PdfReader(limits) as pdf_reader:
                attachments = AttachmentReader(source, limits, log, pdf_reader)
                for sample in UploadPass(source, limits, log, attachments).samples():
                    _raise_if_bad(log, only_good=only_good)
                    yield sample
        _raise_if_bad(log, only_good=only_good)


@contextmanager
def open_attachment(
    path: Path, filename: str, attachment_path: str, *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[BinaryIO]:
    """The bytes of one attachment, by the path in SampleDraft.attachment_paths."""
    with open_attachments(path, filename, limits=limits) as opener, opener(attachment_path) as stream:
        yield stream


@contextmanager
def open_attachments(
    path: Path, filename: str, *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Callable[[str], AbstractContextManager[BinaryIO]]]:
    """For many attachments of one upload: an archive is opened and checked once, not once for each of them."""
    log = ProblemLog(_shown_name(filename), limits.stored_problems)
    with _opened(path, filename, limits, log) as source:
        if source is None:
            _raise_if_bad(log, only_good=False)
            raise UploadError(Problem(_shown_name(filename), None, None, "cannot be read"))
        yield lambda attachment_path: _attachment(source, attachment_path)


@contextmanager
def _attachment(source: Source, attachment_path: str) -> Iterator[BinaryIO]:
    try:
        real = source.find(clean_path(attachment_path))
    except BadPath:
        real = None
    if real is None:
        raise UploadError(Problem(clip(attachment_path, 200), None, None, "is not in the upload"))
    try:
        with source.open(real) as stream:
            yield stream
    except SourceError as bad:
        raise UploadError(Problem(clip(real, 200), None, None, str(bad))) from bad


def _raise_if_bad(log: ProblemLog, *, only_good: bool) -> None:
    problem = log.first_refusal if only_good else log.first_error()
    if problem is not None:
        raise UploadError(problem)


def _shown_name(filename: str) -> str:
    name = PurePosixPath(filename.replace("\\", "/"))
    # The suffix stays whole, as it decides how the file is read.
    return clip(name.stem or "upload", 110) + clip(name.suffix, 10)


@contextmanager
def _opened(path: Path, filename: str, limits: Limits, log: ProblemLog) -> Iterator[Source | None]:
    source = _open(path, filename, limits, log)
    if source is None:
        yield None
        return
    log.file = source.samples_name
    try:
        yield source
    finally:
        source.close()


def _open(path: Path, filename: str, limits: Limits, log: ProblemLog) -> Source | None:
    if path.is_dir():
        return open_folder(path, limits, log)
    size = path.stat().st_size
    if size == 0:
        log.refuse("is empty")
        return None
    if size > limits.packed_bytes:
        log.refuse(f"is {size:,} bytes large; the limit is {limits.packed_bytes:,}")
        return None
    with path.open("rb") as stream:
        head = stream.read(1024)
    suffix = suffix_of(filename.lower())
    if head.startswith(MAGIC) and suffix not in (".xlsx", ".docx", ".ods"):
        return open_zip(path, limits, log)
    if suffix == ".zip":
        return _refuse(log, "is not a ZIP archive", head)
    if suffix in (*SAMPLES_SUFFIXES, ".json"):
        return PlainSource(path, log.file)
    return _refuse(log, "is not a kind of file that can be read here (JSONL, CSV, TSV or ZIP)", head)


def _refuse(log: ProblemLog, message: str, head: bytes) -> Source | None:
    found = describe(head)
    log.refuse(message if found == "of an unknown kind" else f"{message}; it is {found}")
    return None


def _inspection(
    log: ProblemLog,
    upload: UploadPass | None,
    attachments: AttachmentReader | None,
    preview: list[SampleDraft],
    categories: Counter[str],
) -> Inspection:
    dialects = dict(upload.dialects) if upload else {}
    return Inspection(
        dialect=_dialect(dialects),
        sample_count=upload.sample_count if upload else 0,
        good_count=upload.good_count if upload else 0,
        problems=log.problems(),
        error_count=log.error_count,
        warning_count=log.warning_count,
        refused=log.refused,
        preview=tuple(preview),
        categories=dict(categories),
        attachments=attachments.drafts() if attachments else (),
        content_hash=upload.set_hash.hexdigest() if upload else "",
        dialects=dialects,
    )


def _dialect(dialects: dict[str, int]) -> str:
    if dialects.keys() == {OURS, JURY_ARENA}:
        return OURS
    return next(iter(dialects), "") if len(dialects) <= 1 else "mixed"
