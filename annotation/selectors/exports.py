"""Rows of the files that votes leave by, read in chunks: a large campaign never stands in memory at once."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from annotation.datasets import SCHEMA, SCHEMA_VERSION, Judged, Row, kto_rows, plain_messages, preference_row
from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.quality import CastVote, rated
from annotation.selectors.quality import excluded_raters, votes_in
from arena.models import Ballot, Decision, Match, Outcome, Sample

CHUNK = 500
SOURCES = ("people", "jury", "both")


@dataclass(frozen=True, kw_only=True)
class ExportFilter:
    """What is let through; empty means all. `rater` is a pseudonym or a rater's id; the days are included."""

    since: dt.date | None = None
    until: dt.date | None = None
    rater: str = ""
    category: str = ""
    source: str = "people"


def pseudonym(campaign: Campaign, kind: str, key: int) -> str:
    """The same in every export of the campaign, and no way back to the row without the installation's secret."""
    secret = (settings.SECRET_KEY + campaign.secret).encode()
    return f"{kind}-{hmac.new(secret, f'{kind}:{key}'.encode(), hashlib.sha256).hexdigest()[:16]}"


def raters_by_pseudonym(campaign: Campaign) -> dict[str, int]:
    return {pseudonym(campaign, "r", key): key for key in campaign.raters.values_list("pk", flat=True)}


def vote_rows(campaign: Campaign, chosen: ExportFilter) -> Iterator[Row]:
    """One row per event, the oldest first: edits and undone votes included, and decisions where asked for."""
    if chosen.source in {"people", "both"}:
        excluded = excluded_raters([campaign], votes_in([campaign]))
        for vote in _events(campaign, chosen).iterator(chunk_size=CHUNK):
            yield _vote_row(campaign, vote, excluded)
    if chosen.source in {"jury", "both"}:
        for decision in _decided(campaign, chosen).iterator(chunk_size=CHUNK):
            yield _decision_row(campaign, decision)


def _events(campaign: Campaign, chosen: ExportFilter) -> QuerySet[Vote]:
    votes = Vote.objects.filter(campaign=campaign).select_related(
        "rater",
        "assignment__match__sample",
        "assignment__match__first",
        "assignment__match__second",
        "assignment__match__first_trial",
        "assignment__match__second_trial",
        "assignment__gold_item__sample",
    )
    votes = votes.prefetch_related(
        "assignment__match__sample__attachments", "assignment__gold_item__sample__attachments"
    )
    if chosen.rater:
        votes = votes.filter(_is_rater(campaign, chosen.rater))
    if chosen.category:
        sample, gold = "assignment__match__sample__category", "assignment__gold_item__sample__category"
        votes = votes.filter(Q(**{sample: chosen.category}) | Q(**{gold: chosen.category}))
    return _within(votes, chosen).order_by("pk")


def _is_rater(campaign: Campaign, named: str) -> Q:
    key = raters_by_pseudonym(campaign).get(named)
    return Q(rater=key) if key is not None else Q(rater__public_id=named)


def _within(rows: QuerySet[Any], chosen: ExportFilter) -> QuerySet[Any]:
    if chosen.since:
        rows = rows.filter(created_at__date__gte=chosen.since)
    if chosen.until:
        rows = rows.filter(created_at__date__lte=chosen.until)
    return rows


def kind_of(rater: Rater) -> str:
    if rater.origin != Rater.Origin.SITE:
        return str(rater.origin)
    if rater.user_id is not None:
        return "member"
    return "open_link" if rater.is_anonymous_session else "guest"


def _about_pair(campaign: Campaign, sample: Sample) -> Row:
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "campaign": campaign.public_id,
        "campaign_name": campaign.name,
        "votes_per_match": campaign.raters_per_pair,
        "sample_key": sample.key,
        "category": sample.category,
        "prompt_hash": sample.input_hash,
        "file_hashes": sorted(attachment.sha256 for attachment in sample.attachments.all()),
        "prompt": plain_messages(sample.messages),
    }


