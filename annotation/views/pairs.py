"""A pair as the rater's page shows it: nothing here tells which answer is whose, or of what kind the pair is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from annotation.models import Assignment, Campaign, Rater, Side, Vote
from annotation.selectors.campaigns import newest_guidelines
from annotation.services.shown import sample_of, texts_of
from annotation.services.votes import current_vote, is_final
from arena.models import Attachment, Sample
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


def files_in_order(paths: Mapping[str, Attachment]) -> list[tuple[str, Attachment]]:
    """Each file once, in an order that a number in a URL can name."""
    by_key = {attachment.pk: (path, attachment) for path, attachment in paths.items()}
    return [by_key[key] for key in sorted(by_key)]


def pair_shown(
    campaign: Campaign, assignment: Assignment, file_url: Callable[[int, Attachment], str] | None = None
) -> PairShown:
    """`file_url` gives the address of a file, for pages that are not a rater's."""
    sample = sample_of(assignment)
    paths = attachments_by_path(sample) if _has_files(sample) else {}
    files = files_in_order(paths)
    turns = turns_of(sample.messages, dict(paths))
    blocks = [block for turn in turns for block in turn.blocks if block.kind == "text"]
    whole = texts_of(campaign, assignment)
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
        files=[
            _file(number, path, file, (file_url or _own_file(campaign, assignment))(number, file))
            for number, (path, file) in enumerate(files)
        ],
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


def _own_file(campaign: Campaign, assignment: Assignment) -> Callable[[int, Attachment], str]:
    def url(number: int, _file: Attachment) -> str:
        kwargs = {"campaign": campaign.public_id, "token": assignment.token, "number": number}
        return reverse("annotation:rate-file", kwargs=kwargs)

    return url


def _file(number: int, path: str, attachment: Attachment, url: str) -> FileShown:
    return FileShown(
        number=number,
        name=path.rpartition("/")[2],
        url=url,
        is_pdf=attachment.content_type == PDF,
        pages=list(range(1, min(attachment.pages or 1, PAGE_LINKS) + 1)),
    )


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
