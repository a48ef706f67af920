from __future__ import annotations

import datetime as dt
import random
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Campaign, Rater, Vote
from arena.models import AuditLog, Match
from ratings import dataset, services
from ratings.engine import Comparisons, rate
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import board_of, method_text
from ratings.services import refits
from tests.ratings.test_services import THREE
from tests.ratings.voting_world import anonymous, campaign_over, cast, member_rater
from tests.ratings.world import Played, Row, tournament

pytestmark = pytest.mark.django_db
ROUNDS: list[Row] = [(0, 1, "first", 12), (0, 2, "first", 12), (1, 2, "second", 12)]


@pytest.fixture
def played() -> Played:
    return tournament(THREE, ROUNDS)


@pytest.fixture
def campaign(played: Played) -> Campaign:
    return campaign_over(played.tournament.team, played.tournament)


def board(played: Played, source: str = "human", **method: Any) -> Leaderboard:
    chosen = services.Method(**{"ties": "rao_kupper", "source": source, **method})
    return services.board_of_jury(played.tournament, played.jury, chosen)


def fitted(played: Played, source: str = "human", **method: Any) -> RatingRun:
    run = services.refit(board(played, source, **method).pk)
    assert run is not None
    run.refresh_from_db()
    return run


def opinions(seed: int, times: int = 36) -> list[str]:
    """The first of a pair wins more often than not; some ties."""
    draw = random.Random(seed)
    return draw.choices(["first", "second", "tie"], [5, 3, 2], k=times)


def total(run: RatingRun) -> int:
    return sum(row[3] for row in run.triples)


def test_only_votes_that_count_enter(played: Played, campaign: Campaign) -> None:
    one = member_rater(campaign)
    votes = cast(one, ["first", "second", "tie", "both_bad", "skip"])
    cast(one, ["second", "second", "second"], kind="repeat", standing="repeat")
    cast(member_rater(campaign), ["first"] * 4, standing="over_quota")
    cast(member_rater(campaign), ["first"] * 4, standing="could_see_names")
    run = fitted(played)
    assert [row[2:] for row in run.triples] == [["first", 1], ["second", 1], ["tie", 2]]
    assert (run.comparisons, run.votes, run.raters) == (4, 4, 1)
    assert (run.ridge, run.ties, run.ridge_by_default) == (0.01, "rao_kupper", False)
    assert [row[2:] for row in fitted(played, drop_both_bad=True).triples] == [["first", 1], ["second", 1], ["tie", 1]]
    # A superseded vote is none; what replaced it is.
    Vote.objects.filter(pk=votes[0].pk).update(is_current=False)
    assert total(fitted(played)) == 3


def test_outcomes_are_those_of_the_row_whatever_the_side(played: Played, campaign: Campaign) -> None:
    cast(member_rater(campaign), ["first"] * 12, first_left=True)
    cast(member_rater(campaign), ["first"] * 12, first_left=False)
    run = fitted(played)
    first, second = (candidate.pk for candidate in played.candidates[:2])
    assert run.triples == [[first, second, "first", 24]]
    rows = dataset.style_rows(board(played), dataset.evidence_of(board(played)))
    assert sorted(row.position for row in rows) == [-1] * 12 + [1] * 12


def test_votes_after_a_reveal_stay_out(played: Played, campaign: Campaign) -> None:
    votes = cast(member_rater(campaign), ["first"] * 4)
    Campaign.objects.filter(pk=campaign.pk).update(status="revealed", revealed_at=timezone.now())
    late = timezone.now() + dt.timedelta(hours=1)
    Vote.objects.filter(pk=votes[3].pk).update(created_at=late)
    assert total(fitted(played)) == 3


def test_one_person_counts_once_on_a_pair_whatever_the_campaign(played: Played, campaign: Campaign) -> None:
    one = member_rater(campaign)
    cast(one, ["first"] * 3)
    again = campaign_over(played.tournament.team, played.tournament)
    cast(member_rater(again, one.user), ["second"])
    cast(member_rater(again), ["second"])
    run = fitted(played)
    assert [row[2:] for row in run.triples] == [["first", 2], ["second", 2]]
    assert run.raters == 2


def test_errors_allow_for_samples_and_raters(played: Played, campaign: Campaign) -> None:
    for seed in range(4):
        cast(member_rater(campaign), opinions(seed))
    run = fitted(played)
    assert run.errors == "two_way"
    evidence = dataset.evidence_of(board(played))
    comparisons = evidence.comparisons()
    assert isinstance(comparisons, Comparisons)
    expected = rate(comparisons, ties="rao_kupper", ridge=0.01, errors="two_way")
    stored = [row.rating for row in run.ratings.order_by("candidate__position")]
    assert stored == pytest.approx(expected.rating.tolist())
    errors = [row.rating_std_error for row in run.ratings.order_by("candidate__position")]
    assert errors == pytest.approx(expected.std_error.tolist())
    assert fitted(played, errors="sample").errors == "sample"
    assert fitted(played, errors="fisher").without_busiest is None


