from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from arena.models import AuditLog, Candidate, Decision, Match, TrialRequest
from arena.signals import step_finished
from ratings import dataset, services
from ratings.engine import PairCounts, rate
from ratings.models import Leaderboard, Rating, RatingRun
from ratings.services import fitting
from tests.ratings.world import Played, Row, simulated, tournament

THREE = ["Ada", "Bram", "Cleo"]
DECIDED: list[Row] = [
    (0, 1, "first", 8),
    (0, 1, "second", 3),
    (0, 2, "first", 7),
    (0, 2, "second", 2),
    (1, 2, "first", 5),
    (1, 2, "second", 5),
    (1, 2, "tie", 1),
]
db = pytest.mark.django_db


def board_of(played: Played, ties: str | None = None) -> Leaderboard:
    return services.leaderboard_for(played.tournament, played.jury, ties=ties)


def fitted(played: Played, ties: str | None = None) -> RatingRun:
    run = services.refit(board_of(played, ties).pk)
    assert run is not None
    return run


@db
def test_a_board_comes_to_exist_once() -> None:
    played = tournament(THREE)
    board = board_of(played)
    assert board == board_of(played) == board_of(played, "half_win")
    assert board_of(played, "rao_kupper") != board
    assert list(Leaderboard.objects.filter(preferred=True)) == [board]


@db
def test_what_a_run_stores() -> None:
    played = tournament(THREE, DECIDED)
    run = fitted(played)
    assert (run.comparisons, run.converged, run.ridge, run.ridge_by_default) == (31, True, 0.0, False)
    assert run.step_number == 1
    assert run.leader == played.candidates[0]
    ada, bram, cleo = run.ratings.order_by("candidate__position")
    assert (ada.games, ada.wins, ada.losses, ada.ties) == (20, 15, 5, 0)
    assert (cleo.games, cleo.wins, cleo.losses, cleo.ties) == (20, 7, 12, 1)
    assert ada.rating > 1000 > min(bram.rating, cleo.rating)
    assert ada.ci_lower < ada.rating < ada.ci_upper
    assert ada.mean_cost_usd is not None
    assert (ada.median_latency_ms, cleo.median_latency_ms) == (800, 1000)
    assert [row.rank for row in (ada, bram, cleo)] == [1, 2, 3]
    assert bram.rank_to == cleo.rank_to == 3
    assert bram.rank_from < 3


@pytest.mark.parametrize("ties", ["half_win", "rao_kupper"])
@db
def test_the_stored_triples_give_the_ratings_again_to_the_last_digit(ties: Any) -> None:
    played = tournament([f"m{i}" for i in range(8)], simulated(8, 6))
    board = services.board_of_jury(played.tournament, played.jury, services.Method(ties=ties, errors="fisher"))
    services.refit(board.pk)
    run = RatingRun.objects.get()
    index = {candidate: position for position, (candidate, _) in enumerate(run.roster)}
    rows = [(index[first], index[second], outcome, times) for first, second, outcome, times in run.triples]
    again = rate(PairCounts.from_rows(len(index), rows), ties=ties, ridge=run.ridge)
    stored = {row.candidate_id: row for row in run.ratings.all()}
    for candidate, position in index.items():
        row = stored[candidate]
        assert row.rating == again.rating[position]
        assert (row.ci_lower, row.ci_upper) == (again.lower[position], again.upper[position])
        assert row.win_share == again.win_share[position]


@db
def test_the_stored_covariance_gives_the_errors_of_all_differences() -> None:
    run = fitted(tournament(THREE, DECIDED))
    run.refresh_from_db()
    assert run.covariance is not None
    (part,) = run.covariance
    upper = part["upper"]
    rows = {row.candidate_id: row for row in run.ratings.all()}
    for position, candidate in enumerate(part["candidates"][:-1]):
        spread = upper[position][0] + upper[position + 1][0] - 2 * upper[position][1]
        assert rows[candidate].next_std_error == pytest.approx(np.sqrt(spread))
        assert rows[candidate].rating_std_error == pytest.approx(np.sqrt(upper[position][0]))


@db
def test_the_same_evidence_writes_nothing() -> None:
    played = tournament(THREE, DECIDED)
    fitted(played)
    assert services.refit(board_of(played).pk) is None
    # An inconclusive match is news, and no evidence.
    played.decide([(0, 1, "inconclusive", 1), (0, 1, "void", 1), (0, 2, "forced", 1)])
    assert services.refit(board_of(played).pk) is None
    assert RatingRun.objects.count() == 1
    marks = dataset.Marks.from_json(board_of(played).checked)
    assert (marks.decided, marks.inconclusive, marks.void, marks.forced_ties) == (31, 1, 1, 1)


@db
def test_new_evidence_writes_the_next_run() -> None:
    played = tournament(THREE, DECIDED)
    fitted(played)
    played.decide([(0, 1, "first", 1)], step=2)
    assert fitted(played).step_number == 2
    # A superseded decision is evidence no longer.
    Decision.objects.filter(match__sequence=1).update(superseded_at=timezone.now())
    assert fitted(played).comparisons == 31


