"""Boards come to exist here. Each has one key, so that two who open it at once make one row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotation.models import Campaign, Rater
from annotation.services.screening import set_screening
from arena.models import Jury, Sample, Team, Tournament, User
from arena.services import audit
from ratings.dataset import campaigns_of
from ratings.models import Leaderboard

Ties, Scope, Source, Errors = Leaderboard.Ties, Leaderboard.Scope, Leaderboard.Source, Leaderboard.Errors
# What a board may be asked for; null is the installation's rule.
RIDGES = (None, 0.0, 0.001, 0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Method:
    """How a board rates. ValueError for what no board offers, so that addresses cannot make any number of boards."""

    ties: str = Ties.HALF_WIN
    ridge: float | None = None
    errors: str = Errors.AUTO
    category: str = ""
    source: str = Source.JURY
    # Of boards with votes alone.
    anomaly_filter: bool = True
    drop_both_bad: bool = False

    def __post_init__(self) -> None:
        if self.ties not in Ties.values or self.errors not in Errors.values or self.ridge not in RIDGES:
            raise ValueError("no board rates like this")
        if self.source not in Source.values:
            raise ValueError("no board reads this")
        of_votes = not self.anomaly_filter or self.drop_both_bad or self.errors == Errors.TWO_WAY
        if self.source == Source.JURY and of_votes:
            raise ValueError("a board of juries has no raters")

    @property
    def suffix(self) -> str:
        """Nothing for what is usual, so that the plain boards have plain keys."""
        parts = [f"ridge={self.ridge:g}"] if self.ridge is not None else []
        parts += [f"errors={self.errors}"] if self.errors != Errors.AUTO else []
        parts += ["screen=off"] if not self.anomaly_filter else []
        parts += ["both-bad=dropped"] if self.drop_both_bad else []
        parts += [f"category={self.category}"] if self.category else []
        return "".join(f":{part}" for part in parts)

    @property
    def columns(self) -> dict[str, Any]:
        return asdict(self)


def usual_ties(source: str, *, wide: bool) -> str:
    """People call many ties, and whoever is rated over several tournaments has many too: those have a margin."""
    return Ties.RAO_KUPPER if wide or source != Source.JURY else Ties.HALF_WIN


def board_key(jury: Jury, method: Method) -> str:
    if method.source != Source.JURY:
        return f"jury:{jury.public_id}:{method.source}:{method.ties}{method.suffix}"
    return f"jury:{jury.public_id}:{method.ties}{method.suffix}"


def leaderboard_for(tournament: Tournament, jury: Jury, *, ties: str | None = None) -> Leaderboard:
    """The board of a tournament and a jury under a tie model; without one, the board that pages show first."""
    if ties is None:
        preferred = Leaderboard.objects.filter(jury=jury, preferred=True).first()
        if preferred is not None:
            return preferred
    return board_of_jury(tournament, jury, Method(ties or Ties.HALF_WIN))


def board_of_jury(tournament: Tournament, jury: Jury, method: Method) -> Leaderboard:
    return Leaderboard.objects.get_or_create(
        key=board_key(jury, method),
        defaults={
            "team_id": tournament.team_id,
            "tournament": tournament,
            "jury": jury,
            **method.columns,
            "refit_wanted_at": None if method.source == Source.JURY else timezone.now(),
            # Others become preferred by `prefer_ties` alone, which makes this one exist first.
            "preferred": method == Method(),
        },
    )[0]


def wide_board(team: Team, method: Method, *, task_set_lineage: str = "") -> Leaderboard:
    """The board over all tournaments of a team, or over those of a task set."""
    scope = Scope.TASK_SET if task_set_lineage else Scope.TEAM
    where = f"set:{task_set_lineage}" if task_set_lineage else "all"
    key = f"team:{team.public_id}:{where}:{method.source}:{method.ties}{method.suffix}"
    return Leaderboard.objects.get_or_create(
        key=key,
        defaults={
            "team": team,
            "scope": scope,
            "task_set_lineage": task_set_lineage,
            **method.columns,
            "refit_wanted_at": timezone.now(),
        },
    )[0]


def is_plain(board: Leaderboard) -> bool:
    """Whether nothing but its tie model is chosen: only such boards can be what a tournament shows first."""
    plain = board.source == Source.JURY and board.ridge is None and board.errors == Errors.AUTO
    return plain and not board.category


def has_category(team: Team, category: str, *, task_set_lineage: str = "") -> bool:
    samples = Sample.objects.filter(task_set__team=team, category=category)
    if task_set_lineage:
        samples = samples.filter(task_set__lineage=task_set_lineage)
    return samples.exists()


def boards_of_jury(tournament: Tournament, jury: Jury) -> list[Leaderboard]:
    return [leaderboard_for(tournament, jury, ties=ties) for ties in Ties.values]


@transaction.atomic
def prefer_ties(*, tournament: Tournament, jury: Jury, ties: str, actor: User | None) -> Leaderboard:
    boards = {board.ties: board for board in boards_of_jury(tournament, jury)}
    chosen = boards[ties]
    # One lock for all who change the preference of this jury.
    rows = Leaderboard.objects.select_for_update().filter(jury=jury).order_by("pk")
    before = next((board.ties for board in rows if board.preferred), None)
    if before != ties:
        Leaderboard.objects.filter(jury=jury, preferred=True).update(preferred=False)
        Leaderboard.objects.filter(pk=chosen.pk).update(preferred=True)
        audit.record(
            team=tournament.team,
            actor=actor,
            action="board.ties",
            target=tournament.name,
            old={"ties": before},
            new={"ties": ties},
        )
    chosen.refresh_from_db()
    return chosen


def want_refit(tournament_id: int) -> list[Leaderboard]:
    """Note that the boards of a tournament should be fitted again; they come to exist if they do not yet.

    Wider boards are seen to be due by the rows: fitting them after every step would cost more than it tells.
    """
    jury = Jury.objects.select_related("tournament").filter(tournament=tournament_id, primary=True).first()
    if jury is None:
        return []
    boards_of_jury(jury.tournament, jury)
    boards = list(Leaderboard.objects.filter(jury=jury).order_by("pk"))
    Leaderboard.objects.filter(pk__in=[board.pk for board in boards]).update(refit_wanted_at=timezone.now())
    return boards


def boards_over(campaign: Campaign) -> list[Leaderboard]:
    """The boards that its votes enter."""
    boards = Leaderboard.objects.filter(team=campaign.team_id).exclude(source=Source.JURY).order_by("pk")
    return [board for board in boards if campaigns_of(board).filter(pk=campaign.pk).exists()]


def screen_session(*, rater: Rater, actor: User | None, screening: str) -> list[Leaderboard]:
    """Keep a session's votes, leave them out, or go by the screen again; the boards it touches become due."""
    with transaction.atomic():
        set_screening(rater=rater, actor=actor, screening=screening)
        boards = boards_over(rater.campaign)
        Leaderboard.objects.filter(pk__in=[board.pk for board in boards]).update(refit_wanted_at=timezone.now())
    return boards
