"""Boards and their fits. A run is the unit: history is all runs, so the two cannot disagree."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models import Candidate, Jury, LanguageModel, PublicModel, Team, Tournament


class Leaderboard(PublicModel):
    """A scope and a method. It comes to exist when first asked for, so that no refit works for nobody."""

    class Scope(models.TextChoices):
        TOURNAMENT = "tournament", _("one tournament")
        TASK_SET = "task_set", _("one task set")
        TEAM = "team", _("all tournaments of the team")

    class Source(models.TextChoices):
        JURY = "jury", _("juries")
        HUMAN = "human", _("people")
        BOTH = "both", _("juries and people")

    class Errors(models.TextChoices):
        AUTO = "auto", _("by sample, on very large boards by match")
        SAMPLE = "sample", _("by sample: one prompt feeds many matches")
        FISHER = "fisher", _("by match (Fisher)")
        TWO_WAY = "two_way", _("by sample and by rater")

    class Ties(models.TextChoices):
        HALF_WIN = "half_win", _("a tie is half a win for each")
        RAO_KUPPER = "rao_kupper", _("ties have a margin of their own (Rao-Kupper)")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="leaderboards")
    # Everything that tells this board from another one, so that two who open it at once make one row.
    key = models.CharField(max_length=400, unique=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.TOURNAMENT)
    # Of a tournament's board alone; wider boards read the primary jury of every tournament in them.
    tournament = models.ForeignKey(Tournament, null=True, on_delete=models.CASCADE, related_name="leaderboards")
    jury = models.ForeignKey(Jury, null=True, on_delete=models.CASCADE, related_name="leaderboards")
    # All versions of a task set.
    task_set_lineage = models.CharField(max_length=16, blank=True)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.JURY)
    # Empty: all.
    category = models.CharField(max_length=200, blank=True)
    ties = models.CharField(max_length=12, choices=Ties.choices, default=Ties.HALF_WIN)
    # Null: nought while every strong component allows it, else the installation's default.
    ridge = models.FloatField(null=True)
    errors = models.CharField(max_length=10, choices=Errors.choices, default=Errors.AUTO)
    # Of boards with votes: leave out the sessions that the anomaly screen rejects, and take "both bad" for no tie.
    anomaly_filter = models.BooleanField(default=True)
    drop_both_bad = models.BooleanField(default=False)
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
        indexes = [models.Index(fields=["team", "scope"], name="leaderboard_of_team")]
        constraints = [
            models.UniqueConstraint(fields=["jury"], condition=Q(preferred=True), name="leaderboard_one_preferred"),
            models.CheckConstraint(
                condition=Q(scope="tournament", tournament__isnull=False, jury__isnull=False, task_set_lineage="")
                | Q(Q(scope="task_set", tournament=None, jury=None), ~Q(task_set_lineage=""))
                | Q(scope="team", tournament=None, jury=None, task_set_lineage=""),
                name="leaderboard_scope_named",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def is_wide(self) -> bool:
        """Over several tournaments: it rates lineages of language models, not candidates."""
        return self.scope != self.Scope.TOURNAMENT

    @property
    def has_votes(self) -> bool:
        return self.source != self.Source.JURY

    @property
    def has_decisions(self) -> bool:
        return self.source != self.Source.HUMAN


class RatingRunQuerySet(models.QuerySet["RatingRun"]):
    def published(self) -> RatingRunQuerySet:
        return self.filter(converged=True).order_by("-id")


class RatingRun(PublicModel):
    """One fit of a board, with the triples it was fitted on, so that every rating can be derived again."""

    class Mode(models.TextChoices):
        FULL = "full", _("from nothing")
        INCREMENTAL = "incremental", _("from the fit before")

    leaderboard = models.ForeignKey(Leaderboard, on_delete=models.CASCADE, related_name="runs")
    computed_at = models.DateTimeField()
    # Nothing decided after this entered.
    cutoff_at = models.DateTimeField(null=True)
    mode = models.CharField(max_length=12, choices=Mode.choices, default=Mode.FULL)
    # Of the resamples.
    seed = models.PositiveBigIntegerField(default=0)
    resamples = models.PositiveIntegerField(default=0)
    # Standard errors from a difference to its limits: with errors by sample that of Student's t.
    quantile = models.FloatField(default=1.959963984540054)
    # How the intervals were made, whatever the board asked for.
    errors = models.CharField(max_length=10, choices=Leaderboard.Errors.choices, default=Leaderboard.Errors.FISHER)
    # Largest difference to the fit that started from the run before, in standard errors. Null where none was compared.
    drift = models.FloatField(null=True)
    screened_sessions = models.PositiveIntegerField(default=0)
    step_number = models.PositiveIntegerField(null=True)
    ties = models.CharField(max_length=12, choices=Leaderboard.Ties.choices)
    ridge = models.FloatField()
    # A prior was used because the data alone have no finite optimum; the board says so.
    ridge_by_default = models.BooleanField(default=False)
    settings = models.JSONField(default=dict)
    # Rows of [subject id, subject id, outcome, count] and the hash of these and the settings. The subject is a
    # candidate, on wider boards the newest language model of a lineage.
    triples = models.JSONField()
    evidence_hash = models.CharField(max_length=64)
    roster = models.JSONField()
    vector = models.JSONField()
    eta = models.FloatField(null=True)
    eta_unbounded = models.BooleanField(default=False)
    comparisons = models.PositiveIntegerField()
    # Different samples behind the comparisons.
    samples = models.PositiveIntegerField()
    # Tournaments behind them, and comparisons of the same two answers left out since a later one counts.
    tournaments = models.PositiveIntegerField(default=1)
    # Of the comparisons those that people made, and how many people.
    votes = models.PositiveIntegerField(default=0)
    raters = models.PositiveIntegerField(default=0)
    # Sessions that the anomaly screen looked at, with those it rejected. Null: no votes in this board.
    screening = models.JSONField(null=True)
    # How the board moves without the rater who voted most. Null: fewer than two, or too many votes to tell them apart.
    without_busiest = models.JSONField(null=True)
    # On a mixed board: counts and ratings of juries and of people, each by itself.
    sources = models.JSONField(null=True)
    repeated = models.PositiveIntegerField(default=0)
    # First of the largest component.
    leader = models.ForeignKey(Candidate, null=True, on_delete=models.CASCADE, related_name="+")
    leader_label = models.CharField(max_length=420, blank=True)
    # Per component, in display points squared; null above the size where it is no longer worth its space.
    covariance = models.JSONField(null=True)
    # Per component: shares of resamples in which the row was ahead of the column. Null above the same size.
    ahead = models.JSONField(null=True)
    # Leader against runner-up of the largest component, from the resamples.
    separation = models.JSONField(null=True)
    # Ratings by category, with the counts of those too thin to rate. Null: not looked at in this run.
    slices = models.JSONField(null=True)
    # How often the longer answer won, and what length does to the ratings. Null: not looked at in this run.
    length = models.JSONField(null=True)
    style = models.JSONField(null=True)
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
    # On a tournament's board.
    candidate = models.ForeignKey(Candidate, null=True, on_delete=models.CASCADE, related_name="ratings")
    # On a wider board: the newest version that played, for all of its lineage.
    language_model = models.ForeignKey(LanguageModel, null=True, on_delete=models.CASCADE, related_name="ratings")
    lineage = models.CharField(max_length=16, blank=True)
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
    # Limits of the rank, and the share of first places, over the resamples.
    rank_lower = models.PositiveIntegerField(null=True)
    rank_upper = models.PositiveIntegerField(null=True)
    first_share = models.FloatField(null=True)
    # Those of one tier are not told apart.
    tier = models.PositiveIntegerField(null=True)
    # With length held equal, where its effect is identified; and with all features of style held equal.
    length_adjusted = models.FloatField(null=True)
    style_controlled_rating = models.FloatField(null=True)
    style_controlled_std_error = models.FloatField(null=True)
    style_controlled_ci_lower = models.FloatField(null=True)
    style_controlled_ci_upper = models.FloatField(null=True)
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
        constraints = [
            models.UniqueConstraint(fields=["run", "candidate"], name="rating_once_per_run"),
            models.UniqueConstraint(fields=["run", "language_model"], name="rating_of_model_once_per_run"),
            models.CheckConstraint(
                condition=Q(candidate=None, language_model__isnull=False)
                | Q(candidate__isnull=False, language_model=None),
                name="rating_of_one_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.rating}"

    @property
    def subject(self) -> Candidate | LanguageModel:
        found = self.candidate or self.language_model
        assert found is not None
        return found


class StyleCoefficient(models.Model):
    """What a feature of an answer is worth beside its quality, in one run; on the display scale, per deviation."""

    run = models.ForeignKey(RatingRun, on_delete=models.CASCADE, related_name="style_coefficients")
    feature = models.CharField(max_length=40)
    value = models.FloatField()
    std_error = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "feature"], name="style_coefficient_once_per_run")]

    def __str__(self) -> str:
        return f"{self.feature}: {self.value}"
