"""A team with models and a small task set, for tests of tournaments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

from arena.encryption import encrypt
from arena.judging.protocol import AUDITED, Protocol
from arena.models import (
    Attachment,
    Ballot,
    Candidate,
    Decision,
    Judge,
    Jury,
    LanguageModel,
    Match,
    Price,
    Provider,
    Sample,
    SampleAttachment,
    Step,
    TaskSet,
    Team,
    Tournament,
    Trial,
    TrialRequest,
    Verdict,
)
from arena.selectors.specs import TournamentSpec
from arena.services.tournaments import create_tournament


def make_provider(team: Team, **values: Any) -> Provider:
    defaults = {"name": "host", "base_url": "http://127.0.0.1:9/v1", "encrypted_key": encrypt("demo")}
    return Provider.objects.create(team=team, **{**defaults, **values})


def make_model(provider: Provider, model_id: str, *, priced: bool = True, **values: Any) -> LanguageModel:
    model = LanguageModel(
        team=provider.team, provider=provider, model_id=model_id, **{"max_tokens": 1_000, "pdf_input": "none", **values}
    )
    model.fingerprint = model.compute_fingerprint()
    model.save()
    if priced:
        Price.objects.create(
            language_model=model,
            input_per_million=Decimal(2),
            output_per_million=Decimal(8),
            source="test",
            valid_from=dt.date(2026, 1, 1),
        )
    return model


def make_task_set(
    team: Team, n: int = 6, *, name: str = "prompts", categories: Sequence[str] = ("a", "b"), text: str = "Question"
) -> TaskSet:
    task_set = TaskSet.objects.create(team=team, name=name, content_hash="x", sample_count=n)
    Sample.objects.bulk_create(
        [
            Sample(
                task_set=task_set,
                position=position,
                key=f"{name}-{position}",
                messages=[{"role": "user", "content": f"{text} {position}"}],
                category=categories[position % len(categories)],
                input_hash=sha256(f"{name}:{text}:{position}".encode()).hexdigest(),
                content_hash=f"{position}",
            )
            for position in range(n)
        ]
    )
    return task_set


def attach_pdf(sample: Sample, *, pages: int = 3) -> None:
    attachment = Attachment.objects.create(
        team=sample.task_set.team,
        sha256=sha256(sample.key.encode()).hexdigest(),
        content_type="application/pdf",
        size=100,
        pages=pages,
        file="attachments/x",
    )
    SampleAttachment.objects.create(sample=sample, attachment=attachment, path="x.pdf")
    sample.messages = [{"role": "user", "content": [{"type": "file_ref", "path": "x.pdf"}]}]
    sample.save()


@dataclass
class Cast:
    """Three candidates, of which the first also judges, and two judges."""

    task_set: TaskSet
    candidates: list[LanguageModel]
    judges: list[LanguageModel]

    def spec(self, **values: Any) -> TournamentSpec:
        defaults: dict[str, Any] = {
            "name": "First run",
            "task_set": self.task_set,
            "candidates": self.candidates,
            "judges": self.judges,
            "protocol": AUDITED,
            "max_matches": 6,
            "step_size": 3,
        }
        return TournamentSpec(**{**defaults, **values})


def make_cast(team: Team, *, prefix: str = "", samples: int = 6, provider: Provider | None = None) -> Cast:
    host = provider or make_provider(team)
    task_set = make_task_set(team, samples, name=f"{prefix}prompts")
    candidates = [
        make_model(host, f"{prefix}{name}", family=name, display_name=f"{prefix}{name}".title())
        for name in ("lancer", "squire", "page")
    ]
    judges = [
        make_model(host, f"{prefix}{name}", family=name, display_name=f"{prefix}{name}".title())
        for name in ("usher", "warden")
    ]
    return Cast(task_set, candidates, judges)


def make_tournament(cast: Cast, *, matches: int = 4, protocol: Protocol = AUDITED, **values: Any) -> Tournament:
    """Planned by hand, with answers and nothing judged yet."""
    tournament = create_tournament(spec=cast.spec(protocol=protocol, **values), actor=None)
    tournament.status = Tournament.Status.RUNNING
    tournament.save()
    step = Step.objects.create(tournament=tournament, number=1)
    candidates = list(tournament.candidates.all())
    samples = list(cast.task_set.samples.all())
    pairs = [(0, 1), (0, 2), (1, 2)]
    for number in range(matches):
        sides = [candidates[place] for place in pairs[number % 3]]
        sample = samples[(number // 3) % len(samples)]
        trials = [answer(tournament, side, sample) for side in sides]
        Match.objects.create(
            tournament=tournament,
            step=step,
            sequence=number + 1,
            sample=sample,
            first=sides[0],
            second=sides[1],
            first_trial=trials[0],
            second_trial=trials[1],
        )
    return tournament


def answer(tournament: Tournament, side: Candidate, sample: Sample, text: str = "", **values: Any) -> Trial:
    known = Trial.objects.filter(
        team=tournament.team, input_hash=sample.input_hash, fingerprint=side.snapshot["fingerprint"]
    ).first()
    text = text or f"Answer of {side.label} to {sample.key}"
    trial = known or Trial.objects.create(
        **{
            "team": tournament.team,
            "language_model": side.language_model,
            "provider": side.language_model.provider,
            "sample": sample,
            "input_hash": sample.input_hash,
            "fingerprint": side.snapshot["fingerprint"],
            "status": "succeeded",
            "answer": text,
            "characters": len(text),
            "input_tokens": 10,
            "output_tokens": 20,
            **values,
        }
    )
    TrialRequest.objects.get_or_create(tournament=tournament, trial=trial)
    return trial


def judge(match: Match, votes: Sequence[str], *, outcome: str = "first", status: str = "decided") -> Decision:
    """One ballot for each vote: first, second, tie, flip, failed, excluded or input_skipped."""
    jury = Jury.objects.get(tournament=match.tournament, primary=True)
    for seat, vote in zip(Judge.objects.filter(jury=jury), votes, strict=False):
        _ballot(jury, match, seat, vote)
    counts = {name: list(votes).count(name) for name in ("first", "second", "tie", "failed", "excluded")}
    counts |= {"abstained": list(votes).count("flip"), "input_skipped": list(votes).count("input_skipped")}
    match.status = status
    match.save()
    return Decision.objects.create(jury=jury, match=match, outcome=outcome, reason="plurality", counts=counts)


def _ballot(jury: Jury, match: Match, seat: Judge, vote: str) -> Ballot:
    flipped = vote == "flip"
    status = {"flip": "abstained", "failed": "failed", "excluded": "excluded", "input_skipped": "input_skipped"}
    ballot = Ballot.objects.create(
        jury=jury,
        match=match,
        judge=seat,
        status=status.get(vote, "vote"),
        vote="" if vote in status else vote,
        flipped=flipped,
        flip_kind="side" if flipped else "",
    )
    if vote in {"excluded", "input_skipped"}:
        return ballot
    for order in (1, 2):
        said = ("first" if order == 1 else "second") if flipped else ("" if vote == "failed" else vote)
        seat_name = {"tie": "tie", "": ""}.get(said, "A" if (said == "first") == (order == 1) else "B")
        Verdict.objects.create(
            ballot=ballot,
            match=match,
            tournament=match.tournament,
            provider=seat.language_model.provider,
            seat_order=order,
            status="failed" if vote == "failed" else "succeeded",
            winner=seat_name,
            vote=said,
            error_code="INVALID_JSON" if vote == "failed" else "",
            error="The reply is no JSON." if vote == "failed" else "",
            comment_a="A is short.",
            comment_b="B is long.",
            reason=f"Reason of {seat.label}",
            raw=f'{{"winner": "{seat_name}"}} <b>raw</b>',
        )
    return ballot
