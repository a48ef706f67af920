from __future__ import annotations

import secrets

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models.campaigns import Campaign, CampaignItem, GoldItem
from annotation.models.raters import Rater
from arena.models import Candidate, Match, Outcome


def make_assignment_token() -> str:
    """128 random bits: all that a browser learns of a pair before the vote."""
    return secrets.token_hex(16)


class Side(models.TextChoices):
    """Which of a pair's two answers, in its canonical order."""

    FIRST = "first", "first"
    SECOND = "second", "second"


class Assignment(models.Model):
    """A pair given to one rater, with the sides as the screen shows them."""

    class Kind(models.TextChoices):
        NORMAL = "normal", _("normal")
        GOLD = "gold", _("gold")
        REPEAT = "repeat", _("repeat")

    token = models.CharField(max_length=32, unique=True, default=make_assignment_token, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="assignments")
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="assignments")
    kind = models.CharField(max_length=6, choices=Kind.choices, default=Kind.NORMAL)
    # Null for gold.
    item = models.ForeignKey(CampaignItem, null=True, on_delete=models.CASCADE, related_name="assignments")
    match = models.ForeignKey(Match, null=True, on_delete=models.CASCADE, related_name="assignments")
    gold_item = models.ForeignKey(GoldItem, null=True, on_delete=models.CASCADE, related_name="assignments")
    repeat_of = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="repeat")
    answers_key = models.CharField(max_length=64)
    left = models.CharField(max_length=6, choices=Side.choices)
    right = models.CharField(max_length=6, choices=Side.choices)
    # The number of this assignment among the rater's own, from 1.
    position = models.PositiveIntegerField()
    served_at = models.DateTimeField(auto_now_add=True)
    # Soft: afterwards others may have the place, and typed work is still accepted.
    lease_until = models.DateTimeField()
    # A vote or skip stands.
    answered = models.BooleanField(default=False)
    # Tags and comments typed so far.
    draft = models.JSONField(default=dict)
    leak_reported_at = models.DateTimeField(null=True)
    leak_note = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rater", "match", "kind"], name="assignment_once_per_kind"),
            models.UniqueConstraint(fields=["rater", "gold_item"], name="assignment_gold_once"),
            models.UniqueConstraint(fields=["rater", "position"], name="assignment_position_once"),
            # The same two answers come back as a repeat alone.
            models.UniqueConstraint(
                fields=["rater", "answers_key"], condition=Q(kind="normal"), name="assignment_answers_once"
            ),
            models.CheckConstraint(condition=~Q(left=F("right")), name="assignment_sides_differ"),
            models.CheckConstraint(
                condition=Q(left__in=Side.values, right__in=Side.values), name="assignment_sides_known"
            ),
            models.CheckConstraint(
                condition=Q(kind="gold", gold_item__isnull=False, match__isnull=True, item__isnull=True)
                | Q(kind__in=["normal", "repeat"], gold_item__isnull=True, match__isnull=False, item__isnull=False),
                name="assignment_gold_or_match",
            ),
            models.CheckConstraint(
                condition=Q(kind="repeat", repeat_of__isnull=False) | (~Q(kind="repeat") & Q(repeat_of__isnull=True)),
                name="assignment_repeat_names_original",
            ),
        ]
        indexes = [
            models.Index(
                fields=["item", "lease_until"], name="assignment_live", condition=Q(answered=False, kind="normal")
            ),
            models.Index(fields=["rater", "position"], name="assignment_open", condition=Q(answered=False)),
        ]

    def __str__(self) -> str:
        return f"assignment {self.pk}: {self.kind}"


class VoteQuerySet(models.QuerySet["Vote"]):
    def current(self) -> VoteQuerySet:
        return self.filter(is_current=True)

    def counted(self) -> VoteQuerySet:
        """What enters a fit: current votes on normal pairs that have a place."""
        return self.filter(is_current=True, standing=Vote.Standing.COUNTED)


