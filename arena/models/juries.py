from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models.base import Outcome, PublicModel
from arena.models.calls import PaidCall, PaidCallQuerySet
from arena.models.language_models import LanguageModel
from arena.models.tournaments import Candidate, Match, Tournament


class Jury(PublicModel):
    """A panel and its protocol over the matches of one tournament; a rejudge is a second jury."""

    class Status(models.TextChoices):
        """A primary jury runs and finishes with its tournament; a rejudge has a life of its own."""

        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        FINISHED = "finished", _("finished")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="juries")
    primary = models.BooleanField(default=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.RUNNING)
    # `arena.judging.protocol.Protocol` as JSON: preset, seat orders, quorum, aggregation, language, criteria ...
    protocol = models.JSONField()

    # Of a rejudge alone: the tournament's own stand with the tournament.
    name = models.CharField(_("name"), max_length=200, blank=True)
    reason = models.CharField(max_length=20, choices=Tournament.Reason.choices, blank=True)
    reason_text = models.TextField(blank=True)
    # Matches with higher numbers were planned after it began.
    last_sequence = models.PositiveIntegerField(null=True)
    budget_usd = models.DecimalField(_("budget, $"), max_digits=12, decimal_places=4, null=True, blank=True)
    spent_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    reserved_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tournament"], condition=Q(primary=True), name="jury_one_primary")
        ]

    def __str__(self) -> str:
        return self.name or f"jury of {self.tournament}"

    @property
    def is_active(self) -> bool:
        return self.status in {self.Status.RUNNING, self.Status.PAUSED}


class Judge(models.Model):
    jury = models.ForeignKey(Jury, on_delete=models.CASCADE, related_name="judges")
    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="judgeships")
    position = models.PositiveIntegerField()
    replacement = models.BooleanField(default=False)
    label = models.CharField(max_length=420)
    full_id = models.CharField(max_length=420)
    snapshot = models.JSONField(default=dict)

    class Meta:
        ordering = ["replacement", "position"]
        constraints = [
            models.UniqueConstraint(fields=["jury", "language_model"], name="judge_sits_once"),
            models.UniqueConstraint(fields=["jury", "replacement", "position"], name="judge_position_once"),
        ]

    def __str__(self) -> str:
        return self.label


class Ballot(models.Model):
    """One judge on one match, out of its verdicts in one or two seat orders."""

    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        VOTE = "vote", _("vote")
        ABSTAINED = "abstained", _("abstained")
        FAILED = "failed", _("failed")
        INPUT_SKIPPED = "input_skipped", _("cannot read the files")
        EXCLUDED = "excluded", _("is a contestant")

    jury = models.ForeignKey(Jury, on_delete=models.CASCADE, related_name="ballots")
    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="ballots")
    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="ballots")
    status = models.CharField(max_length=14, choices=Status.choices, default=Status.PENDING)
    vote = models.CharField(max_length=6, choices=Outcome.choices, blank=True)
    flipped = models.BooleanField(default=False)
    # `side`: A against B; `tie`: A or B against tie.
    flip_kind = models.CharField(max_length=5, blank=True)
    # What the judge said, where a record has its words and not its verdicts.
    explanation = models.TextField(blank=True)
    # The failed ballot that a stand-in's ballot replaces.
    replaces = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="stand_in")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["jury", "match", "judge"], name="ballot_once"),
            models.CheckConstraint(
                # A failed ballot counts as a tie where the protocol says so.
                condition=(Q(status="vote") & ~Q(vote=""))
                | (Q(status="failed", vote__in=["", "tie"]))
                | (~Q(status__in=["vote", "failed"]) & Q(vote="")),
                name="ballot_vote_iff_counted",
            ),
        ]
        indexes = [models.Index(fields=["match", "jury"], name="ballot_of_match")]

    def __str__(self) -> str:
        return f"ballot {self.pk}: {self.status}"