@db
def test_a_changed_roster_is_new_evidence() -> None:
    played = tournament([*THREE, "Dora"], DECIDED)
    assert fitted(played).ratings.get(candidate=played.candidates[3]).rating is None
    Candidate.objects.filter(pk=played.candidates[3].pk).delete()
    assert fitted(played).ratings.count() == 3


@db
def test_without_a_decision_nothing_is_fitted() -> None:
    played = tournament(THREE, [(0, 1, "inconclusive", 4)])
    assert services.refit(board_of(played).pk) is None
    assert not RatingRun.objects.exists()


@db
def test_when_all_decisions_are_gone_the_board_does_not_keep_the_old_ratings() -> None:
    played = tournament(THREE, DECIDED)
    fitted(played)
    Decision.objects.update(superseded_at=timezone.now())
    run = fitted(played)
    assert run.leader is None
    assert set(run.ratings.values_list("rating", "games")) == {(None, 0)}


@db
def test_one_that_never_won_has_an_open_end_and_a_prior_is_used() -> None:
    played = tournament(THREE, [(0, 1, "first", 4), (0, 1, "second", 4), (0, 2, "first", 3), (1, 2, "first", 3)])
    run = fitted(played)
    assert (run.ridge, run.ridge_by_default) == (0.01, True)
    cleo = run.ratings.get(candidate=played.candidates[2])
    assert cleo.rating is not None
    assert cleo.ci_lower is None
    assert cleo.ci_upper is not None


@db
def test_a_split_graph_has_components_and_isolated_candidates_none() -> None:
    played = tournament(
        ["Ada", "Bram", "Cleo", "Dora", "Egon", "Finn"],
        [(0, 1, "first", 3), (0, 1, "second", 2), (2, 3, "first", 4), (2, 3, "second", 2), (3, 4, "tie", 2)],
    )
    run = fitted(played)
    rows = run.ratings.order_by("candidate__position")
    assert [row.component_id for row in rows] == [1, 1, 0, 0, 0, None]
    assert [row.rank for row in rows] == [1, 2, 1, 2, 3, None]
    assert run.leader == played.candidates[2]
    assert rows[5].rating is None


@pytest.mark.parametrize("ties", ["half_win", "rao_kupper"])
@db
def test_all_ties(ties: str) -> None:
    run = fitted(tournament(THREE, [(0, 1, "tie", 3), (1, 2, "tie", 3), (0, 2, "tie", 3)]), ties)
    assert run.converged
    assert {round(rating, 6) for rating in run.ratings.values_list("rating", flat=True)} == {1000.0}
    assert {(row.rank_from, row.rank_to) for row in run.ratings.all()} == {(1, 3)}
    assert run.eta_unbounded == (ties == "rao_kupper")


@pytest.mark.parametrize("n", [2, 40, 61])
@db
def test_sizes(n: int) -> None:
    run = fitted(tournament([f"m{i}" for i in range(n)], simulated(n, 20 if n == 2 else 2)))
    assert run.converged
    assert run.ratings.count() == n
    assert (run.covariance is None) == (n > services.COVARIANCE_UP_TO)


@db
def test_a_fit_that_did_not_converge_is_kept_and_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    good = fitted(played)
    played.decide([(0, 1, "first", 1)])
    whole = fitting.rate

    def early(*args: Any, **options: Any) -> Any:
        result = whole(*args, **options)
        object.__setattr__(result.fit, "converged", False)
        return result

    monkeypatch.setattr(fitting, "rate", early)
    assert fitted(played).converged is False
    assert RatingRun.objects.published().first() == good


@db
def test_run_and_ratings_are_written_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    board = board_of(played)

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Rating.objects, "bulk_create", broken)
        with pytest.raises(RuntimeError):
            services.refit(board.pk)
    assert not RatingRun.objects.exists()
    # The board is free at once, and still due.
    assert services.boards_due()
    assert services.refit(board.pk) is not None


@db
def test_a_claimed_board_is_left_alone_until_the_lease_ends() -> None:
    played = tournament(THREE, DECIDED)
    board = board_of(played)
    Leaderboard.objects.update(lease_until=timezone.now() + dt.timedelta(seconds=30), lease_token="other")
    assert services.refit(board.pk) is None
    Leaderboard.objects.update(lease_until=timezone.now() - dt.timedelta(seconds=1))
    assert services.refit(board.pk) is not None


