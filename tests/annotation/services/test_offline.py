from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Assignment, Campaign, Rater, Vote
from annotation.services.campaigns import close_campaign
from annotation.services.offline import FilesRefused, merge_votes
from arena.models import Candidate
from tests.annotation.world import make_team, opened, played

pytestmark = pytest.mark.django_db


def page(tmp_path: Path, pairs: int = 28, **fields: Any) -> tuple[Campaign, Rater, str]:
    team = make_team()
    defaults = {"repeat_share": 0.2, "gold_share": 0.0}
    campaign = opened(team, played(team, matches=24, prefix="canary-"), **{**defaults, **fields})
    out = tmp_path / "page.html"
    call_command("annotate", campaign.public_id, "--label", "Ada at home", "--out", str(out), "--pairs", str(pairs))
    return campaign, Rater.objects.get(campaign=campaign), out.read_text(encoding="utf-8")


def event(token: str, number: int, choice: str = "left", **values: Any) -> dict[str, Any]:
    return {"token": token, "key": f"offline-{number:04}", "choice": choice, "replaces": "", "reason": "", **values}


def file_of(path: Path, sender: Rater, events: list[dict[str, Any]], **head: Any) -> Path:
    first = {
        "format": "tiltyard.offline_votes",
        "schema_version": 1,
        "campaign": sender.campaign.public_id,
        "rater": sender.public_id,
        **head,
    }
    path.write_text("".join(json.dumps(row) + "\n" for row in [first, *events]), encoding="utf-8")
    return path


def test_the_page_holds_the_pairs_and_no_name(tmp_path: Path) -> None:
    campaign, rater, html = page(tmp_path)
    assignments = list(Assignment.objects.filter(rater=rater).order_by("position"))
    tokens = re.findall(r'data-pair="([0-9a-f]{32})"', html)
    assert tokens == [one.token for one in assignments]
    assert {one.kind for one in assignments} == {"normal", "repeat"}
    for one in assignments:
        if one.repeat_of is not None:
            assert (one.left, one.position - one.repeat_of.position >= 20) == (one.repeat_of.right, True)
    names = {name for row in Candidate.objects.values_list("full_id", "label") for name in row}
    names |= {name.rpartition("/")[2] for name in names}
    markup = html.split("</style>")[1].split("<script>")[0]
    assert not [name for name in names if name.casefold() in markup.casefold()]
    assert not re.search(r"\b(first|second|gold|repeat)[-_]?(left|trial|answer)?\b=", markup)
    assert "Ada" not in html
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", html)
    assert campaign.name in html


def test_places_are_held_for_whoever_has_the_page(tmp_path: Path) -> None:
    campaign, _rater, _html = page(tmp_path, pairs=60, raters_per_pair=1)
    out = tmp_path / "other.html"
    with pytest.raises(CommandError, match="Nothing is left in the pool"):
        call_command("annotate", campaign.public_id, "--label", "Bo", "--out", str(out))
    assert not out.exists()
    assert Rater.objects.filter(campaign=campaign).count() == 1


def test_votes_that_come_back_are_stored_once(tmp_path: Path) -> None:
    _campaign, rater, _html = page(tmp_path)
    tokens = list(Assignment.objects.filter(rater=rater).order_by("position").values_list("token", flat=True))
    choices = ["left", "right", "both_good", "both_bad"]
    events = [event(token, number, choices[number % 4], active_ms=900) for number, token in enumerate(tokens[:8])]
    events += [event(tokens[8], 8, "skip", reason="language", note="=1+1\u2028😀")]
    # Changed their mind once.
    events += [event(tokens[0], 20, "right", replaces="offline-0000", left_tags=["wrong"], left_comment="no")]
    path = file_of(tmp_path / "votes.jsonl", rater, events)
    assert [(one.new, one.again) for one in merge_votes([path])] == [(10, 0)]
    assert [(one.new, one.again) for one in merge_votes([path, path])] == [(0, 10), (0, 10)]
    votes = Vote.objects.filter(rater=rater)
    assert votes.count() == 10
    changed = votes.current().get(assignment__token=tokens[0])
    assignment = Assignment.objects.get(token=tokens[0])
    assert (changed.choice, changed.outcome) == ("right", assignment.right)
    assert (changed.first_tags if assignment.left == "first" else changed.second_tags) == ["wrong"]
    assert votes.get(choice="skip").note == "=1+1\u2028😀"


def test_every_problem_of_every_file_is_told_and_nothing_stored(tmp_path: Path) -> None:
    campaign, rater, _html = page(tmp_path)
    tokens = list(Assignment.objects.filter(rater=rater).values_list("token", flat=True))
    bad = [
        event(tokens[0], 0, "first"),
        event("0" * 32, 1),
        event(tokens[1], 2, "skip"),
        event(tokens[2], 3, left_tags=["ugly"], active_ms=-1),
        event(tokens[3], 4),
        event(tokens[3], 5, "right"),
    ]
    one = file_of(tmp_path / "one.jsonl", rater, bad)
    other = file_of(tmp_path / "other.jsonl", rater, [event(tokens[4], 9)], rater="nobody")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{\n", encoding="utf-8")
    with pytest.raises(FilesRefused) as refused:
        merge_votes([one, other, broken, tmp_path / "absent.jsonl"])
    found = [(problem.file, problem.line, problem.field) for problem in refused.value.problems]
    assert set(found) == {
        ("one.jsonl", 2, "choice"),
        ("one.jsonl", 3, "choice"),
        ("one.jsonl", 4, "choice"),
        ("one.jsonl", 5, "left_tags"),
        ("one.jsonl", 5, "active_ms"),
        ("one.jsonl", 7, "replaces"),
        ("other.jsonl", 1, "rater"),
        ("broken.jsonl", 1, None),
        ("broken.jsonl", 1, "format"),
        (str(tmp_path / "absent.jsonl"), None, None),
    }
    assert not Vote.objects.filter(campaign=campaign).exists()
    with pytest.raises(CommandError, match="Nothing was merged"):
        call_command("anchor", "--merge", str(other))


def test_no_vote_comes_back_into_a_closed_campaign(tmp_path: Path) -> None:
    campaign, rater, _html = page(tmp_path)
    close_campaign(campaign=campaign, actor=None)
    token = Assignment.objects.filter(rater=rater)[0].token
    with pytest.raises(FilesRefused, match="closed"):
        merge_votes([file_of(tmp_path / "late.jsonl", rater, [event(token, 1)])])
