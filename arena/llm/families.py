"""The maker of a model, guessed from its id: judges should not share it with those they judge."""

from __future__ import annotations

import re

# Later names win nothing: the first that occurs decides, so distillations stand under what they were made from.
_FAMILIES: tuple[tuple[str, str], ...] = (
    ("openai", r"openai|(?:chat)?gpt|davinci|(?<![a-z])o[1-9](?![0-9.]*b)"),
    ("anthropic", r"anthropic|claude"),
    ("deepseek", r"deepseek"),
    ("nvidia", r"nvidia|nemotron"),
    ("meta", r"meta(?![a-z])|(?<!o)llama"),
    ("mistral", r"mi[sx]tral|ministral|codestral|devstral|magistral|pixtral"),
    ("qwen", r"qwen|qwq|qvq"),
    ("google", r"google|gemini|gemma|palm(?![a-z])"),
    ("microsoft", r"microsoft|phi(?=[-0-9])|wizardlm"),
    ("cohere", r"cohere|command-|(?<![a-z])aya(?![a-z])"),
    ("xai", r"(?<![a-z])(?:x-?ai|grok)"),
    ("moonshot", r"moonshot|kimi"),
    ("zhipu", r"zhipu|z-ai|(?:chat)?glm"),
    ("minimax", r"minimax"),
    ("amazon", r"amazon|titan|(?<![a-z])nova(?![a-z])"),
    ("ibm", r"ibm|granite"),
    ("ai21", r"ai21|jamba"),
    ("01-ai", r"(?<![a-z])yi(?![a-z])"),
    ("baidu", r"baidu|ernie"),
    ("tencent", r"tencent|hunyuan"),
    ("sakana", r"sakana"),
    ("swallow", r"swallow"),
    ("pfnet", r"pfnet|plamo"),
)
KNOWN_FAMILIES = tuple(sorted(family for family, _ in _FAMILIES))
_PATTERNS = tuple((family, re.compile(rf"(?<![a-z])(?:{pattern})", re.IGNORECASE)) for family, pattern in _FAMILIES)


def guess_family(model_id: str) -> str:
    """Empty where nothing in the id is known; a person can always say better."""
    for family, pattern in _PATTERNS:
        if pattern.search(model_id):
            return family
    return ""
