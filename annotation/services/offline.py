"""Voting away from the site: pairs that go out in one page, and the file of votes that comes back.

The page holds what a rater's screen shows, a random token for each pair, and nothing else. Who is who stays here.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.services.serving import assign_ahead
from annotation.services.votes import KEY, LONGEST_TEXT, Remarks, Said, cast_vote
from arena.ingest.types import Problem
from arena.services import audit
from arena.services.members import Refused
from arena.tokens import hash_token, make_token

FORMAT = "tiltyard.offline_votes"
SCHEMA_VERSION = 1
MOST_PAIRS = 500
LARGEST_FILE = 50_000_000
CHOICES = ("left", "right", "both_good", "both_bad", "skip")


class FilesRefused(Exception):
    """Lists everything that is wrong with the files. No vote of any of them was stored."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(map(str, problems)))
        self.problems = list(problems)


@transaction.atomic
def send_pairs(*, campaign: Campaign, label: str, pairs: int, hold_days: int) -> tuple[Rater, list[Assignment]]:
    """A rater without an account, with pairs whose places are held for some days."""
    label = label.strip()[:200]
    if not campaign.is_open:
        raise Refused(_("This campaign is not open."))
    if not label:
        raise Refused(_("Say whom the page is for."))
    if not 1 <= pairs <= MOST_PAIRS:
        raise Refused(_("A page takes 1 to %(most)s pairs.") % {"most": MOST_PAIRS})
    rater = Rater.objects.create(
        campaign=campaign,
        label=label,
        # A cookie that nobody has: the page is this rater's only way in.
        session=hash_token(make_token()),
        origin=Rater.Origin.OFFLINE,
    )
    assignments = assign_ahead(rater, count=pairs, hold=dt.timedelta(days=hold_days))
    if not assignments:
        raise Refused(_("Nothing is left in the pool for another rater, or others hold the rest at the moment."))
    new = {"label": label, "pairs": len(assignments)}
    audit.record(team=campaign.team, actor=None, action="campaign.offline_page", target=campaign.name, new=new)
    return rater, assignments


# Coming back -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Merged:
    file: str
    rater: Rater
    new: int
    again: int


@dataclass(frozen=True)
class _Event:
    line: int
    token: str
    said: Said


def merge_votes(paths: Iterable[Path]) -> list[Merged]:
    """Store the votes of files that came back: all of them, or none. The same file twice changes nothing.

    Raises FilesRefused with every problem of every file.
    """
    problems: list[Problem] = []
    merged: list[Merged] = []
    # What was stored before a problem came up goes with it.
    with transaction.atomic():
        for path in paths:
            found = _merge(path, problems)
            if found is not None:
                merged.append(found)
        if problems:
            raise FilesRefused(problems)
    return merged


def _merge(path: Path, problems: list[Problem]) -> Merged | None:
    lines = _lines_of(path, problems)
    if lines is None:
        return None
    rater = _rater_of(path.name, lines[:1], problems)
    events = [event for event in (_event(path.name, *line, problems) for line in lines[1:]) if event is not None]
    if rater is None:
        return None
    if not lines[1:]:
        problems.append(Problem(path.name, None, None, "There is no vote in this file."))
    new = again = 0
    for event in events:
        try:
            stored = cast_vote(rater=rater, token=event.token, said=event.said)
        except Refused as refusal:
            problems.append(Problem(path.name, event.line, "choice", str(refusal)))
            continue
        if stored.how == "kept":
            message = "Another vote on this pair stands, and this line does not say that it replaces it."
            problems.append(Problem(path.name, event.line, "replaces", message))
        new += stored.how == "new"
        again += stored.how == "again"
    return Merged(path.name, rater, new, again)


def _lines_of(path: Path, problems: list[Problem]) -> list[tuple[int, dict[str, Any]]] | None:
    try:
        if path.stat().st_size > LARGEST_FILE:
            problems.append(Problem(path.name, None, None, f"The file is larger than {LARGEST_FILE:,} bytes."))
            return None
        # By line feeds alone: JSON leaves other ends of lines in a comment as they are.
        texts = path.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        problems.append(Problem(str(path), None, None, f"The file cannot be read: {error.strerror}."))
        return None
    except UnicodeDecodeError as error:
        problems.append(Problem(path.name, None, None, f"The file is not UTF-8: {error.reason}."))
        return None
    lines: list[tuple[int, dict[str, Any]]] = []
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(path.name, number, None, f"This is not a line of JSON: {error}."))
            continue
        if isinstance(row, dict):
            lines.append((number, row))
        else:
            problems.append(Problem(path.name, number, None, "Each line must be an object."))
    return lines


def _rater_of(file: str, head: list[tuple[int, dict[str, Any]]], problems: list[Problem]) -> Rater | None:
    if not head or head[0][1].get("format") != FORMAT:
        problems.append(Problem(file, 1, "format", f"The first line must say {FORMAT!r}: this is no file of votes."))
        return None
    number, row = head[0]
    if row.get("schema_version") != SCHEMA_VERSION:
        said = f"This program reads version {SCHEMA_VERSION}, not {row.get('schema_version')!r}."
        problems.append(Problem(file, number, "schema_version", said))
        return None
    raters = Rater.objects.select_related("campaign__team", "open_link").filter(origin=Rater.Origin.OFFLINE)
    rater = raters.filter(public_id=str(row.get("rater", "")), campaign__public_id=str(row.get("campaign", ""))).first()
    if rater is None:
        problems.append(Problem(file, number, "rater", "No page of this installation went to such a rater."))
    return rater


def _event(file: str, number: int, row: dict[str, Any], problems: list[Problem]) -> _Event | None:
    before = len(problems)

    def text(name: str, *, longest: int = LONGEST_TEXT) -> str:
        value = row.get(name, "")
        if not isinstance(value, str) or len(value) > longest or "\x00" in value:
            problems.append(Problem(file, number, name, f"This must be a string of at most {longest:,} characters."))
            return ""
        return value

    def tags(name: str) -> list[str]:
        value = row.get(name, [])
        if not isinstance(value, list) or not all(tag in Vote.Tag.values for tag in value):
            problems.append(Problem(file, number, name, f"This must be a list of {', '.join(Vote.Tag.values)}."))
            return []
        return value

    active = row.get("active_ms")
    if active is not None and (not isinstance(active, int) or isinstance(active, bool) or active < 0):
        problems.append(Problem(file, number, "active_ms", "This must be a whole number of milliseconds, or null."))
    choice, key = text("choice", longest=20), text("key", longest=64)
    if choice not in CHOICES:
        problems.append(Problem(file, number, "choice", f"{choice!r} is none of {', '.join(CHOICES)}."))
    if not KEY.fullmatch(key):
        problems.append(Problem(file, number, "key", "This must be 8 to 64 letters, digits, hyphens or underscores."))
    event = _Event(
        number,
        text("token", longest=64),
        Said(
            choice=choice,
            key=key,
            left=Remarks(tags=tags("left_tags"), comment=text("left_comment")),
            right=Remarks(tags=tags("right_tags"), comment=text("right_comment")),
            reason=text("reason", longest=16),
            note=text("note"),
            active_ms=active if isinstance(active, int) else None,
            replaces=text("replaces", longest=64),
        ),
    )
    return event if len(problems) == before else None
