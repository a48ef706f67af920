from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Adjudication, Campaign
from annotation.selectors.quality import adjudication_queue
from annotation.services.quality import adjudication_token
from arena.models import Candidate, Role
from tests.annotation.quality_world import voted
from tests.annotation.world import make_team, member

pytestmark = pytest.mark.django_db


def text(response: Any) -> str:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode()


def test_pages_of_a_campaign_with_votes() -> None:
    """One campaign for all of them, since it takes a while to make."""
    team = make_team()
    campaign: Campaign = voted(team, matches=6)
    client = Client()
    client.force_login(member(team, Role.ADMIN).user)

    def address(url_name: str, **kwargs: str) -> str:
        return reverse(
            f"annotation:{url_name}", kwargs={"team": team.public_id, "campaign": campaign.public_id, **kwargs}
        )

    with CaptureQueriesContext(connection) as queries:
        page = text(client.get(address("campaign-quality")))
    assert len(queries) <= 30
    assert "Krippendorff" in page
    assert "can see names" in page
    anchor = text(client.get(address("campaign-anchor")))
    assert "Spearman" in anchor
    assert "n = 3" in anchor
    people = reverse("annotation:people", args=[team.public_id, campaign.tournaments.get().public_id])
    assert "Spearman" in text(client.get(people))
    # Without names, whoever looks.
    row = adjudication_queue(campaign)[0]
    pair = address("adjudication-pair", pair=adjudication_token(campaign, row.item.pk))
    blind = text(client.get(pair))
    names = {name for one in Candidate.objects.filter(tournament__team=team) for name in (one.full_id, one.label)}
    assert names
    assert not [name for name in names if name in blind]
    assert client.get(address("adjudication-pair", pair="0" * 32)).status_code == 404
    assert client.post(pair, {"choice": "both_bad"}).status_code == 303
    assert Adjudication.objects.get(campaign=campaign).outcome == "tie"
    listing = text(client.get(address("campaign-export")))
    assert "preferences-test.jsonl" in listing
    response = client.get(address("campaign-export-file", name="votes.csv"))
    assert response.streaming
    assert text(response).startswith("\ufeffschema,")
    assert client.get(address("campaign-export-file", name="secrets.csv")).status_code == 404
    assert client.get(address("campaign-export-file", name="votes.csv"), {"since": "soon"}).status_code == 404
    assert client.get(address("campaign-export"), {"since": "soon"}).status_code == 422