@db
def test_a_refit_that_overran_its_lease_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    board = board_of(played)
    whole = fitting.rate

    def slow(*args: Any, **options: Any) -> Any:
        Leaderboard.objects.update(lease_token="other")
        return whole(*args, **options)

    monkeypatch.setattr(fitting, "rate", slow)
    assert services.refit(board.pk) is None
    assert not RatingRun.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_refits_at_once_write_one_run() -> None:
    played = tournament([f"m{i}" for i in range(8)], simulated(8, 4))
    board = board_of(played)
    gate = threading.Barrier(6)
    written: list[RatingRun | None] = []

    def work() -> None:
        try:
            gate.wait()
            written.append(services.refit(board.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 6
    assert [run for run in written if run is not None] == list(RatingRun.objects.all())
    assert RatingRun.objects.count() == 1
    assert Rating.objects.count() == 8


@pytest.mark.django_db(transaction=True)
def test_a_board_asked_for_at_once_is_made_once() -> None:
    played = tournament(THREE)
    gate = threading.Barrier(6)
    found: list[int] = []

    def work() -> None:
        try:
            gate.wait()
            found.append(board_of(played).pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == Leaderboard.objects.count() == 1


@db
def test_what_is_due_follows_from_rows() -> None:
    played = tournament(THREE)
    assert services.boards_due() == []
    played.decide(DECIDED)
    assert len(services.refit_due_boards()) == 2
    assert services.boards_due() == []
    played.decide([(0, 1, "inconclusive", 1)])
    assert len(services.boards_due()) == 2
    assert services.refit_due_boards() == []
    assert services.boards_due() == []


@db
def test_a_decision_that_commits_late_under_a_lower_id_is_seen() -> None:
    played = tournament(THREE, DECIDED)
    late = Decision.objects.earliest("pk")
    kept = Decision(pk=late.pk, jury=played.jury, match=late.match, outcome=late.outcome)
    late.delete()
    services.refit_due_boards()
    kept.save(force_insert=True)
    assert [run.comparisons for run in services.refit_due_boards()] == [31, 31]


@db
def test_an_old_board_is_looked_at_once_an_hour() -> None:
    played = tournament(THREE, DECIDED)
    services.refit_due_boards()
    long_ago = timezone.now() - dt.timedelta(days=2)
    type(played.tournament).objects.update(finished_at=long_ago)
    Match.objects.filter(sequence=1).update(status=Match.Status.VOID)
    assert services.boards_due() == []
    Leaderboard.objects.update(checked_at=long_ago)
    assert len(services.boards_due()) == 2


@db
def test_looking_for_what_is_due_takes_the_same_queries_for_any_number_of_boards(
    django_assert_num_queries: Any,
) -> None:
    tournament(THREE, DECIDED)
    tournament(THREE, DECIDED)
    services.refit_due_boards()
    with django_assert_num_queries(8):
        services.boards_due()


@db
def test_a_finished_step_makes_the_boards_due(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    played = tournament(THREE, DECIDED)
    services.refit_due_boards()
    sent: list[Any] = []
    monkeypatch.setattr("arena.dispatch.door.worker_is_here", True)
    monkeypatch.setattr("arena.dispatch.current_app.send_task", lambda name, args: sent.append((name, args)))
    with django_capture_on_commit_callbacks(execute=True):
        step_finished.send(sender=None, tournament_id=played.tournament.pk, step_number=1)
    due = services.boards_due()
    assert sent == [("ratings.tasks.refit_board_task", [board]) for board in due]
    assert len(due) == 2
    for board in due:
        services.refit(board)
    assert services.boards_due() == []


@db
def test_a_refit_that_was_wanted_meanwhile_stays_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    played = tournament(THREE, DECIDED)
    whole = fitting.rate

    def slow(*args: Any, **options: Any) -> Any:
        services.want_refit(played.tournament.pk)
        return whole(*args, **options)

    monkeypatch.setattr(fitting, "rate", slow)
    fitted(played)
    assert board_of(played).refit_wanted_at is not None


@db
def test_the_preferred_tie_model_is_one_and_on_record() -> None:
    played = tournament(THREE, DECIDED)
    services.prefer_ties(tournament=played.tournament, jury=played.jury, ties="rao_kupper", actor=None)
    assert board_of(played).ties == "rao_kupper"
    services.prefer_ties(tournament=played.tournament, jury=played.jury, ties="rao_kupper", actor=None)
    entry = AuditLog.objects.get(action="board.ties")
    assert (entry.old, entry.new) == ({"ties": "half_win"}, {"ties": "rao_kupper"})
    services.prefer_ties(tournament=played.tournament, jury=played.jury, ties="half_win", actor=None)
    assert board_of(played).ties == "half_win"


@db
def test_answers_of_unknown_cost_are_not_free() -> None:
    played = tournament(THREE, DECIDED, costs=["0.002", None, "0.004"])
    rows = fitted(played).ratings.order_by("candidate__position")
    assert [row.mean_cost_usd for row in rows][1] is None
    assert [row.priced_answers > 0 for row in rows] == [True, False, True]
    assert rows[1].answers > 0


@db
def test_answers_that_were_asked_for_count_like_those_of_the_matches() -> None:
    played = tournament(THREE, DECIDED, costs=["0.002", None, "0.004"])
    board = board_of(played)
    by_matches = dataset.answer_figures(board, {})
    for candidate in played.candidates:
        candidate.snapshot["fingerprint"] = candidate.language_model.fingerprint
        candidate.save()
    used = {trial for pair in Match.objects.values_list("first_trial", "second_trial") for trial in pair if trial}
    TrialRequest.objects.bulk_create(TrialRequest(tournament=played.tournament, trial_id=trial) for trial in used)
    assert dataset.answer_figures(board, {}) == by_matches
    assert by_matches[played.candidates[1].pk].mean_cost_usd is None
