"""The two kinds of paid call share their queue columns; every HTTP attempt leaves one `Call`."""

from __future__ import annotations

import datetime as dt
from typing import TypeVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models.language_models import LanguageModel, Provider
from arena.models.teams import Team

_M = TypeVar("_M", bound=models.Model)


class Worker(models.Model):
    """A process that runs calls. It beats; the rows of a silent one are free at once."""

    id = models.CharField(primary_key=True, max_length=40)
    embedded = models.BooleanField(default=False)
    host = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    beat_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.id


class CallStatus(models.TextChoices):
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    # A trial that ended without an answer, a verdict that ended without a winner.
    FAILED = "failed", _("failed")
    # The tournament stopped before it was sent.
    WITHDRAWN = "withdrawn", _("withdrawn")


class PaidCallQuerySet(models.QuerySet[_M]):
    def due(self, now: dt.datetime, *, resend_before: dt.datetime) -> PaidCallQuerySet[_M]:
        """Queued, not waiting for a back-off, and not sent to the broker lately."""
        return self.filter(
            Q(not_before=None) | Q(not_before__lte=now),
            Q(dispatched_at=None) | Q(dispatched_at__lt=resend_before),
            status=CallStatus.QUEUED,
        )

    def unfinished(self) -> PaidCallQuerySet[_M]:
        return self.filter(status__in=[CallStatus.QUEUED, CallStatus.RUNNING])

    def claimable(self, now: dt.datetime) -> PaidCallQuerySet[_M]:
        return self.filter(Q(not_before=None) | Q(not_before__lte=now), status=CallStatus.QUEUED)

    def lost(self, now: dt.datetime) -> PaidCallQuerySet[_M]:
        """Running under a lease that ended or a worker that no longer beats."""
        silent_since = now - dt.timedelta(seconds=settings.WORKER_DEAD_SECONDS)
        alive = Worker.objects.filter(pk=models.OuterRef("worker"), beat_at__gte=silent_since)
        return self.filter(Q(lease_until__lt=now) | ~models.Exists(alive), status=CallStatus.RUNNING)


class PaidCall(models.Model):
    """QUEUED -> RUNNING (claimed by a conditional UPDATE) -> SUCCEEDED | FAILED, or QUEUED again with `not_before`."""

    status = models.CharField(max_length=10, choices=CallStatus.choices, default=CallStatus.QUEUED)
    provider = models.ForeignKey(Provider, null=True, on_delete=models.PROTECT, related_name="+")
    claim_token = models.CharField(max_length=32, blank=True)
    worker = models.CharField(max_length=40, blank=True)
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0)
    waits = models.PositiveSmallIntegerField(default=0)
    # Held against the payer's budget by the claim that runs now.
    reserved_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    finished_at = models.DateTimeField(null=True)

    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    reasoning_tokens = models.PositiveIntegerField(null=True)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    ttft_ms = models.FloatField(null=True)
    duration_ms = models.FloatField(null=True)
    finish_reason = models.CharField(max_length=60, blank=True)
    host = models.CharField(max_length=255, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        abstract = True


class Call(models.Model):
    """One HTTP attempt: probes, retries, repairs and late results included. Append-only; spend is the sum."""

    class Purpose(models.TextChoices):
        TRIAL = "trial", _("trial")
        VERDICT = "verdict", _("verdict")
        PROBE = "probe", _("probe")

    class Status(models.TextChoices):
        OK = "ok", _("ok")
        ERROR = "error", _("error")
        # Its claim was no longer its own when it came back.
        LATE = "late", _("late")
        # Its worker died; whether it was charged is not known.
        LOST = "lost", _("lost")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="calls")
    tournament = models.ForeignKey("arena.Tournament", null=True, on_delete=models.CASCADE, related_name="calls")
    # The jury that paid, where the tournament did not.
    rejudge = models.ForeignKey("arena.Jury", null=True, on_delete=models.SET_NULL, related_name="calls")
    provider = models.ForeignKey(Provider, null=True, on_delete=models.SET_NULL, related_name="+")
    language_model = models.ForeignKey(LanguageModel, null=True, on_delete=models.SET_NULL, related_name="calls")
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    trial = models.ForeignKey("arena.Trial", null=True, on_delete=models.SET_NULL, related_name="calls")
    verdict = models.ForeignKey("arena.Verdict", null=True, on_delete=models.SET_NULL, related_name="calls")
    status = models.CharField(max_length=10, choices=Status.choices)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    duration_ms = models.FloatField(null=True)
    ttft_ms = models.FloatField(null=True)
    host = models.CharField(max_length=255, blank=True)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    reasoning_tokens = models.PositiveIntegerField(null=True)
    # Null is unknown, never nought.
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    cost_source = models.CharField(max_length=200, blank=True)
    input_price_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    output_price_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)

    class Meta:
        indexes = [
            models.Index(fields=["tournament", "purpose"], name="call_of_tournament"),
            models.Index(fields=["team", "-started_at"], name="call_newest_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} call: {self.status}"
