"""Recorded runs against what is published and known of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from arena.judging.audit import Audit
from arena.manifest import manifest_of
from arena.models import Ballot, Decision, LanguageModel, Match, TaskSet, Team, Tournament, Trial, Verdict
from arena.selectors.audit_tables import document
from arena.selectors.audit_words import findings_of
from arena.selectors.jury_audit import audit_of
from arena.services.recorded_runs import ImportedRun, import_run
from ratings.headless.match_log import records
from ratings.headless.results import board_of_tournament
from tests.arena.ingest.builders import shared

pytestmark = pytest.mark.django_db
REFERENCE = "reference/orq_quickstart.json"


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, list[ImportedRun]]]:
    """Both records, imported once for the module."""
    orq, juryarena = shared("data/orq_quickstart"), shared("data/juryarena_demo")
    with django_db_blocker.unblock(), transaction.atomic():
        team = Team.objects.create(name="Records")
        yield {
            "orq": import_run(team=team, path=orq, actor=None),
            "juryarena": import_run(team=team, path=juryarena, actor=None),
        }
        transaction.set_rollback(True)


@pytest.fixture
def records_of(stored: dict[str, list[ImportedRun]], django_db_blocker: Any) -> Iterator[dict[str, list[ImportedRun]]]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield stored
        transaction.set_rollback(True)


@pytest.fixture
def orq(records_of: dict[str, list[ImportedRun]]) -> Tournament:
    return records_of["orq"][0].tournament


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared(REFERENCE).read_text(encoding="utf-8"))
    return found


def audited(tournament: Tournament, **options: Any) -> Audit:
    return audit_of(tournament.juries.get(), **{"resamples": 100, **options})


# orq-arena ---------------------------------------------------------------------------------------------------
def test_ratings_of_the_published_run(orq: Tournament, published: dict[str, Any]) -> None:
    ratings = {row["label"]: row["rating"] for row in board_of_tournament(orq)["ratings"]}
    expected = published["bradley_terry_half_win_no_ridge"]
    assert ratings.keys() == expected.keys()
    assert all(abs(ratings[name] - expected[name]) < 0.01 for name in expected)


def test_outcomes_and_the_win_grid(orq: Tournament, published: dict[str, Any]) -> None:
    found = audited(orq)
    expected = published["outcomes"]
    assert dict(found.totals.outcomes) == {name: expected[name] for name in ("first", "second", "tie", "inconclusive")}
    assert (found.totals.void, found.totals.decided) == (expected["void"], expected["rated"])
    assert (found.totals.truncated, found.totals.samples) == (
        published["truncated_answers"],
        published["distinct_prompts"],
    )
    wins = published["win_grid_row_beats_column_tie_half"]
    grid: dict[str, dict[str, float]] = {row: dict.fromkeys(columns, 0.0) for row, columns in wins.items()}
    rated = Decision.objects.rated().filter(match__tournament=orq)
    categories: dict[str, int] = {}
    for decision in rated.select_related("match__first", "match__second", "match__sample"):
        one, other = decision.match.first.label, decision.match.second.label
        share = {"first": 1.0, "second": 0.0, "tie": 0.5}[decision.outcome]
        grid[one][other] += share
        grid[other][one] += 1 - share
        category = decision.match.sample.category
        categories[category] = categories.get(category, 0) + 1
    assert grid == wins
    assert categories == published["category_counts_rated"]


def test_agreement_of_the_published_run(orq: Tournament, published: dict[str, Any]) -> None:
    found = audited(orq)
    three_way = found.agreement["ties_merged"]
    assert three_way.modal_share.value == pytest.approx(published["mean_modal_share"], abs=1e-12)
    assert three_way.fleiss.value == pytest.approx(published["fleiss"]["kappa"], abs=5e-4)
    assert three_way.fleiss.label == published["fleiss"]["label"]
    assert three_way.fleiss.units == published["fleiss"]["rounds_used"]
    assert found.judged == published["fleiss"]["rounds_total"]
    names = {figures.judge.id: figures.judge.label for figures in found.judges}
    pairs = {frozenset(names[key] for key in pair): estimate for pair, estimate in three_way.cohen.items()}
    assert len(pairs) == len(published["cohen"])
    for pair, expected in published["cohen"].items():
        estimate = pairs[frozenset(pair.split(" | "))]
        assert estimate.value == pytest.approx(expected["kappa"], abs=5e-4)
        assert (estimate.label, estimate.units) == (expected["label"], expected["rounds"])


def test_judges_and_patterns_of_the_published_run(orq: Tournament, published: dict[str, Any]) -> None:
    found = audited(orq)
    judges = {figures.judge.full_id: figures for figures in found.judges if not figures.judge.replacement}
    assert judges.keys() == published["judges"].keys()
    for full_id, expected in published["judges"].items():
        figures = judges[full_id]
        assert figures.flips is not None
        assert figures.flips.share == pytest.approx(expected["flip_rate"], abs=1e-6)
        assert figures.ties.share == pytest.approx(expected["tie_rate"], abs=1e-6)
        assert figures.first_candidate.share == pytest.approx(expected["first_share_of_decisive"], abs=1e-5)
        assert {**figures.votes, "flip": figures.abstained} == expected["votes"]
        # The votes of the two orders were not stored, so no seat can be told.
        assert figures.first_seat is None
    assert {one.signs: one.matches for one in found.patterns} == published["vote_patterns_sorted_dash_is_abstain"]


def test_tokens_and_costs_of_the_published_run(orq: Tournament, published: dict[str, Any]) -> None:
    found = audited(orq)
    totals = found.totals
    assert {
        "models_in": totals.answer_input_tokens,
        "models_out": totals.answer_output_tokens,
        "judges_in": totals.judge_input_tokens,
        "judges_out": totals.judge_output_tokens,
    } == published["tokens"]
    assert totals.answer_cost_usd is not None
    assert totals.judge_cost_usd is not None
    assert float(totals.answer_cost_usd) == pytest.approx(published["cost_usd"]["models"], abs=1e-6)
    assert float(totals.judge_cost_usd) == pytest.approx(published["cost_usd"]["jury_at_panel_mean_price"], abs=1e-5)
    assert totals.judge_cost_at_mean_price
    means = {one.candidate.label: one.mean_output_tokens for one in found.candidates}
    assert means == pytest.approx(published["mean_answer_tokens"])


def test_length_of_the_published_run(orq: Tournament, published: dict[str, Any]) -> None:
    found = audited(orq, with_length_control=True)
    later = published["later_rules"]
    assert [found.longer_answer.longer_won, found.longer_answer.decided] == later["longer_answer_won"]
    table = document(orq, orq.juries.get(), found)["length_control"]
    assert table["gamma"] == pytest.approx(later["gamma"], abs=1e-4)
    assert table["log_likelihood"] == pytest.approx(later["log_likelihood"], abs=1e-5)
    adjusted = {name.rsplit("/", 1)[-1]: value for name, value in table["length_adjusted"].items()}
    assert adjusted == pytest.approx(later["length_adjusted"], abs=0.02)


def test_what_cannot_be_derived_is_kept_as_recorded(orq: Tournament, published: dict[str, Any]) -> None:
    imported = manifest_of(orq)["imported"]
    assert (imported["source"], imported["seed"]) == ("orq-arena", 42)
    recorded = imported["recorded"]["manifest"]
    counts = recorded["preflight"]["counts"]
    assert counts["matches"] == published["matches"] == orq.steps.count()
    assert {name: counts[name] for name in ("model_streams", "judge_calls")} == {
        name: published["plan"][name] for name in ("model_streams", "judge_calls")
    }
    assert recorded["preflight"]["cost_ceiling"]["total_usd"] == published["plan"]["ceiling_usd"]["total"]
    assert "votes_by_seat_order" in imported["not_recorded"]


def test_rows_of_the_import(orq: Tournament) -> None:
    assert orq.status == Tournament.Status.FINISHED
    trials = Trial.objects.filter(requests__tournament=orq)
    assert set(trials.values_list("origin", flat=True)) == {"imported"}
    assert trials.values("input_hash", "fingerprint").distinct().count() == 170
    assert trials.count() == 280
    assert not LanguageModel.objects.filter(candidacies__tournament=orq).exclude(provider=None).exists()
    assert not Verdict.objects.filter(tournament=orq).exists()
    assert Ballot.objects.filter(match__tournament=orq).exclude(explanation="").count() > 200
    first = orq.matches.get(sequence=1)
    line = next(records(orq, [first.pk]))
    assert (line["judge_tokens_in"], line["judge_tokens_out"]) == (4512, 687)
    assert line["judge_votes"][1]["explanation"].startswith("Both responses")


def test_the_command_prints_everything(orq: Tournament) -> None:
    out = StringIO()
    call_command("export", orq.public_id, "--json", "--only", "audit", "--only", "board", stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["audit"]["totals"][0]["answer_output_tokens"] == 220_700
    assert printed["board"]["ratings"][0]["label"] == "gemini-3.5-flash"
    words = StringIO()
    call_command("export", orq.public_id, stdout=words)
    assert "The longer answer won 59 of 74" in words.getvalue()


# JuryArena ---------------------------------------------------------------------------------------------------
@pytest.fixture
def evaluations(records_of: dict[str, list[ImportedRun]]) -> list[Tournament]:
    return [one.tournament for one in records_of["juryarena"]]


def test_both_evaluations_are_there(evaluations: list[Tournament]) -> None:
    assert sorted(tournament.matches.count() for tournament in evaluations) == [192, 193]
    assert {tournament.juries.get().protocol["language"] for tournament in evaluations} == {"en", "ja"}
    statuses = [
        Match.objects.filter(tournament__in=evaluations, status=status).count() for status in ("decided", "void")
    ]
    assert statuses == [380, 5]
    assert all(row.forced_tie for row in Match.objects.filter(tournament__in=evaluations, status="void"))
    assert Verdict.objects.filter(tournament__in=evaluations).exclude(reason="").count() == 1140


def test_a_judge_that_favours_itself_is_found(evaluations: list[Tournament]) -> None:
    audits = [audited(tournament) for tournament in evaluations]
    figures = [row for found in audits for row in found.judges if row.judge.full_id == "openai/gpt-5.4"]
    own = [row.own for row in figures if row.own is not None]
    assert (sum(one.votes.own.successes for one in own), sum(one.matches for one in own)) == (66, 85)
    assert sum(one.panel_wins for one in own) == 44
    for found in audits:
        named = {one.judge for one in findings_of(found) if one.code == "itself"}
        assert "openai/gpt-5.4" in named
        assert "openrouter/anthropic/claude-sonnet-4.6" not in named


def test_the_first_seat_is_found(evaluations: list[Tournament]) -> None:
    seats = [audited(tournament).seats for tournament in evaluations]
    wins = [one for one in seats if one is not None]
    assert (sum(one.first for one in wins), sum(one.second for one in wins)) == (198, 149)
    assert sum(one.ties + one.forced_ties for one in wins) == 38
    for tournament in evaluations:
        named = [one for one in findings_of(audited(tournament)) if one.code == "first_seat"]
        assert "openai/gpt-5.4" in {one.judge for one in named}


def test_what_the_record_lost_is_said(evaluations: list[Tournament]) -> None:
    lost = sorted(len(tournament.settings["imported"]["recorded"]["lost_matches"]) for tournament in evaluations)
    assert lost == [7, 8]
    for tournament in evaluations:
        codes = {one.code for one in findings_of(audited(tournament), tournament.settings["imported"])}
        assert "lost" in codes


def test_boards_of_the_evaluations(evaluations: list[Tournament]) -> None:
    for tournament in evaluations:
        board = board_of_tournament(tournament)
        assert len(board["ratings"]) == 9
        assert sum(row["games"] for row in board["ratings"]) == 2 * 190


# Once --------------------------------------------------------------------------------------------------------
def test_the_same_records_again_are_named_and_not_doubled(records_of: dict[str, list[ImportedRun]]) -> None:
    team = records_of["orq"][0].tournament.team
    before = [rows.objects.count() for rows in (Tournament, TaskSet, Trial, Match, Ballot, Decision, LanguageModel)]
    for name, folder in (("orq", "data/orq_quickstart"), ("juryarena", "data/juryarena_demo")):
        again = import_run(team=team, path=shared(folder), actor=None)
        assert not any(one.is_new for one in again)
        assert [one.tournament.pk for one in again] == [one.tournament.pk for one in records_of[name]]
    after = [rows.objects.count() for rows in (Tournament, TaskSet, Trial, Match, Ballot, Decision, LanguageModel)]
    assert after == before


def test_money_of_the_answers_is_at_the_prices_of_the_manifest(orq: Tournament) -> None:
    trials = Trial.objects.filter(requests__tournament=orq)
    trial = trials.filter(language_model__model_id="openai/gpt-5.4-mini").earliest("pk")
    assert trial.input_tokens
    assert trial.output_tokens
    expected = (trial.input_tokens * Decimal("0.75") + trial.output_tokens * Decimal("4.5")) / 10**6
    assert trial.cost_usd == round(expected, 8)
