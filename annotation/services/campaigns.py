from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.blinding import Lexicon, normalised
from annotation.models import Campaign, GoldItem, GuidelineVersion, OpenLink
from annotation.pairing import keyed_draw
from annotation.selectors.pools import PoolFilter, names_in
from annotation.services.pools import answers_of, context_of, grow_pool, shown
from arena.models import Match, Sample, Team, Tournament, User
from arena.services import audit
from arena.services.members import Refused

# What may change while people vote: nothing that a vote rests on.
CHANGEABLE_WHEN_OPEN = ("name",)
# Columns that no form fills in by hand.
NOT_TYPED = ("secret", "require_reason_on", "filters", "created_by", "opened_at", "closed_at", "revealed_at")
# Of a degraded answer this much is left.
KEPT_OF_DEGRADED = 0.4
SHORTEST_DEGRADED = 200


@dataclass(frozen=True, kw_only=True)
class CampaignFields:
    name: str
    tournaments: Sequence[Tournament]
    guidelines: str = ""
    raters_per_pair: int = 3
    repeat_share: float = 0.08
    gold_share: float = 0.0
    allow_both_bad: bool = True
    require_reason_on: Sequence[str] = ()
    reveal: str = Campaign.Reveal.AT_CLOSE
    pairing: str = Campaign.Pairing.BALANCED
    self_identification: str = Campaign.SelfIdentification.MASK
    counts_unblinded: bool = False
    filters: PoolFilter = field(default_factory=PoolFilter)

    def columns(self) -> dict[str, Any]:
        return {
            "name": self.name.strip(),
            "raters_per_pair": self.raters_per_pair,
            "repeat_share": self.repeat_share,
            "gold_share": self.gold_share,
            "allow_both_bad": self.allow_both_bad,
            "require_reason_on": list(self.require_reason_on),
            "reveal": self.reveal,
            "pairing": self.pairing,
            "self_identification": self.self_identification,
            "counts_unblinded": self.counts_unblinded,
            "filters": self.filters.as_json(),
        }


@transaction.atomic
def create_campaign(*, team: Team, actor: User | None, fields: CampaignFields) -> Campaign:
    campaign = Campaign(team=team, created_by=actor, **fields.columns())
    campaign.clean_fields(exclude=NOT_TYPED)
    campaign.save()
    campaign.tournaments.set(_own(team, fields.tournaments))
    _write_guidelines(campaign, actor, fields.guidelines)
    audit.record(team=team, actor=actor, action="campaign.create", target=campaign.name)
    return campaign


@transaction.atomic
def update_campaign(*, campaign: Campaign, actor: User | None, fields: CampaignFields) -> Campaign:
    """A draft may change in everything; an open campaign in its name and its guidelines alone."""
    campaign = Campaign.objects.select_for_update().select_related("team").get(pk=campaign.pk)
    if campaign.status not in {Campaign.Status.DRAFT, Campaign.Status.OPEN}:
        raise Refused(_("This campaign is closed."))
    old = {"name": campaign.name}
    columns = fields.columns()
    if campaign.status == Campaign.Status.OPEN:
        columns = {name: columns[name] for name in CHANGEABLE_WHEN_OPEN}
    else:
        campaign.tournaments.set(_own(campaign.team, fields.tournaments))
    for name, value in columns.items():
        setattr(campaign, name, value)
    campaign.clean_fields(exclude=NOT_TYPED)
    campaign.save()
    _write_guidelines(campaign, actor, fields.guidelines)
    audit.record(
        team=campaign.team,
        actor=actor,
        action="campaign.update",
        target=campaign.name,
        old=old,
        new={"name": campaign.name},
    )
    return campaign


def _own(team: Team, tournaments: Sequence[Tournament]) -> list[Tournament]:
    own = [one for one in tournaments if one.team_id == team.pk]
    if not own or len(own) != len(tournaments):
        raise Refused(_("Choose at least one tournament of this team."))
    return own


def _write_guidelines(campaign: Campaign, actor: User | None, text: str) -> None:
    newest = campaign.guidelines.order_by("-number").first()
    if newest is not None and newest.text == text.strip():
        return
    if newest is None and not text.strip():
        return
    number = newest.number + 1 if newest is not None else 1
    GuidelineVersion.objects.create(campaign=campaign, number=number, text=text.strip(), created_by=actor)


@transaction.atomic
def open_campaign(*, campaign: Campaign, actor: User | None) -> Campaign:
    """Fill the pool and let raters in. A closed campaign opens again as long as no name was revealed."""
    campaign = Campaign.objects.select_for_update().select_related("team").get(pk=campaign.pk)
    if campaign.status not in {Campaign.Status.DRAFT, Campaign.Status.CLOSED}:
        raise Refused(_("Only a draft or a closed campaign can be opened."))
    grow_pool(campaign)
    if not campaign.items.exists():
        raise Refused(_("No match with two answers passes the filter. Widen the filter, or wait for answers."))
    campaign.status, campaign.closed_at = Campaign.Status.OPEN, None
    campaign.opened_at = campaign.opened_at or timezone.now()
    campaign.save(update_fields=["status", "opened_at", "closed_at"])
    audit.record(team=campaign.team, actor=actor, action="campaign.open", target=campaign.name)
    return campaign