def _of_match(match: Match) -> Row:
    return {
        "match": match.public_id,
        "first_model": match.first.full_id,
        "second_model": match.second.full_id,
        "first_answer": match.first_trial.answer if match.first_trial else "",
        "second_answer": match.second_trial.answer if match.second_trial else "",
        "gold_origin": None,
        "gold_expected": None,
    }


def _of_assignment(campaign: Campaign, assignment: Assignment) -> Row:
    gold = assignment.gold_item
    if gold is not None:
        about = _about_pair(campaign, gold.sample) | {
            "match": None,
            "first_model": None,
            "second_model": None,
            "first_answer": gold.first_text,
            "second_answer": gold.second_text,
            "gold_origin": gold.origin,
            "gold_expected": gold.expected,
        }
    elif assignment.match is not None:
        about = _about_pair(campaign, assignment.match.sample) | _of_match(assignment.match)
    else:
        raise TypeError("an assignment has a match or a gold item")
    original = assignment.repeat_of_id
    return about | {
        "assignment": pseudonym(campaign, "a", assignment.pk),
        "position": assignment.position,
        "kind": assignment.kind,
        "repeat_of": None if original is None else pseudonym(campaign, "a", original),
        "left": assignment.left,
        "served_at": assignment.served_at.isoformat(),
    }


def _vote_row(campaign: Campaign, vote: Vote, excluded: set[int]) -> Row:
    before = vote.supersedes_id
    return _of_assignment(campaign, vote.assignment) | {
        "event": "vote",
        "id": pseudonym(campaign, "v", vote.pk),
        "supersedes": None if before is None else pseudonym(campaign, "v", before),
        "is_current": vote.is_current,
        "rater": pseudonym(campaign, "r", vote.rater_id),
        "rater_kind": kind_of(vote.rater),
        "rater_left_out": vote.rater_id in excluded,
        "choice": vote.choice,
        "outcome": vote.outcome,
        "standing": vote.standing,
        "place": vote.place,
        "first_tags": vote.first_tags,
        "second_tags": vote.second_tags,
        "first_comment": vote.first_comment,
        "second_comment": vote.second_comment,
        "reason": vote.reason,
        "note": vote.note,
        "could_see_names": vote.could_see_names,
        "active_ms": vote.active_ms,
        "guideline_version": vote.guideline_version,
        "created_at": vote.created_at.isoformat(),
    }


def _decided(campaign: Campaign, chosen: ExportFilter) -> QuerySet[Decision]:
    rows = Decision.objects.filter(
        match__campaign_items__campaign=campaign, jury__primary=True, superseded_at=None, outcome__in=Outcome.values
    ).select_related("match__sample", "match__first", "match__second", "match__first_trial", "match__second_trial")
    if chosen.category:
        rows = rows.filter(match__sample__category=chosen.category)
    return _within(rows, chosen).prefetch_related("match__sample__attachments").order_by("pk")


def _decision_row(campaign: Campaign, decision: Decision) -> Row:
    """A jury shows both orders to its judges, so nothing stood on the left; the keys are those of a vote."""
    moment = decision.created_at.isoformat()
    return _about_pair(campaign, decision.match.sample) | _of_match(decision.match) | {
        "event": "decision",
        "id": pseudonym(campaign, "d", decision.pk),
        "supersedes": None,
        "is_current": True,
        "rater": "jury",
        "rater_kind": "jury",
        "rater_left_out": False,
        "assignment": "",
        "position": 0,
        "kind": "normal",
        "repeat_of": None,
        "left": "first",
        "choice": {"first": "left", "second": "right"}.get(decision.outcome, "both_good"),
        "outcome": decision.outcome,
        "standing": "no_choice",
        "place": None,
        "first_tags": [],
        "second_tags": [],
        "first_comment": "",
        "second_comment": "",
        "reason": "",
        "note": "",
        "could_see_names": False,
        "active_ms": None,
        "guideline_version": None,
        "served_at": moment,
        "created_at": moment,
    }  # fmt: skip


