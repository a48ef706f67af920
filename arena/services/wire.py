"""From rows to requests: endpoints with their keys, messages with their files, prices."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from arena.encryption import decrypt
from arena.ingest import read_pdf
from arena.judging.prompts import extracted_text
from arena.llm.messages import ChatMessage, Endpoint, FilePart, ImagePart, Part, TextPart
from arena.models import Attachment, LanguageModel, Price, Provider, Sample
from arena.services import known

CONTEXT_SECONDS = 5.0
KEY_HOSTS_PREFIX = "TILTYARD_KEYHOSTS_"


class MissingKey(Exception):
    """The provider's key cannot be had; the message says what to do."""


class MovedEndpoint(MissingKey):
    """The provider's address changed after this version was used; its answers would be those of another endpoint."""


@dataclass(frozen=True)
class ModelContext:
    """What a call needs to know of its model; kept for seconds, so that a thousand calls are not a thousand joins."""

    language_model: LanguageModel
    provider: Provider
    endpoint: Endpoint
    price: Price | None
    loaded_at: float

    @property
    def changes(self) -> list[str]:
        """What the endpoint turned out to refuse, by the names of `arena.llm.fallbacks`."""
        changes: list[str] = self.language_model.learned.get("changes", [])
        return changes


_contexts: dict[int, ModelContext] = {}
_contexts_lock = threading.Lock()


def model_context(language_model_id: int) -> ModelContext:
    now = time.monotonic()
    with _contexts_lock:
        known = _contexts.get(language_model_id)
        if known is not None and now - known.loaded_at < CONTEXT_SECONDS:
            return known
    language_model = LanguageModel.objects.select_related("provider").get(pk=language_model_id)
    if language_model.provider is None:
        raise MissingKey("The answers of this model are imported; it cannot be called.")
    if language_model.superseded_at is not None and language_model.compute_fingerprint() != language_model.fingerprint:
        raise MovedEndpoint("The address of the provider has changed since; use the current version of this model.")
    context = ModelContext(
        language_model=language_model,
        provider=language_model.provider,
        endpoint=endpoint_of(language_model.provider),
        price=current_price(language_model_id),
        loaded_at=now,
    )
    with _contexts_lock:
        if len(_contexts) > 500:
            _contexts.clear()
        _contexts[language_model_id] = context
    return context


def forget_context(language_model_id: int | None = None) -> None:
    with _contexts_lock:
        if language_model_id is None:
            _contexts.clear()
            known.forget()
        else:
            _contexts.pop(language_model_id, None)


def current_price(language_model_id: int) -> Price | None:
    return Price.objects.filter(language_model_id=language_model_id).order_by("valid_from", "id").last()


def provider_key(provider: Provider) -> str | None:
    """The key in the clear; it goes into the endpoint and nowhere else."""
    if provider.key_variable:
        key = os.environ.get(provider.key_variable)
        if not key:
            raise MissingKey(f"The environment variable {provider.key_variable} is not set.")
        _check_host(provider)
        return key
    return decrypt(provider.encrypted_key) if provider.encrypted_key else None


def _check_host(provider: Provider) -> None:
    """The operator may tie a key to hosts, so that no team can send it elsewhere."""
    name = provider.key_variable.replace("TILTYARD_KEY_", KEY_HOSTS_PREFIX, 1)
    hosts = [host.strip().lower() for host in os.environ.get(name, "").split(",") if host.strip()]
    host = (urlsplit(provider.base_url).hostname or "").lower()
    if hosts and host not in hosts:
        raise MissingKey(
            f"The operator has not allowed {provider.key_variable} for {host}; {name} lists where it may go."
        )


def endpoint_of(provider: Provider) -> Endpoint:
    return Endpoint(
        key=f"provider-{provider.pk}",
        kind=provider.kind,
        base_url=provider.base_url,
        api_key=provider_key(provider),
        connect_timeout_s=provider.connect_timeout_s,
        read_timeout_s=provider.read_timeout_s,
        allow_private=settings.ALLOW_PRIVATE_ENDPOINTS,
    )