@transaction.atomic
def close_campaign(*, campaign: Campaign, actor: User | None) -> Campaign:
    """No vote, edit or undo any more. Members get their boards back."""
    campaign = Campaign.objects.select_for_update().select_related("team").get(pk=campaign.pk)
    if campaign.status != Campaign.Status.OPEN:
        raise Refused(_("Only an open campaign can be closed."))
    campaign.status, campaign.closed_at = Campaign.Status.CLOSED, timezone.now()
    campaign.save(update_fields=["status", "closed_at"])
    OpenLink.objects.filter(campaign=campaign, revoked_at=None).update(revoked_at=timezone.now())
    audit.record(team=campaign.team, actor=actor, action="campaign.close", target=campaign.name)
    return campaign


@transaction.atomic
def reveal_campaign(*, campaign: Campaign, actor: User | None) -> Campaign:
    """Show the raters whose answers they compared. There is no way back to blindness, so it does not open again."""
    campaign = Campaign.objects.select_for_update().select_related("team").get(pk=campaign.pk)
    if campaign.status != Campaign.Status.CLOSED:
        raise Refused(_("Close the campaign first."))
    if campaign.reveal == Campaign.Reveal.NEVER:
        raise Refused(_("This campaign promised its raters never to show names."))
    campaign.status, campaign.revealed_at = Campaign.Status.REVEALED, timezone.now()
    campaign.save(update_fields=["status", "revealed_at"])
    audit.record(team=campaign.team, actor=actor, action="campaign.reveal", target=campaign.name)
    return campaign


def take_in_new_matches(*, campaign: Campaign, actor: User | None) -> int:
    if not campaign.is_open:
        raise Refused(_("This campaign is not open."))
    with transaction.atomic():
        added = grow_pool(campaign)
        audit.record(
            team=campaign.team, actor=actor, action="campaign.grow", target=campaign.name, new={"matches": added}
        )
    return added


def add_gold(
    *, campaign: Campaign, sample: Sample, first_text: str, second_text: str, expected: str, origin: str
) -> GoldItem:
    """A pair whose answer is known, such as one that experts agreed on."""
    return GoldItem.objects.create(
        campaign=campaign,
        sample=sample,
        first_text=first_text,
        second_text=second_text,
        expected=expected,
        origin=origin,
    )


@transaction.atomic
def make_gold(*, campaign: Campaign, count: int) -> list[GoldItem]:
    """Gold out of the pool itself: an answer against itself cut short, and every fourth time an answer against
    itself. Which answers they are is drawn by the campaign's secret, so a second call makes no doubles."""
    used = set(campaign.gold_items.values_list("sample", flat=True))
    keys = [(key, sample) for key, sample in campaign.items.values_list("match", "match__sample") if sample not in used]
    keys.sort(key=lambda pair: keyed_draw(campaign.secret, "gold of", pair[0]))
    lexicon = Lexicon(names_in(campaign.tournaments.values_list("pk", flat=True)))
    read: dict[int, str] = {}
    made: list[GoldItem] = []
    for key, sample in keys:
        if len(made) == count:
            break
        if sample in used:
            continue
        match = Match.objects.select_related("first_trial", "second_trial", "sample").get(pk=key)
        text = normalised(max(answers_of(match), key=len))
        leaks = lexicon.leaks(text, context=context_of(match.sample, read))
        if len(text) < SHORTEST_DEGRADED or (leaks and campaign.self_identification == "exclude"):
            continue
        text = shown(campaign, text, leaks)
        used.add(sample)
        made.append(_gold_of(campaign, match.sample, text, identical=len(made) % 4 == 3))
    return made


def _gold_of(campaign: Campaign, sample: Sample, text: str, *, identical: bool) -> GoldItem:
    if identical:
        origin, texts, expected = GoldItem.Origin.IDENTICAL, (text, text), "tie"
    else:
        cut = text[: int(len(text) * KEPT_OF_DEGRADED)].rsplit(maxsplit=1)[0]
        origin = GoldItem.Origin.DEGRADED
        whole_first = keyed_draw(campaign.secret, "gold whole", sample.pk) < 0.5
        texts = (text, cut) if whole_first else (cut, text)
        expected = "first" if whole_first else "second"
    return add_gold(
        campaign=campaign,
        sample=sample,
        first_text=texts[0],
        second_text=texts[1],
        expected=expected,
        origin=origin,
    )
