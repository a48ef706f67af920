from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.utils import translation
from django.utils.formats import number_format

from arena.models import Judge, Tournament
from ratings import services
from ratings.models import RatingRun
from ratings.selectors import BoardView, board_of, comparisons_of, existing_board, wording
from tests.ratings.test_services import DECIDED, THREE
from tests.ratings.world import Played, simulated, tournament

pytestmark = pytest.mark.django_db
CLEAR = [(0, 1, "first", 40), (0, 1, "second", 10), (0, 2, "first", 40), (0, 2, "second", 8), (1, 2, "tie", 30)]


def view_of(played: Played, ties: str | None = None, *, refit: bool = True) -> BoardView:
    if refit:
        services.refit_due_boards()
    return board_of(existing_board(played.tournament, played.jury, ties))


def test_an_established_lead() -> None:
    view = view_of(tournament(THREE, CLEAR, n_samples=60))
    gap = view.verdict.gap
    assert gap is not None
    assert gap.separated
    assert gap.lower is not None
    assert gap.upper is not None
    first, second = view.tables[0].rows[:2]
    assert first.rating is not None
    assert second.rating is not None
    assert gap.points == first.rating - second.rating
    assert view.verdict.plain == (
        f"Ada leads. Its lead of {gap.points:.0f} points over {second.label} is established "
        f"(95% interval: {gap.lower:.0f} to {gap.upper:.0f}). "
        f"Of 100 matches against {second.label} it would win about 81, ties counted as half. "
        "All this rests on 128 decided matches over 51 samples."
    )
    assert [row.places for row in view.tables[0].rows] == ["1", "2 to 3", "2 to 3"]
    assert view.verdict.caveats == []


def test_tiers_hold_those_whose_order_is_open() -> None:
    table = view_of(tournament(THREE, CLEAR, n_samples=60)).tables[0]
    assert [[row.label for row in tier.rows] for tier in table.tiers] == [["Ada"], ["Bram", "Cleo"]]
    assert [tier.title for tier in table.tiers] == ["", "2 to 3: order not established"]
    assert [row.leads for row in table.rows] == [True, False, False]
    # Who leads without doubt needs no share of first places, and who never was first has none.
    assert [row.first_text for row in table.rows] == ["", "", ""]


def test_without_resamples_there_are_no_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ratings.services.fitting.RESAMPLED_UP_TO", 0)
    table = view_of(tournament(THREE, CLEAR, n_samples=60)).tables[0]
    assert [tier.title for tier in table.tiers] == ["", "", ""]
    assert [row.places for row in table.rows] == ["1", "2 to 3", "2 to 3"]


def test_the_share_of_first_places_stands_where_the_first_is_open() -> None:
    rows = [(0, 1, "first", 9), (0, 1, "second", 6), (1, 2, "tie", 9), (0, 2, "tie", 9)]
    view = view_of(tournament(THREE, rows))
    found = [row.first_text for row in view.tables[0].rows]
    shares = [row.stored.first_share or 0 for row in view.tables[0].rows]
    assert found == [f"first in {100 * share:.0f}%" for share in shares]
    assert sum(shares) == pytest.approx(1)


def test_two_pages_tell_the_same_of_the_first_two() -> None:
    view = view_of(tournament(THREE, CLEAR, n_samples=60))
    gap, (first, second, _) = view.verdict.gap, view.tables[0].rows
    assert gap is not None
    assert view.run is not None
    run = RatingRun.objects.get(pk=view.run.pk)
    ahead = next(found for found in comparisons_of(view.rows, run, first) if found.other is second)
    behind = next(found for found in comparisons_of(view.rows, run, second) if found.other is first)
    assert (ahead.lower, ahead.upper) == (gap.lower, gap.upper)
    assert (behind.lower, behind.upper) == (-(gap.upper or 0), -(gap.lower or 0))


@pytest.mark.parametrize("language", ["en", "ja", "de", "fr", "hi", "ar"])
def test_numbers_are_written_as_the_language_writes_them(language: str) -> None:
    with translation.override(language):
        for value, digits in ((0, 0), (-0.3, 0), (1234567, 0), (-1234.5, 1), (0.004, 3)):
            rounded = round(float(value), digits) + 0
            expected = number_format(rounded, decimal_pos=digits, force_grouping=True)
            assert wording.number(value, digits) == expected.replace("-", "−")


def test_a_lead_that_is_not_established() -> None:
    view = view_of(tournament(THREE, [(0, 1, "first", 6), (0, 1, "second", 5), (1, 2, "tie", 9), (0, 2, "tie", 9)]))
    assert view.verdict.plain.startswith("Ada is ahead, but its lead is not established: ")
    assert "(95% interval: −" in view.verdict.plain
    assert {row.places for row in view.tables[0].rows} == {"1 to 3"}


def test_nobody_leads_when_all_tie() -> None:
    for ties in ("half_win", "rao_kupper"):
        view = view_of(tournament(THREE, [(0, 1, "tie", 9), (1, 2, "tie", 9), (0, 2, "tie", 9)]), ties)
        assert view.verdict.plain.startswith("No leader: Ada and Bram have the same rating.")


