from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile

from annotation.models import Assignment, Campaign, Rater
from annotation.services.campaigns import close_campaign
from annotation.services.quality import adjudication_token
from annotation.services.raters import (
    accept_guest_invitation,
    create_open_link,
    invite_guest,
    join_as_member,
    join_by_open_link,
)
from annotation.services.votes import report_leak
from annotation.views.access import COOKIE
from arena.models import Attachment, Role, Sample, SampleAttachment
from tests.annotation.world import draft, given, opened, played, vote
from tests.arena.ingest.builders import pdf_bytes
from tests.personas import Side
from tests.url_samples import UrlSample


def extend(side: Side) -> None:
    tournament = played(side.team, matches=3, prefix=f"{side.canary}-votes-", name=f"{side.canary}-voted-on")
    _attach_pdf(side, tournament.task_set.samples.get())
    campaign = opened(side.team, tournament, name=f"{side.name} answers", guidelines="Be fair.")
    side.objects["campaign"] = campaign
    side.objects["campaign_draft"] = draft(side.team, tournament, name="A draft")
    owner = side.user(Role.OWNER)
    closed = opened(side.team, tournament, name="A closed one")
    side.objects["campaign_closed"] = close_campaign(campaign=closed, actor=owner)
    rater = join_as_member(campaign=campaign, membership=side.members[Role.RATER])
    side.objects["campaign_rater"] = rater
    given(rater)
    _let_guest_in(side, campaign)
    side.objects["guest_invitation"], side.objects["guest_token"] = invite_guest(
        campaign=campaign, actor=owner, label=f"{side.canary}-invited-guest"
    )
    link, side.objects["open_token"] = create_open_link(campaign=campaign, actor=owner)
    side.objects["open_rater"], _cookie = join_by_open_link(link=link, network="192.0.2.2")
    _disagree(side, campaign)
    side.objects["voted_on"] = tournament.public_id


def _disagree(side: Side, campaign: Campaign) -> None:
    """An anonymous session says the opposite of the guest on the same match, and the guest reports a name."""
    said = Assignment.objects.get(pk=side.objects["guest_assignment"].pk)
    report_leak(rater=side.objects["guest"], token=said.token, note=f"{side.canary} names itself")
    other = Rater.objects.select_related("campaign", "open_link").get(pk=side.objects["open_rater"].pk)
    assert said.item is not None
    own = Assignment.objects.create(
        campaign=campaign,
        rater=other,
        item=said.item,
        match=said.match,
        answers_key=said.answers_key,
        left=said.right,
        right=said.left,
        position=1,
        lease_until=said.lease_until,
    )
    vote(other, "left", own)
    side.objects["adjudication"] = adjudication_token(campaign, said.item.pk)


def _attach_pdf(side: Side, sample: Sample) -> None:
    content = pdf_bytes(text="Terms")
    attachment = Attachment(team=side.team, sha256="f" * 64, content_type="application/pdf", size=len(content), pages=1)
    attachment.file.save("attachment", ContentFile(content))
    SampleAttachment.objects.create(sample=sample, attachment=attachment, path="attachments/terms.pdf")
    text = {"type": "text", "text": "What do the terms say?"}
    sample.messages = [{"role": "user", "content": [text, {"type": "file_ref", "path": "attachments/terms.pdf"}]}]
    sample.save()


def _let_guest_in(side: Side, campaign: Campaign) -> None:
    invitation, _token = invite_guest(campaign=campaign, actor=side.user(Role.OWNER), label=f"{side.canary}-guest")
    guest, side.objects["guest_cookie"] = accept_guest_invitation(invitation=invitation, network="192.0.2.1")
    side.objects["guest_cookie_name"] = COOKIE
    side.objects["guest"] = guest
    side.objects["guest_assignment"] = given(guest)
    vote(guest, "left", side.objects["guest_assignment"])
    side.objects["guest_open_assignment"] = given(Rater.objects.select_related("campaign").get(pk=guest.pk))


def _team(side: Side) -> dict[str, Any]:
    return {"team": side.team_id}


def _of(name: str) -> Any:
    return lambda side: {"team": side.team_id, "campaign": side.objects[name].public_id}


_campaign = _of("campaign")


def _rate(side: Side) -> dict[str, Any]:
    return {"campaign": side.objects["campaign"].public_id}


def _pair(side: Side) -> dict[str, Any]:
    return _rate(side) | {"token": side.objects["guest_assignment"].token}


