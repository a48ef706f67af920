"""Which matches a campaign takes from its tournaments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import Campaign
from annotation.pairing import keyed_draw
from arena.models import Ballot, CallStatus, Candidate, Judge, Match, Outcome, Tournament

ONLY = ("", "inconclusive", "split")


@dataclass(frozen=True, kw_only=True)
class PoolFilter:
    """What an admin narrows the pool to; what is empty narrows nothing.

    `candidates` are full ids, at least two: matches between any of them. `only` is one of `ONLY`, by the
    tournament's own jury. `size` draws so many at random.
    """

    categories: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    only: str = ""
    size: int | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def matches_for(campaign: Campaign) -> QuerySet[Match]:
    """Every match with two answers that the campaign's filter lets through, the random draw left aside."""
    return filtered(campaign.tournaments.values_list("pk", flat=True), PoolFilter.from_json(campaign.filters))


def filtered(tournaments: Iterable[int], chosen: PoolFilter) -> QuerySet[Match]:
    done = {"status": CallStatus.SUCCEEDED}
    matches = Match.objects.filter(
        tournament__in=tournaments,
        **{f"{side}__{name}": value for side in ("first_trial", "second_trial") for name, value in done.items()},
    )
    matches = matches.exclude(status=Match.Status.VOID).exclude(forced_tie=True)
    matches = matches.exclude(Q(first_trial__answer="") | Q(second_trial__answer=""))
    if chosen.categories:
        matches = matches.filter(sample__category__in=chosen.categories)
    if chosen.candidates:
        matches = matches.filter(first__full_id__in=chosen.candidates, second__full_id__in=chosen.candidates)
    if chosen.only == "inconclusive":
        matches = matches.filter(status=Match.Status.INCONCLUSIVE)
    elif chosen.only == "split":
        ballots = Ballot.objects.filter(match=OuterRef("pk"), jury__primary=True, status=Ballot.Status.VOTE)
        said = [Q(Exists(ballots.filter(vote=vote))) for vote in Outcome.values]
        matches = matches.filter(said[0] & said[1] | said[0] & said[2] | said[1] & said[2])
    return matches.order_by("pk")


def drawn(campaign: Campaign, keys: Iterable[int], *, already: int) -> list[int]:
    """Of the matches by key, those that the random draw takes beside the ones in the pool already."""
    size = PoolFilter.from_json(campaign.filters).size
    if size is None:
        return list(keys)
    order = sorted(keys, key=lambda key: keyed_draw(campaign.secret, "pool", key))
    return order[: max(0, size - already)]


def names_in(tournaments: Iterable[int]) -> set[str]:
    """Every name that would give away a model of these tournaments: candidates and judges, hosts and families."""
    names: set[str] = set()
    for model in (Candidate, Judge):
        through = "tournament__in" if model is Candidate else "jury__tournament__in"
        rows = model._default_manager.filter(**{through: list(tournaments)}).values_list(
            "label",
            "full_id",
            "language_model__model_id",
            "language_model__display_name",
            "language_model__family",
            "language_model__provider__name",
        )
        names |= {str(name) for row in rows for name in row if name}
    return names | {name.rpartition("/")[2] for name in names}


@dataclass(frozen=True)
class PoolChoices:
    """What the form offers."""

    categories: list[str]
    candidates: list[tuple[str, str]]


def choices_of(tournaments: QuerySet[Tournament]) -> PoolChoices:
    keys = list(tournaments.values_list("pk", flat=True))
    categories = Match.objects.filter(tournament__in=keys).order_by().values_list("sample__category", flat=True)
    candidates = Candidate.objects.filter(tournament__in=keys).order_by("label").values_list("full_id", "label")
    return PoolChoices(
        categories=sorted({category for category in categories.distinct() if category}),
        candidates=sorted(dict(candidates).items(), key=lambda pair: pair[1].casefold()),
    )