@pytest.mark.parametrize(("wins", "established"), [(1, False), (5, False), (6, True), (40, True)])
def test_a_sweep_counts_as_what_it_is(wins: int, established: bool) -> None:
    view = view_of(tournament(["Ada", "Bram"], [(0, 1, "first", wins)], n_samples=60))
    gap = view.verdict.gap
    assert gap is not None
    assert (gap.lower, gap.upper, gap.separated) == (None, None, established)
    assert view.verdict.plain.startswith("Ada leads: it" if established else "Ada is ahead, but its lead is not ")
    first, second = view.tables[0].rows
    assert [row.places for row in (first, second)] == (["1", "2"] if established else ["1 to 2", "1 to 2"])
    # One sample says nothing of how results differ between samples.
    assert first.interval_text.startswith("≥ " if wins > 1 else "open")
    assert second.interval_text.startswith("≤ " if wins > 1 else "open")
    assert any("weak prior" in caveat for caveat in view.verdict.caveats)


def test_a_split_field_has_a_table_each_and_says_so_first() -> None:
    rows = [(0, 1, "first", 6), (1, 0, "first", 4), (2, 3, "first", 5), (3, 2, "first", 4)]
    view = view_of(tournament(["Ada", "Bram", "Cleo", "Dora", "Egon"], rows))
    assert [[row.label for row in table.rows] for table in view.tables] == [["Ada", "Bram"], ["Cleo", "Dora"]]
    assert [row.label for row in view.isolated] == ["Egon"]
    assert view.isolated[0].rating is None
    assert view.verdict.caveats[0].startswith("The candidates form 2 groups that never met.")


def test_judges_of_a_candidates_family_are_named_those_of_the_leader_first() -> None:
    played = tournament(
        THREE,
        CLEAR,
        n_samples=60,
        families=["Heron", "Kestrel", ""],
        judges=[("kestrel-judge", " kestrel"), ("heron-judge", "heron"), ("neutral", ""), ("other", "Wren")],
    )
    judge = Judge.objects.get(label="other")
    judge.snapshot["model_id"] = "Cleo"
    judge.save()
    assert view_of(played).verdict.caveats == [
        "The judge heron-judge is of the same family as Ada, and may favour it.",
        "The judge kestrel-judge is of the same family as Bram, and may favour it.",
        "other judges and competes; it sits out its own matches.",
    ]


def test_few_samples_and_many_matches_without_result_are_said() -> None:
    played = tournament(THREE, [*DECIDED, (0, 1, "inconclusive", 6), (1, 2, "void", 3), (0, 2, "forced", 1)])
    caveats = view_of(played).verdict.caveats
    assert "10 of 41 finished matches gave no result: 6 inconclusive, 4 without both answers." in caveats
    few = view_of(tournament(["Ada", "Bram"], [(0, 1, "first", 5), (0, 1, "second", 4)])).verdict.caveats
    # With one loss less, one resample in forty would have none, and the lead an open end.
    assert few[0] == "9 samples are few: with other prompts the order may turn."


def test_a_fit_that_failed_is_not_shown_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    before = view_of(played)
    played.decide([(0, 1, "second", 9)])
    services.refit_due_boards()
    RatingRun.objects.filter(pk__in=[run.pk for run in RatingRun.objects.order_by("-id")[:2]]).update(converged=False)
    view = view_of(played, refit=False)
    assert view.run == before.run
    assert view.verdict.caveats[0].startswith("The newest fit did not converge and is not shown")
    RatingRun.objects.update(converged=False)
    assert view_of(played, refit=False).verdict.plain == (
        "The fit of this board did not converge, so no ratings are shown."
    )


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("draft", "The tournament has not started, so there is nothing to rate."),
        ("running", "No match is decided yet."),
        ("finished", "No match was decided, so there is nothing to rate."),
    ],
)
def test_before_anything_is_decided(status: str, sentence: str) -> None:
    view = view_of(tournament(THREE, status=status))
    assert (view.verdict.plain, view.tables, view.rows) == (sentence, [], [])


def test_between_the_first_decision_and_the_first_fit() -> None:
    played = tournament(THREE, DECIDED, status=Tournament.Status.RUNNING)
    assert view_of(played, refit=False).verdict.plain.startswith("The first matches are decided.")


def test_labels_are_escaped() -> None:
    view = view_of(tournament(["<b>Ada</b> & co", "{Bram}"], [(0, 1, "first", 30), (0, 1, "second", 4)], n_samples=40))
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; co" in view.verdict.sentence
    assert "{Bram}" in view.verdict.sentence


def test_reading_takes_the_same_queries_for_any_number_of_candidates(django_assert_num_queries: Any) -> None:
    for n in (2, 8):
        played = tournament([f"m{i}" for i in range(n)], simulated(n, 4))
        services.refit_due_boards()
        with django_assert_num_queries(4):
            view = board_of(existing_board(played.tournament, played.jury, None))
            assert len([row.label for row in view.rows]) == n


def test_numbers_as_people_read_them() -> None:
    assert wording.number(-1234.4) == "−1,234"
    assert wording.number(-0.4) == "0"
    assert wording.dollars(Decimal("0.00012345")) == "$0.000123"
    assert wording.dollars(Decimal("1234.5")) == "$1,234.50"
    assert wording.dollars(Decimal(0)) == "$0"
    assert [wording.seconds(ms) for ms in (84, 1234, 123456)] == ["0.08 s", "1.2 s", "123 s"]
    assert wording.names(["a", "b", "c"]) == "a, b and c"
    with translation.override("de"):
        assert wording.number(1234.5, 1) == "1.234,5"
