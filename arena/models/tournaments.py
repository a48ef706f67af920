from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from arena.models.base import PublicModel
from arena.models.calls import CallStatus, PaidCall, PaidCallQuerySet
from arena.models.language_models import LanguageModel
from arena.models.task_sets import Sample, TaskSet
from arena.models.teams import Team


class Tournament(PublicModel):
    """draft -> running <-> paused; running -> finished | stopped | failed; finished -> running when extended."""

    class Status(models.TextChoices):
        DRAFT = "draft", _("draft")
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        FINISHED = "finished", _("finished")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")

    class Reason(models.TextChoices):
        """Why a tournament is paused, stopped or failed; for `failed` and `budget` a sentence stands beside it."""

        NONE = "", ""
        BY_HAND = "by_hand", _("by hand")
        BUDGET = "budget", _("the budget does not cover the next call")
        NO_ANSWERS = "no_answers", _("no candidate could answer")
        NO_VERDICTS = "no_verdicts", _("no judge could give a verdict")
        EXHAUSTED = "exhausted", _("every pair has met on every sample")

    class Pairing(models.TextChoices):
        ROUND_ROBIN = "round_robin", _("round robin")
        GLICKO2 = "glicko2", _("by uncertainty (Glicko-2)")
        ELO = "elo", _("by rating (Elo)")
        RANDOM = "random", _("random")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tournaments")
    task_set = models.ForeignKey(TaskSet, on_delete=models.PROTECT, related_name="tournaments")
    name = models.CharField(_("name"), max_length=200)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    reason = models.CharField(max_length=20, choices=Reason.choices, blank=True)
    reason_text = models.TextField(blank=True)
    pairing = models.CharField(_("pairing"), max_length=20, choices=Pairing.choices, default=Pairing.ROUND_ROBIN)
    max_matches = models.PositiveIntegerField(_("matches"), validators=[MinValueValidator(1)])
    step_size = models.PositiveIntegerField(_("matches a step"), default=20, validators=[MinValueValidator(1)])
    seed = models.PositiveBigIntegerField(_("seed"), default=1)
    baseline = models.ForeignKey("arena.Candidate", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    baseline_weight = models.FloatField(_("share of matches with the baseline"), null=True, blank=True)
    categories = models.JSONField(default=list)
    budget_usd = models.DecimalField(_("budget, $"), max_digits=12, decimal_places=4, null=True, blank=True)
    # Kept for the budget's conditional UPDATE alone; what pages show is the sum of calls.
    spent_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    reserved_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    settings = models.JSONField(default=dict)
    # Of the evidence of a record that was imported; `settings["imported"]` says what it was.
    imported_hash = models.CharField(max_length=64, blank=True, editable=False)
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["team", "-created_at"], name="tournament_newest_of_team"),
            models.Index(fields=["status"], name="tournament_active", condition=Q(status__in=["running", "paused"])),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(max_matches__gte=1, step_size__gte=1), name="tournament_sizes_positive"),
            models.UniqueConstraint(
                fields=["team", "imported_hash"], condition=~Q(imported_hash=""), name="tournament_imported_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        return self.status in {self.Status.RUNNING, self.Status.PAUSED}

    @property
    def follows_results(self) -> bool:
        """Planned step by step from results, instead of as a whole."""
        return self.pairing in {self.Pairing.GLICKO2, self.Pairing.ELO}


class Candidate(models.Model):
    """A language model entered in a tournament. The snapshot pins what it was, whatever the live settings become."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="candidates")
    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="candidacies")
    position = models.PositiveIntegerField()
    # Falls back to full ids when two would collide; never an identity.
    label = models.CharField(max_length=420)
    full_id = models.CharField(max_length=420)
    snapshot = models.JSONField(default=dict)
    # Whether it sits out now; seen as soon as its third answer in a row failed.
    benched = models.BooleanField(default=False)
    # How it stood at the end of the last complete step, whose number is `counted_steps` and from where the
    # matches of later steps are counted on: failed answers in a row; whether it answered anything yet; the
    # match after which it sits out, and the step with which it comes back.
    counted_steps = models.PositiveIntegerField(default=0)
    failed_in_row = models.PositiveSmallIntegerField(default=0)
    has_answered = models.BooleanField(default=False)
    benched_after = models.PositiveIntegerField(null=True)
    back_in_step = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["tournament", "language_model"], name="candidate_enters_once"),
            models.UniqueConstraint(fields=["tournament", "position"], name="candidate_position_once"),
        ]

    def __str__(self) -> str:
        return self.label


class Step(models.Model):
    class Status(models.TextChoices):
        PLANNED = "planned", _("planned")
        COMPLETE = "complete", _("complete")

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PLANNED)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["tournament", "number"], name="step_number_once")]

    def __str__(self) -> str:
        return f"step {self.number}"


class Trial(PaidCall):
    """One answer of one model configuration to one input; generated once and reused by every match."""

    class Origin(models.TextChoices):
        GENERATED = "generated", _("generated")
        IMPORTED = "imported", _("imported")

    class SkipCode(models.TextChoices):
        NONE = "", ""
        UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT", _("the model takes no such input")
        CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW", _("the input is longer than the model's context")
        API_ERROR = "API_ERROR", _("the provider answered with an error")
        TIMEOUT = "TIMEOUT", _("no answer in time")
        EMPTY_ANSWER = "EMPTY_ANSWER", _("the answer was empty")
        OTHER_ERROR = "OTHER_ERROR", _("another error")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="trials")
    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="trials")
    # One sample that asks for this input; other task sets may hold the same.
    sample = models.ForeignKey(Sample, null=True, on_delete=models.SET_NULL, related_name="trials")
    # The tournament whose task claimed it last.
    payer = models.ForeignKey(Tournament, null=True, on_delete=models.SET_NULL, related_name="paid_trials")
    input_hash = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.GENERATED)
    replicate = models.PositiveIntegerField(default=0)
    skip_code = models.CharField(max_length=20, choices=SkipCode.choices, blank=True)
    answer = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    partial_answer = models.TextField(blank=True)
    truncated = models.BooleanField(default=False)
    characters = models.PositiveIntegerField(null=True)
    markdown_density = models.FloatField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PaidCallQuerySet["Trial"].as_manager()

    class Meta:
        constraints = [
            # A failed trial stays as evidence; a retry is a new row.
            models.UniqueConstraint(
                fields=["team", "input_hash", "fingerprint"],
                condition=Q(origin="generated") & ~Q(status__in=["failed", "withdrawn"]),
                name="trial_generated_once",
            ),
        ]
        indexes = [
            models.Index(fields=["provider", "id"], name="trial_queue", condition=Q(status="queued")),
            models.Index(fields=["lease_until"], name="trial_running", condition=Q(status="running")),
            models.Index(fields=["team", "input_hash", "fingerprint"], name="trial_cache_cell"),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk}: {self.status}"

    @property
    def succeeded(self) -> bool:
        return self.status == CallStatus.SUCCEEDED


class TrialRequest(models.Model):
    """A tournament wants a trial: the trial may run while any running tournament does."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="trial_requests")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="requests")
    # It was there already, so it costs this tournament nothing.
    cached = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tournament", "trial"], name="trial_requested_once")]

    def __str__(self) -> str:
        return f"trial {self.trial_id} for tournament {self.tournament_id}"


class BenchProbe(models.Model):
    """One answer that a benched candidate is asked for in a step, in place of matches."""

    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="probes")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="probes")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="probes")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["step", "candidate"], name="probe_once_a_step")]

    def __str__(self) -> str:
        return f"probe of {self.candidate_id} in {self.step_id}"


