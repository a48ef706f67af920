"""Boards and their fits. A run is the unit: history is all runs, so the two cannot disagree."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models import Candidate, Jury, PublicModel, Team, Tournament


class Leaderboard(PublicModel):
    """A scope and a method. It comes to exist when first asked for."""

    class Source(models.TextChoices):
        JURY = "jury", _("jury")

    class Ties(models.TextChoices):
        HALF_WIN = "half_win", _("a tie is half a win for each")
        RAO_KUPPER = "rao_kupper", _("ties have a margin of their own (Rao-Kupper)")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="leaderboards")
    key = models.CharField(max_length=120, unique=True)
    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="leaderboards")
    jury = models.ForeignKey(Jury, on_delete=models.CASCADE, related_name="leaderboards")
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.JURY)
    ties = models.CharField(max_length=12, choices=Ties.choices, default=Ties.HALF_WIN)
    # Null: nought while every strong component allows it, else the installation's default.
    ridge = models.FloatField(null=True)
    # The board that a page shows when no tie model is asked for.
    preferred = models.BooleanField(default=False)
    # A refit claims the board by lease.
    lease_until = models.DateTimeField(null=True)
    lease_token = models.CharField(max_length=32, blank=True)
    refit_wanted_at = models.DateTimeField(null=True)
    # What the rows looked like when a refit last read them (`ratings.dataset.Marks`), whether or not it wrote a run.
    checked = models.JSONField(default=dict)
    checked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["jury"], condition=Q(preferred=True), name="leaderboard_one_preferred")
        ]

    def __str__(self) -> str:
        return self.key


class RatingRunQuerySet(models.QuerySet["RatingRun"]):
    def published(self) -> RatingRunQuerySet:
        return self.filter(converged=True).order_by("-id")


class RatingRun(PublicModel):
    """One fit of a board, with the triples it was fitted on, so that every rating can be derived again."""

    leaderboard = models.ForeignKey(Leaderboard, on_delete=models.CASCADE, related_name="runs")
    computed_at = models.DateTimeField()
    step_number = models.PositiveIntegerField(null=True)
    ties = models.CharField(max_length=12, choices=Leaderboard.Ties.choices)
    ridge = models.FloatField()
    # A prior was used because the data alone have no finite optimum; the board says so.
    ridge_by_default = models.BooleanField(default=False)
    settings = models.JSONField(default=dict)
    # Rows of [candidate id, candidate id, outcome, count] and the hash of these and the settings.
    triples = models.JSONField()
    evidence_hash = models.CharField(max_length=64)
    roster = models.JSONField()
    vector = models.JSONField()
    eta = models.FloatField(null=True)
    eta_unbounded = models.BooleanField(default=False)
    comparisons = models.PositiveIntegerField()
    # Different samples behind the comparisons.
    samples = models.PositiveIntegerField()
    # First of the largest component.
    leader = models.ForeignKey(Candidate, null=True, on_delete=models.CASCADE, related_name="+")
    # Per component, in display points squared; null above the size where it is no longer worth its space.
    covariance = models.JSONField(null=True)
    iterations = models.PositiveIntegerField()
    gradient_norm = models.FloatField()
    converged = models.BooleanField()
    duration_ms = models.FloatField()

    objects = RatingRunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["leaderboard", "-id"], name="rating_run_newest", condition=Q(converged=True))]

    def __str__(self) -> str:
        return f"run of {self.leaderboard}"


class Rating(models.Model):
    """One candidate in one run, on the display scale. Null where the data support no number."""

    run = models.ForeignKey(RatingRun, on_delete=models.CASCADE, related_name="ratings")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="ratings")
    rating = models.FloatField(null=True)
    rating_std_error = models.FloatField(null=True)
    # A null end beside a rating is an open end.
    ci_lower = models.FloatField(null=True)
    ci_upper = models.FloatField(null=True)
    component_id = models.PositiveIntegerField(null=True)
    # Candidates of one group have a difference that is finite without a prior.
    group_id = models.PositiveIntegerField(null=True)
    # Places of its component that the 95 % intervals of the differences leave open.
    rank = models.PositiveIntegerField(null=True)
    rank_from = models.PositiveIntegerField(null=True)
    rank_to = models.PositiveIntegerField(null=True)
    # Of its difference to the next in rank, and whether that difference is more than chance.
    next_std_error = models.FloatField(null=True)
    ahead_of_next = models.BooleanField(null=True)
    win_share = models.FloatField(null=True)
    # Only the prior keeps it at a finite distance from the others.
    held_by_prior = models.BooleanField(default=False)
    games = models.PositiveIntegerField()
    wins = models.PositiveIntegerField()
    losses = models.PositiveIntegerField()
    ties = models.PositiveIntegerField()
    # Over the answers that its matches used. Null is unknown, never nought.
    answers = models.PositiveIntegerField(default=0)
    priced_answers = models.PositiveIntegerField(default=0)
    mean_cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    median_latency_ms = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "candidate"], name="rating_once_per_run")]

    def __str__(self) -> str:
        return f"{self.candidate}: {self.rating}"
