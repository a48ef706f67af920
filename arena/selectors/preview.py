"""The judge's prompt on a planned match, to the letter, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from arena.judging.prompts import judge_messages
from arena.judging.protocol import seat_plan
from arena.models import LanguageModel, Sample
from arena.selectors.cells import known_trials
from arena.selectors.plan import Plan

SHOWN_CHARACTERS = 20_000


@dataclass(frozen=True)
class PreviewMessage:
    role: str
    text: str
    hidden_characters: int


@dataclass(frozen=True)
class Preview:
    sample: Sample
    sequence: int
    messages: list[PreviewMessage]
    # Both answers are real ones; otherwise words stand in their place.
    has_answers: bool


def preview_of(plan: Plan) -> Preview | None:
    if plan.example is None:
        return None
    spec = plan.spec
    example = plan.example
    sample = Sample.objects.get(pk=example.sample)
    models = [spec.candidates[example.first], spec.candidates[example.second]]
    if not seat_plan(spec.protocol, seed=spec.seed, sequence=example.sequence)[0]:
        models.reverse()
    known = known_trials(spec.task_set.team_id, [(sample.input_hash, model.fingerprint) for model in models])
    trials = [known.get((sample.input_hash, model.fingerprint)) for model in models]
    real = [trial.answer if trial is not None and trial.succeeded else "" for trial in trials]
    answers = [text or _placeholder(model) for text, model in zip(real, models, strict=True)]
    prompt = judge_messages(
        sample_messages=sample.messages,
        answer_a=answers[0],
        answer_b=answers[1],
        protocol=spec.protocol,
        fence_seed=f"{spec.seed}:{example.sequence}",
        reference=sample.reference or None,
        sample_criteria=sample.criteria or None,
    )
    return Preview(sample, example.sequence, [_shown(message) for message in prompt.messages], all(real))


def _placeholder(model: LanguageModel) -> str:
    return _("(Here stands the answer of %(name)s.)") % {"name": model.label}


def _shown(message: dict[str, Any]) -> PreviewMessage:
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n\n".join(_part(part) for part in parts)
    return PreviewMessage(message["role"], text[:SHOWN_CHARACTERS], max(0, len(text) - SHOWN_CHARACTERS))


def _part(part: dict[str, Any]) -> str:
    if part.get("type") == "text":
        return str(part["text"])
    if part.get("type") == "file_ref":
        return _("(Here goes the file %(path)s.)") % {"path": part["path"]}
    return _("(Here goes a picture.)")
