"""The candidates' answers: the same facts in five voices, as complete and as correct as the model is good."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from arena.llm.demo.bank import Checklist, Language, Point, load_bank
from arena.llm.demo.catalogue import DEMO_QUALITY
from arena.llm.demo.draws import digest, normal, ranked, uniform
from arena.llm.demo.phrases import GENERAL_CODE, GENERALITIES, PHRASES, Phrases

# How much a model's quality varies from prompt to prompt, on the scale of DEMO_QUALITY.
QUALITY_SPREAD = 1.3
_TOPIC_CHARACTERS = 80
_CODE_WORDS = re.compile(
    r"\b(?:python|javascript|typescript|java|sql|rust|golang|bash|regex|function|code|bug|script|api|algorithm|class)\b"
    r"|コード|関数|プログラム",
    re.IGNORECASE,
)
_JAPANESE_LETTERS = re.compile(r"[\u3040-\u30ff]")
_DETECTION_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Answer:
    model_id: str
    text: str
    language: Language
    quality: float
    reasoning: str = ""
    # Open-weight servers leave the thoughts in the text.
    inline_thought: str = ""
    covered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def wire_text(self) -> str:
        return f"<think>\n{self.inline_thought}\n</think>\n\n{self.text}" if self.inline_thought else self.text


@dataclass(frozen=True, slots=True)
class _Material:
    """What one model makes of a checklist."""

    checklist: Checklist
    points: tuple[Point, ...]
    errors: tuple[str, ...]
    phrases: Phrases

    def pick(self, options: tuple[str, ...], *purpose: str) -> str:
        return options[int(uniform(self.checklist.key, *purpose) * len(options))]

    def whole(self, point: Point) -> str:
        return f"{point.key}{self.phrases.sentence_gap}{point.detail}"


def language_of(text: str) -> Language:
    head = text[:_DETECTION_CHARACTERS]
    if head.isascii():
        return "en"
    return "ja" if len(_JAPANESE_LETTERS.findall(head)) * 20 > len(head) else "en"


def answer_to(model_id: str, prompt: str) -> Answer:
    checklist = load_bank().exact(prompt)
    if checklist is not None:
        return bank_answer(model_id, checklist.key)
    return _compose(model_id, _general_checklist(model_id, prompt))


@lru_cache(maxsize=512)
def bank_answer(model_id: str, key: str) -> Answer:
    return _compose(model_id, load_bank().checklists[key])


def quality_on(model_id: str, key: str) -> float:
    base = DEMO_QUALITY.get(model_id, min(DEMO_QUALITY.values()))
    return base + QUALITY_SPREAD * normal("quality", model_id, key)


def _compose(model_id: str, checklist: Checklist) -> Answer:
    quality = quality_on(model_id, checklist.key)
    kept = _kept_points(model_id, checklist, quality)
    errors = checklist.errors[: 0 if quality > 1.6 else 1 if quality > 0.3 else 2]
    phrases = PHRASES[checklist.language]
    material = _Material(checklist, kept, errors, phrases)
    voice = _VOICES.get(model_id, _page)
    return Answer(
        model_id=model_id,
        text=re.sub(r"\n{3,}", "\n\n", voice(material)).strip(),
        language=checklist.language,
        quality=quality,
        reasoning=phrases.large_thought if model_id == "lancer-large" else "",
        inline_thought=phrases.herald_thought if model_id == "herald-x" else "",
        covered=tuple(point.label for point in kept),
        missing=tuple(point.label for point in checklist.points if point not in kept),
        errors=errors,
    )


def _kept_points(model_id: str, checklist: Checklist, quality: float) -> tuple[Point, ...]:
    total = len(checklist.points)
    count = min(total, max(1, round(total * (0.36 + 0.16 * quality))))
    # The first point is what the prompt asks above all; only the weakest answers lose it.
    order = ranked(total - 1, "points", model_id, checklist.key)
    chosen = {0, *(index + 1 for index in order[: count - 1])} if quality > 0.8 else {i + 1 for i in order[:count]}
    return tuple(point for index, point in enumerate(checklist.points) if index in chosen)


def _general_checklist(model_id: str, prompt: str) -> Checklist:
    language = language_of(prompt)
    material = GENERALITIES[language]
    topic = " ".join(prompt[:400].split())[:_TOPIC_CHARACTERS] or "?"
    is_code = bool(_CODE_WORDS.search(prompt[:_DETECTION_CHARACTERS]))
    signature = material.signatures.get(model_id, "{topic}")
    return Checklist(
        key=digest("prompt", prompt),
        language=language,
        lead=signature.replace("{topic}", topic),
        points=material.code_points if is_code else material.points,
        errors=material.errors,
        code=GENERAL_CODE if is_code else None,
    )


def is_general(checklist: Checklist) -> bool:
    return checklist.key not in load_bank().checklists


def _code(checklist: Checklist) -> str:
    return f"```{checklist.code[0]}\n{checklist.code[1]}\n```" if checklist.code else ""


def _table(checklist: Checklist) -> str:
    if not checklist.table:
        return ""
    header, *rows = checklist.table
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _framed(material: _Material, paragraphs: list[str]) -> str:
    opening, closing = material.checklist.frame or ("", "")
    return "\n\n".join([opening, *paragraphs, closing])


def _lancer_large(material: _Material) -> str:
    checklist = material.checklist
    if checklist.frame is not None:
        body = _framed(material, [material.whole(point) for point in material.points] + list(material.errors))
        return f"{checklist.lead}\n\n{body}"
    bullets = [f"- **{_capital(point.label)}:** {material.whole(point)}" for point in material.points]
    bullets += [f"- {error}" for error in material.errors]
    return "\n\n".join([f"**{checklist.lead}**", _code(checklist), "\n".join(bullets), _table(checklist)])


def _squire(material: _Material) -> str:
    checklist = material.checklist
    gap = material.phrases.sentence_gap
    keys = [*(point.key for point in material.points), *material.errors]
    if checklist.frame is not None:
        return _framed(material, [gap.join(keys)])
    lead = [checklist.lead] if is_general(checklist) else []
    return "\n\n".join([*lead, _code(checklist), "\n".join(f"- {key}" for key in keys)])


def _lancer_small(material: _Material) -> str:
    checklist, phrases = material.checklist, material.phrases
    opening = checklist.lead if is_general(checklist) else material.pick(phrases.small_openings, "small")
    texts = [
        material.whole(point) + phrases.sentence_gap + material.pick(phrases.small_fillers, "small", point.label)
        for point in material.points
    ]
    texts += material.errors
    if checklist.frame is not None:
        return "\n\n".join([opening, _framed(material, texts), phrases.small_summary])
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))
    return "\n\n".join([opening, numbered, _code(checklist), phrases.small_summary])


def _herald(material: _Material) -> str:
    checklist, phrases, gap = material.checklist, material.phrases, material.phrases.sentence_gap
    parts = [checklist.lead] if is_general(checklist) else []
    parts.append(material.pick(phrases.herald_openings, "herald"))
    body: list[str] = []
    for number, point in enumerate(material.points):
        before = phrases.herald_before[number % len(phrases.herald_before)]
        after = phrases.herald_after[number % len(phrases.herald_after)]
        if checklist.frame is None:
            body.append(f"### {phrases.herald_heading} {point.label}")
        body.append(gap.join([before, point.key, point.detail, after]))
    body += material.errors
    parts.append(_framed(material, body))
    return "\n\n".join([*parts, _code(checklist), phrases.herald_closing])


def _page(material: _Material) -> str:
    checklist, phrases, gap = material.checklist, material.phrases, material.phrases.sentence_gap
    opening = checklist.lead if is_general(checklist) else material.pick(phrases.page_openings, "page")
    sentences = [
        *material.errors[:1],
        *(material.whole(point) for point in material.points),
        *material.errors[1:],
    ]
    body = _framed(material, [gap.join(sentences)]) if checklist.frame is not None else gap.join(sentences)
    return "\n\n".join([opening, body, phrases.page_padding, material.pick(phrases.page_closings, "page", "end")])


def _capital(label: str) -> str:
    return label[:1].upper() + label[1:]


_VOICES: dict[str, Callable[[_Material], str]] = {
    "lancer-large": _lancer_large,
    "squire-1": _squire,
    "lancer-small": _lancer_small,
    "herald-x": _herald,
    "page-mini": _page,
}
