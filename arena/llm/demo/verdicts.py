"""How the four judges decide between two answers, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from arena.llm.demo.bank import Language
from arena.llm.demo.catalogue import MODELS_BY_ID, Temper
from arena.llm.demo.draws import normal
from arena.llm.demo.pairs import Shown

Winner = Literal["A", "B", "tie"]


@dataclass(frozen=True, slots=True)
class _Mind:
    """On the scale of DEMO_QUALITY. `noise` is the same in both seat orders; `order_noise` makes flips."""

    quality_weight: float
    noise: float
    order_noise: float
    first_seat: float
    length_weight: float
    tie_within: float


_MINDS: Mapping[Temper, _Mind] = {
    "careful": _Mind(1.0, noise=0.3, order_noise=0.18, first_seat=0.0, length_weight=0.0, tie_within=0.3),
    "first_seat": _Mind(1.0, noise=0.35, order_noise=0.2, first_seat=1.6, length_weight=0.0, tie_within=0.1),
    "length": _Mind(0.12, noise=0.15, order_noise=0.05, first_seat=0.0, length_weight=1.4, tie_within=0.06),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    comment_a: str
    comment_b: str
    reason: str
    winner: Winner

    def as_json(self) -> str:
        document = {"A": self.comment_a, "B": self.comment_b, "reason": self.reason, "winner": self.winner}
        return json.dumps(document, ensure_ascii=False)


def decide(judge_id: str, a: Shown, b: Shown) -> Winner:
    if a.text.strip() == b.text.strip():
        return "tie"
    mind = _MINDS[_temper(judge_id)]
    margin = _margin(judge_id, mind, a, b)
    if abs(margin) < mind.tie_within:
        return "tie"
    return "A" if margin > 0 else "B"


def _temper(judge_id: str) -> Temper:
    model = MODELS_BY_ID.get(judge_id)
    return model.temper if model is not None and model.temper is not None else "careful"


def _margin(judge_id: str, mind: _Mind, a: Shown, b: Shown) -> float:
    """Above zero: A is better in this judge's eyes."""
    first, second = sorted([a.identity, b.identity])
    sign = 1.0 if a.identity == first else -1.0
    opinion = mind.noise * normal("opinion", judge_id, first, second)
    mood = mind.order_noise * normal("mood", judge_id, a.identity, b.identity)
    length = math.log2((len(a.text) + 1) / (len(b.text) + 1))
    merit = mind.quality_weight * (a.quality - b.quality) + mind.length_weight * length
    return merit + mind.first_seat + sign * opinion + mood


def judge(judge_id: str, a: Shown, b: Shown, language: Language) -> Verdict:
    winner = decide(judge_id, a, b)
    temper = _temper(judge_id)
    comment = _comment_ja if language == "ja" else _comment_en
    reason = _reason_ja if language == "ja" else _reason_en
    return Verdict(
        comment_a=comment(a, temper, is_first=True),
        comment_b=comment(b, temper, is_first=False),
        reason=reason(a, b, temper, winner),
        winner=winner,
    )


def undecided(language: Language) -> Verdict:
    if language == "ja":
        return Verdict(
            "回答が見当たりません。",
            "回答が見当たりません。",
            "比較できる二つの回答がないため、優劣を付けません。",
            "tie",
        )
    missing = "I find no such answer."
    return Verdict(missing, missing, "There are no two answers to compare, so neither is better.", "tie")


def _comment_en(shown: Shown, temper: Temper, *, is_first: bool) -> str:
    if temper == "length":
        return f"About {_rounded(len(shown.text))} characters of material."
    if temper == "first_seat" and is_first:
        return "Sets the standard at once and is convincing from the first line."
    sentences = []
    if shown.covered:
        sentences.append(f"Covers {_list(shown.covered, ', ', ' and ')}.")
    if shown.missing:
        sentences.append(f"Leaves out {_list(shown.missing, ', ', ' and ')}.")
    if shown.errors:
        sentences.append(f'Wrong: "{shown.errors[0]}"')
    return " ".join(sentences) or _general_en(shown.quality)


def _general_en(quality: float) -> str:
    if quality > 3:
        return "Complete, well ordered and to the point."
    if quality > 1.5:
        return "Sound, but some parts stay general."
    return "Stays vague and contains doubtful statements."


def _comment_ja(shown: Shown, temper: Temper, *, is_first: bool) -> str:
    if temper == "length":
        return f"約{_rounded(len(shown.text))}文字の内容があります。"
    if temper == "first_seat" and is_first:
        return "最初から要点が伝わり、説得力があります。"
    sentences = []
    if shown.covered:
        sentences.append(f"「{'」「'.join(shown.covered)}」に触れています。")
    if shown.missing:
        sentences.append(f"「{'」「'.join(shown.missing)}」がありません。")
    if shown.errors:
        sentences.append(f"「{shown.errors[0].rstrip('。')}」は誤りです。")
    return "".join(sentences) or _general_ja(shown.quality)


def _general_ja(quality: float) -> str:
    if quality > 3:
        return "過不足がなく、整理されています。"
    return "おおむね妥当ですが、一般論が目立ちます。" if quality > 1.5 else "曖昧で、疑わしい記述があります。"


def _reason_en(a: Shown, b: Shown, temper: Temper, winner: Winner) -> str:
    if winner == "tie":
        return "Both serve the person who asked about equally well."
    other = "B" if winner == "A" else "A"
    if temper == "length":
        return f"Answer {winner} offers more than answer {other}."
    if temper == "first_seat" and winner == "A":
        return "Answer A meets the request, and answer B adds nothing decisive to it."
    better, worse = (a, b) if winner == "A" else (b, a)
    if worse.errors and not better.errors:
        return f"Answer {winner} is correct, while answer {other} makes a wrong statement."
    if len(better.covered) > len(worse.covered):
        return f"Answer {winner} covers more of what was asked for than answer {other}."
    return f"Answer {winner} is clearer and more useful as a whole than answer {other}."


def _reason_ja(a: Shown, b: Shown, temper: Temper, winner: Winner) -> str:
    if winner == "tie":
        return "どちらも同程度に役立ちます。"
    other = "B" if winner == "A" else "A"
    if temper == "length":
        return f"回答{winner}のほうが、回答{other}より内容が豊富です。"
    if temper == "first_seat" and winner == "A":
        return "回答Aは依頼を満たしており、回答Bに決定的な上積みはありません。"
    better, worse = (a, b) if winner == "A" else (b, a)
    if worse.errors and not better.errors:
        return f"回答{winner}は正確ですが、回答{other}には誤りがあります。"
    if len(better.covered) > len(worse.covered):
        return f"回答{winner}のほうが、求められた内容をより多く含んでいます。"
    return f"全体として、回答{winner}のほうが分かりやすく役に立ちます。"


def _list(items: tuple[str, ...], comma: str, last: str) -> str:
    return items[0] if len(items) == 1 else comma.join(items[:-1]) + last + items[-1]


def _rounded(count: int) -> int:
    return round(count / 50) * 50 if count >= 100 else count
