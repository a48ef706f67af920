"""What in an answer tells whose it is: pure text in, text and findings out.

Two things give a model away. Traces of how the answer was made (thinking blocks, tool calls, citation marks,
tracking parameters, characters nobody sees) are taken out of every answer alike. Names are searched for, and
what is done about them is the campaign's choice. The original text is never changed: both work on copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from arena.llm.text import split_thinking
from arena.rendering.text import visible

# What stands in the place of a name. Long names and short ones leave the same mark.
NEUTRAL = "[…]"

# Names that mean a maker or a model of language models wherever they stand.
_PLAIN_NAMES = """
    openai chatgpt gpt-3 gpt-3.5 gpt-4 gpt-4o gpt-4.1 gpt-4.5 gpt-5 gpt-oss o1-mini o1-preview o3-mini o4-mini davinci
    anthropic deepmind gemma gpt4 gpt3 gpt5
    mistral-ai mixtral ministral codestral devstral magistral pixtral
    llama-2 llama-3 llama-4 llama2 llama3 llama4 codellama metaai qwen qwen2 qwen2.5 qwen3 qwq qvq tongyi qianwen
    deepseek cohere command-r command-a xai-grok moonshot-ai moonshotai kimi zhipu zhipuai chatglm glm-4 glm-4.5
    minimax hunyuan doubao bytedance-seed baichuan stepfun internlm yi-34b nemotron phi-3 phi-4 phi3 wizardlm vicuna
    jamba ai21 dbrx reka-core olmo tulu-3 starcoder perplexity-sonar copilot-chat elyza plamo stockmark sarashina
    rinna llm-jp karakuri swallow-llm sakana-ai ernie-bot hyperclova solar-pro exaone
    通義千問 通义千问 文心一言 豆包 混元 智譜 智谱 月之暗面
"""
_PLAIN = tuple(_PLAIN_NAMES.split())
# Ordinary words and firms that also name models: they give something away only where the text speaks of itself.
_AMBIGUOUS_NAMES = """
    google meta microsoft amazon nvidia ibm apple alibaba tencent baidu claude gemini bard grok llama mistral falcon
    titan nova phi yi sonar granite command copilot palm pi ernie swallow sakana pfnet
"""
_AMBIGUOUS = tuple(_AMBIGUOUS_NAMES.split())
# A version or size behind a name belongs to it: "Claude 3.5 Sonnet", "Gemini 2.0 Flash", "Llama 3 70B".
_TAIL = (
    r"(?:[\s\-_]*(?:v?\d+(?:\.\d+)*[a-z]?\b|sonnet|opus|haiku|flash|turbo|ultra|nano|mini|preview|instruct|chat"
    r"|large|medium|small|\d+b\b))*"
)
_NUMBERED = re.compile(
    r"(?<![A-Za-z0-9])(?:claude|gemini|grok|llama|mistral|falcon|titan|nova|phi|granite|palm|ernie|gpt|glm|qwen)"
    r"[\s\-_]*(?:v?\d+(?:\.\d+)*[a-z]?\b|sonnet|opus|haiku|flash|large|medium|small|pro|ultra|lite|micro)" + _TAIL,
    re.IGNORECASE,
)
# Bounded, so that no text takes more than a few looks from any place.
_NAME = r"[A-Z0-9][\w.\-&]{0,40}(?:\s{1,3}(?:[A-Z][\w.\-&]{0,40}|\d[\w.\-]{0,10})){0,3}"
_MADE = r"(?:developed|created|trained|made|built|designed|produced|provided|fine-?tuned|released)"
_SPEAKS_OF_ITSELF = (
    re.compile(
        rf"\b(?:[Aa]s|[Ii](?:'m|’m| am)|[Tt]his is)\s+an?\s+(?:[\w\-]{{1,30}}\s+){{0,5}}?{_MADE}\s+by\s+({_NAME})"
    ),
    re.compile(rf"\b(?:model|assistant|AI|chatbot)\b[^.\n]{{0,40}}?\b{_MADE}\s+by\s+({_NAME})"),
    re.compile(rf"\b(?:I was|I have been|I've been)\s+{_MADE}\s+by\s+({_NAME})"),
    re.compile(
        r"(?<![A-Za-z0-9])([A-Za-z][\w.\-]{0,40})\s?社?(?:によって|により|が|に)(?:開発|訓練|作成|学習)(?:さ|し)",
    ),
)
_SELF_PHRASE = re.compile(
    r"(?:\b(?:I am|I'm|I’m|I was|as an? (?:AI|language|large)|my (?:name|training|creators?|developers?)|trained by"
    r"|developed by|created by|made by|built by|language model|AI (?:model|assistant))\b|私は|開発|言語モデル)",
    re.IGNORECASE,
)
_TAGS = "think|thinking|reasoning|reflection|scratchpad|tool_call|tool_calls|tool_response|function_call|function_calls"
_OPENING = re.compile(rf"<({_TAGS})>", re.IGNORECASE)
_STRAY_TAG = re.compile(rf"</?(?:{_TAGS}|answer|final_answer)>[ \t]*\n?", re.IGNORECASE)
_SPECIAL_TOKEN = re.compile(
    r"<[|｜][\w▁ ]{1,40}[|｜]>|\[/?INST\]|<</?SYS>>|<(?:/s|s|bos|eos|pad|start_of_turn|end_of_turn)>"
)
_CITATION = re.compile(
    r"【\d+(?::\d+)?†[^】\n]{0,80}】|:contentReference\[[^\]\n]{0,60}\](?:\{[^}\n]{0,40}\})?"
    r"|\[?oai_citation[:\d†\w.\-]{0,80}\]?(?:\([^)\n]{0,300}\))?|\uE200[^\uE201]{0,200}\uE201"
    r"|\b(?:turn\d+(?:search|view|file|news|image)\d+)\b|<grok:[^>]{0,200}>(?:</grok:[^>]{0,60}>)?"
    r"|</?(?:cite|antml:cite)[^>]{0,120}>"
)
_ADDRESS = re.compile(r"https?://[^\s<>()\[\]\"'`]+")
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref(?:errer|_src)?|source|igshid|oai\w*", re.IGNORECASE)
_UNUSUAL_SPACE = re.compile("[\u00a0\u2007\u2009\u200a\u202f\u205f]")
_LETTER = re.compile(r"[^\W\d_]")


class Leak(NamedTuple):
    """A name at [start, end) of a normalised text."""

    start: int
    end: int


def normalised(text: str) -> str:
    """The answer without traces of how it was made: what a rater is shown, whatever the campaign's policy."""
    answer, _thinking = split_thinking(text)
    answer = _STRAY_TAG.sub("", _without_blocks(answer))
    answer = _CITATION.sub("", _SPECIAL_TOKEN.sub("", answer))
    answer = _ADDRESS.sub(lambda found: _without_tracking(found[0]), answer)
    # Some models write a narrow space where others write none or a plain one.
    return visible(_UNUSUAL_SPACE.sub(" ", answer)).strip()


