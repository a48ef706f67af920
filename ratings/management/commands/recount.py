from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from annotation.models import Campaign
from annotation.services.tallies import recount_votes
from arena.models import Jury
from arena.services.tallies import recount


class Command(BaseCommand):
    help = "Count wins, losses and ties of every candidate anew from decisions and votes, and correct what is kept."

    def handle(self, **options: Any) -> None:
        wrong = 0
        for jury in Jury.objects.select_related("tournament").order_by("pk").iterator():
            corrected = recount(jury)
            if corrected:
                self.stdout.write(f"{jury.tournament}: counts of {corrected} candidates corrected")
            wrong += corrected
        for campaign in Campaign.objects.order_by("pk").iterator():
            corrected = recount_votes(campaign)
            if corrected:
                self.stdout.write(f"{campaign}: counts of votes on {corrected} candidates corrected")
            wrong += corrected
        if not wrong:
            self.stdout.write("All counts agree with the decisions and votes.")
