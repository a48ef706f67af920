from __future__ import annotations

import logging
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from arena.models import Candidate, Decision, Jury, LanguageModel, Match, Step, Team, Tournament, Trial, TrialRequest
from ratings import dataset, services
from ratings.models import Leaderboard, RatingRun
from ratings.selectors import board_of, title_of, wide_boards_of
from ratings.services import fitting, refits
from tests.ratings.test_services import DECIDED, THREE
from tests.ratings.world import Played, simulated, snapshot, tournament

pytestmark = pytest.mark.django_db
RAO_KUPPER = services.Method(ties="rao_kupper")


def again(played: Played, models: list[LanguageModel], outcomes: dict[int, str], *, primary: bool = True) -> Tournament:
    """A second tournament on the same samples: `outcomes` by the position of the sample, first against second."""
    old = played.tournament
    new = Tournament.objects.create(
        team=old.team, task_set=old.task_set, name="Again", status="finished", max_matches=10
    )
    candidates = [
        Candidate.objects.create(
            tournament=new,
            language_model=model,
            position=position,
            label=model.label,
            full_id=model.full_id,
            snapshot=snapshot(model),
        )
        for position, model in enumerate(models)
    ]
    jury = Jury.objects.create(tournament=new, protocol=played.jury.protocol, primary=primary, status="finished")
    step = Step.objects.create(tournament=new, number=1, status="complete")
    for number, (position, outcome) in enumerate(outcomes.items(), start=1):
        sample = played.samples[position]
        trials = [Trial.objects.get(language_model__lineage=model.lineage, sample=sample) for model in models]
        for one in (old, new):
            for trial in trials:
                TrialRequest.objects.get_or_create(tournament=one, trial=trial)
        match = Match.objects.create(
            tournament=new,
            step=step,
            sequence=number,
            sample=sample,
            first=candidates[0],
            second=candidates[1],
            first_trial=trials[0],
            second_trial=trials[1],
            status="decided",
        )
        Decision.objects.create(jury=jury, match=match, outcome=outcome)
    return new


def models_of(played: Played) -> list[LanguageModel]:
    return [candidate.language_model for candidate in played.candidates]


def test_the_same_two_answers_count_once_and_the_latest_decision_is_it() -> None:
    played = tournament(["Ada", "Bram"], [(0, 1, "first", 5)])
    position = Match.objects.filter(sequence=1).values_list("sample__position", flat=True)[0]
    # The other way round, so that the pair of trials is the same and their order is not.
    again(played, models_of(played)[::-1], {position: "first"})
    board = services.wide_board(played.tournament.team, RAO_KUPPER)
    run = services.refit(board.pk)
    assert run is not None
    ada, bram = (model.pk for model in models_of(played))
    assert run.triples == [(ada, bram, "first", 4), (ada, bram, "second", 1)]
    assert (run.comparisons, run.repeated, run.tournaments) == (5, 1, 2)
    # Each tournament's own board keeps its own decision.
    own = services.refit(services.leaderboard_for(played.tournament, played.jury).pk)
    assert own is not None
    assert own.comparisons == 5


@pytest.mark.parametrize("fine_up_to", [0, 1000])
def test_with_and_without_samples_the_counts_are_the_same(fine_up_to: int) -> None:
    played = tournament(["Ada", "Bram", "Cleo"], DECIDED)
    again(played, models_of(played)[:2], {0: "first", 1: "tie"})
    board = services.wide_board(played.tournament.team, RAO_KUPPER)
    evidence = dataset.evidence_of(board, fine_up_to=fine_up_to)
    assert (evidence.fine is None) == (fine_up_to == 0)
    assert sum(count for *_, count in evidence.triples) == 31 + 2 - evidence.repeated
    assert evidence.triples == dataset.evidence_of(board).triples
    assert evidence.samples == dataset.evidence_of(board).samples


