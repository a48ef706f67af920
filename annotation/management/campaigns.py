"""Finding what a command is about by the id in its address."""

from __future__ import annotations

from django.core.management.base import CommandError

from annotation.models import Campaign
from arena.models import Tournament


def campaign_of(public_id: str) -> Campaign:
    campaign = Campaign.objects.select_related("team").filter(public_id=public_id).first()
    if campaign is None:
        raise CommandError(f"No campaign has the id {public_id!r}.")
    return campaign


def tournament_of(public_id: str) -> Tournament:
    tournament = Tournament.objects.select_related("team").filter(public_id=public_id).first()
    if tournament is None:
        raise CommandError(f"No tournament has the id {public_id!r}.")
    return tournament