# For training ------------------------------------------------------------------------------------------------
def preference_rows(campaign: Campaign, chosen: ExportFilter, *, split: str = "") -> Iterator[Row]:
    for judged in _judged(campaign, chosen):
        row = preference_row(judged)
        if row is not None and split in {"", row["split"]}:
            yield row


def unwanted_rows(campaign: Campaign, chosen: ExportFilter, *, split: str = "") -> Iterator[Row]:
    """People alone call both answers bad: a jury's verdict has no such word."""
    if chosen.source == "jury":
        return
    for judged in _judged(campaign, replace(chosen, source="people")):
        yield from (row for row in kto_rows(judged) if split in {"", row["split"]})


def _judged(campaign: Campaign, chosen: ExportFilter) -> Iterator[Judged]:
    """Matches with what was said: by people, by the jury, or (both) where the two prefer the same answer."""
    people = _labels_of_people(campaign, chosen) if chosen.source != "jury" else {}
    jury = _labels_of_jury(campaign, chosen) if chosen.source != "people" else {}
    matches = Match.objects.filter(campaign_items__campaign=campaign).select_related(
        "sample", "first", "second", "first_trial", "second_trial"
    )
    if chosen.category:
        matches = matches.filter(sample__category=chosen.category)
    for match in matches.order_by("pk").iterator(chunk_size=CHUNK):
        labels = _labels(match.pk, people, jury, chosen.source)
        if labels:
            about = _of_match(match)
            yield Judged(
                match=match.public_id,
                prompt=plain_messages(match.sample.messages),
                prompt_hash=match.sample.input_hash,
                category=match.sample.category,
                first_model=about["first_model"],
                second_model=about["second_model"],
                first_answer=about["first_answer"],
                second_answer=about["second_answer"],
                labels=tuple(labels),
                source=chosen.source,
            )


def _labels(
    match: int, people: dict[int, list[str]], jury: dict[int, tuple[str, list[str]]], source: str
) -> Sequence[str]:
    if source == "people":
        return people.get(match, [])
    outcome, ballots = jury.get(match, ("", []))
    if source == "jury":
        # The decision stands, whatever a count of its ballots would say.
        return ballots if 2 * ballots.count(outcome) > len(ballots) else []
    said = people.get(match, [])
    return said if outcome and 2 * said.count(outcome) > len(said) else []


def _labels_of_people(campaign: Campaign, chosen: ExportFilter) -> dict[int, list[str]]:
    """Counted votes on normal pairs by raters who could see no names."""
    votes = votes_in([campaign])
    found: dict[int, list[str]] = defaultdict(list)
    rater = _rater_key(campaign, chosen.rater)
    for vote in rated(votes, excluded_raters([campaign], votes)):
        if vote.match is not None and not vote.could_see_names and _lets_through(vote, chosen, rater):
            found[vote.match].append(vote.label)
    return found


def _rater_key(campaign: Campaign, named: str) -> int | None:
    if not named:
        return None
    found = campaign.raters.filter(_is_own(campaign, named)).values_list("pk", flat=True).first()
    return -1 if found is None else found


def _is_own(campaign: Campaign, named: str) -> Q:
    key = raters_by_pseudonym(campaign).get(named)
    return Q(pk=key) if key is not None else Q(public_id=named)


def _lets_through(vote: CastVote, chosen: ExportFilter, rater: int | None) -> bool:
    day = vote.created_at.date()
    return (
        (rater is None or vote.rater == rater)
        and (chosen.since is None or day >= chosen.since)
        and (chosen.until is None or day <= chosen.until)
    )


def _labels_of_jury(campaign: Campaign, chosen: ExportFilter) -> dict[int, tuple[str, list[str]]]:
    ballots: dict[int, list[str]] = defaultdict(list)
    decided = dict(_decided(campaign, chosen).order_by().values_list("match", "outcome"))
    cast = Ballot.objects.filter(match__in=list(decided), jury__primary=True, status=Ballot.Status.VOTE)
    for match, vote in cast.order_by().values_list("match", "vote"):
        ballots[match].append(vote)
    return {match: (outcome, ballots[match] or [outcome]) for match, outcome in decided.items()}
