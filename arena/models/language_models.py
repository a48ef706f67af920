from __future__ import annotations

import hashlib
import json
from urllib.parse import urlsplit

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models.base import PublicModel, make_public_id
from arena.models.teams import Team


class Provider(PublicModel):
    class Kind(models.TextChoices):
        OPENAI = "openai", _("OpenAI-compatible")
        ANTHROPIC = "anthropic", _("Anthropic Messages")
        GEMINI = "gemini", _("Gemini generateContent")
        DEMO = "demo", _("Demo endpoint")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="providers")
    kind = models.CharField(_("wire format"), max_length=20, choices=Kind.choices, default=Kind.OPENAI)
    name = models.SlugField(_("name"), max_length=60)
    base_url = models.CharField(_("base URL"), max_length=500)
    # Encrypted with TILTYARD_FIELD_KEYS; never shown again, never logged.
    encrypted_key = models.TextField(blank=True, editable=False)
    # Or the name of an environment variable that begins with TILTYARD_KEY_.
    key_variable = models.CharField(_("key variable"), max_length=120, blank=True)
    max_concurrency = models.PositiveIntegerField(
        _("calls in flight"), default=8, validators=[MinValueValidator(1), MaxValueValidator(512)]
    )
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    connect_timeout_s = models.FloatField(_("connect timeout, s"), default=10, validators=[MinValueValidator(0.1)])
    # Silence, not duration: a stream that keeps sending is never cut.
    read_timeout_s = models.FloatField(_("silence timeout, s"), default=1200, validators=[MinValueValidator(0.1)])
    judge_timeout_s = models.FloatField(_("judge deadline, s"), default=300, validators=[MinValueValidator(0.1)])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="provider_name_once_per_team"),
            models.CheckConstraint(condition=Q(max_concurrency__gte=1), name="provider_concurrency_positive"),
            models.CheckConstraint(
                condition=Q(key_variable="") | Q(key_variable__startswith="TILTYARD_KEY_"),
                name="provider_key_variable_prefix",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class LanguageModelQuerySet(models.QuerySet["LanguageModel"]):
    def current(self) -> LanguageModelQuerySet:
        return self.filter(superseded_at=None)

    def usable(self) -> LanguageModelQuerySet:
        return self.current().filter(enabled=True)


class LanguageModel(PublicModel):
    """Immutable once used: an edit makes a new row of the lineage."""

    class Input(models.TextChoices):
        NONE = "none", _("not accepted")
        BASE64 = "base64", _("base64 in the message")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="language_models")
    lineage = models.CharField(max_length=16, default=make_public_id)
    superseded_at = models.DateTimeField(null=True, editable=False)
    # Null: its answers are imported.
    provider = models.ForeignKey(
        Provider, null=True, blank=True, on_delete=models.PROTECT, related_name="language_models"
    )
    model_id = models.CharField(_("model id"), max_length=200)
    display_name = models.CharField(_("display name"), max_length=200, blank=True)
    family = models.CharField(_("family"), max_length=80, blank=True)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    pdf_input = models.CharField(_("PDF files"), max_length=10, choices=Input.choices, default=Input.NONE)
    image_input = models.CharField(_("images"), max_length=10, choices=Input.choices, default=Input.NONE)
    context_tokens = models.PositiveIntegerField(_("context, tokens"), null=True, blank=True)
    max_tokens = models.PositiveIntegerField(_("answer limit, tokens"), null=True, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    # Covers what changes an answer: host, model id, system prompt, parameters, input mode. Not price or name.
    fingerprint = models.CharField(max_length=64, editable=False)
    # What the endpoint turned out to accept: structured output mode, refused parameters.
    learned = models.JSONField(default=dict, editable=False)

    objects = LanguageModelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "lineage"], condition=Q(superseded_at=None), name="language_model_one_current"
            ),
        ]
        indexes = [models.Index(fields=["team", "superseded_at"], name="language_model_current")]

    def __str__(self) -> str:
        return self.full_id

    @property
    def full_id(self) -> str:
        """`provider/model_id`: the identity everywhere. Needs `provider` selected along."""
        return f"{self.provider.name}/{self.model_id}" if self.provider else f"imported/{self.model_id}"

    @property
    def label(self) -> str:
        return self.display_name or self.model_id

    def compute_fingerprint(self) -> str:
        """Two models with the same fingerprint would be asked the very same thing."""
        url = urlsplit(self.provider.base_url if self.provider else "")
        host, path = url.netloc.lower(), url.path.rstrip("/")
        if self.provider is not None and self.provider.kind == Provider.Kind.DEMO:
            # It runs on whatever port is free, and is the same endpoint on each.
            host, path = "demo", ""
        identity = {
            "host": host,
            "path": path,
            "model_id": self.model_id,
            "system_prompt": self.system_prompt,
            "parameters": self.parameters,
            "max_tokens": self.max_tokens,
            "pdf_input": self.pdf_input,
            "image_input": self.image_input,
        }
        if self.provider is not None and self.provider.kind in {Provider.Kind.ANTHROPIC, Provider.Kind.GEMINI}:
            # One gateway may serve several formats under one address. Left out for the first, older than this line.
            identity["kind"] = str(self.provider.kind)
        canonical = json.dumps(identity, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class Price(models.Model):
    """US dollars per million tokens. Copied onto each call, so a later price changes no old cost."""

    language_model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="prices")
    input_per_million = models.DecimalField(_("input, $ per million"), max_digits=12, decimal_places=6)
    output_per_million = models.DecimalField(_("output, $ per million"), max_digits=12, decimal_places=6)
    source = models.CharField(_("source"), max_length=200)
    valid_from = models.DateField(_("as of"))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        get_latest_by = ["valid_from", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(input_per_million__gte=0, output_per_million__gte=0), name="price_not_negative"
            )
        ]

    def __str__(self) -> str:
        return f"{self.input_per_million} / {self.output_per_million} ({self.source})"
