"""A few matches to read: those that were close, and those on which the judges could not be brought together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from arena.models import Ballot, Candidate, Decision, DecisionOutcome, Match, Tournament, Trial
from arena.selectors.matches import BallotView, JuryView, juries_on, match_in_full
from arena.services.rendered import html_of
from ratings.selectors import BoardView

# Of each kind.
MOST = 3
PROMPT_CHARACTERS, ANSWER_CHARACTERS, COMMENT_CHARACTERS = 1_200, 2_400, 400
# What rendering makes of a text may be many times its size.
HTML_CHARACTERS = 60_000
LINK = re.compile(r'<a(?:\s+[\w-]+="[^"]*")*\s*>|</a>')
VOTES = (Ballot.Status.VOTE, Ballot.Status.FAILED)


@dataclass(frozen=True)
class Tellable:
    """What decides whether a match is worth reading."""

    match_id: int
    public_id: str
    sequence: int
    pair: tuple[int, int]
    outcome: str
    votes: tuple[str, ...]
    flips: int

    @property
    def is_contested(self) -> bool:
        sides = {vote for vote in self.votes if vote != "tie"}
        return self.outcome == DecisionOutcome.INCONCLUSIVE or self.flips > 0 or len(sides) > 1

    @property
    def margin(self) -> int:
        return abs(self.votes.count("first") - self.votes.count("second"))

    @property
    def is_close(self) -> bool:
        """Decided, by one vote at most where more were cast."""
        return self.outcome != DecisionOutcome.INCONCLUSIVE and len(self.votes) > 1 and self.margin <= 1

    @property
    def discord(self) -> int:
        """How far the judges were from one another, and from themselves."""
        return 2 * min(self.votes.count("first"), self.votes.count("second")) + self.flips


@dataclass(frozen=True)
class Said:
    judge: str
    vote: str
    comment: str
    # Who sat in seat A when it said so; empty where that was not recorded.
    seat_a: str


@dataclass(frozen=True)
class Side:
    candidate: Candidate
    html: SafeString
    cut_at: int | None
    won: bool
    cut_off: bool
    characters: int | None


@dataclass(frozen=True)
class Example:
    match: Match
    prompt: str
    prompt_is_cut: bool
    files: list[str]
    sides: list[Side]
    sentence: str
    said: list[Said]


@dataclass(frozen=True)
class Examples:
    close: list[Example]
    contested: list[Example]
    # Of all matches, how many were one or the other.
    close_count: int
    contested_count: int


def examples_of(tournament: Tournament, *, view: BoardView) -> Examples:
    """The same matches each time: the first two of the board before others, then by number."""
    leaders = {row.subject_id for table in view.tables[:1] for row in table.rows[:2]}
    tellable = _tellable(tournament)
    contested = [one for one in tellable if one.is_contested]
    chosen = _chosen(contested, leaders, key=lambda one: -one.discord)
    taken = {one.match_id for one in chosen}
    close = [one for one in tellable if one.is_close]
    others = [one for one in close if one.match_id not in taken]
    return Examples(
        close=[_example(tournament, one) for one in _chosen(others, leaders, key=lambda one: one.margin)],
        contested=[_example(tournament, one) for one in chosen],
        close_count=len(close),
        contested_count=len(contested),
    )


def _tellable(tournament: Tournament) -> list[Tellable]:
    ballots = Ballot.objects.filter(jury__primary=True).only("match_id", "status", "vote", "flipped").order_by("pk")
    decisions = Decision.objects.current().filter(jury__primary=True).only("match_id", "outcome")
    matches = (
        Match.objects.filter(tournament=tournament, status__in=[Match.Status.DECIDED, Match.Status.INCONCLUSIVE])
        .only("public_id", "sequence", "first_id", "second_id", "tournament_id")
        .prefetch_related(Prefetch("ballots", ballots), Prefetch("decisions", decisions))
        .order_by("sequence")
    )
    found = []
    for match in matches:
        decision = next(iter(match.decisions.all()), None)
        if decision is None:
            continue
        cast = list(match.ballots.all())
        votes = tuple(ballot.vote for ballot in cast if ballot.vote and ballot.status in VOTES)
        flips = sum(ballot.flipped for ballot in cast)
        pair = (match.first_id, match.second_id)
        found.append(Tellable(match.pk, match.public_id, match.sequence, pair, decision.outcome, votes, flips))
    return found


def _chosen(matches: Sequence[Tellable], leaders: set[int], *, key: Callable[[Tellable], int]) -> list[Tellable]:
    """One of each pair before a second of any."""
    ordered = sorted(matches, key=lambda one: (set(one.pair) != leaders, key(one), one.sequence))
    first_of_pair: dict[tuple[int, int], Tellable] = {}
    for one in ordered:
        first_of_pair.setdefault(one.pair, one)
    firsts = list(first_of_pair.values())
    rest = [one for one in ordered if one not in firsts]
    return sorted([*firsts, *rest][:MOST], key=lambda one: one.sequence)


def _example(tournament: Tournament, chosen: Tellable) -> Example:
    match = match_in_full(tournament, chosen.public_id)
    assert match is not None
    jury = juries_on(match)[0]
    trials = [match.first_trial, match.second_trial]
    texts = [_answer(trial)[:ANSWER_CHARACTERS] for trial in trials]
    html = [_unlinked(one) for one in html_of(team=tournament.team, texts=texts)]
    text, files = _prompt(match)
    return Example(
        match=match,
        prompt=text[:PROMPT_CHARACTERS],
        prompt_is_cut=len(text) > PROMPT_CHARACTERS,
        files=files,
        sides=[
            _side(candidate, trial, rendered, chosen.outcome == name)
            for name, candidate, trial, rendered in zip(
                ("first", "second"), (match.first, match.second), trials, html, strict=True
            )
        ],
        sentence=jury.current.sentence if jury.current else "",
        said=_said(jury),
    )


def _answer(trial: Trial | None) -> str:
    return trial.answer if trial is not None else ""


def _side(candidate: Candidate, trial: Trial | None, html: SafeString, won: bool) -> Side:  # noqa: FBT001 - one of four facts
    length = len(_answer(trial))
    return Side(
        candidate=candidate,
        html=html,
        cut_at=ANSWER_CHARACTERS if length > ANSWER_CHARACTERS else None,
        won=won,
        cut_off=trial is not None and trial.truncated,
        characters=length or None,
    )


def _unlinked(html: SafeString) -> SafeString:
    """Without addresses to follow: the file is passed on, and what a model wrote must not lead its readers anywhere."""
    text = LINK.sub("", html)
    if len(text) > HTML_CHARACTERS:
        return SafeString(_("Too large to be shown here."))
    return mark_safe(text)  # noqa: S308 - sanitised, and tags were taken out of it alone


def _prompt(match: Match) -> tuple[str, list[str]]:
    """What the user said last as text, and the names of the files that came with it."""
    messages = match.sample.messages
    content = next((one.get("content", "") for one in reversed(messages) if one.get("role") == "user"), "")
    if isinstance(content, str):
        return content, []
    parts = [part for part in content if isinstance(part, dict)]
    text = "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return text, [_name_of(part) for part in parts if part.get("type") != "text"]


def _name_of(part: dict[str, object]) -> str:
    return str(part.get("name") or part.get("path") or part.get("type") or "")[:200]


def _said(jury: JuryView) -> list[Said]:
    return [Said(view.ballot.judge.label, _vote(view), *_comment(view)) for view in jury.ballots]


def _vote(view: BallotView) -> str:
    ballot = view.ballot
    if view.voted_for:
        return _("for %(name)s") % {"name": view.voted_for}
    words = {
        Ballot.Status.VOTE: _("a tie"),
        Ballot.Status.ABSTAINED: _("contradicts itself, abstains") if ballot.flipped else _("abstains"),
        Ballot.Status.FAILED: _("failed, counted as a tie") if ballot.vote else _("failed"),
        Ballot.Status.EXCLUDED: _("left out: it plays itself"),
        Ballot.Status.INPUT_SKIPPED: _("left out: it cannot read the files"),
    }
    return words.get(Ballot.Status(ballot.status), _("not in yet"))


def _comment(view: BallotView) -> tuple[str, str]:
    """Its first reason, and who sat in seat A."""
    said = next((said for said in view.verdicts if said.verdict.reason), None)
    text = (view.ballot.explanation if said is None else said.verdict.reason).strip()
    if len(text) > COMMENT_CHARACTERS:
        text = f"{text[:COMMENT_CHARACTERS].rstrip()} …"
    return text, "" if said is None else said.seats[0]
