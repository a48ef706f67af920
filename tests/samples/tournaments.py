from __future__ import annotations

import json
from typing import Any

from django.core.files.base import ContentFile

from arena.judging.protocol import AUDITED
from arena.models import Jury, LanguageModel, Tournament, Verdict
from arena.services.tournaments import create_tournament
from tests.arena.ingest.recorded.builders import round_line
from tests.arena.tournament_world import judge, make_cast, make_provider, make_tournament
from tests.personas import Side
from tests.url_samples import UrlSample


def extend(side: Side) -> None:
    provider = make_provider(side.team, name=f"{side.canary}-host")
    cast = make_cast(side.team, prefix=f"{side.canary}-", provider=provider)
    # So that a team's own tournament is named too.
    tournament = make_tournament(cast, name=f"{side.canary}-tournament-of-matches")
    match = tournament.matches.get(sequence=1)
    judge(match, ["first", "flip"])
    side.objects["cast"] = cast
    side.objects["tournament"] = tournament
    side.objects["match"] = match
    over = make_tournament(cast, name=f"{side.canary}-over", matches=3)
    for one, votes in zip(over.matches.order_by("sequence"), (["first", "failed"], ["tie", "tie"]), strict=False):
        judge(one, votes)
    over.status = Tournament.Status.FINISHED
    over.save()
    side.objects["over"] = over
    side.objects["rejudge"] = Jury.objects.create(
        tournament=over,
        primary=False,
        name=f"{side.canary}-rejudge",
        protocol=AUDITED.to_json(),
        last_sequence=0,
    )
    side.objects["verdict"] = Verdict.objects.filter(match=match).earliest("pk")
    spec = cast.spec(name=f"{side.canary}-draft")
    side.objects["tournament_draft"] = create_tournament(spec=spec, actor=None)


def _team(side: Side) -> dict[str, Any]:
    return {"team": side.team_id}


def _tournament(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "tournament": side.objects["tournament"].public_id}


def _draft(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "tournament": side.objects["tournament_draft"].public_id}


def _match(side: Side) -> dict[str, Any]:
    return {**_tournament(side), "match": side.objects["match"].public_id}


def _over(side: Side) -> dict[str, Any]:
    return {"team": side.team_id, "tournament": side.objects["over"].public_id}


def _rejudge(side: Side) -> dict[str, Any]:
    return {**_over(side), "jury": side.objects["rejudge"].public_id}


def _record(side: Side) -> list[ContentFile[bytes]]:
    line = json.dumps(round_line(prompt_text=f"{side.canary} asks"))
    return [ContentFile(line.encode(), name="battles.jsonl")]


def _ids(models: list[LanguageModel]) -> list[str]:
    return [model.public_id for model in models]


def plan_data(side: Side, action: str = "draft", **values: Any) -> dict[str, Any]:
    cast = side.objects["cast"]
    task_set = cast.task_set.public_id
    return {
        "action": action,
        "name": f"{side.canary}-planned",
        "task_set": task_set,
        "categories_of": task_set,
        "candidates": _ids(cast.candidates),
        "judges": _ids(cast.judges),
        "preset": "audited",
        "parts_of": "audited",
        "seat_orders": "2",
        "quorum": "2",
        "aggregation": "plurality",
        "on_error": "abstain",
        "on_skip": "void",
        "repair_attempts": "1",
        "answer_character_cap": "200000",
        "language": "en",
        "max_matches": "6",
        "step_size": "20",
        "pairing": "round_robin",
        "seed": "1",
        **values,
    }


def rejudge_data(side: Side, action: str = "start", **values: Any) -> dict[str, Any]:
    data = plan_data(side, action, **{"name": f"{side.canary}-rejudge", **values})
    return {name: value for name, value in data.items() if name not in {"task_set", "categories_of", "candidates"}}


SAMPLES = {
    "arena:tournament-list": UrlSample(_team),
    "arena:tournament-plan": UrlSample(_team, post=plan_data),
    # Nobody chosen: the walk over all URLs calls no endpoint.
    "arena:tournament-plan-test": UrlSample(
        _team, get=False, post=lambda side: plan_data(side, candidates=[], judges=[])
    ),
    "arena:tournament-detail": UrlSample(_tournament),
    "arena:tournament-start": UrlSample(_draft, post=lambda side: {}),
    "arena:tournament-pause": UrlSample(_tournament, get=False, post=lambda side: {}),
    "arena:tournament-resume": UrlSample(_tournament, get=False, post=lambda side: {}),
    "arena:tournament-stop": UrlSample(_tournament, post=lambda side: {}),
    "arena:tournament-budget": UrlSample(_draft, post=lambda side: {"budget_usd": "5"}),
    "arena:tournament-delete": UrlSample(_draft, post=lambda side: {}),
    "arena:tournament-extend": UrlSample(_over, post=lambda side: {"max_matches": "9"}),
    "arena:tournament-retry": UrlSample(_over, post=lambda side: {"verdicts": "on"}),
    "arena:tournament-manifest": UrlSample(_over),
    "arena:tournament-manifest-json": UrlSample(_over),
    "arena:rejudge-create": UrlSample(_over, post=rejudge_data),
    "arena:rejudge-detail": UrlSample(_rejudge),
    "arena:rejudge-act": UrlSample(lambda side: {**_rejudge(side), "action": "pause"}, get=False, post=lambda side: {}),
    "arena:run-import": UrlSample(_team, post=lambda side: {"record": _record(side)}),
    "arena:jury": UrlSample(_tournament),
    "arena:jury-json": UrlSample(_tournament),
    "arena:jury-table": UrlSample(lambda side: {**_tournament(side), "table": "judges"}),
    "arena:match-list": UrlSample(_tournament),
    "arena:match-detail": UrlSample(_match),
    "arena:match-answer": UrlSample(lambda side: {**_match(side), "side": "first"}),
    "arena:verdict-raw": UrlSample(lambda side: {**_match(side), "verdict": side.objects["verdict"].pk}),
}