def test_a_single_rater_has_errors_by_sample_and_a_caveat(played: Played, campaign: Campaign) -> None:
    cast(member_rater(campaign), opinions(1))
    run = fitted(played)
    assert (run.errors, run.without_busiest) == ("sample", None)
    assert any("by one person" in caveat for caveat in board_of(board(played)).verdict.caveats)


def test_without_the_busiest_rater_the_board_may_turn(played: Played, campaign: Campaign) -> None:
    """One votes for the second of every pair, several others for the first, less often."""
    cast(member_rater(campaign), ["second"] * 36)
    for begin in (0, 12, 24):
        cast(member_rater(campaign), ["first"] * 6 + ["second"], skip=begin)
    run = fitted(played)
    assert run.without_busiest is not None
    assert run.without_busiest["comparisons"] == 36
    assert run.without_busiest["leader_changed"]
    view = board_of(board(played))
    assert "somebody else is first" in view.busiest
    assert any("Without the votes of one person" in caveat for caveat in view.verdict.caveats)


def test_a_mixed_board_weighs_both_alike_and_shows_them_apart(played: Played, campaign: Campaign) -> None:
    cast(member_rater(campaign), ["second"] * 36)
    cast(member_rater(campaign), opinions(3))
    run = fitted(played, "both")
    assert (run.comparisons, run.votes, run.raters) == (108, 72, 2)
    assert run.sources is not None
    assert (run.sources["jury"]["comparisons"], run.sources["human"]["comparisons"]) == (36, 72)
    alone = services.refit(
        services.board_of_jury(played.tournament, played.jury, services.Method("rao_kupper", 0.01)).pk
    )
    assert alone is not None
    ratings = {row["subject"]: row["rating"] for row in run.sources["jury"]["ratings"]}
    assert ratings == pytest.approx({row.candidate_id: row.rating for row in alone.ratings.all()})
    people = {row.candidate_id: row.rating for row in fitted(played).ratings.all()}
    found = {row["subject"]: row["rating"] for row in run.sources["human"]["ratings"]}
    assert found == pytest.approx(people)
    view = board_of(board(played, "both"))
    assert "36 decided matches and 72 votes of 2 people" in view.verdict.plain
    assert len(view.sources) == 3


def test_wide_boards_read_votes_too(played: Played, campaign: Campaign) -> None:
    cast(member_rater(campaign), opinions(5))
    cast(member_rater(campaign), opinions(6))
    team = played.tournament.team
    for lineage in ("", played.tournament.task_set.lineage):
        wide = services.wide_board(team, services.Method(ties="rao_kupper", source="human"), task_set_lineage=lineage)
        run = services.refit(wide.pk)
        assert run is not None
        assert (run.votes, run.tournaments) == (72, 1)
        assert {row.language_model_id for row in run.ratings.all()} == {
            candidate.language_model_id for candidate in played.candidates
        }
    assert "people" in method_text(wide)


def test_counts_alone_where_votes_are_too_many_to_read_apart(played: Played, campaign: Campaign) -> None:
    cast(member_rater(campaign), opinions(7))
    for source in ("human", "both"):
        fine = dataset.evidence_of(board(played, source))
        coarse = dataset.evidence_of(board(played, source), fine_up_to=5)
        assert coarse.comparisons() is None
        assert (coarse.triples, coarse.samples, coarse.votes) == (fine.triples, fine.samples, fine.votes)


def test_boards_are_due_when_votes_changed_and_at_no_other_time(played: Played, campaign: Campaign) -> None:
    one, other = anonymous(campaign), member_rater(campaign)
    votes = cast(one, opinions(8))
    cast(other, opinions(9))
    mixed = board(played, "both")
    services.refit_due_boards()
    assert refits.boards_due() == []
    assert RatingRun.objects.filter(leaderboard=mixed).count() == 1

    def due() -> bool:
        was_due = mixed.pk in refits.boards_due()
        services.refit_due_boards()
        assert refits.boards_due() == []
        return was_due

    cast(member_rater(campaign), ["first"])
    assert due()
    Vote.objects.filter(pk=votes[0].pk).update(is_current=False)
    assert due()
    services.screen_session(rater=one, actor=None, screening="excluded")
    assert due()
    assert RatingRun.objects.filter(leaderboard=mixed).count() == 4
    # Said otherwise and back again: looked at, and nothing is written.
    services.screen_session(rater=one, actor=None, screening="")
    services.screen_session(rater=one, actor=None, screening="excluded")
    assert due()
    assert RatingRun.objects.filter(leaderboard=mixed).count() == 4