def _fields(side: Side) -> dict[str, Any]:
    return {
        "name": "Another",
        "tournaments": [str(side.objects["campaign"].tournaments.get().pk)],
        "raters_per_pair": "3",
        "pairing": "balanced",
        "reveal": "at_close",
        "self_identification": "mask",
        "repeat_percent": "8",
        "gold_percent": "0",
    }


def _vote(side: Side) -> dict[str, Any]:
    return {"token": side.objects["guest_open_assignment"].token, "key": "a-key-of-tests", "choice": "left"}


def _nothing(_side: Side) -> dict[str, Any]:
    return {}


def _links(side: Side) -> dict[str, Any]:
    return {"max_sessions": "10", "max_sessions_per_network": "2", "votes_per_session": "50"}


SAMPLES = {
    "annotation:campaign-list": UrlSample(_team),
    "annotation:waiting-fragment": UrlSample(_team, headers={"HX-Request": "true"}),
    "annotation:campaign-create": UrlSample(_team, post=_fields),
    "annotation:campaign-detail": UrlSample(_campaign),
    "annotation:campaign-edit": UrlSample(_of("campaign_draft"), post=_fields),
    "annotation:campaign-open": UrlSample(_of("campaign_draft"), get=False, post=_nothing),
    "annotation:campaign-close": UrlSample(_campaign, post=_nothing),
    "annotation:campaign-reveal": UrlSample(_of("campaign_closed"), post=_nothing),
    "annotation:campaign-grow": UrlSample(_campaign, get=False, post=_nothing),
    "annotation:campaign-invite": UrlSample(_campaign, get=False, post=lambda side: {"label": "somebody"}),
    "annotation:campaign-revoke-invitation": UrlSample(
        lambda side: _campaign(side) | {"invitation": side.objects["guest_invitation"].public_id},
        get=False,
        post=_nothing,
    ),
    "annotation:campaign-open-link": UrlSample(_campaign, get=False, post=_links),
    "annotation:campaign-revoke-open-link": UrlSample(_campaign, get=False, post=_nothing),
    "annotation:campaign-block-rater": UrlSample(
        lambda side: _campaign(side) | {"rater": side.objects["campaign_rater"].public_id}, get=False, post=_nothing
    ),
    "annotation:rater-screen": UrlSample(
        lambda side: _campaign(side) | {"rater": side.objects["open_rater"].public_id},
        get=False,
        post=lambda side: {"screening": "excluded"},
    ),
    "annotation:campaign-quality": UrlSample(_campaign),
    "annotation:campaign-screen": UrlSample(_campaign, get=False, post=lambda side: {"on": "0"}),
    "annotation:campaign-leave-out": UrlSample(
        _campaign, get=False, post=lambda side: {"token": side.objects["guest_assignment"].token}
    ),
    "annotation:campaign-adjudication": UrlSample(_campaign),
    "annotation:adjudication-pair": UrlSample(
        lambda side: _campaign(side) | {"pair": side.objects["adjudication"]}, post=lambda side: {"choice": "left"}
    ),
    "annotation:campaign-anchor": UrlSample(_campaign),
    "annotation:campaign-export": UrlSample(_campaign),
    "annotation:campaign-export-file": UrlSample(lambda side: _campaign(side) | {"name": "votes.jsonl"}),
    "annotation:people": UrlSample(lambda side: {"team": side.team_id, "tournament": side.objects["voted_on"]}),
    "annotation:rate": UrlSample(_rate),
    "annotation:rate-join": UrlSample(_rate, get=False, post=_nothing),
    "annotation:rate-vote": UrlSample(_rate, get=False, post=_vote),
    "annotation:rate-undo": UrlSample(_rate, get=False, post=_vote),
    "annotation:rate-draft": UrlSample(_rate, get=False, post=_vote),
    "annotation:rate-leak": UrlSample(_rate, get=False, post=_vote),
    "annotation:rate-guidelines": UrlSample(_rate),
    "annotation:rate-votes": UrlSample(_rate),
    "annotation:rate-pair": UrlSample(_pair),
    "annotation:rate-file": UrlSample(lambda side: _pair(side) | {"number": 0}),
    "annotation:guest-join": UrlSample(lambda side: {"token": side.objects["guest_token"]}, post=_nothing),
    "annotation:open-join": UrlSample(lambda side: {"token": side.objects["open_token"]}, post=_nothing),
}
