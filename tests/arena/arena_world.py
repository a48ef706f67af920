"""A team with demo models and a small task set, and ways to play a tournament on them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from arena.encryption import encrypt
from arena.ingest import read_samples, starter_path
from arena.judging.protocol import AUDITED, Protocol
from arena.llm.demo.catalogue import DEMO_KEY, DEMO_MODELS
from arena.models import Decision, LanguageModel, Price, Provider, Sample, TaskSet, Team, Tournament
from arena.services import tournaments
from arena.services.tournaments import TournamentSpec

CANDIDATES = ["lancer-large", "squire-1", "lancer-small"]
JUDGES = ["magistrate-1", "usher-2"]


@dataclass
class ArenaWorld:
    team: Team
    provider: Provider
    task_set: TaskSet
    models: dict[str, LanguageModel] = field(default_factory=dict)

    def spec(self, **changes: Any) -> TournamentSpec:
        names = {"candidates": CANDIDATES, "judges": JUDGES, "replacement_judges": [], **changes}
        chosen = {
            role: [self.models[name] for name in names[role]] for role in ("candidates", "judges", "replacement_judges")
        }
        others = {key: value for key, value in changes.items() if key not in chosen}
        settled: dict[str, Any] = {"name": "Trial run", "protocol": AUDITED, "max_matches": 6, "step_size": 3, **others}
        return TournamentSpec(task_set=self.task_set, **chosen, **settled)

    def create(self, **changes: Any) -> Tournament:
        return tournaments.create_tournament(spec=self.spec(**changes), actor=None)


def make_arena_world(base_url: str, *, samples: int = 6, limit: int = 8, name: str = "Yard") -> ArenaWorld:
    team = Team.objects.create(name=name)
    provider = Provider.objects.create(
        team=team,
        name="demo",
        kind=Provider.Kind.DEMO,
        base_url=base_url,
        encrypted_key=encrypt(DEMO_KEY),
        max_concurrency=limit,
        judge_timeout_s=30,
        read_timeout_s=30,
    )
    world = ArenaWorld(team, provider, TaskSet.objects.create(team=team, name="Prompts", content_hash="0" * 64))
    for demo in DEMO_MODELS:
        world.models[demo.model_id] = add_model(world, demo.model_id, family=demo.family)
    drafts = [draft for draft in read_samples(starter_path("demo"), "demo") if not draft.attachment_paths]
    Sample.objects.bulk_create(
        Sample(
            task_set=world.task_set,
            position=draft.position,
            key=draft.key,
            messages=draft.messages,
            category=draft.category or "",
            input_hash=draft.input_hash,
            content_hash=draft.content_hash,
        )
        for draft in drafts[:samples]
    )
    return world


def add_model(world: ArenaWorld, model_id: str, **fields: Any) -> LanguageModel:
    settled = {"max_tokens": 2048, "pdf_input": LanguageModel.Input.BASE64, **fields}
    model = LanguageModel(team=world.team, provider=world.provider, model_id=model_id, **settled)
    model.fingerprint = model.compute_fingerprint()
    model.save()
    Price.objects.create(
        language_model=model,
        input_per_million=Decimal(1),
        output_per_million=Decimal(4),
        source="a test",
        valid_from=dt.date(2026, 1, 1),
    )
    return model


def wait_for(tournament: Tournament, statuses: Sequence[str] = (), *, seconds: float = 180) -> Tournament:
    """Until the tournament no longer runs, or has one of the statuses."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        tournament.refresh_from_db()
        if tournament.status in statuses or (not statuses and tournament.status != Tournament.Status.RUNNING):
            return tournament
        time.sleep(0.05)
    raise AssertionError(f"still {tournament.status} after {seconds} s: {tally(tournament)}")


def tally(tournament: Tournament) -> dict[str, int]:
    counts: dict[str, int] = {}
    for status in tournament.matches.values_list("status", flat=True):
        counts[status] = counts.get(status, 0) + 1
    return counts


def play(tournament: Tournament, *, seconds: float = 180) -> Tournament:
    """Start it under a worker that runs, and see it to its end."""
    tournaments.start_tournament(tournament=tournament)
    return wait_for(tournament, seconds=seconds)


def decisions_of(tournament: Tournament) -> list[tuple[Any, ...]]:
    """What a run comes to: schedule, seats and decisions, without anything that may differ between runs."""
    return [
        (
            decision.match.sequence,
            decision.match.sample.key,
            decision.match.first.full_id,
            decision.match.second.full_id,
            decision.outcome,
            decision.reason,
            decision.counts,
        )
        for decision in Decision.objects.current()
        .filter(match__tournament=tournament)
        .select_related("match__sample", "match__first", "match__second")
        .order_by("match__sequence")
    ]


def seats_of(tournament: Tournament, protocol: Protocol = AUDITED) -> list[tuple[int, int, str, str]]:
    rows = tournament.verdicts.order_by("match__sequence", "ballot__judge__position", "seat_order")
    return list(rows.values_list("match__sequence", "seat_order", "ballot__judge__full_id", "winner"))
