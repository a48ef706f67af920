"""Thin doors for Celery: an id in, one service called."""

from __future__ import annotations

from celery import shared_task

from annotation.models import Campaign
from annotation.services.pools import scan_pool


@shared_task
def scan_pool_task(campaign_id: int) -> None:
    campaign = Campaign.objects.select_related("team").filter(pk=campaign_id).first()
    if campaign is not None:
        scan_pool(campaign)
