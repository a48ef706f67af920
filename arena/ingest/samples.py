from __future__ import annotations

from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from arena.ingest.dialects import RawSample
from arena.ingest.hashing import hash_content, hash_input
from arena.ingest.messages import MessageReader
from arena.ingest.problems import Report, clip
from arena.ingest.types import AttachmentDraft, Message, SampleDraft

MAX_KEY = 200
MAX_CATEGORY = 100
MAX_TAG = 100


class LabelReader:
    """Checks the labels of one sample. What is absent and what is null are the same."""

    def __init__(self, raw: RawSample, error: Report) -> None:
        self._raw = raw
        self._error = error

    def _take(self, label: str) -> Any:
        return self._raw.labels.get(label)

    def _complain(self, label: str, message: str) -> None:
        self._error(self._raw.names.get(label, label), message)

    def key(self) -> str | None:
        value = self._take("id")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            self._complain("id", "must be text or a whole number")
            return None
        key = str(value).strip()
        if not key or len(key) > MAX_KEY or not key.isprintable():
            self._complain("id", f"must be 1 to {MAX_KEY} printable characters")
            return None
        return key

    def text(self, label: str, longest: int | None = None) -> str:
        value = self._take(label)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._complain(label, "must be text")
            return ""
        if longest is not None and len(value.strip()) > longest:
            self._complain(label, f"is longer than {longest} characters")
        return value.strip() if longest is not None else value

    def criteria(self) -> str:
        value = self._take("criteria")
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return "\n".join(value)
        if value is not None and not isinstance(value, str):
            self._complain("criteria", "must be text or a list of texts")
            return ""
        return value or ""

    def tags(self) -> tuple[str, ...]:
        value = self._take("tags")
        if isinstance(value, str):
            value = value.replace(";", ",").split(",")
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._complain("tags", "must be a list of texts")
            return ()
        tags = tuple(dict.fromkeys(item.strip() for item in value if item.strip()))
        if any(len(tag) > MAX_TAG for tag in tags):
            self._complain("tags", f"has a tag longer than {MAX_TAG} characters")
        return tags

    def metadata(self, extras: dict[str, Any]) -> dict[str, Any]:
        value = self._take("metadata")
        metadata: dict[str, Any] = {}
        if isinstance(value, dict):
            metadata.update(value)
        elif value is not None:
            self._complain("metadata", "must be an object")
        for key, unknown in {**self._raw.rest, **extras}.items():
            if key in metadata:
                self._error(clip(key), "is an unknown key that metadata holds too; rename one of them")
            metadata[key] = unknown
        return metadata

    def json_schema(self) -> dict[str, Any] | None:
        value = self._take("json_schema")
        if value is None:
            return None
        if not isinstance(value, dict):
            self._complain("json_schema", "must be an object")
            return None
        try:
            validator_for(value, default=jsonschema.Draft202012Validator).check_schema(value)
        except jsonschema.SchemaError as bad:
            self._complain("json_schema", f"is not a JSON schema: {clip(bad.message, 200)}")
        return value


class SampleReader:
    """From a raw sample to the parts of a draft; what is wrong goes to the reports."""

    def __init__(self, raw: RawSample, *, error: Report, warn: Report, image_bytes: int) -> None:
        labels = LabelReader(raw, error)
        reader = MessageReader(error=error, warn=warn, image_bytes=image_bytes)
        self.dialect = raw.dialect
        self.messages: list[Message] = reader.read(raw.messages, raw.messages_field, raw.content_fields)
        self.paths = reader.paths
        self.key = labels.key()
        self.category = labels.text("category", MAX_CATEGORY)
        self.reference = labels.text("reference")
        self.criteria = labels.criteria()
        self.tags = labels.tags()
        self.metadata = labels.metadata(reader.extras)
        self.json_schema = labels.json_schema()

    def draft(
        self, *, position: int, key: str, line: int | None, attachments: dict[str, AttachmentDraft]
    ) -> SampleDraft:
        paths = tuple(self.paths)
        input_hash = hash_input(self.messages, {path: attachments[path].sha256 for path in paths})
        content_hash = hash_content(
            input_hash=input_hash,
            attachment_paths=paths,
            category=self.category,
            reference=self.reference,
            criteria=self.criteria,
            tags=self.tags,
            metadata=self.metadata,
            json_schema=self.json_schema,
        )
        return SampleDraft(
            position=position,
            key=key,
            messages=self.messages,
            category=self.category,
            reference=self.reference,
            criteria=self.criteria,
            tags=self.tags,
            metadata=self.metadata,
            json_schema=self.json_schema,
            attachment_paths=paths,
            input_hash=input_hash,
            content_hash=content_hash,
            source_line=line,
        )
