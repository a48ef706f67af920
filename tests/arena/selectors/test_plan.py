from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from arena.judging.protocol import AUDITED, MAJORITY
from arena.models import Call, Match, Sample, Team, Trial, Verdict
from arena.selectors.plan import Example, Plan, plan_of, samples_of
from arena.selectors.preview import preview_of
from arena.services.matches import begin_judging
from arena.services.tournaments import create_tournament, start_tournament
from arena.services.verdicts import judge_prompt
from arena.statements import load_verdict
from tests.arena.tournament_world import (
    Cast,
    attach_pdf,
    make_cast,
    make_model,
    make_provider,
    make_task_set,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Team")


@pytest.fixture
def cast(team: Team) -> Cast:
    return make_cast(team)


def codes(plan: Plan) -> list[str]:
    return [warning.code for warning in plan.warnings]


def run_dry(cast: Cast, **values: object) -> Plan:
    """Start for real, answer everything, open every ballot, and see that the plan foretold it."""
    spec = cast.spec(**values)
    plan = plan_of(spec)
    tournament = create_tournament(spec=spec, actor=None)
    start_tournament(tournament=tournament)
    queued = Trial.objects.filter(status="queued", requests__tournament=tournament)
    assert plan.trials_to_generate == queued.count()
    assert plan.trials_cached == tournament.trial_requests.filter(cached=True).count()
    queued.update(status="succeeded", answer="An answer", characters=9)
    for match in Match.objects.filter(tournament=tournament):
        begin_judging(match.pk)
    assert plan.matches == tournament.matches.count()
    assert plan.judge_calls == Verdict.objects.filter(tournament=tournament).count()
    assert plan.void == tournament.matches.filter(status="void").count()
    return plan


def test_what_is_planned_is_what_happens(cast: Cast) -> None:
    plan = run_dry(cast, max_matches=7)
    assert (plan.matches, plan.possible, plan.judge_calls) == (7, 18, 7 * 2 * 2)
    again = run_dry(cast, max_matches=7, name="Again")
    assert again.trials_to_generate == 0
    assert again.trials_cached == plan.trials_to_generate


def test_judges_that_compete_are_left_out_of_their_own_matches(cast: Cast) -> None:
    plan = run_dry(cast, judges=[*cast.judges, cast.candidates[0]], max_matches=18)
    assert plan.judge_calls == (18 * 2 + 6) * 2
    assert "self_judging" in codes(plan)
    assert "below_quorum" not in codes(plan)


def test_a_panel_under_the_quorum_is_named(cast: Cast) -> None:
    plan = run_dry(cast, judges=[cast.judges[0], cast.candidates[0]], max_matches=18)
    assert plan.below_quorum == 12
    assert {"below_quorum", "undecidable"} <= set(codes(plan))


def test_one_seat_order_is_one_call(cast: Cast) -> None:
    assert run_dry(cast, protocol=MAJORITY).judge_calls == 6 * 2


def test_files_void_matches_and_silence_judges(cast: Cast, team: Team) -> None:
    for sample in cast.task_set.samples.all()[:2]:
        attach_pdf(sample)
    host = cast.candidates[0].provider
    assert host is not None
    readers = [make_model(host, f"reader-{n}", pdf_input="base64") for n in (1, 2, 3)]
    plan = run_dry(
        cast, candidates=[*readers[:2], cast.candidates[1]], judges=[*cast.judges, readers[2]], max_matches=18
    )
    assert plan.void == 4
    assert plan.void_by_candidate[cast.candidates[1].label] == 4
    assert plan.unread_by_judge[cast.judges[0].label] == 2
    assert {"candidate_files", "judge_files", "undecidable"} <= set(codes(plan))


def test_lasting_failures_are_not_tried_again(cast: Cast) -> None:
    run_dry(cast, max_matches=3)
    Trial.objects.filter(language_model=cast.candidates[0]).update(status="failed", skip_code="CONTEXT_OVERFLOW")
    plan = run_dry(cast, max_matches=3, name="Again")
    assert plan.trials_lasting
    assert plan.void


def test_more_matches_than_pairs_and_samples_allow(cast: Cast) -> None:
    plan = plan_of(cast.spec(max_matches=1_000))
    assert plan.matches == plan.possible == 18
    assert "fewer_matches" in codes(plan)


def test_costs_come_from_what_was_seen(cast: Cast, team: Team) -> None:
    spec = cast.spec(max_matches=18)
    row = plan_of(spec).rows[0]
    assert row.seen is None
    assert row.calls == 6
    for tokens in (100, 300):
        Call.objects.create(
            team=team,
            language_model=cast.candidates[0],
            purpose="trial",
            status="ok",
            started_at=timezone.now(),
            ended_at=timezone.now(),
            input_tokens=50,
            output_tokens=tokens,
        )
    row = plan_of(spec).rows[0]
    assert row.seen is not None
    assert row.expected_usd == Decimal("0.010200")  # 6 calls x (50 x $2 + 200 x $8) / 1,000,000
    assert row.worst_usd is not None
    assert row.worst_usd >= 6 * 2 * 1_000 * Decimal(8) / 1_000_000


def test_the_ceiling_holds_what_claims_reserve(cast: Cast) -> None:
    spec = cast.spec(max_matches=6, budget_usd=Decimal(100))
    plan = plan_of(spec)
    assert plan.is_bounded
    assert plan.worst_usd > plan.expected_usd > 0


def test_unknown_stays_unknown(cast: Cast, team: Team) -> None:
    host = make_provider(team, name="other")
    free = make_model(host, "free", priced=False, max_tokens=None)
    plan = plan_of(cast.spec(candidates=[*cast.candidates, free]))
    row = next(row for row in plan.rows if row.model == free)
    assert row.expected_usd is None
    assert row.worst_usd is None
    assert not plan.is_bounded
    assert {"unpriced", "no_max_tokens"} <= set(codes(plan))
    assert "other/free" in plan.unpriced


def test_families_labels_and_thin_slices_are_told(cast: Cast, team: Team) -> None:
    host = cast.candidates[0].provider
    assert host is not None
    kin = make_model(host, "lancer-judge", family="Lancer")
    twin = make_model(host, "squire-2", display_name=cast.candidates[1].label)
    plan = plan_of(cast.spec(candidates=[*cast.candidates, twin], judges=[*cast.judges, kin]))
    assert {"family_overlap", "full_ids", "thin_category", "few_rounds"} <= set(codes(plan))


def test_a_clean_plan_warns_of_nothing(cast: Cast, team: Team) -> None:
    big = make_task_set(team, 300, name="big", categories=("a",))
    plan = plan_of(cast.spec(task_set=big, max_matches=900))
    assert codes(plan) == []


def test_a_model_without_a_provider_cannot_enter(cast: Cast) -> None:
    model = cast.candidates[0]
    model.provider = None
    assert any("no provider" in problem for problem in plan_of(cast.spec()).problems)


def test_an_unfinished_choice_is_no_error(cast: Cast) -> None:
    plan = plan_of(cast.spec(candidates=[], judges=[]))
    assert len(plan.problems) == 2
    assert plan.matches == 0


def test_stand_ins_raise_the_ceiling_only(cast: Cast) -> None:
    spare = cast.judges[1]
    spec = cast.spec(judges=cast.judges[:1], replacement_judges=[spare], protocol=AUDITED.with_overrides({"quorum": 1}))
    row = plan_of(spec).rows[-1]
    assert (row.role, row.calls, row.expected_usd) == ("stand_in", 0, Decimal(0))
    assert row.worst_usd


def test_sizes_are_read_without_texts(team: Team) -> None:
    task_set = make_task_set(team, 2, text="日本語")
    Sample.objects.filter(task_set=task_set, position=0).update(reference="x" * 10)
    first, second = samples_of(task_set)
    assert first.text_bytes >= len("日本語 0".encode())
    assert first.note_bytes >= 10
    assert second.note_bytes == 0


def test_a_large_plan_asks_few_questions(team: Team, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    host = make_provider(team)
    models = [make_model(host, f"m-{n}", priced=False) for n in range(42)]
    task_set = make_task_set(team, 5_000, categories=[f"c{n}" for n in range(8)])
    cast = Cast(task_set, models[:40], models[40:])
    spec = cast.spec(max_matches=2_000, seed=99)
    with django_assert_max_num_queries(20):
        plan = plan_of(spec)
    assert plan.matches == 2_000


# Pairings that follow results ----------------------------------------------------------------------------------
def test_a_pairing_that_follows_results_says_so_and_has_its_figures(cast: Cast) -> None:
    plan = plan_of(cast.spec(pairing="glicko2", max_matches=9))
    assert plan.matches == 9
    assert "follows_results" in codes(plan)
    assert {warning.kind for warning in plan.warnings if warning.code == "follows_results"} == {"note"}
    assert plan.judge_calls == 9 * 2 * 2
    assert plan.trials_to_generate == sum(row.calls for row in plan.rows if row.role == "candidate") > 0


def test_its_worst_case_holds_for_any_schedule(cast: Cast) -> None:
    follows, fixed = plan_of(cast.spec(pairing="elo")), plan_of(cast.spec())
    assert follows.is_bounded
    assert follows.worst_usd >= fixed.worst_usd
    for row in follows.rows:
        if row.role == "candidate":
            # On each of the six samples, tried twice.
            assert row.most_calls == 12
        else:
            assert row.most_calls == 6 * 2 * 2


def test_the_plan_of_a_run_begins_with_its_first_step(cast: Cast) -> None:
    from arena.services import tournaments

    spec = cast.spec(pairing="glicko2", max_matches=4, step_size=4)
    plan = plan_of(spec)
    tournament = tournaments.create_tournament(spec=spec, actor=None)
    tournaments.start_tournament(tournament=tournament)
    first = tournament.matches.get(sequence=1)
    assert plan.example == Example(1, first.sample_id, first.first.position, first.second.position)


def test_more_matches_than_there_are_is_told_for_it_too(cast: Cast) -> None:
    plan = plan_of(cast.spec(pairing="glicko2", max_matches=1_000))
    assert plan.matches == plan.possible == 18
    assert "fewer_matches" in codes(plan)


@pytest.mark.parametrize(("preset", "pairing"), [("audited", "round_robin"), ("majority", "glicko2")])
def test_each_preset_brings_its_pairing(cast: Cast, preset: str, pairing: str) -> None:
    from arena.judging.protocol import PRESETS

    assert cast.spec(protocol=PRESETS[preset]).pairing == pairing
    assert cast.spec(protocol=PRESETS[preset], pairing="random").pairing == "random"


def test_a_share_without_a_baseline_is_a_problem(cast: Cast) -> None:
    assert any("needs a baseline" in problem for problem in plan_of(cast.spec(baseline_weight=0.5)).problems)


def test_the_preview_is_the_prompt_that_the_judge_is_sent(cast: Cast) -> None:
    """To the letter: seats, fence, reference, criteria and answers, for either number of orders."""
    cast.task_set.samples.update(reference="Forty-two.", criteria="Name the unit.")
    for n, protocol in enumerate((AUDITED, MAJORITY)):
        for seed in range(1, 6):
            spec = cast.spec(
                name=f"{n} {seed}",
                seed=seed,
                max_matches=3,
                protocol=protocol.with_overrides({"language": "ja", "criteria": "簡潔さのみ。"}),
            )
            tournament = create_tournament(spec=spec, actor=None)
            start_tournament(tournament=tournament)
            Trial.objects.filter(status="queued").update(status="succeeded", answer="答えは42です。", characters=9)
            for trial in Trial.objects.all():
                Trial.objects.filter(pk=trial.pk).update(answer=f"答え{trial.pk}")
            preview = preview_of(plan_of(spec))
            assert preview is not None
            match = tournament.matches.get(sequence=preview.sequence)
            begin_judging(match.pk)
            first = Verdict.objects.filter(match=match).earliest("pk")
            loaded = load_verdict(first.pk)
            assert loaded is not None
            sent = judge_prompt(loaded, spec.protocol).messages
            assert preview.has_answers
            assert [(one.role, one.text) for one in preview.messages] == [(one["role"], one["content"]) for one in sent]


def test_a_failed_test_is_warned_of(cast: Cast) -> None:
    probe = {"at": timezone.now().isoformat(), "ok": False, "sentence": "No key. " * 100, "cost_usd": None}
    cast.judges[0].learned = {"probe": probe}
    found = {warning.code: warning for warning in plan_of(cast.spec()).warnings}
    assert found["failed_test"].kind == "warning"
    assert f"The last test of {cast.judges[0].full_id} failed: No key." in found["failed_test"].sentence
    assert len(found["failed_test"].sentence) < 400
