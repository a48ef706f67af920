"""What an admin says of a session that the anomaly screen looked at."""

from __future__ import annotations

from django.db import transaction

from annotation.models import Rater
from arena.models import User
from arena.services import audit


@transaction.atomic
def set_screening(*, rater: Rater, actor: User | None, screening: str) -> None:
    """Keep a session's votes, leave them out, or go by the screen again. ValueError for anything else."""
    if screening not in Rater.Screening.values:
        raise ValueError(f"Unknown screening {screening!r}.")
    rater = Rater.objects.select_for_update(of=("self",)).select_related("campaign__team").get(pk=rater.pk)
    if rater.screening == screening:
        return
    old = rater.screening
    Rater.objects.filter(pk=rater.pk).update(screening=screening)
    audit.record(
        team=rater.campaign.team,
        actor=actor,
        action="campaign.screening",
        target=rater.campaign.name,
        old={"session": str(rater), "screening": old},
        new={"session": str(rater), "screening": screening},
    )
