"""The sentence a manager can repeat, and what to hold against it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from arena.models import Judge, Tournament
from ratings.dataset import Marks, juries_of
from ratings.engine import from_display, win_share
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import wording
from ratings.selectors.findings import longer_wins
from ratings.selectors.people import caveats_of_people
from ratings.selectors.rows import Row, family_of

# Under these a verdict may well turn with other prompts.
FEW_SAMPLES = 20
FEW_GAMES = 10
MANY_WITHOUT_RESULT = 0.2
# Closer than it is printed.
LEVEL = 0.5


@dataclass(frozen=True)
class Gap:
    """Leader minus runner-up, in points. Without limits where all results between their groups went one way."""

    points: float
    lower: float | None
    upper: float | None
    separated: bool


@dataclass(frozen=True)
class Verdict:
    sentence: SafeString
    # Strongest first.
    caveats: list[str]
    gap: Gap | None = None

    @property
    def plain(self) -> str:
        return html.unescape(strip_tags(self.sentence))


def verdict_of(
    board: Leaderboard,
    run: RatingRun | None,
    tables: list[list[Row]],
    *,
    marks: Marks,
    newest_converged: bool,
    waiting: bool,
) -> Verdict:
    if run is None or not tables:
        return Verdict(_nothing_yet(board, newest_converged=newest_converged, waiting=waiting), [])
    leader, second = tables[0][:2]
    gap = gap_between(run, leader, second)
    sentences = [_order(leader, second, gap), _expectation(run, leader, second, gap), _basis(run)]
    sentence = format_html_join(" ", "{}", ((sentence,) for sentence in sentences if sentence))
    caveats = [*_caveats(board, run, tables, marks, newest_converged=newest_converged)]
    return Verdict(sentence, caveats, gap)


def gap_between(run: RatingRun, leader: Row, second: Row) -> Gap | None:
    if leader.rating is None or second.rating is None:
        return None
    points = leader.rating - second.rating
    separated = bool(leader.stored.ahead_of_next)
    # Within a group wins go round in a circle, which bounds every difference.
    if leader.stored.next_std_error is None or leader.stored.group_id != second.stored.group_id:
        return Gap(points, None, None, separated)
    found = run.separation
    if found is not None and (found["leader"], found["runner_up"]) == (leader.subject_id, second.subject_id):
        # The difference inside each resample.
        return Gap(points, found["lower"], found["upper"], separated)
    spread = run.quantile * leader.stored.next_std_error
    return Gap(points, points - spread, points + spread, separated)


def _nothing_yet(board: Leaderboard, *, newest_converged: bool, waiting: bool) -> SafeString:
    if board.source == Leaderboard.Source.HUMAN and newest_converged:
        text = (
            gettext("The first votes are in. Their ratings follow within a minute.")
            if waiting
            else gettext("No vote counts yet in the campaigns that this board reads.")
        )
    elif not newest_converged:
        text = gettext("The fit of this board did not converge, so no ratings are shown.")
    elif waiting:
        text = gettext("The first matches are decided. Their ratings follow within a minute.")
    elif board.tournament is None:
        text = gettext("No match is decided yet in the tournaments that this board reads.")
    elif board.tournament.status == Tournament.Status.DRAFT:
        text = gettext("The tournament has not started, so there is nothing to rate.")
    elif board.tournament.is_active:
        text = gettext("No match is decided yet.")
    else:
        text = gettext("No match was decided, so there is nothing to rate.")
    return format_html("{}", text)


def _order(leader: Row, second: Row, gap: Gap | None) -> SafeString:
    names = {"leader": leader.label, "second": second.label}
    if gap is None:
        text = gettext("<strong>{leader}</strong> is ahead of {second}, by a distance that no result bounds.")
        return format_html(text, **names)
    if gap.points < LEVEL:
        return format_html(gettext("No leader: {leader} and {second} have the same rating."), **names)
    if gap.lower is None or gap.upper is None:
        return _order_without_measure(leader, second, names, established=gap.separated)
    numbers = {"points": _points(gap.points), "interval": _interval(gap.lower, gap.upper)}
    if gap.separated:
        text = gettext(
            "<strong>{leader}</strong> leads. Its lead of {points} over {second} is established ({interval})."
        )
    else:
        text = gettext(
            "<strong>{leader}</strong> is ahead, but its lead is not established: {points} over {second} ({interval})."
        )
    return format_html(text, **names, **numbers)


def _order_without_measure(leader: Row, second: Row, names: dict[str, str], *, established: bool) -> SafeString:
    """All results between the two groups went one way: the order may be plain, its size is not."""
    if leader.stored.losses:
        fact = gettext("nobody outside its own group took a match from it")
    else:
        fact = ngettext("it did not lose its only match", "it lost none of its {n} matches", leader.stored.games)
    fact = fact.format(n=wording.number(leader.stored.games))
    if leader.upper is None and leader.lower is None:
        fact = gettext("no chain of results bounds it from either side")
    elif leader.upper is not None:
        fact = gettext("{second} won no match against those above it").format(**names)
    if established:
        text = gettext("<strong>{leader}</strong> leads: {fact}. How far it is ahead of {second} has no measure yet.")
    else:
        text = gettext(
            "<strong>{leader}</strong> is ahead, but its lead is not established: {fact}, "
            "and that is too little to tell it from {second}."
        )
    return format_html(text, fact=fact, **names)


def _points(points: float) -> str:
    return ngettext("{n} point", "{n} points", round(points)).format(n=wording.number(points))


def _interval(lower: float, upper: float) -> str:
    return gettext("95% interval: {limits}").format(limits=wording.limits(lower, upper))


def _expectation(run: RatingRun, leader: Row, second: Row, gap: Gap | None) -> SafeString:
    # Where the prior holds the distance, so it would hold this number.
    if gap is None or gap.points < LEVEL or leader.stored.group_id != second.stored.group_id or run.eta_unbounded:
        return SafeString()
    theta = from_display([gap.points, 0.0])
    share = float(win_share(theta, run.eta, np.zeros(2, dtype=np.int64))[0])
    text = gettext("Of 100 matches against {second} it would win about {n}, ties counted as half.")
    return format_html(text, second=second.label, n=wording.number(100 * share))


def _basis(run: RatingRun) -> SafeString:
    text = gettext("All this rests on {matches} over {samples}.")
    if run.tournaments > 1:
        text = gettext("All this rests on {matches} of {tournaments} over {samples}.")
    return format_html(
        text,
        matches=_compared(run),
        samples=wording.samples(run.samples),
        tournaments=wording.tournaments(run.tournaments),
    )


def _compared(run: RatingRun) -> str:
    if run.screening is None:
        return wording.matches(run.comparisons)
    votes = wording.votes(run.votes)
    if run.raters:
        votes = gettext("{votes} of {people}").format(votes=votes, people=wording.people(run.raters))
    if run.sources is None:
        return votes
    return wording.names([wording.matches(run.comparisons - run.votes), votes])


def _caveats(
    board: Leaderboard, run: RatingRun, tables: list[list[Row]], marks: Marks, *, newest_converged: bool
) -> Iterable[str]:
    leader, second = tables[0][:2]
    name = leader.label
    if not newest_converged:
        when = formats.date_format(timezone.localtime(run.computed_at), "SHORT_DATETIME_FORMAT")
        yield gettext("The newest fit did not converge and is not shown; these ratings are of {when}.").format(
            when=when
        )
    if len(tables) > 1:
        yield gettext(
            "The candidates form {n} groups that never met. Ratings compare within a group only, "
            "and the sentence above is about the largest."
        ).format(n=len(tables))
    if leader.upper is None and leader.stored.group_id == second.stored.group_id:
        yield gettext("No loss bounds {name} from above, so how far it is ahead is open.").format(name=name)
    yield from _families(board, tables, leader)
    if longer := longer_wins(run):
        yield longer
    yield from caveats_of_people(run, open_campaigns=marks.open_campaigns)
    yield from _without_result(marks)
    if run.samples < FEW_SAMPLES:
        yield gettext("{samples} are few: with other prompts the order may turn.").format(
            samples=wording.samples(run.samples)
        )
    elif min(leader.stored.games, second.stored.games) < FEW_GAMES:
        yield gettext("{name} played {n} matches only: a few more may turn the order.").format(
            name=min((leader, second), key=lambda row: row.stored.games).label,
            n=min(leader.stored.games, second.stored.games),
        )
    if run.ridge_by_default:
        yield gettext(
            "Somebody never won or never lost against the rest. A weak prior (ridge {ridge}) keeps such ratings "
            "finite; ends that only the prior holds are shown as open."
        ).format(ridge=formats.number_format(run.ridge))
    if board.tournament is None and marks.open:
        yield gettext("A tournament that this board reads is not finished, so the order may still change.")
    elif board.tournament is not None and board.tournament.is_active:
        yield gettext("The tournament is not finished, so the order may still change.")


def _families(board: Leaderboard, tables: list[list[Row]], leader: Row) -> Iterable[str]:
    """Judges that are candidates themselves or of a candidate's family, by the snapshots they entered with."""
    by_family: dict[str, list[str]] = {}
    by_model: dict[str, str] = {}
    for row in (row for table in tables for row in table):
        by_model[row.model_id] = row.label
        if row.family:
            by_family.setdefault(row.family, []).append(row.label)
    related: dict[tuple[str, ...], list[str]] = {}
    selves = []
    seats = Judge.objects.filter(jury__in=juries_of(board) if board.has_decisions else [], replacement=False).order_by(
        "pk"
    )
    for judge in {judge.full_id: judge for judge in seats}.values():
        kin = tuple(by_family.get(family_of(judge.snapshot), []))
        if kin:
            related.setdefault(kin, []).append(judge.label)
        elif judge.snapshot.get("model_id") in by_model:
            selves.append(judge.label)
    # Kinship with the leader weighs most.
    for kin, judges in sorted(related.items(), key=lambda entry: leader.label not in entry[0]):
        yield ngettext(
            "The judge {judges} is of the same family as {kin}, and may favour it.",
            "The judges {judges} are of the same family as {kin}, and may favour it.",
            len(judges),
        ).format(judges=wording.names(judges), kin=wording.names(list(kin)))
    if selves:
        yield ngettext(
            "{judges} judges and competes; it sits out its own matches.",
            "{judges} judge and compete; each sits out its own matches.",
            len(selves),
        ).format(judges=wording.names(selves))


def _without_result(marks: Marks) -> Iterable[str]:
    without = marks.inconclusive + marks.void + marks.forced_ties
    finished = without + marks.decided
    if finished and without / finished >= MANY_WITHOUT_RESULT:
        yield gettext(
            "{n} of {all} finished matches gave no result: {inconclusive} inconclusive, {void} without both answers."
        ).format(
            n=wording.number(without),
            all=wording.number(finished),
            inconclusive=wording.number(marks.inconclusive),
            void=wording.number(marks.void + marks.forced_ties),
        )
