"""The pool of a campaign: which matches are in it, and what in their answers gives a model away."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from annotation.blinding import Leak, Lexicon, masked, normalised
from annotation.models import Campaign, CampaignItem
from annotation.selectors.pools import drawn, matches_for, names_in
from arena import dispatch
from arena.ingest import read_pdf
from arena.models import Attachment, Match, Sample
from arena.services.rendered import SHOWN_CHARACTERS, html_of
from arena.services.task_set_files import on_disk, upload_limits

BATCH = 500
PDF = "application/pdf"


@transaction.atomic
def grow_pool(campaign: Campaign) -> int:
    """Take in the matches that have two answers by now; says how many are new. They are searched for names before
    anybody sees them, by a task or, where none comes, when a rater waits for them."""
    campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
    known = set(campaign.items.values_list("match", flat=True))
    rows = matches_for(campaign).values_list("pk", "first__language_model", "second__language_model")
    sides = {key: (first, second) for key, first, second in rows if key not in known}
    taken = drawn(campaign, sides, already=len(known))
    CampaignItem.objects.bulk_create(
        [
            CampaignItem(campaign=campaign, match_id=key, first_model_id=sides[key][0], second_model_id=sides[key][1])
            for key in taken
        ],
        batch_size=BATCH,
    )
    if taken:
        dispatch.send("annotation.tasks.scan_pool_task", campaign.pk)
    return len(taken)


def scan_pool(campaign: Campaign, *, limit: int | None = None) -> int:
    """Search items that are new for names, and store the HTML that raters will be shown; says how many were done.

    Idempotent: each item is settled by an UPDATE that asks whether it is still new.
    """
    keys = list(campaign.items.filter(state=CampaignItem.State.NEW).order_by("pk").values_list("pk", flat=True)[:limit])
    if not keys:
        return 0
    lexicon = Lexicon(names_in(campaign.tournaments.values_list("pk", flat=True)))
    read: dict[int, str] = {}
    for key in keys:
        item = CampaignItem.objects.select_related("match__first_trial", "match__second_trial", "match__sample").get(
            pk=key
        )
        _scan(campaign, item, lexicon, read)
    return len(keys)


def _scan(campaign: Campaign, item: CampaignItem, lexicon: Lexicon, read: dict[int, str]) -> None:
    match = item.match
    raw = answers_of(match)
    texts = [normalised(text) for text in raw]
    context = context_of(match.sample, read)
    leaks = [lexicon.leaks(text, context=context) for text in texts]
    state = CampaignItem.State.LEAKS if any(leaks) else CampaignItem.State.CLEAN
    exclude = campaign.self_identification == Campaign.SelfIdentification.EXCLUDE
    if not all(texts) or (any(leaks) and exclude):
        state = CampaignItem.State.EXCLUDED
    CampaignItem.objects.filter(pk=item.pk, state=CampaignItem.State.NEW).update(
        state=state,
        first_leaks=leaks[0],
        second_leaks=leaks[1],
        answers_key=answers_key(match.sample.input_hash, raw),
    )
    if state != CampaignItem.State.EXCLUDED:
        html_of(team=campaign.team, texts=[shown(campaign, *pair) for pair in zip(texts, leaks, strict=True)])


def answers_of(match: Match) -> list[str]:
    trials = (match.first_trial, match.second_trial)
    return [trial.answer if trial is not None else "" for trial in trials]


def shown(campaign: Campaign, text: str, leaks: Sequence[Sequence[int]]) -> str:
    """A normalised answer as a rater of the campaign sees it."""
    if campaign.self_identification == Campaign.SelfIdentification.MASK:
        text = masked(text, [Leak(*leak) for leak in leaks])
    return text[:SHOWN_CHARACTERS]


def answers_key(input_hash: str, texts: Iterable[str]) -> str:
    """The same for the same two answers to the same input, whichever stands first and wherever they met."""
    digests = sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)
    return hashlib.sha256("\n".join([input_hash, *digests]).encode()).hexdigest()


def context_of(sample: Sample, read: dict[int, str]) -> str:
    """What was asked, with the text of its PDFs: a name that stands here gives nothing away. `read` keeps texts."""
    parts = list(_texts(sample.messages))
    for link in sample.attachment_links.select_related("attachment"):
        attachment = link.attachment
        if attachment.content_type == PDF:
            if attachment.pk not in read:
                read[attachment.pk] = _pdf_text(attachment)
            parts.append(read[attachment.pk])
    return "\n".join(parts)


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (part["text"] for part in content if part.get("type") == "text")


def _pdf_text(attachment: Attachment) -> str:
    with attachment.file.open("rb") as file, on_disk(file) as path:
        return read_pdf(path, limits=upload_limits()).text
