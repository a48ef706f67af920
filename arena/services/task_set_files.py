"""Files of uploads and attachments. They are written before the transaction that refers to them, never in it."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.utils.translation import gettext as _

from arena.ingest import AttachmentDraft, Inspection, Limits, inspect_upload, open_attachments
from arena.models import Attachment, Team
from arena.services.task_set_errors import TaskSetError

if TYPE_CHECKING:
    BytesFile = File[bytes]
else:
    BytesFile = File

logger = logging.getLogger(__name__)
CHUNK = 64 * 1024


def upload_limits() -> Limits:
    return Limits(
        packed_bytes=settings.UPLOAD_MAX_PACKED_BYTES,
        unpacked_bytes=settings.UPLOAD_MAX_UNPACKED_BYTES,
        samples=settings.UPLOAD_MAX_SAMPLES,
        pdf_bytes=settings.UPLOAD_MAX_PDF_BYTES,
        pdf_pages=settings.UPLOAD_MAX_PDF_PAGES,
    )


@dataclass(frozen=True, slots=True)
class Upload:
    """A file or folder that was inspected, and what its samples refer to, by the path they use."""

    path: Path
    filename: str
    attachments: Mapping[str, AttachmentDraft]

    @classmethod
    def of(cls, path: Path, filename: str, attachments: Iterable[AttachmentDraft]) -> Upload:
        return cls(path, filename, {draft.path: draft for draft in attachments})


def inspect_path(path: Path, filename: str = "") -> Inspection:
    """Raises TaskSetError where the operating system does not let the file be read."""
    try:
        return inspect_upload(path, filename or path.name, limits=upload_limits())
    except FileNotFoundError as error:
        raise TaskSetError([_("%(path)s does not exist.") % {"path": path}]) from error
    except OSError as error:
        raise TaskSetError(
            [_("%(path)s cannot be read: %(reason)s.") % {"path": path, "reason": error.strerror}]
        ) from error


@contextmanager
def on_disk(file: File[Any]) -> Iterator[Path]:
    """A path to read the file from: its own where it has one, else that of a copy."""
    path = _path_of(file)
    if path is not None:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="upload-", suffix=".bin") as copy:
        for chunk in file.chunks(CHUNK):
            copy.write(chunk)
        copy.flush()
        yield Path(copy.name)


def _path_of(file: File[Any]) -> Path | None:
    if hasattr(file, "temporary_file_path"):
        return Path(file.temporary_file_path())
    try:
        return Path(file.path)  # type: ignore[attr-defined]
    except (AttributeError, NotImplementedError):
        return None  # held in memory, or by a storage that is not a disk


def drop_files(names: Iterable[str]) -> None:
    for name in names:
        try:
            default_storage.delete(name)
        except OSError:
            logger.exception("The file %s could not be removed. Remove it by hand.", name)


class AttachmentVanished(Exception):
    """The team's stored copy went with another task set in the meantime; write it again."""


class AttachmentFiles:
    """Attachments on their way into the storage; what no row refers to in the end is removed again."""

    def __init__(self, team: Team, upload: Upload) -> None:
        self._team = team
        self._upload = upload
        self._written: dict[str, str] = {}

    def write_missing(self, paths: Iterable[str]) -> None:
        drafts = {draft.sha256: draft for draft in (self._upload.attachments[path] for path in paths)}
        missing = drafts.keys() - self._stored(drafts) - self._written.keys()
        if not missing:
            return
        with open_attachments(self._upload.path, self._upload.filename, limits=upload_limits()) as opener:
            for sha256, draft in drafts.items():
                if sha256 in missing:
                    with opener(draft.path) as stream:
                        self._written[sha256] = self._write(draft, stream)

    def _stored(self, sha256s: Iterable[str]) -> set[str]:
        rows = Attachment.objects.filter(team=self._team, sha256__in=list(sha256s))
        return set(rows.values_list("sha256", flat=True))

    def _write(self, draft: AttachmentDraft, stream: BinaryIO) -> str:
        file = HashedFile(stream)
        # The storage adds a suffix where the name is taken, so nobody else's file is written over.
        name = default_storage.save(f"attachments/{self._team.public_id}/{draft.sha256}", file)
        if file.sha256 != draft.sha256:
            drop_files([name])
            raise TaskSetError([_("%(path)s changed while it was read. Try again.") % {"path": draft.path}])
        return name

    def rows(self, paths: Iterable[str]) -> dict[str, Attachment]:
        """The team's attachments by path, made where they are new. Call it while the team is locked."""
        drafts = {path: self._upload.attachments[path] for path in paths}
        sha256s = {draft.sha256: draft for draft in drafts.values()}
        new = sha256s.keys() - self._stored(sha256s)
        if new - self._written.keys():
            raise AttachmentVanished
        Attachment.objects.bulk_create(
            Attachment(
                team=self._team,
                sha256=sha256,
                content_type=draft.content_type,
                size=draft.size,
                pages=draft.pages,
                file=self._written[sha256],
            )
            for sha256, draft in sha256s.items()
            if sha256 in new
        )
        found = Attachment.objects.filter(team=self._team, sha256__in=list(sha256s))
        by_sha256 = {attachment.sha256: attachment for attachment in found}
        return {path: by_sha256[draft.sha256] for path, draft in drafts.items()}

    def drop_unused(self) -> None:
        names = set(self._written.values())
        used = Attachment.objects.filter(team=self._team, file__in=names).values_list("file", flat=True)
        drop_files(names - set(used))


class HashedFile(BytesFile):
    """Hashes what a storage reads from it."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream, name="attachment")
        self._stream = stream
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        while chunk := self._stream.read(chunk_size or CHUNK):
            self._digest.update(chunk)
            yield chunk
