"""What the configuration of a run says, apart from any database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from arena.judging.protocol import AUDITED, Protocol, ProtocolError
from arena.selectors.specs import PAIRING_OF_PRESET
from ratings.engine.pairing import STRATEGIES
from ratings.headless.fields import NO_KEYS_HERE, SECRETS, Log, Section
from ratings.headless.yaml_tree import ConfigError, Unreadable, read_tree

KINDS = ("openai", "anthropic", "gemini", "demo")
KEY_VARIABLE = re.compile(r"TILTYARD_KEY_[A-Za-z0-9_]+")
PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
MOST_INTEGER = 2_147_483_647
MOST_SEED = 2**63 - 1
MOST_PRICE = Decimal(100_000)
MOST_BUDGET = Decimal(99_999_999)
LIST_NAMES = ("candidates", "judges", "replacement_judges")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """None is what the file does not say: a stored provider keeps its own there."""

    path: str
    name: str
    kind: str | None
    base_url: str | None
    key_variable: str | None
    max_concurrency: int | None
    requests_per_minute: int | None
    connect_timeout_s: float | None
    read_timeout_s: float | None
    judge_timeout_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceConfig:
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    path: str
    provider: str
    model_id: str
    name: str | None
    family: str | None
    system_prompt: str
    parameters: Mapping[str, Any]
    max_tokens: int | None
    context_tokens: int | None
    pdf: bool
    image: bool
    price: PriceConfig | None

    @property
    def full_id(self) -> str:
        return f"{self.provider}/{self.model_id}"

    @property
    def identity(self) -> tuple[str, ...]:
        """Two entries with the same one are the same model, asked the very same thing."""
        parameters = json.dumps(self.parameters, sort_keys=True, default=str)
        limits = f"{self.max_tokens} {self.pdf} {self.image}"
        return self.provider, self.model_id, self.system_prompt.strip(), parameters, limits


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    file: str
    name: str
    task_set: str
    providers: tuple[ProviderConfig, ...]
    candidates: tuple[ModelConfig, ...]
    judges: tuple[ModelConfig, ...]
    replacement_judges: tuple[ModelConfig, ...]
    protocol: Protocol
    pairing: str
    max_matches: int
    step_size: int
    seed: int
    budget_usd: Decimal | None
    categories: tuple[str, ...]
    # The index of a candidate.
    baseline: int | None
    baseline_weight: float | None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def models(self) -> tuple[ModelConfig, ...]:
        return (*self.candidates, *self.judges, *self.replacement_judges)

    def told(self, path: str, message: str) -> str:
        """A problem found later, with the line of the value or of what holds it."""
        where = path
        while where and where not in self.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        line = self.lines.get(where) if where else None
        place = self.file if line is None else f"{self.file} line {line}"
        return ": ".join(part for part in (place, path, message) if part)


def parse_config(content: bytes, file: str) -> RunConfig:
    """The whole configuration, or ConfigError with everything that is wrong with it."""
    return _parsed(content, file, _read)


def parse_panel(content: bytes, file: str) -> RunConfig:
    """Who judges and how, for recorded answers; a configuration without candidates, task set and matches."""
    return _parsed(content, file, _read_panel)


def _parsed(content: bytes, file: str, read: Callable[[Section, str], RunConfig]) -> RunConfig:
    try:
        root, problems = read_tree(content)
    except Unreadable as error:
        raise ConfigError([error.problem.told(file)]) from error
    log = Log(problems)
    config = read(Section(log, root, ""), file) if isinstance(root.value, dict) else None
    if config is None and not log.problems:
        log.add(root.line, "", "must be a mapping of names to values, such as task_set: samples.jsonl")
    if log.problems or config is None:
        ordered = sorted(dict.fromkeys(log.problems), key=lambda problem: problem.line or 0)
        raise ConfigError([problem.told(file) for problem in ordered])
    return config


def _read_panel(top: Section, file: str) -> RunConfig:
    providers = tuple(_provider(name, section) for name, section in top.named("providers"))
    default = providers[0].name if len(providers) == 1 else None
    lists = {name: _models(top, name, default) for name in LIST_NAMES if name != "candidates"}
    _check_sameness(top, lists)
    protocol = _protocol(top)
    config = RunConfig(
        file=file,
        name=top.text("name", most=200) or file.rpartition(".")[0] or file,
        task_set="",
        providers=providers,
        candidates=(),
        judges=lists["judges"],
        replacement_judges=lists["replacement_judges"],
        protocol=protocol,
        pairing=PAIRING_OF_PRESET[protocol.preset],
        max_matches=1,
        step_size=1,
        seed=1,
        budget_usd=top.decimal("budget_usd", low=Decimal(0), high=MOST_BUDGET, places=4),
        categories=(),
        baseline=None,
        baseline_weight=None,
        lines=top.log.lines,
    )
    top.close()
    return config


def _read(top: Section, file: str) -> RunConfig:
    providers = tuple(_provider(name, section) for name, section in top.named("providers"))
    default = providers[0].name if len(providers) == 1 else None
    lists = {name: _models(top, name, default) for name in LIST_NAMES}
    _check_sizes(top, lists)
    _check_sameness(top, lists)
    protocol = _protocol(top)
    config = RunConfig(
        file=file,
        name=top.text("name", most=200) or file.rpartition(".")[0] or file,
        task_set=top.text("task_set", required=True, most=1_000) or "",
        providers=providers,
        candidates=lists["candidates"],
        judges=lists["judges"],
        replacement_judges=lists["replacement_judges"],
        protocol=protocol,
        pairing=top.choice("pairing", sorted(STRATEGIES)) or PAIRING_OF_PRESET[protocol.preset],
        max_matches=top.whole("max_matches", low=1, high=1_000_000, required=True) or 1,
        step_size=top.whole("step_size", low=1, high=1_000_000) or 20,
        seed=_or(top.whole("seed", low=0, high=MOST_SEED), 1),
        budget_usd=top.decimal("budget_usd", low=Decimal(0), high=MOST_BUDGET, places=4),
        categories=top.texts("categories"),
        baseline=_baseline(top, lists["candidates"]),
        baseline_weight=top.number("baseline_weight", low=0, high=1),
        lines=top.log.lines,
    )
    if config.baseline_weight is not None and config.baseline is None:
        top.problem("baseline_weight", "needs a baseline")
    top.close()
    return config


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


# Providers ---------------------------------------------------------------------------------------------------
def _provider(name: str, section: Section) -> ProviderConfig:
    if not PROVIDER_NAME.fullmatch(name):
        section.log.add(section.line, section.path, "a provider's name has letters, digits, - and _ only")
    config = ProviderConfig(
        path=section.path,
        name=name,
        kind=section.choice("kind", KINDS),
        base_url=section.text("base_url", most=500),
        key_variable=_key_variable(section),
        max_concurrency=section.whole("max_concurrency", low=1, high=512),
        requests_per_minute=section.whole("requests_per_minute", low=1, high=MOST_INTEGER),
        connect_timeout_s=section.number("connect_timeout_s", low=0.1, high=86_400),
        read_timeout_s=section.number("read_timeout_s", low=0.1, high=86_400),
        judge_timeout_s=section.number("judge_timeout_s", low=0.1, high=86_400),
    )
    section.close()
    return config


def _key_variable(section: Section) -> str | None:
    named = section.text("key_variable")
    if named is not None and not KEY_VARIABLE.fullmatch(named):
        # What stands there may be the key itself, so it is not repeated.
        section.problem("key_variable", "must be the name of an environment variable that begins with TILTYARD_KEY_")
        named = None
    key = section.take("key")
    if key is None:
        return named
    if not isinstance(key.value, dict):
        section.problem("key", NO_KEYS_HERE)
        return named
    inside = Section(section.log, key, section.at("key"))
    variable = inside.text("env", required=True)
    inside.close()
    if variable is not None and not KEY_VARIABLE.fullmatch(variable):
        inside.problem("env", "must be the name of an environment variable that begins with TILTYARD_KEY_")
        return named
    if named is not None and variable not in {None, named}:
        section.problem("key", "names another variable than key_variable")
    return named or variable


# Models ------------------------------------------------------------------------------------------------------
def _models(top: Section, name: str, default: str | None) -> tuple[ModelConfig, ...]:
    return tuple(_model(section, default) for section in top.items(name, required=name != "replacement_judges"))


def _model(section: Section, default_provider: str | None) -> ModelConfig:
    provider = section.text("provider", most=60)
    if provider is None and default_provider is None:
        section.problem("provider", "is missing; it can be left out only where the file has exactly one provider")
    parameters = section.mapping("parameters")
    for path in _secrets(parameters, "parameters"):
        section.log.add(section.log.lines.get(section.at("parameters")), section.at(path), NO_KEYS_HERE)
    config = ModelConfig(
        path=section.path,
        provider=provider or default_provider or "",
        model_id=section.text("model_id", required=True, most=200) or "",
        name=section.text("name", most=200),
        family=section.text("family", most=80),
        system_prompt=section.text("system_prompt") or "",
        parameters=parameters,
        max_tokens=section.whole("max_tokens", low=1, high=MOST_INTEGER),
        context_tokens=section.whole("context_tokens", low=1, high=MOST_INTEGER),
        pdf=_takes(section, "pdf"),
        image=_takes(section, "image"),
        price=_price(section),
    )
    section.close()
    return config


def _takes(section: Section, name: str) -> bool:
    node = section.take(name)
    if node is None:
        return False
    if node.value in (True, "base64"):
        return True
    if node.value not in (False, "none"):
        section.problem(name, "must be base64 or none")
    return False


def _price(section: Section) -> PriceConfig | None:
    price = section.section("price")
    if price is None:
        return None
    sides = [
        price.decimal(side, low=Decimal(0), high=MOST_PRICE, places=6, required=True) for side in ("input", "output")
    ]
    price.close()
    return None if sides[0] is None or sides[1] is None else PriceConfig(input=sides[0], output=sides[1])


def _secrets(values: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in values.items():
        inside = f"{path}.{key}"
        if str(key).lower().replace("-", "_").removeprefix("x_") in SECRETS:
            yield inside
        elif isinstance(value, Mapping):
            yield from _secrets(value, inside)


def _check_sizes(top: Section, lists: Mapping[str, tuple[ModelConfig, ...]]) -> None:
    node = top.take("candidates")
    if node is not None and isinstance(node.value, list) and len(node.value) < 2:
        top.problem("candidates", "a tournament needs at least two")
    node = top.take("judges")
    if node is not None and isinstance(node.value, list) and not lists["judges"]:
        top.problem("judges", "a tournament needs at least one")


def _check_sameness(top: Section, lists: Mapping[str, tuple[ModelConfig, ...]]) -> None:
    """The same model may compete and judge, but not twice in one role, nor under two names or prices."""
    seen: dict[tuple[str, ...], ModelConfig] = {}
    roles: dict[tuple[str, tuple[str, ...]], ModelConfig] = {}
    for name, models in lists.items():
        role = "candidate" if name == "candidates" else "judge"
        for model in models:
            if not model.model_id:
                continue
            twin = roles.setdefault((role, model.identity), model)
            if twin is not model:
                top.log.add(top.log.lines[model.path], model.path, f"is the same {role} as {twin.path}")
                continue
            first = seen.setdefault(model.identity, model)
            for part in ("name", "family", "price", "context_tokens"):
                one, other = getattr(first, part), getattr(model, part)
                if first is not model and one is not None and other is not None and one != other:
                    path = f"{model.path}.{part}"
                    line = top.log.lines.get(path, top.log.lines[model.path])
                    top.log.add(line, path, f"differs from {first.path}.{part}, and both are the same model")


def _baseline(top: Section, candidates: tuple[ModelConfig, ...]) -> int | None:
    wanted = top.text("baseline")
    if wanted is None:
        return None
    found = [index for index, one in enumerate(candidates) if wanted in {one.name, one.model_id, one.full_id}]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.name or one.full_id for one in candidates)
    which = "no candidate has this name or id" if not found else "several candidates have this name or id"
    top.problem("baseline", f"{which}; there are {known}")
    return None


def _protocol(top: Section) -> Protocol:
    overrides = top.mapping("jury")
    try:
        return Protocol.from_json(overrides)
    except ProtocolError as error:
        for problem in error.problems:
            name, _, message = problem.partition(": ")
            path = f"jury.{name}"
            line = top.log.lines.get(path, top.log.lines.get("jury"))
            top.log.add(line, path, message)
        return AUDITED