def _without_blocks(text: str) -> str:
    parts: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while opening := _OPENING.search(text, position):
        tag = opening[1].casefold()
        # Once no end was found there is none further down either: a text of openings alone stays quick.
        closing = None
        if tag not in unclosed:
            closing = re.compile(rf"</{tag}>\s*", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            unclosed.add(tag)
        parts.append(text[position : opening.start()])
        position = opening.end() if closing is None else closing.end()
    return "".join([*parts, text[position:]])


def _without_tracking(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    if not parts.query:
        return address
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if not _TRACKING.fullmatch(name)]
    return address if len(kept) == len(pairs) else urlunsplit(parts._replace(query=urlencode(kept)))


class Lexicon:
    """The names to look for: the well-known ones, and those of the campaign's own models and hosts."""

    def __init__(self, own_names: Iterable[str] = ()) -> None:
        own = {name.strip().casefold() for name in own_names}
        # Short names and plain numbers would blot out half of a text; a name has a letter.
        names = {name for name in own if len(name) >= 3 and _LETTER.search(name) and name not in _AMBIGUOUS}
        self._plain = _pattern({*_PLAIN, *names}, tail=True)
        self._ambiguous = _pattern(set(_AMBIGUOUS), tail=True)

    def leaks(self, text: str, *, context: str = "") -> list[Leak]:
        """Where the text names a model or its maker; names that stand in `context` (prompt, PDF) give nothing away."""
        known = context.casefold()
        found = [match.span() for match in self._plain.finditer(text)]
        found += [match.span() for match in _NUMBERED.finditer(text)]
        if _SELF_PHRASE.search(text):
            found += [
                match.span() for match in self._ambiguous.finditer(text) if _near_self_phrase(text, match.start())
            ]
        for pattern in _SPEAKS_OF_ITSELF:
            found += [match.span(1) for match in pattern.finditer(text) if _LETTER.search(match[1])]
        return _merged([span for span in found if text[slice(*span)].casefold().strip() not in known])


def _pattern(names: set[str], *, tail: bool) -> re.Pattern[str]:
    # Longest first; hyphens may be spaces or missing; no word boundaries, since Japanese has none beside Latin.
    forms = sorted(names, key=lambda name: (-len(name), name))
    spelled = (re.sub(r"(?:\\-|\\ |_|\\_)", r"[\\s\\-_]?", re.escape(name)) for name in forms)
    body = "|".join(spelled)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{body})(?![A-Za-z0-9]){_TAIL if tail else ''}", re.IGNORECASE)


def _near_self_phrase(text: str, position: int) -> bool:
    return bool(_SELF_PHRASE.search(text[max(0, position - 60) : position + 60]))


def _merged(spans: Sequence[tuple[int, int]]) -> list[Leak]:
    merged: list[Leak] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1].end:
            merged[-1] = Leak(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Leak(start, end))
    return merged


def masked(text: str, leaks: Sequence[Leak]) -> str:
    """The text with a neutral word in the place of each name."""
    parts: list[str] = []
    position = 0
    for leak in leaks:
        parts += [text[position : leak.start], NEUTRAL]
        position = leak.end
    return "".join([*parts, text[position:]])