class Vote(models.Model):
    """Append-only: an edit or undo is a new row that names the one it supersedes."""

    class Choice(models.TextChoices):
        LEFT = "left", _("the left answer is better")
        RIGHT = "right", _("the right answer is better")
        BOTH_GOOD = "both_good", _("a tie")
        BOTH_BAD = "both_bad", _("both are bad")
        SKIP = "skip", _("skipped")
        UNDONE = "undone", _("taken back")

    class Standing(models.TextChoices):
        """Whether it counts, and if not, why."""

        COUNTED = "counted", _("counted")
        OVER_QUOTA = "over_quota", _("more votes than asked for")
        COULD_SEE_NAMES = "could_see_names", _("by somebody who can see names")
        REPEAT = "repeat", _("a repeat")
        GOLD = "gold", _("a gold item")
        NO_CHOICE = "no_choice", _("skipped or taken back")

    class SkipReason(models.TextChoices):
        NOT_MY_FIELD = "not_my_field", _("I know too little of the subject")
        LANGUAGE = "language", _("I do not read this language well")
        CANNOT_TELL = "cannot_tell", _("I cannot tell which is better")
        BROKEN = "broken", _("Something is not shown as it should be")
        NAMES_A_MODEL = "names_a_model", _("An answer says which model it is")
        OTHER = "other", _("Another reason")

    class Tag(models.TextChoices):
        WRONG = "wrong", _("wrong")
        INCOMPLETE = "incomplete", _("incomplete")
        INVENTED = "invented", _("invented")
        FORMAT = "format", _("format")
        TONE = "tone", _("tone")
        TOO_LONG = "too_long", _("too long")
        IGNORES_DOCUMENT = "ignores_document", _("ignores the document")

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="votes")
    # Copies of the assignment's, so that places are held by the database and boards need no join.
    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="votes")
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="votes")
    match = models.ForeignKey(Match, null=True, on_delete=models.CASCADE, related_name="votes")
    # As the browser said it, and what it means in the canonical order of the match or gold item.
    choice = models.CharField(max_length=10, choices=Choice.choices)
    outcome = models.CharField(max_length=6, choices=Outcome.choices, blank=True)
    standing = models.CharField(max_length=16, choices=Standing.choices)
    # 1 to `places`, which was the campaign's `raters_per_pair`; null where the vote is not counted.
    place = models.PositiveSmallIntegerField(null=True)
    places = models.PositiveSmallIntegerField()
    # Of `Tag`, in the canonical order like the comments.
    first_tags = models.JSONField(default=list)
    second_tags = models.JSONField(default=list)
    first_comment = models.TextField(blank=True)
    second_comment = models.TextField(blank=True)
    reason = models.CharField(max_length=16, choices=SkipReason.choices, blank=True)
    note = models.TextField(blank=True)
    idempotency_key = models.CharField(max_length=64)
    supersedes = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="superseded_by")
    is_current = models.BooleanField(default=True)
    # The rater could open the names of this campaign when voting.
    could_see_names = models.BooleanField(default=False)
    # Of the visible tab, idle time cut; null without scripts.
    active_ms = models.PositiveIntegerField(null=True)
    guideline_version = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = VoteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assignment"], condition=Q(is_current=True), name="vote_one_current"),
            models.UniqueConstraint(fields=["assignment", "idempotency_key"], name="vote_key_once"),
            models.UniqueConstraint(
                fields=["campaign", "match", "place"],
                condition=Q(is_current=True, place__isnull=False),
                name="vote_place_once",
            ),
            models.CheckConstraint(
                condition=Q(place__isnull=True) | Q(place__gte=1, place__lte=F("places")), name="vote_place_in_range"
            ),
            models.CheckConstraint(
                condition=Q(standing="counted", place__isnull=False, match__isnull=False)
                | (~Q(standing="counted") & Q(place__isnull=True)),
                name="vote_counted_iff_place",
            ),
            models.CheckConstraint(
                condition=Q(choice__in=["left", "right"], outcome__in=["first", "second"])
                | Q(choice__in=["both_good", "both_bad"], outcome="tie")
                | Q(choice__in=["skip", "undone"], outcome="", standing="no_choice"),
                name="vote_outcome_follows_choice",
            ),
            models.CheckConstraint(
                condition=(Q(choice="skip") & ~Q(reason="")) | (~Q(choice="skip") & Q(reason="")),
                name="vote_skip_has_reason",
            ),
            models.CheckConstraint(condition=~Q(idempotency_key=""), name="vote_has_key"),
        ]
        indexes = [
            models.Index(fields=["campaign", "match"], name="vote_of_match", condition=Q(standing="counted")),
            models.Index(fields=["rater", "-created_at"], name="vote_newest_of_rater"),
        ]

    def __str__(self) -> str:
        return f"vote {self.pk}: {self.choice}"


class VoteTally(models.Model):
    """What people said of one candidate in one campaign: counted in the transaction of each vote.

    Votes that have a place, whatever a screen thinks of the session, and skips. They exist from the first vote and
    never wait for a refit; `manage.py recount` makes them anew from the rows.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="vote_tallies")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="vote_tallies")
    wins = models.PositiveIntegerField(default=0)
    losses = models.PositiveIntegerField(default=0)
    # Both good and both bad.
    ties = models.PositiveIntegerField(default=0)
    skips = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "candidate"], name="vote_tally_once")]

    def __str__(self) -> str:
        return f"{self.wins} won, {self.losses} lost, {self.ties} tied, {self.skips} skipped"


class AdjudicationQuerySet(models.QuerySet["Adjudication"]):
    def current(self) -> AdjudicationQuerySet:
        return self.filter(is_current=True)


class Adjudication(models.Model):
    """What an admin, blind too, decided about a match on which the raters disagreed. Append-only like votes; it
    stands beside them and is never one of them."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="adjudications")
    item = models.ForeignKey(CampaignItem, on_delete=models.CASCADE, related_name="adjudications")
    actor = models.ForeignKey("arena.User", null=True, on_delete=models.SET_NULL, related_name="+")
    left = models.CharField(max_length=6, choices=Side.choices)
    choice = models.CharField(max_length=10, choices=Vote.Choice.choices)
    outcome = models.CharField(max_length=6, choices=Outcome.choices)
    note = models.TextField(blank=True)
    # As they stood then.
    votes = models.PositiveIntegerField()
    supersedes = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="superseded_by")
    is_current = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AdjudicationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item"], condition=Q(is_current=True), name="adjudication_one_current"),
            models.CheckConstraint(
                condition=Q(choice__in=["left", "right"], outcome__in=["first", "second"])
                | Q(choice__in=["both_good", "both_bad"], outcome="tie"),
                name="adjudication_outcome_follows_choice",
            ),
        ]

    def __str__(self) -> str:
        return f"adjudication {self.pk}: {self.outcome}"