def stuffed(campaign: Campaign) -> tuple[Rater, Rater, Rater]:
    """A session that always says left, one that is too fast, and an honest one."""
    sided, fast, honest = anonymous(campaign), anonymous(campaign), anonymous(campaign)
    cast(sided, ["first", "second"] * 18)
    cast(fast, opinions(11), gap_s=0.5)
    cast(honest, opinions(12))
    return sided, fast, honest


def test_the_screen_leaves_out_and_lists_sessions(played: Played, campaign: Campaign) -> None:
    sided, fast, _ = stuffed(campaign)
    cast(member_rater(campaign), ["first", "second"] * 18, gap_s=0.1)
    run = fitted(played)
    # Votes without an anonymous session are kept, whatever they look like.
    assert (run.votes, run.raters, run.screened_sessions) == (72, 2, 2)
    assert run.screening is not None
    assert (run.screening["on"], run.screening["sessions"]) == (True, 3)
    listed = {one["rater"]: one for one in run.screening["listed"]}
    assert set(listed) == {sided.public_id, fast.public_id}
    assert listed[sided.public_id]["reasons"] == ["position"]
    assert listed[sided.public_id]["position_p"] < 1e-9
    assert (listed[fast.public_id]["reasons"], listed[fast.public_id]["median_gap_s"]) == (["speed"], 0.5)
    # Counts of somebody met in screened sessions alone would be there; the rating would not.
    assert total(fitted(played, anomaly_filter=False)) == 144


def test_an_admin_restores_a_session(played: Played, campaign: Campaign) -> None:
    sided, _, honest = stuffed(campaign)
    assert fitted(played).votes == 36
    services.screen_session(rater=sided, actor=None, screening="kept")
    assert fitted(played).votes == 72
    services.screen_session(rater=honest, actor=None, screening="excluded")
    run = fitted(played)
    assert run.votes == 36
    assert {one.standing for one in board_of(board(played)).sessions} == {
        "kept by an admin",
        "left out by an admin",
        "left out",
    }
    entry = AuditLog.objects.filter(action="campaign.screening").latest("pk")
    assert entry.new["screening"] == "excluded"


def test_many_votes_exclude_only_where_the_installation_says_so(
    played: Played, campaign: Campaign, settings: Any
) -> None:
    busy = anonymous(campaign)
    cast(busy, opinions(13))
    for seed in range(6):
        cast(anonymous(campaign), opinions(seed, 2))
    run = fitted(played)
    assert run.screened_sessions == 0
    assert [one["reasons"] for one in (run.screening or {})["listed"]] == [["volume"]]
    settings.ANOMALY_VOLUME_EXCLUDES = True
    assert fitted(played).votes == 12


def test_the_command_can_keep_rejected_sessions(played: Played, campaign: Campaign) -> None:
    stuffed(campaign)
    chosen = board(played)
    services.refit(chosen.pk)
    output = StringIO()
    call_command("refit", "--board", chosen.public_id, "--no-anomaly-filter", stdout=output)
    assert "108 comparisons" in output.getvalue()
    newest = RatingRun.objects.filter(leaderboard=chosen).latest("pk")
    assert (newest.votes, newest.screened_sessions, newest.settings["anomaly_filter"]) == (108, 0, False)


def test_position_is_a_style_of_screens_as_of_seats(played: Played, campaign: Campaign) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        # Left wins nine of ten, whoever stands there.
        said = ["first" if (number % 2 == 0) == (draw.random() < 0.9) else "second" for number in range(36)]
        cast(member_rater(campaign), said)
    run = services.refit(board(played).pk, services.Refit(style=True))
    assert run is not None
    coefficient = run.style_coefficients.get(feature="position")
    assert coefficient.value > 100
    assert any("on the left, is preferred" in finding for finding in board_of(board(played)).findings)


def test_queries_of_a_fit_do_not_grow_with_the_votes(played: Played, campaign: Campaign) -> None:
    counted, chosen = [], board(played)
    for seed in (20, 21):
        for _ in range(seed - 19):
            cast(member_rater(campaign), opinions(seed))
        with CaptureQueriesContext(connection) as queries:
            dataset.evidence_of(chosen, at_most=1000)
        counted.append(len(queries))
    assert counted[0] == counted[1]


def test_a_vote_on_a_match_of_another_tournament_stays_there(played: Played) -> None:
    other = tournament(THREE, ROUNDS, team=played.tournament.team)
    both = campaign_over(played.tournament.team, played.tournament, other.tournament)
    cast(member_rater(both), ["first"] * 72)
    assert total(fitted(played)) == total(fitted(other)) == 36
    assert Match.objects.filter(votes__isnull=False).count() == 72


@pytest.mark.parametrize(
    "method", [{"source": "crowd"}, {"anomaly_filter": False}, {"drop_both_bad": True}, {"errors": "two_way"}], ids=str
)
def test_a_board_of_juries_has_no_raters(method: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="board"):
        services.Method(**method)
