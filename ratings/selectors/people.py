"""What a board says of the people whose votes it reads, and what it keeps from whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

from annotation.models import Campaign, Rater
from arena.models import Membership, Role, Tournament
from arena.selectors.concealment import concealed_tournaments
from ratings.dataset import campaigns_of
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import wording
from ratings.selectors.rows import Row

# From this share on one person's taste is much of what a board shows.
MUCH_OF_ONE = 0.25


@dataclass(frozen=True)
class Veil:
    """The tournaments whose boards are kept from a member: all of them, or those that read votes."""

    concealed: frozenset[int] = frozenset()
    voting: frozenset[int] = frozenset()
    # Of task sets, for the boards over several tournaments.
    concealed_lineages: frozenset[str] = frozenset()
    voting_lineages: frozenset[str] = frozenset()

    def hides(self, board: Leaderboard) -> bool:
        return self._over(board, self.concealed, self.concealed_lineages) or (
            board.has_votes and self._over(board, self.voting, self.voting_lineages)
        )

    @staticmethod
    def _over(board: Leaderboard, tournaments: frozenset[int], lineages: frozenset[str]) -> bool:
        if not board.is_wide:
            return board.tournament_id in tournaments
        return bool(tournaments) if board.scope == Leaderboard.Scope.TEAM else board.task_set_lineage in lineages


def veil_of(membership: Membership) -> Veil:
    """Whoever votes blind sees no board of the matches; while a campaign is open, none but admins sees how it goes."""
    concealed = frozenset(concealed_tournaments(membership))
    voting: frozenset[int] = frozenset()
    if not membership.at_least(Role.ADMIN):
        keys = Campaign.objects.open().filter(team=membership.team_id).values_list("tournaments", flat=True)
        voting = frozenset(key for key in keys if key is not None)
    lineages: dict[int, str] = {}
    if concealed | voting:
        rows = Tournament.objects.filter(pk__in=concealed | voting)
        lineages = dict(rows.values_list("pk", "task_set__lineage"))
    return Veil(
        concealed,
        voting,
        frozenset(lineages[key] for key in concealed if key in lineages),
        frozenset(lineages[key] for key in voting if key in lineages),
    )


@dataclass(frozen=True)
class SourceChoice:
    value: str
    label: str
    is_current: bool


def source_choices(board: Leaderboard, membership: Membership) -> list[SourceChoice]:
    """Nothing where nobody votes on these matches, or where the member is not to see it now."""
    states = set(campaigns_of(board).values_list("status", flat=True))
    if not states or (Campaign.Status.OPEN in states and not membership.at_least(Role.ADMIN)):
        return []
    labels = {"jury": gettext("Juries"), "human": gettext("People"), "both": gettext("Juries and people")}
    return [SourceChoice(value, label, value == board.source) for value, label in labels.items()]


@dataclass(frozen=True)
class SourceLine:
    """One candidate in the mix and by each source alone."""

    row: Row
    # Rating, limits, and what came of its games.
    jury: tuple[str, str, str]
    human: tuple[str, str, str]

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        return [self.jury, self.human]


def source_lines(rows: Sequence[Row], run: RatingRun) -> list[SourceLine]:
    if run.sources is None:
        return []
    alone = {
        name: {rating["subject"]: rating for rating in run.sources[name]["ratings"]}
        if run.sources[name]["converged"]
        else {}
        for name in ("jury", "human")
    }
    return [SourceLine(row, _cell(alone["jury"], row), _cell(alone["human"], row)) for row in rows]


def _cell(ratings: dict[int, dict[str, Any]], row: Row) -> tuple[str, str, str]:
    found = ratings.get(row.subject_id)
    if found is None or not found["games"]:
        return "–", "", ""
    points, limits = wording.cell(found["rating"], found["ci_lower"], found["ci_upper"], games=found["games"])
    record = gettext("{wins} won, {ties} tied, {losses} lost").format(
        **{name: wording.number(found[name]) for name in ("wins", "ties", "losses")}
    )
    return points, limits, record


@dataclass(frozen=True)
class Session:
    rater: str
    name: str
    votes: int
    sides: str
    volume: str
    volume_others: str
    position: str
    gap: str
    reasons: str
    is_left_out: bool
    # What an admin said.
    screening: str

    @property
    def standing(self) -> str:
        if self.screening == Rater.Screening.KEPT:
            return gettext("kept by an admin")
        if self.screening == Rater.Screening.EXCLUDED:
            return gettext("left out by an admin")
        return gettext("left out") if self.is_left_out else gettext("noted, and counted")


def sessions_of(run: RatingRun) -> list[Session]:
    reasons = {"volume": gettext("many votes"), "position": gettext("one side"), "speed": gettext("too fast")}
    return [
        Session(
            rater=one["rater"],
            name=one["name"],
            votes=one["votes"],
            sides=f"{wording.number(one['left'])} / {wording.number(one['right'])}",
            volume=wording.p_value(one["volume_p"]),
            volume_others=wording.p_value(one["volume_p_others"]),
            position=wording.p_value(one["position_p"]),
            gap="–" if one["median_gap_s"] is None else wording.seconds(1000 * one["median_gap_s"]),
            reasons=wording.names([reasons[reason] for reason in one["reasons"]]) or "–",
            is_left_out=one["excluded"],
            screening=one["screening"],
        )
        for one in (run.screening or {}).get("listed", [])
    ]


def busiest_text(run: RatingRun, rows: Sequence[Row]) -> str:
    """How the board moves without the rater who voted most. Nameless: a board is no place to judge raters."""
    found = run.without_busiest
    if found is None:
        return ""
    text = gettext("One person made {n} of all comparisons ({share}).").format(
        n=wording.number(found["comparisons"]), share=wording.percent(found["share"])
    )
    shifts = {shift["subject"]: shift["points"] for shift in found["shifts"] if shift["points"] is not None}
    moved = [(abs(shifts[row.subject_id]), row) for row in rows if row.subject_id in shifts]
    if found["leader_changed"]:
        end = gettext("Without these somebody else is first.")
    elif found["ranking_changed"]:
        end = gettext("Without these the first stays first, and the order behind changes.")
    else:
        end = gettext("Without these the order stays as it is.")
    if moved:
        most, row = max(moved, key=lambda item: item[0])
        end += " " + gettext("{name} moves most, by {points} points.").format(
            name=row.label, points=wording.number(most)
        )
    return f"{text} {end}"


def caveats_of_people(run: RatingRun, *, open_campaigns: int) -> Iterable[str]:
    if run.screening is None:
        return
    found = run.without_busiest
    if run.votes and run.raters == 1:
        yield gettext("All votes are by one person: the intervals say nothing of what others would prefer.")
    elif found is not None and found["leader_changed"]:
        yield gettext(
            "Without the votes of one person, {share} of all comparisons, somebody else would be first."
        ).format(share=wording.percent(found["share"]))
    elif found is not None and found["share"] >= MUCH_OF_ONE:
        yield gettext("One person made {share} of all comparisons.").format(share=wording.percent(found["share"]))
    if run.screened_sessions:
        yield ngettext(
            "The votes of {n} session are left out: see below.",
            "The votes of {n} sessions are left out: see below.",
            run.screened_sessions,
        ).format(n=wording.number(run.screened_sessions))
    if open_campaigns:
        yield gettext("People still vote, so the order may change.")
