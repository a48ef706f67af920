from __future__ import annotations

import secrets

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models import LanguageModel, Match, Outcome, PublicModel, Sample, Team, Tournament

MOST_RATERS_PER_PAIR = 50
LARGEST_SHARE = 0.2


def make_secret() -> str:
    return secrets.token_hex(16)


class CampaignQuerySet(models.QuerySet["Campaign"]):
    def open(self) -> CampaignQuerySet:
        return self.filter(status=Campaign.Status.OPEN)


class Campaign(PublicModel):
    """draft -> open -> closed -> revealed; closed -> open as long as no name was revealed."""

    class Status(models.TextChoices):
        DRAFT = "draft", _("draft")
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")
        REVEALED = "revealed", _("revealed")

    class Reveal(models.TextChoices):
        AT_CLOSE = "at_close", _("after the campaign, when an admin reveals them")
        AFTER_VOTE = "after_vote", _("after each vote, which then stands for good")
        NEVER = "never", _("never")

    class Pairing(models.TextChoices):
        BALANCED = "balanced", _("balanced: every pair of candidates equally often")
        INFORMATIVE = "informative", _("informative: the pair whose vote would tell most")
        RANDOM = "random", _("random")

    class SelfIdentification(models.TextChoices):
        FLAG = "flag", _("flag it, and show the answers as they are")
        MASK = "mask", _("put a neutral word in its place")
        EXCLUDE = "exclude", _("leave the match out")

    class ReasonOn(models.TextChoices):
        """Choices that need a tag or a comment."""

        BETTER = "better", _("one answer is better")
        TIE = "tie", _("a tie")
        BOTH_BAD = "both_bad", _("both bad")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="campaigns")
    name = models.CharField(_("name"), max_length=200)
    tournaments: models.ManyToManyField[Tournament, models.Model] = models.ManyToManyField(
        Tournament, related_name="campaigns"
    )
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    # Fixed once the campaign has been opened: places of votes count up to it.
    raters_per_pair = models.PositiveSmallIntegerField(
        _("votes per match"), default=3, validators=[MinValueValidator(1), MaxValueValidator(MOST_RATERS_PER_PAIR)]
    )
    repeat_share = models.FloatField(_("share of repeats"), default=0.08)
    gold_share = models.FloatField(_("share of gold items"), default=0.0)
    allow_both_bad = models.BooleanField(_("offer “both bad”"), default=True)
    # Of `ReasonOn`.
    require_reason_on = models.JSONField(default=list)
    reveal = models.CharField(_("names"), max_length=12, choices=Reveal.choices, default=Reveal.AT_CLOSE)
    pairing = models.CharField(_("pairing"), max_length=12, choices=Pairing.choices, default=Pairing.BALANCED)
    self_identification = models.CharField(
        _("an answer that names its model"),
        max_length=8,
        choices=SelfIdentification.choices,
        default=SelfIdentification.MASK,
    )
    # Votes of those who can open names: in the fits and places, or kept apart.
    counts_unblinded = models.BooleanField(_("count votes of those who can see names"), default=False)
    # Whether sessions of the open link that the anomaly screen rejects are left out of every result.
    screens_sessions = models.BooleanField(default=True)
    # Of a campaign that was read from votes.jsonl: the hash of what the file says.
    imported_hash = models.CharField(max_length=64, blank=True, editable=False)
    # `annotation.selectors.pools.PoolFilter` as JSON.
    filters = models.JSONField(default=dict)
    # Keys every draw of the campaign, so that nobody can work out which answer stands left.
    secret = models.CharField(max_length=32, default=make_secret, editable=False)
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    revealed_at = models.DateTimeField(null=True)

    objects = CampaignQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="campaign_newest_of_team")]
        constraints = [
            models.CheckConstraint(
                condition=Q(raters_per_pair__gte=1, raters_per_pair__lte=MOST_RATERS_PER_PAIR),
                name="campaign_raters_per_pair_in_range",
            ),
            models.CheckConstraint(
                condition=Q(
                    repeat_share__gte=0,
                    repeat_share__lte=LARGEST_SHARE,
                    gold_share__gte=0,
                    gold_share__lte=LARGEST_SHARE,
                ),
                name="campaign_shares_in_range",
            ),
            models.CheckConstraint(
                condition=Q(status="draft") | Q(opened_at__isnull=False), name="campaign_opened_has_time"
            ),
            models.CheckConstraint(
                condition=Q(revealed_at__isnull=True) | Q(status="revealed"), name="campaign_revealed_stays_revealed"
            ),
            models.UniqueConstraint(
                fields=["team", "imported_hash"], condition=~Q(imported_hash=""), name="campaign_imported_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.OPEN


class GuidelineVersion(models.Model):
    """What raters are asked to go by, in Markdown; a change is a new row, and each vote says which it followed."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="guidelines")
    number = models.PositiveIntegerField()
    text = models.TextField()
    created_by = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["campaign", "number"], name="guideline_number_once")]

    def __str__(self) -> str:
        return f"guidelines {self.number}"


class CampaignItem(models.Model):
    """A match in the pool, with the counters that decide whose turn it is; each changes under the row's lock."""

    class State(models.TextChoices):
        # Not searched for names yet, so not served.
        NEW = "new", _("new")
        CLEAN = "clean", _("clean")
        LEAKS = "leaks", _("names a model")
        EXCLUDED = "excluded", _("left out")

    SERVED_STATES = ("clean", "leaks")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="items")
    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="campaign_items")
    state = models.CharField(max_length=8, choices=State.choices, default=State.NEW)
    # What was found in either answer: [start, end] in the normalised text.
    first_leaks = models.JSONField(default=list)
    second_leaks = models.JSONField(default=list)
    # The same two answers have the same key, in whatever tournaments they met.
    answers_key = models.CharField(max_length=64, blank=True)
    # Copies of the match's, so that turns are worked out from this table alone.
    first_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="+")
    second_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="+")
    # Places taken by counted votes.
    counted = models.PositiveIntegerField(default=0)
    # Assignments given out that have no vote yet, expired ones included: orders the pool, decides nothing.
    pending = models.IntegerField(default=0)
    # Normal assignments so far with the first answer left, and with the second.
    first_left = models.PositiveIntegerField(default=0)
    second_left = models.PositiveIntegerField(default=0)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "match"], name="campaign_item_once"),
            models.CheckConstraint(
                condition=Q(state__in=["new", "excluded"]) | ~Q(answers_key=""), name="campaign_item_served_has_key"
            ),
        ]
        indexes = [models.Index(fields=["campaign", "state", "counted"], name="campaign_item_turn")]

    def __str__(self) -> str:
        return f"match {self.match_id} in campaign {self.campaign_id}"


class GoldItem(models.Model):
    """A pair whose answer is known; it measures the rater and never enters a fit."""

    class Origin(models.TextChoices):
        AGREED = "agreed", _("agreed by experts")
        DEGRADED = "degraded", _("one answer made worse")
        IDENTICAL = "identical", _("the same answer twice")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="gold_items")
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="+")
    first_text = models.TextField()
    second_text = models.TextField()
    expected = models.CharField(max_length=6, choices=Outcome.choices)
    origin = models.CharField(max_length=10, choices=Origin.choices)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(origin="identical") | Q(expected="tie"), name="gold_identical_is_a_tie"
            ),
            models.CheckConstraint(condition=Q(expected__in=Outcome.values), name="gold_expected_known"),
        ]

    def __str__(self) -> str:
        return f"gold item {self.pk}"
