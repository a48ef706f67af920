from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile

from arena.models import (
    AuditLog,
    Ballot,
    Candidate,
    Decision,
    Judge,
    LanguageModel,
    Match,
    Price,
    TaskSet,
    Team,
    Tournament,
    Trial,
    Verdict,
)
from arena.services import recorded_runs
from arena.services.recorded_runs import RunError, RunRefused, import_run, import_uploaded
from tests.arena.ingest.recorded.builders import (
    MODELS,
    SKIPPED,
    manifest,
    match_object,
    round_line,
    trial,
    vote,
    write_log,
    write_static,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Yard")


def one(team: Team, path: Path, **options: Any) -> Tournament:
    (imported,) = import_run(team=team, path=path, actor=None, **options)
    return imported.tournament


def test_a_run_becomes_a_finished_tournament(team: Team, tmp_path: Path) -> None:
    # The second round names its candidates the other way round.
    turned = round_line(2, model_a="bram", model_b="ada", winner="bram")
    tournament = one(team, write_log(tmp_path, round_line(1), turned, beside=manifest()), name="Autumn")
    assert (tournament.name, tournament.status, tournament.seed) == ("Autumn", "finished", 42)
    assert tournament.started_at is not None
    first, second = tournament.matches.all()
    assert [candidate.label for candidate in (first.first, first.second)] == ["ada", "bram"]
    assert (second.first_id, second.second_id) == (first.first_id, first.second_id)
    outcomes = [Decision.objects.get(match=match).outcome for match in (first, second)]
    assert outcomes == ["first", "second"]
    assert {ballot.vote for ballot in Ballot.objects.filter(match=second)} == {"second"}
    assert second.first_trial is not None
    assert second.first_trial.answer == "Bram answers 2." or second.first_trial.answer.startswith("Bram")
    price = Price.objects.get(language_model=first.first.language_model)
    assert (price.input_per_million, price.source) == (1, "recorded in battles.run.json")
    assert AuditLog.objects.filter(action="tournament.import").count() == 1


def test_models_of_a_record_have_no_provider_and_are_made_once(team: Team, tmp_path: Path) -> None:
    one(team, write_log(tmp_path, round_line(1), beside=manifest()))
    other = manifest(tournament_id="run-2")
    one(team, write_log(tmp_path, round_line(2, tournament_id="run-2"), beside=other, name="later"))
    models = LanguageModel.objects.filter(team=team)
    assert models.count() == 5
    assert not models.exclude(provider=None).exists()
    assert Candidate.objects.filter(language_model__model_id="maker/ada").count() == 2
    assert Judge.objects.get(replacement=True, jury__tournament__name__startswith="run-2").full_id == "third/judge-c"


def test_a_task_set_of_the_same_prompts_is_used_again(team: Team, tmp_path: Path) -> None:
    one(team, write_log(tmp_path, round_line(1), beside=manifest()))
    again = manifest(tournament_id="run-2")
    one(team, write_log(tmp_path, round_line(1, tournament_id="run-2"), beside=again, name="later"))
    assert TaskSet.objects.filter(team=team).count() == 1
    one(team, write_log(tmp_path, round_line(3, tournament_id="run-3"), name="third"))
    assert TaskSet.objects.filter(team=team).count() == 2


def test_the_same_record_is_named_not_doubled(team: Team, tmp_path: Path) -> None:
    path = write_log(tmp_path, round_line(), beside=manifest())
    tournament = one(team, path)
    (again,) = import_run(team=team, path=path, actor=None)
    assert (again.is_new, again.tournament) == (False, tournament)
    # Another team does not see it.
    (elsewhere,) = import_run(team=Team.objects.create(name="Other"), path=path, actor=None)
    assert elsewhere.is_new
    assert Tournament.objects.count() == 2


def test_one_bad_line_and_nothing_is_stored(team: Team, tmp_path: Path) -> None:
    path = write_log(tmp_path, round_line(1), round_line(2, winner="carol"), beside=manifest())
    with pytest.raises(RunRefused) as refused:
        import_run(team=team, path=path, actor=None)
    assert "battles.jsonl line 2: winner" in refused.value.problems[0]
    assert not any(rows.objects.exists() for rows in (Tournament, TaskSet, LanguageModel, Trial))


def test_a_failure_half_way_leaves_nothing(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(recorded_runs._Importer, "_store_matches", fail)
    with pytest.raises(RuntimeError):
        import_run(team=team, path=write_log(tmp_path, round_line(), beside=manifest()), actor=None)
    assert not any(rows.objects.exists() for rows in (Tournament, TaskSet, LanguageModel, Trial, Match))


def test_a_decision_that_the_votes_do_not_give_says_so(team: Team, tmp_path: Path) -> None:
    votes = [vote("maker/judge-a", "B"), vote("other/judge-b", "B")]
    tournament = one(team, write_log(tmp_path, round_line(judge_votes=votes), beside=manifest()))
    decision = Decision.objects.get(match__tournament=tournament)
    assert (decision.outcome, decision.reason) == ("first", recorded_runs.NOT_AS_COUNTED)


def test_seats_and_comments_of_a_record_that_has_them(team: Team, tmp_path: Path) -> None:
    # Of the second match the later candidate sat in seat A.
    tournament = one(team, write_static(tmp_path, [match_object(0), match_object(1)]))
    verdicts = Verdict.objects.filter(tournament=tournament).order_by("match__sequence", "pk")
    said = list(verdicts.values_list("match__sequence", "seat_order", "winner", "vote", "comment_a", "reason"))
    assert said == [
        (1, 1, "A", "first", "short", "so"),
        (1, 1, "A", "first", "short", "so"),
        (2, 2, "A", "second", "short", "so"),
        (2, 2, "A", "second", "short", "so"),
    ]
    assert tournament.pairing == "glicko2"
    assert Trial.objects.filter(requests__tournament=tournament).count() == 2


def test_a_tie_that_stands_for_a_failed_call_is_a_failure(team: Team, tmp_path: Path) -> None:
    match = match_object(0)
    match["judge_details"]["other/judge-b"] = {"winner": "tie", "output": "Error: no reply"}
    tournament = one(team, write_static(tmp_path, [match]))
    ballot = Ballot.objects.get(match__tournament=tournament, judge__full_id="other/judge-b")
    assert (ballot.status, ballot.vote) == ("failed", "tie")
    assert ballot.verdicts.get().error_code == "INVALID_JSON"


def test_a_skipped_answer_is_void_and_never_rated(team: Team, tmp_path: Path) -> None:
    said = {"winner": "tie", "output": "Skipped: lab/bram"}
    details = {"maker/judge-a": said, "other/judge-b": said}
    match = match_object(0, winner="tie", judge_details=details)
    tournament = one(team, write_static(tmp_path, [match], {MODELS[1]: trial(MODELS[1], SKIPPED)}))
    row = tournament.matches.get()
    assert (row.status, row.forced_tie) == ("void", True)
    assert not Decision.objects.filter(match=row).exists()
    assert row.second_trial is not None
    assert (row.second_trial.status, row.second_trial.skip_code) == ("failed", "CONTEXT_OVERFLOW")


def test_files_from_a_browser_lie_side_by_side(team: Team, tmp_path: Path) -> None:
    path = write_log(tmp_path, round_line(), beside=manifest())
    beside = path.with_name("battles.run.json")
    files = [ContentFile(one.read_bytes(), name=f"C/../{one.name}") for one in (path, beside)]
    (imported,) = import_uploaded(team=team, files=files, actor=None)
    assert imported.tournament.seed == 42
    with pytest.raises(RunError, match="Two files have the name"):
        import_uploaded(team=team, files=[files[0], files[0]], actor=None)


def test_a_path_that_is_not_there(team: Team, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        import_run(team=team, path=tmp_path / "nothing.jsonl", actor=None)
