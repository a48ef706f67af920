"""A pair as the rater's page shows it: nothing here tells which answer is whose, or of what kind the pair is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from annotation.blinding import normalised
from annotation.models import Assignment, Campaign, CampaignItem, GoldItem, Rater, Side, Vote
from annotation.selectors.campaigns import newest_guidelines
from annotation.services.pools import answers_of, shown
from annotation.services.votes import current_vote, is_final
from arena.models import Attachment, Match, Sample
from arena.selectors.task_sets import attachments_by_path
from arena.services.rendered import SHOWN_CHARACTERS, html_of
from arena.views.transcripts import Turn, turns_of

SENTENCES = {
    Vote.Choice.LEFT: _("A is better"),
    Vote.Choice.RIGHT: _("B is better"),
    Vote.Choice.BOTH_GOOD: _("Tie"),
    Vote.Choice.BOTH_BAD: _("Both bad"),
    Vote.Choice.SKIP: _("Skipped"),
    Vote.Choice.UNDONE: _("Taken back"),
}
PDF = "application/pdf"
PAGE_LINKS = 60


@dataclass(frozen=True)
class FileShown:
    number: int
    name: str
    url: str
    is_pdf: bool
    pages: list[int]


@dataclass(frozen=True)
class PairShown:
    token: str
    turns: list[Turn]
    files: list[FileShown]
    left: SafeString
    right: SafeString
    left_is_cut: bool
    right_is_cut: bool
    guidelines: SafeString | str

    @property
    def pdfs(self) -> list[FileShown]:
        return [file for file in self.files if file.is_pdf]


def guidelines_of(campaign: Campaign) -> SafeString | str:
    newest = newest_guidelines(campaign)
    return html_of(team=campaign.team, texts=[newest.text])[0] if newest is not None and newest.text else ""


def sample_of(assignment: Assignment) -> Sample:
    source: GoldItem | Match | None = assignment.gold_item or assignment.match
    if source is None:
        raise TypeError("an assignment has a match or a gold item")
    return source.sample


def files_in_order(paths: Mapping[str, Attachment]) -> list[tuple[str, Attachment]]:
    """Each file once, in an order that a number in a URL can name."""
    by_key = {attachment.pk: (path, attachment) for path, attachment in paths.items()}
    return [by_key[key] for key in sorted(by_key)]


def pair_shown(campaign: Campaign, assignment: Assignment) -> PairShown:
    sample = sample_of(assignment)
    paths = attachments_by_path(sample) if _has_files(sample) else {}
    files = files_in_order(paths)
    turns = turns_of(sample.messages, dict(paths))
    blocks = [block for turn in turns for block in turn.blocks if block.kind == "text"]
    whole = _texts(campaign, assignment)
    texts = [text[:SHOWN_CHARACTERS] for text in whole]
    newest = newest_guidelines(campaign)
    rules = [newest.text] if newest is not None and newest.text else []
    # All by one query, since all of it is kept already.
    html = html_of(team=campaign.team, texts=[*(block.text for block in blocks), *texts, *rules])
    for block, made in zip(blocks, html, strict=False):
        block.html = made
    return PairShown(
        token=assignment.token,
        turns=turns,
        files=[_file(assignment, campaign, number, *pair) for number, pair in enumerate(files)],
        left=html[len(blocks)],
        right=html[len(blocks) + 1],
        guidelines=html[-1] if rules else "",
        left_is_cut=len(whole[0]) > SHOWN_CHARACTERS,
        right_is_cut=len(whole[1]) > SHOWN_CHARACTERS,
    )


def _has_files(sample: Sample) -> bool:
    contents = [message["content"] for message in sample.messages]
    parts = [part for content in contents if not isinstance(content, str) for part in content]
    return any(part.get("type") == "file_ref" for part in parts)


def _file(assignment: Assignment, campaign: Campaign, number: int, path: str, attachment: Attachment) -> FileShown:
    kwargs = {"campaign": campaign.public_id, "token": assignment.token, "number": number}
    return FileShown(
        number=number,
        name=path.rpartition("/")[2],
        url=reverse("annotation:rate-file", kwargs=kwargs),
        is_pdf=attachment.content_type == PDF,
        pages=list(range(1, min(attachment.pages or 1, PAGE_LINKS) + 1)),
    )


def _texts(campaign: Campaign, assignment: Assignment) -> tuple[str, str]:
    """Left and right, as the campaign's policy has them."""
    if assignment.gold_item is not None:
        raw = [assignment.gold_item.first_text, assignment.gold_item.second_text]
        texts = [normalised(text) for text in raw]
    else:
        item = _item(assignment)
        leaks = (item.first_leaks, item.second_leaks)
        raw = answers_of(item.match)
        texts = [_shown(campaign, text, found) for text, found in zip(raw, leaks, strict=True)]
    return (texts[0], texts[1]) if assignment.left == Side.FIRST else (texts[1], texts[0])


def _shown(campaign: Campaign, text: str, leaks: list[list[int]]) -> str:
    return shown(campaign, normalised(text), leaks)


def _item(assignment: Assignment) -> CampaignItem:
    if assignment.item is None:
        raise TypeError("only gold has no item")
    return assignment.item


@dataclass(frozen=True)
class StandingVote:
    vote: Vote
    token: str
    # What the rater said, as a sentence about A and B.
    sentence: str
    may_change: bool
    # Of the left and the right answer, where they have been revealed.
    names: tuple[str, str] | None


def standing_vote(rater: Rater, assignment: Assignment, vote: Vote | None = None) -> StandingVote | None:
    found = vote or current_vote(assignment)
    if found is None:
        return None
    return StandingVote(
        vote=found,
        token=assignment.token,
        sentence=str(SENTENCES[Vote.Choice(found.choice)]),
        may_change=not is_final(rater.campaign, found) and rater.blocked_at is None,
        names=_names(rater.campaign, assignment, found),
    )


def _names(campaign: Campaign, assignment: Assignment, vote: Vote) -> tuple[str, str] | None:
    after_vote = campaign.reveal == Campaign.Reveal.AFTER_VOTE and bool(vote.outcome)
    if assignment.match is None or not (after_vote or campaign.status == Campaign.Status.REVEALED):
        return None
    names = (assignment.match.first.full_id, assignment.match.second.full_id)
    return names if assignment.left == Side.FIRST else (names[1], names[0])