class Verdict(PaidCall):
    """One judge call in one seat order."""

    class SeatOrder(models.IntegerChoices):
        FIRST_IN_A = 1, _("first in seat A")
        SECOND_IN_A = 2, _("second in seat A")

    ballot = models.ForeignKey(Ballot, on_delete=models.CASCADE, related_name="verdicts")
    # Copies of the ballot's, so that queue and fan-in need no join.
    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="verdicts")
    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="verdicts")
    # The jury, where it is not the tournament's own: then it pays.
    rejudge = models.ForeignKey(Jury, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    seat_order = models.PositiveSmallIntegerField(choices=SeatOrder.choices)
    # Which seat the judge named: A, B or tie.
    winner = models.CharField(max_length=3, blank=True)
    vote = models.CharField(max_length=6, choices=Outcome.choices, blank=True)
    comment_a = models.TextField(blank=True)
    comment_b = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    error_code = models.CharField(max_length=20, blank=True)
    raw = models.TextField(blank=True)
    repairs = models.PositiveSmallIntegerField(default=0)
    structured = models.CharField(max_length=10, blank=True)
    # An answer over the cap was cut for the judge.
    cut = models.BooleanField(default=False)
    # What came of it before it was called again by hand: error codes, errors, raw replies.
    earlier = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PaidCallQuerySet["Verdict"].as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["ballot", "seat_order"], name="verdict_once_per_seat_order")]
        indexes = [
            models.Index(fields=["provider", "id"], name="verdict_queue", condition=Q(status="queued")),
            models.Index(fields=["lease_until"], name="verdict_running", condition=Q(status="running")),
            models.Index(fields=["match"], name="verdict_unfinished", condition=Q(status__in=["queued", "running"])),
            models.Index(fields=["rejudge", "status"], name="verdict_of_rejudge", condition=Q(rejudge__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"verdict {self.pk}: {self.status}"


class DecisionOutcome(models.TextChoices):
    FIRST = "first", "first"
    SECOND = "second", "second"
    TIE = "tie", "tie"
    INCONCLUSIVE = "inconclusive", _("inconclusive")


class DecisionQuerySet(models.QuerySet["Decision"]):
    def current(self) -> DecisionQuerySet:
        return self.filter(superseded_at=None)

    def rated(self) -> DecisionQuerySet:
        """What may enter a fit: current, conclusive, of a match that was not void.

        A match that the tournament's own jury could not decide may be decided by another one.
        """
        judged = [Match.Status.DECIDED, Match.Status.INCONCLUSIVE]
        return self.current().exclude(outcome=DecisionOutcome.INCONCLUSIVE).filter(match__status__in=judged)


class Decision(models.Model):
    """What a jury said of a match. Retrying a call decides again by a new row, so old evidence stays."""

    jury = models.ForeignKey(Jury, on_delete=models.CASCADE, related_name="decisions")
    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="decisions")
    outcome = models.CharField(max_length=12, choices=DecisionOutcome.choices)
    reason = models.CharField(max_length=40, blank=True)
    counts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    superseded_at = models.DateTimeField(null=True)

    objects = DecisionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["jury", "match"], condition=Q(superseded_at=None), name="decision_one_current"
            )
        ]

    def __str__(self) -> str:
        return f"{self.outcome} ({self.reason})"


class Tally(models.Model):
    """What a jury's matches came to for one candidate: counted in the transaction of each decision.

    Counts exist from the first decision and never wait for a refit; `manage.py recount` makes them anew from the rows.
    """

    jury = models.ForeignKey(Jury, on_delete=models.CASCADE, related_name="tallies")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="tallies")
    wins = models.PositiveIntegerField(default=0)
    losses = models.PositiveIntegerField(default=0)
    ties = models.PositiveIntegerField(default=0)
    inconclusive = models.PositiveIntegerField(default=0)
    # Void matches, those of them recorded as ties that nobody rates, and those where its own answer was missing.
    voids = models.PositiveIntegerField(default=0)
    forced_ties = models.PositiveIntegerField(default=0)
    skips = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["jury", "candidate"], name="tally_once")]

    def __str__(self) -> str:
        return f"{self.wins} won, {self.losses} lost, {self.ties} tied"

    @property
    def decided(self) -> int:
        return self.wins + self.losses + self.ties

    @property
    def win_rate(self) -> float:
        """Nought where nothing is decided. Ties are no wins; half ties are what the win share counts."""
        return self.wins / self.decided if self.decided else 0.0