# Messages ---------------------------------------------------------------------------------------------------
def has_files(messages: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        part.get("type") == "file_ref"
        for message in messages
        if isinstance(message["content"], list)
        for part in message["content"]
    )


def attachments_of(sample: Sample) -> dict[str, Attachment]:
    """The files that a sample names, by the path it names them with; no query where it names none."""
    if not has_files(sample.messages):
        return {}
    links = sample.attachment_links.select_related("attachment")
    return {link.path: link.attachment for link in links}


def _read(attachment: Attachment) -> bytes:
    with attachment.file.open("rb") as file:
        content: bytes = file.read()
    return content


def _part(part: Mapping[str, Any], files: Mapping[str, Attachment]) -> Part:
    match part.get("type"):
        case "text":
            return TextPart(str(part["text"]))
        case "image_url":
            image = part["image_url"]
            return ImagePart(url=image["url"] if isinstance(image, Mapping) else str(image))
        case "file_ref":
            attachment = files[part["path"]]
            data = partial(_read, attachment)
            if attachment.content_type.startswith("image/"):
                return ImagePart(data=data, content_type=attachment.content_type, digest=attachment.sha256)
            name = str(part["path"]).rpartition("/")[2]
            return FilePart(data=data, content_type=attachment.content_type, name=name, digest=attachment.sha256)
        case kind:
            raise ValueError(f"a message part of the unknown type {kind!r}")


def chat_messages(messages: Sequence[Mapping[str, Any]], files: Mapping[str, Attachment]) -> tuple[ChatMessage, ...]:
    result = []
    for message in messages:
        content = message["content"]
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = tuple(_part(part, files) for part in texts)
        extra = {key: value for key, value in message.items() if key not in {"role", "content"}}
        result.append(ChatMessage(str(message["role"]), parts, extra))
    return tuple(result)


def with_pdf_text(
    messages: Sequence[Mapping[str, Any]], files: Mapping[str, Attachment], language: str
) -> list[dict[str, Any]]:
    """For a judge that takes no files: the text of each PDF in its place, marked as extracted."""
    result = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            content = [_as_text(part, files, language) for part in content]
        result.append({**message, "content": content})
    return result


def _as_text(part: Mapping[str, Any], files: Mapping[str, Attachment], language: str) -> Mapping[str, Any]:
    attachment = files.get(part.get("path", "")) if part.get("type") == "file_ref" else None
    if attachment is None or attachment.content_type != "application/pdf":
        return part
    name = str(part["path"]).rpartition("/")[2]
    return {"type": "text", "text": extracted_text(name, pdf_text(attachment), language)}


@lru_cache(maxsize=64)
def _pdf_text(path: str) -> str:
    report = read_pdf(Path(path))
    if report.problem is not None:
        raise OSError(f"The text of {path} cannot be read: {report.problem}")
    return report.text


def pdf_text(attachment: Attachment) -> str:
    return _pdf_text(attachment.file.path)


def candidate_messages(sample_messages: Sequence[Mapping[str, Any]], system_prompt: str) -> list[Mapping[str, Any]]:
    """The sample's messages; a candidate's own system prompt stands in for the sample's."""
    if not system_prompt:
        return list(sample_messages)
    others = [message for message in sample_messages if message["role"] not in {"system", "developer"}]
    return [{"role": "system", "content": system_prompt}, *others]


def count_files(messages: Sequence[ChatMessage], pages: Mapping[str, int | None]) -> tuple[int, int]:
    """PDF pages and images of a request; `pages` by the digest of a file."""
    parts = [part for message in messages for part in message.parts]
    pdf_pages = sum(pages.get(part.digest or "") or 1 for part in parts if isinstance(part, FilePart))
    return pdf_pages, sum(isinstance(part, ImagePart) for part in parts)


def money(value: Decimal | None) -> Decimal | None:
    """As the database holds it; a million dollars for one call is a broken report, not a cost."""
    if value is None or not value.is_finite() or abs(value) >= 1_000_000:
        return None
    return value.quantize(Decimal("0.00000001"))