def test_versions_of_a_model_are_one_subject() -> None:
    played = tournament(["Ada", "Bram"], [(0, 1, "first", 3)])
    old = played.candidates[0].language_model
    new = LanguageModel(team=old.team, provider=old.provider, model_id="Ada 2", lineage=old.lineage, fingerprint="x")
    LanguageModel.objects.filter(pk=old.pk).update(superseded_at=played.tournament.created_at)
    new.save()
    again(played, [new, played.candidates[1].language_model], {9: "second"})
    board = services.wide_board(played.tournament.team, RAO_KUPPER)
    run = services.refit(board.pk)
    assert run is not None
    rows = {rating.subject: rating for rating in run.ratings.all()}
    assert set(rows) == {new, played.candidates[1].language_model}
    assert (rows[new].wins, rows[new].losses, rows[new].lineage) == (3, 1, old.lineage)


def test_only_the_first_jury_of_a_tournament_counts_and_drafts_do_not() -> None:
    played = tournament(["Ada", "Bram"], [(0, 1, "first", 3), (0, 1, "inconclusive", 1), (0, 1, "void", 1)])
    second = Jury.objects.create(tournament=played.tournament, primary=False, protocol=played.jury.protocol)
    Decision.objects.create(jury=second, match=Match.objects.filter(status="decided")[0], outcome="second")
    tournament(["Cleo", "Dora"], [(0, 1, "first", 2)], team=played.tournament.team, status="draft")
    run = services.refit(services.wide_board(played.tournament.team, RAO_KUPPER).pk)
    assert run is not None
    assert (run.comparisons, run.ratings.count()) == (3, 2)


def test_a_board_of_a_task_set_reads_its_tournaments_alone() -> None:
    played = tournament(THREE, DECIDED)
    other = tournament(["Cleo", "Dora"], [(0, 1, "first", 2)], team=played.tournament.team)
    stranger = tournament(["Egon", "Finn"], [(0, 1, "first", 2)])
    lineage = other.tournament.task_set.lineage
    board = services.wide_board(other.tournament.team, RAO_KUPPER, task_set_lineage=lineage)
    run = services.refit(board.pk)
    assert run is not None
    assert run.comparisons == 2
    assert title_of(board) == other.tournament.task_set.name
    whole = services.refit(services.wide_board(other.tournament.team, RAO_KUPPER).pk)
    assert whole is not None
    assert whole.comparisons == 33
    titles = [listed.title for listed in wide_boards_of(other.tournament.team)]
    assert stranger.tournament.task_set.name not in titles
    assert titles[0] == "All tournaments"


def test_a_wide_board_becomes_due_by_its_rows_alone() -> None:
    played = tournament(THREE, DECIDED)
    board = services.wide_board(played.tournament.team, RAO_KUPPER)
    assert board == services.wide_board(played.tournament.team, RAO_KUPPER)
    services.refit_due_boards()
    assert services.boards_due() == []
    played.decide([(0, 1, "first", 1)], step=2)
    assert board.pk in services.boards_due()
    services.refit_due_boards()
    assert board.runs.count() == 2


def test_looking_for_wide_boards_takes_the_same_queries_for_any_number_of_them() -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            services.boards_due()
        return len(found)

    played = tournament(THREE, DECIDED)
    services.wide_board(played.tournament.team, RAO_KUPPER)
    services.refit_due_boards()
    one = queries()
    other = tournament(THREE, DECIDED)
    services.wide_board(other.tournament.team, RAO_KUPPER)
    services.wide_board(other.tournament.team, services.Method(ridge=0.1))
    services.refit_due_boards()
    assert queries() == one


def test_a_board_of_a_category() -> None:
    played = tournament(THREE, DECIDED)
    for sample in played.samples:
        sample.category = "legal" if sample.position < 6 else "code"
        sample.save()
    board = services.board_of_jury(played.tournament, played.jury, services.Method(category="legal"))
    run = services.refit(board.pk)
    assert run is not None
    legal = Decision.objects.rated().filter(match__sample__category="legal").count()
    assert 0 < legal < 31
    assert (run.comparisons, run.slices) == (legal, None)


def test_categories_with_too_few_comparisons_are_counted_and_not_rated() -> None:
    played = tournament(THREE, [*DECIDED, (0, 1, "tie", 10)], n_samples=40)
    for sample in played.samples:
        sample.category = "rare" if sample.position < 4 else "usual"
        sample.save()
    run = services.refit(services.leaderboard_for(played.tournament, played.jury).pk)
    assert run is not None
    assert run.slices is not None
    usual, rare = run.slices
    assert [usual["category"], rare["category"]] == ["usual", "rare"]
    assert usual["comparisons"] + rare["comparisons"] == 41
    assert rare["comparisons"] < 20
    assert rare["ratings"] == []
    assert {rating["games"] for rating in usual["ratings"]} != {0}