class MatchQuerySet(models.QuerySet["Match"]):
    def decided(self) -> MatchQuerySet:
        return self.filter(status=Match.Status.DECIDED)

    def open(self) -> MatchQuerySet:
        return self.filter(status__in=[Match.Status.WAITING, Match.Status.JUDGING])

    def with_sides(self) -> MatchQuerySet:
        return self.select_related("sample", "first", "second", "first_trial", "second_trial")


class Match(PublicModel):
    """waiting for its trials -> judging -> decided | inconclusive; void after a skip.

    Withdrawn by a stop, or while a side is benched; the latter may be waiting again when it comes back.
    """

    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        JUDGING = "judging", _("judging")
        DECIDED = "decided", _("decided")
        INCONCLUSIVE = "inconclusive", _("inconclusive")
        VOID = "void", _("void")
        WITHDRAWN = "withdrawn", _("withdrawn")

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="matches")
    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="matches")
    sequence = models.PositiveIntegerField()
    sample = models.ForeignKey(Sample, on_delete=models.PROTECT, related_name="matches")
    first = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="matches_as_first")
    second = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="matches_as_second")
    first_trial = models.ForeignKey(Trial, null=True, on_delete=models.PROTECT, related_name="matches_as_first")
    second_trial = models.ForeignKey(Trial, null=True, on_delete=models.PROTECT, related_name="matches_as_second")
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.WAITING)
    # Under the majority preset a skipped trial is recorded as a tie that is never rated.
    forced_tie = models.BooleanField(default=False)
    imported = models.BooleanField(default=False)
    # What the record of an imported match says beyond the columns.
    recorded = models.JSONField(default=dict)
    decided_at = models.DateTimeField(null=True)

    objects = MatchQuerySet.as_manager()

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(fields=["tournament", "sequence"], name="match_sequence_once"),
            # The same two cached answers again would be no information.
            models.UniqueConstraint(
                fields=["tournament", "first", "second", "sample"],
                condition=Q(imported=False),
                name="match_pair_meets_once_on_a_sample",
            ),
            models.CheckConstraint(condition=Q(first__lt=F("second")), name="match_canonical_order"),
        ]
        indexes = [
            models.Index(fields=["tournament", "status"], name="match_by_status"),
            models.Index(fields=["first_trial"], name="match_waiting_first", condition=Q(status="waiting")),
            models.Index(fields=["second_trial"], name="match_waiting_second", condition=Q(status="waiting")),
        ]

    def __str__(self) -> str:
        return f"match {self.sequence}"
