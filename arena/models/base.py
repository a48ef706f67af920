from __future__ import annotations

from django.db import models
from django.utils.crypto import get_random_string

PUBLIC_ID_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def make_public_id() -> str:
    """A random name for URLs: 12 signs out of 31, some 59 bits, so ids cannot be walked."""
    return get_random_string(12, PUBLIC_ID_ALPHABET)


class PublicModel(models.Model):
    """An integer key inside, a random id in every URL."""

    public_id = models.CharField(max_length=16, unique=True, default=make_public_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class Outcome(models.TextChoices):
    """In the canonical order of the match; seats and sides exist only where a judge or rater looks."""

    FIRST = "first", "first"
    SECOND = "second", "second"
    TIE = "tie", "tie"