@pytest.mark.parametrize(
    "wrong", [{"ties": "coin"}, {"ridge": 0.02}, {"errors": "none"}], ids=["ties", "ridge", "errors"]
)
def test_no_board_for_what_no_board_offers(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        services.Method(**wrong)


def test_methods_have_boards_of_their_own() -> None:
    team = Team.objects.create(name="Methods")
    methods = [services.Method(), RAO_KUPPER, services.Method(ridge=0.1), services.Method(errors="fisher")]
    boards = [services.wide_board(team, method) for method in methods]
    assert len({board.key for board in boards}) == len(boards) == Leaderboard.objects.filter(team=team).count()


def test_errors_by_sample_and_by_match() -> None:
    played = tournament(THREE, simulated(3, 25, seed=2), n_samples=60)
    runs = {}
    for errors in ("auto", "fisher"):
        board = services.board_of_jury(played.tournament, played.jury, services.Method(errors=errors))
        run = services.refit(board.pk)
        assert run is not None
        runs[errors] = run
    assert [runs["auto"].errors, runs["fisher"].errors] == ["sample", "fisher"]
    assert runs["auto"].quantile > runs["fisher"].quantile == pytest.approx(1.96, abs=0.001)
    widths = {
        name: [row.rating_std_error for row in run.ratings.order_by("candidate__position")]
        for name, run in runs.items()
    }
    assert widths["auto"] != pytest.approx(widths["fisher"])


def test_who_never_won_is_not_known_more_exactly_by_its_samples() -> None:
    rows = [(0, 1, "first", 8), (1, 0, "first", 5), (0, 2, "first", 9), (1, 2, "first", 8)]
    played = tournament(THREE, rows)
    limits = {}
    for errors in ("auto", "fisher"):
        run = services.refit(services.board_of_jury(played.tournament, played.jury, services.Method(errors=errors)).pk)
        assert run is not None
        limits[errors] = run.ratings.get(candidate=played.candidates[2])
    assert limits["auto"].ci_lower is None
    assert (limits["auto"].ci_upper or 0) >= (limits["fisher"].ci_upper or 0) > 0


def test_resamples_give_ranks_first_places_and_who_is_ahead() -> None:
    played = tournament(THREE, DECIDED)
    run = services.refit(services.leaderboard_for(played.tournament, played.jury).pk)
    assert run is not None
    rows = list(run.ratings.order_by("rank"))
    assert run.resamples == 1000
    assert sum(row.first_share or 0 for row in rows) == pytest.approx(1)
    assert all(row.rank_lower is not None and row.rank_lower <= (row.rank or 0) for row in rows)
    assert rows[0].tier == 1
    assert run.ahead is not None
    ((above, _), (last,), ()) = run.ahead[0]["upper"]
    assert above > 0.5
    assert 0 <= last <= 1
    assert run.separation is not None
    assert run.separation["ahead"] == above


def history(played: Played, runs: int) -> list[RatingRun]:
    board = services.leaderboard_for(played.tournament, played.jury)
    for number in range(runs):
        if number:
            played.decide([(0, 1, "tie", 1)], step=number + 1)
        services.refit(board.pk)
    return list(board.runs.order_by("pk"))


def test_every_so_many_runs_one_starts_from_nothing(settings: Any) -> None:
    settings.FULL_REFIT_EVERY = 3
    runs = history(tournament(THREE, DECIDED), 5)
    assert [run.mode for run in runs] == ["full", "incremental", "incremental", "full", "incremental"]
    # The first has nothing before it to be compared with.
    assert [run.drift is None for run in runs] == [True, True, True, False, True]
    assert runs[3].drift == pytest.approx(0, abs=1e-6)


def test_nought_means_that_only_the_first_starts_from_nothing(settings: Any) -> None:
    settings.FULL_REFIT_EVERY = 0
    assert [run.mode for run in history(tournament(THREE, DECIDED), 3)] == ["full", "incremental", "incremental"]


def test_a_changed_roster_starts_from_nothing() -> None:
    played = tournament([*THREE, "Dora"], DECIDED)
    first = history(played, 1)[0]
    Candidate.objects.filter(pk=played.candidates[3].pk).delete()
    run = services.refit(first.leaderboard_id)
    assert run is not None
    assert (first.mode, run.mode) == ("full", "full")


def test_drift_is_said_aloud(settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    settings.FULL_REFIT_EVERY = 1
    monkeypatch.setattr(fitting, "_drift", lambda cold, warm: 0.75)
    with caplog.at_level(logging.WARNING, logger=refits.logger.name):
        runs = history(tournament(THREE, DECIDED), 2)
    assert [run.drift for run in runs] == [None, 0.75]
    assert [record.getMessage() for record in caplog.records] == [
        f"Board {runs[0].leaderboard}: a fit from nothing and one from the run before differ by 0.75 standard errors."
    ]


def test_drift_is_the_largest_difference_in_standard_errors() -> None:
    played = tournament(THREE, DECIDED)
    counts = dataset.evidence_of(services.leaderboard_for(played.tournament, played.jury)).pair_counts()
    whole, pulled = fitting.rate(counts), fitting.rate(counts, ridge=5.0)
    expected = float(np.max(np.abs(whole.rating - pulled.rating) / whole.std_error))
    assert fitting._drift(whole, pulled) == pytest.approx(expected)
    assert expected > refits.DRIFT_ALLOWED


def test_the_run_and_its_ratings_are_stored_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    board = services.leaderboard_for(played.tournament, played.jury)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the database went away")

    with monkeypatch.context() as patch:
        patch.setattr("ratings.services.refits.StyleCoefficient.objects.bulk_create", fail)
        with pytest.raises(RuntimeError):
            services.refit(board.pk)
    assert not RatingRun.objects.exists()
    assert services.refit(board.pk) is not None


def test_length_and_style_are_found_and_said() -> None:
    played = tournament(["Ada", "Bram", "Cleo"], simulated(3, 40, seed=3), n_samples=120)
    for trial in Trial.objects.all():
        # Who comes earlier writes more, and everybody now more, now less.
        long = 700 - 100 * THREE.index(trial.language_model.model_id) + trial.pk * 137 % 500
        trial.characters, trial.output_tokens = long, long // 4
        trial.markdown_density = (trial.pk * 53 % 100) / 1000
        trial.save()
    run = services.refit(services.leaderboard_for(played.tournament, played.jury).pk)
    assert run is not None
    assert run.length is not None
    assert run.length["longer_won"] > run.length["decided"] / 2
    findings = board_of(run.leaderboard).findings
    assert f"the longer answer won {run.length['longer_won']} " in findings[0]
    assert run.style is not None
    names = set(run.style_coefficients.values_list("feature", flat=True))
    assert names == {"verbosity", "formatting"}
    # Both orders were judged, so no seat has an advantage.
    assert run.style["left_out"] == {"position": "no_variation"}


def test_the_command_fits_what_is_due_and_says_so() -> None:
    played = tournament(THREE, DECIDED)
    board = services.leaderboard_for(played.tournament, played.jury)
    first, second = StringIO(), StringIO()
    call_command("refit", board=board.public_id, stdout=first)
    call_command("refit", board=board.public_id, stdout=second)
    assert first.getvalue().startswith(f"{board.public_id}: 31 comparisons, from nothing, ")
    assert second.getvalue() == "Nothing changed; no board was fitted.\n"
    with pytest.raises(CommandError, match="no board nowhere"):
        call_command("refit", board="nowhere")
    with pytest.raises(CommandError, match="--loop"):
        call_command("refit", interval=5)


def test_the_loop_goes_on_until_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt
        played.decide([(0, 1, "first", 1)], step=2)

    monkeypatch.setattr("ratings.management.commands.refit.time.sleep", sleep)
    out = StringIO()
    call_command("refit", loop=True, interval=7, stdout=out)
    assert waits == [7, 7]
    assert RatingRun.objects.filter(leaderboard__ties="half_win").count() == 2
