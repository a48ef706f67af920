"""The two texts of a pair as a rater may read them, wherever they are shown."""

from __future__ import annotations

from annotation.blinding import normalised
from annotation.models import Assignment, Campaign, GoldItem, Side
from annotation.services.pools import answers_of, shown
from arena.models import Match, Sample


def sample_of(assignment: Assignment) -> Sample:
    source: GoldItem | Match | None = assignment.gold_item or assignment.match
    if source is None:
        raise TypeError("an assignment has a match or a gold item")
    return source.sample


def texts_of(campaign: Campaign, assignment: Assignment) -> tuple[str, str]:
    """Left and right, as the campaign's policy has them."""
    if assignment.gold_item is not None:
        raw = [assignment.gold_item.first_text, assignment.gold_item.second_text]
        texts = [normalised(text) for text in raw]
    elif assignment.item is not None:
        item = assignment.item
        leaks = (item.first_leaks, item.second_leaks)
        raw = answers_of(item.match)
        texts = [shown(campaign, normalised(text), found) for text, found in zip(raw, leaks, strict=True)]
    else:
        raise TypeError("only gold has no item")
    return (texts[0], texts[1]) if assignment.left == Side.FIRST else (texts[1], texts[0])
