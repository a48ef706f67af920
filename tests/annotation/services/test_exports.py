from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.datasets import NAMES
from annotation.models import Campaign, Vote
from annotation.quality import agreement_of, rated, rater_figures
from annotation.selectors.anchor import people_tallies
from annotation.selectors.exports import ExportFilter, preference_rows, vote_rows
from annotation.selectors.quality import excluded_raters, votes_in
from annotation.services.exports import BY_NAME, write_folder
from annotation.services.imports import VotesRefused, import_votes
from arena.models import Team
from tests.annotation.quality_world import voted
from tests.annotation.world import make_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign() -> Campaign:
    return voted(make_team())


def rounded(value: Any) -> Any:
    """An imported match may have its two models the other way round, and sums in another order round otherwise."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def results(campaign: Campaign) -> dict[str, Any]:
    """What people say, without the keys of an installation."""
    votes = votes_in([campaign])
    excluded = excluded_raters([campaign], votes)
    figures = rater_figures(votes, excluded, resamples=0)
    agreement = agreement_of(rated(votes, excluded), resamples=0)
    return {
        "tallies": people_tallies(campaign),
        "agreement": {
            name: rounded(asdict(one) | {"cohen": [asdict(pair) for pair in one.cohen.values()]})
            for name, one in agreement.items()
        },
        "raters": sorted(str(rounded(asdict(one) | {"rater": 0})) for one in figures.values()),
        "standings": sorted(Vote.objects.filter(campaign=campaign).values_list("standing", "choice", "is_current")),
    }


def test_votes_read_into_an_empty_instance_say_the_same(campaign: Campaign, tmp_path: Path) -> None:
    write_folder(campaign=campaign, chosen=ExportFilter(), folder=tmp_path)
    path = tmp_path / "votes.jsonl"
    imported = import_votes(team=Team.objects.create(name="Elsewhere"), path=path)
    assert imported.is_new
    found, expected = results(imported.campaign), results(campaign)
    for part, value in expected.items():
        assert found[part] == value, part
    # And out again: the same events, apart from the names that each installation gives.
    names = [
        name
        for name in NAMES
        if name
        not in {"id", "supersedes", "campaign", "campaign_name", "rater", "rater_kind", "assignment", "repeat_of"}
        and name != "match"
        and not name.startswith(("first_", "second_"))
        and name not in {"left", "outcome", "gold_expected"}
    ]
    before, after = (
        sorted(json.dumps([row[name] for name in names]) for row in vote_rows(one, ExportFilter()))
        for one in (campaign, imported.campaign)
    )
    assert len(before) == len(after) == Vote.objects.filter(campaign=campaign).count()
    assert sorted(before) == sorted(after)


def test_a_second_import_changes_nothing(campaign: Campaign, tmp_path: Path) -> None:
    write_folder(campaign=campaign, chosen=ExportFilter(), folder=tmp_path)
    team = Team.objects.create(name="Elsewhere")
    first = import_votes(team=team, path=tmp_path / "votes.jsonl")
    again = import_votes(team=team, path=tmp_path / "votes.jsonl")
    assert (again.campaign.pk, again.is_new) == (first.campaign.pk, False)
    assert Campaign.objects.filter(team=team).count() == 1


def test_nothing_of_a_broken_file_is_stored(campaign: Campaign, tmp_path: Path) -> None:
    write_folder(campaign=campaign, chosen=ExportFilter(), folder=tmp_path)
    path = tmp_path / "votes.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].replace('"schema_version": 1', '"schema_version": 9')
    path.write_text("\n".join(lines), encoding="utf-8")
    team = Team.objects.create(name="Elsewhere")
    with pytest.raises(VotesRefused) as refused:
        import_votes(team=team, path=path)
    assert "votes.jsonl line 2: schema_version" in str(refused.value)
    with pytest.raises(CommandError, match="line 2: schema_version"):
        call_command("import_votes", str(path), "--team", "Elsewhere")
    assert not Campaign.objects.filter(team=team).exists()
    assert not team.task_sets.exists()


def test_the_files_are_as_tools_load_them(campaign: Campaign, tmp_path: Path) -> None:
    """Every line is an object with the same keys and one type a column: what `datasets` infers columns from."""
    call_command("export_votes", campaign.public_id, str(tmp_path), "--source", "people")
    for path in tmp_path.glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert rows
        assert len({tuple(row) for row in rows}) == 1
        for name in rows[0]:
            types = {type(row[name]) for row in rows} - {type(None)}
            assert len(types) <= 1, (path.name, name, types)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    paths = [line.split("path: ")[1] for line in card.splitlines() if "path: " in line]
    assert paths
    assert all((tmp_path / path).exists() for path in paths)


def test_preferences_are_blind_decided_and_apart(campaign: Campaign) -> None:
    rows = list(preference_rows(campaign, ExportFilter()))
    assert rows
    splits: dict[str, set[str]] = {}
    for row in rows:
        splits.setdefault(row["prompt_hash"], set()).add(row["split"])
        assert row["chosen"] != row["rejected"]
        assert row["margin"] > 0
    assert all(len(split) == 1 for split in splits.values())
    decided = {row["match"]: row["chosen_model"] for row in preference_rows(campaign, ExportFilter(source="jury"))}
    both = {row["match"]: row["chosen_model"] for row in preference_rows(campaign, ExportFilter(source="both"))}
    mine = {row["match"]: row["chosen_model"] for row in rows}
    # A decision that most ballots did not share stands too, but is no preference of the jury's own.
    assert both.items() <= mine.items()
    agreed = {match: model for match, model in mine.items() if decided.get(match) == model}
    assert {match: model for match, model in both.items() if match in decided} == agreed
    # One who can see names does not count, whatever the campaign counts.
    Vote.objects.filter(campaign=campaign).update(could_see_names=True)
    assert list(preference_rows(campaign, ExportFilter())) == []


def test_filters_narrow_what_leaves(campaign: Campaign) -> None:
    every = list(vote_rows(campaign, ExportFilter()))
    one = every[0]["rater"]
    own = list(vote_rows(campaign, ExportFilter(rater=one)))
    assert own == [row for row in every if row["rater"] == one]
    category = every[0]["category"]
    of_category = list(vote_rows(campaign, ExportFilter(category=category)))
    assert of_category == [row for row in every if row["category"] == category]
    day = campaign.votes.earliest("created_at").created_at.date()
    assert list(vote_rows(campaign, ExportFilter(since=day))) == every
    assert list(vote_rows(campaign, ExportFilter(until=day.replace(year=2000)))) == []
    assert list(vote_rows(campaign, ExportFilter(rater="r-nobody"))) == []
    jury = list(vote_rows(campaign, ExportFilter(source="jury")))
    assert {row["event"] for row in jury} == {"decision"}
    assert len(list(vote_rows(campaign, ExportFilter(source="both")))) == len(every) + len(jury)


def test_raters_stand_under_pseudonyms(campaign: Campaign) -> None:
    text = json.dumps(list(vote_rows(campaign, ExportFilter())))
    assert "@example.com" not in text
    assert all(one.public_id not in text for one in campaign.raters.all())


def test_the_table_runs_in_no_spreadsheet(campaign: Campaign) -> None:
    Vote.objects.filter(campaign=campaign).update(first_comment="@SUM(A1)", second_comment="Ünï 😀")
    lines = list(csv.reader(io.StringIO("".join(BY_NAME["votes.csv"].lines(campaign, ExportFilter()))[1:])))
    assert lines[0] == list(NAMES)
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)
    assert {line[NAMES.index("first_comment")] for line in lines[1:]} == {"'@SUM(A1)"}
    assert "'=1+1" in {line[NAMES.index("first_answer")] for line in lines[1:]}
    assert {line[NAMES.index("second_comment")] for line in lines[1:]} == {"Ünï 😀"}
