from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from arena.judging.protocol import AUDITED, MAJORITY
from ratings.headless.config import RunConfig, parse_config
from ratings.headless.yaml_tree import MOST_BYTES, MOST_VALUES, ConfigError

GOOD = """\
name: Autumn
task_set: samples.jsonl
providers:
  main:
    base_url: https://llm.example/v1
    key_variable: TILTYARD_KEY_MAIN
candidates:
  - model_id: one
    name: One
    max_tokens: 900
    price: {input: 1.10, output: 2}
  - model_id: two
    provider: main
judges:
  - model_id: judge
    pdf: base64
max_matches: 12
"""


# The last line, which a case of the table below replaces or goes on from.
LAST = "max_matches: 12"


def parse(text: str) -> RunConfig:
    return parse_config(text.encode(), "tournament.yaml")


def problems(text: str | bytes) -> list[str]:
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ConfigError) as caught:
        parse_config(content, "tournament.yaml")
    return caught.value.problems


def test_everything_that_is_said_and_the_defaults_of_the_rest() -> None:
    config = parse(GOOD)
    assert (config.name, config.task_set, config.max_matches) == ("Autumn", "samples.jsonl", 12)
    assert (config.pairing, config.step_size, config.seed, config.budget_usd) == ("round_robin", 20, 1, None)
    assert config.protocol == AUDITED
    one, two = config.candidates
    assert (one.provider, one.full_id, one.max_tokens, one.name) == ("main", "main/one", 900, "One")
    assert one.price is not None
    assert one.price.input == Decimal("1.10")
    assert (two.max_tokens, two.price, two.pdf) == (None, None, False)
    assert config.judges[0].pdf
    assert config.providers[0].key_variable == "TILTYARD_KEY_MAIN"


def test_the_name_falls_back_to_that_of_the_file() -> None:
    assert parse(GOOD.replace("name: Autumn\n", "")).name == "tournament"


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini", "demo"])
def test_kinds_of_provider(kind: str) -> None:
    (provider,) = parse(GOOD.replace("    base_url: https://llm.example/v1", f"    kind: {kind}")).providers
    assert (provider.kind, provider.base_url) == (kind, None)


def test_jury_preset_with_overrides() -> None:
    config = parse(GOOD + "jury: {preset: majority, language: ja, repair_attempts: 1}\n")
    assert config.protocol == MAJORITY.with_overrides({"language": "ja", "repair_attempts": 1})


def test_money_is_exact() -> None:
    assert parse(GOOD + "budget_usd: 0.3\n").budget_usd == Decimal("0.3")


@pytest.mark.parametrize("named", ["One", "one", "main/one"])
def test_baseline_by_name_or_id(named: str) -> None:
    config = parse(GOOD + f"baseline: {named}\nbaseline_weight: 0.5\n")
    assert (config.baseline, config.baseline_weight) == (0, 0.5)


def test_key_as_a_reference_to_the_environment() -> None:
    config = parse(GOOD.replace("key_variable: TILTYARD_KEY_MAIN", "key: {env: TILTYARD_KEY_OTHER}"))
    assert config.providers[0].key_variable == "TILTYARD_KEY_OTHER"


def test_aliases_and_merges_write_a_model_once() -> None:
    text = GOOD.replace("  - model_id: one\n", "  - &one\n    model_id: one\n")
    text = text.replace("judges:\n", "judges:\n  - *one\n  - {<<: *one, model_id: third, max_tokens: 5}\n")
    config = parse(text)
    assert config.judges[0].identity == config.candidates[0].identity
    third = config.judges[1]
    assert (third.model_id, third.max_tokens, third.name) == ("third", 5, "One")


def test_numbers_are_those_of_yaml_1_2() -> None:
    assert parse(GOOD + "seed: 012\nstep_size: 0x10\n").seed == 12
    assert parse(GOOD + "step_size: 0x10\n").step_size == 16


def test_a_later_problem_finds_its_line() -> None:
    config = parse(GOOD)
    assert config.told("candidates[0].max_tokens", "x") == "tournament.yaml line 10: candidates[0].max_tokens: x"
    assert config.told("candidates[1].family", "x") == "tournament.yaml line 12: candidates[1].family: x"
    assert config.told("nowhere", "x") == "tournament.yaml: nowhere: x"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max_tokens: 900", "max_tokens: lots", "line 10: candidates[0].max_tokens: must be a whole number"),
        ("max_tokens: 900", "max_tokens: 1.5", "line 10: candidates[0].max_tokens: must be a whole number"),
        ("max_tokens: 900", "max_tokens: true", "line 10: candidates[0].max_tokens: must be a whole number"),
        ("max_tokens: 900", "max_tokens: 0", "line 10: candidates[0].max_tokens: must be from 1 to 2147483647"),
        (
            "max_tokens: 900",
            "max_token: 9",
            "line 10: candidates[0].max_token: is not known here, did you mean max_tokens?",
        ),
        (
            "name: One",
            "name: 2026",
            "line 9: candidates[0].name: must be text; put it in quotes if it is meant as text",
        ),
        ("name: One", "name: ' '", "line 9: candidates[0].name: must not be blank"),
        ("model_id: one", "name: x", "line 8: candidates[0].model_id: is missing"),
        ("input: 1.10", "input: -1", "line 11: candidates[0].price.input: must be a number from 0 to 100000"),
        ("input: 1.10", "input: .nan", "line 11: candidates[0].price.input: must be a number from 0 to 100000"),
        ("{input: 1.10, output: 2}", "{input: 1}", "line 11: candidates[0].price.output: is missing"),
        ("pdf: base64", "pdf: yes please", "line 16: judges[0].pdf: must be base64 or none"),
        ("max_matches: 12", "max_matches: 0", "line 17: max_matches: must be from 1 to 1000000"),
        ("max_matches: 12", "pairing: swiss", "line 17: pairing: must be one of elo, glicko2, random, round_robin"),
        (LAST, LAST + "\nseed: -1", "line 18: seed: must be from 0 to 9223372036854775807"),
        (LAST, LAST + "\njury: {quorun: 1}", "line 18: jury.quorun: unknown setting, did you mean quorum?"),
        (LAST, LAST + "\njury:\n  quorum: 0", "line 19: jury.quorum: must be a whole number from 1 to 1000"),
        (LAST, LAST + "\njury: [1]", "line 18: jury: must be a mapping of names to values"),
        (LAST, LAST + "\nbaseline: x", "line 18: baseline: no candidate has this name or id; there are One, main/two"),
        (LAST, LAST + "\nbaseline_weight: 0.5", "line 18: baseline_weight: needs a baseline"),
        (LAST, LAST + "\ncategories: [1]", "line 18: categories: must be a list of texts"),
        (LAST, LAST + "\nbudget_usd: 0.00001", "line 18: budget_usd: must have at most 4 decimals"),
        (LAST, LAST + "\nname: twice", "line 18: name: is given twice; the first is in line 1"),
        (
            "  main:\n",
            "  'my main':\n",
            "line 4: providers.my main: a provider's name has letters, digits, - and _ only",
        ),
        (
            "judges:\n",
            "judges:\n  - model_id: judge\n    pdf: base64\n",
            "line 17: judges[1]: is the same judge as judges[0]",
        ),
        (
            "  - model_id: two\n    provider: main",
            "  - {model_id: one, name: Other, max_tokens: 900}",
            "line 12: candidates[1]: is the same candidate as candidates[0]",
        ),
        (
            "  - model_id: judge\n",
            "  - {model_id: one, name: Other, max_tokens: 900}\n  - model_id: judge\n",
            "line 15: judges[0].name: differs from candidates[0].name, and both are the same model",
        ),
    ],
)
def test_one_problem_with_its_line_and_field(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert f"tournament.yaml {expected}" in problems(GOOD.replace(old, new, 1))


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    text = GOOD.replace("max_tokens: 900", "max_tokens: x").replace("pdf: base64", "pdg: base64")
    found = problems(text.replace("max_matches: 12", "max_matchs: 12"))
    assert [line.split(": ")[1] for line in found] == [
        "max_matches",
        "candidates[0].max_tokens",
        "judges[0].pdg",
        "max_matchs",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("key_variable: TILTYARD_KEY_MAIN", "key: sk-hush-hush"),
        ("key_variable: TILTYARD_KEY_MAIN", "api_key: sk-hush-hush"),
        ("key_variable: TILTYARD_KEY_MAIN", "key_variable: sk-hush-hush"),
        ("key_variable: TILTYARD_KEY_MAIN", "key: {env: sk-hush-hush}"),
        ("max_tokens: 900", "token: sk-hush-hush"),
        ("max_tokens: 900", "parameters: {extra: {X-Api-Key: sk-hush-hush}}"),
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(old: str, new: str) -> None:
    found = "\n".join(problems(GOOD.replace(old, new)))
    assert "TILTYARD_KEY_" in found
    assert "hush" not in found


def test_a_model_without_provider_among_several() -> None:
    found = problems(GOOD.replace("  main:\n", "  other: {base_url: 'https://o.example/v1'}\n  main:\n"))
    assert [line.split(": ")[1] for line in found] == ["candidates[0].provider", "judges[0].provider"]


def test_empty_lists() -> None:
    found = problems("task_set: x\ncandidates: []\njudges: []\nmax_matches: 1\n")
    assert found == [
        "tournament.yaml line 2: candidates: a tournament needs at least two",
        "tournament.yaml line 3: judges: a tournament needs at least one",
    ]


# Files that are no configuration ----------------------------------------------------------------------------
LAUGHS = "\n".join(
    [
        "a: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        *(f"{'b' * n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    ]
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "tournament.yaml: is empty"),
        (b"# nothing\n", "tournament.yaml: is empty"),
        (b"- 1\n", "tournament.yaml line 1: must be a mapping of names to values, such as task_set: samples.jsonl"),
        (b"a: 1\nb: \xff\n", "tournament.yaml line 2: is not UTF-8 text; save the file as UTF-8"),
        (b"a: 1\nb: \x07\n", "tournament.yaml line 2: has a control character that YAML does not allow"),
        (b"a: 1\n---\nb: 2\n", "tournament.yaml line 2: is not valid YAML: expected a single document"),
        (b"a: 1\nb: [1,\n", "tournament.yaml line 3: is not valid YAML: while parsing a flow node"),
        (b"a:\n\t- 1\n", "tournament.yaml line 2: is not valid YAML: while scanning for the next token"),
        (b"a: *b\n", "tournament.yaml line 1: is not valid YAML: found undefined alias"),
        (b"a: &a [*a]\n", "tournament.yaml line 1: is nested too deep, or an alias contains itself"),
        (b"[" * 3_000, "tournament.yaml: is nested too deep"),
        (b"#" * (MOST_BYTES + 1), "tournament.yaml: is over 1024 KB long"),
        (
            b"a: !!python/object:os.system x\n",
            "tournament.yaml line 1: a: the tag !!python/object:os.system is not known",
        ),
        (b"a: !mine {b: 1}\n", "tournament.yaml line 1: a: the tag !mine is not known here"),
        (f"a: {'9' * 5000}\n".encode(), "tournament.yaml line 1: a: is not a number that can be read"),
        (b"? [a, b]\n: 1\n", "tournament.yaml line 1: has a key that is not text"),
    ],
)
def test_what_cannot_be_read(content: bytes, expected: str) -> None:
    assert any(problem.startswith(expected) for problem in problems(content))


def test_aliases_are_counted_where_they_are_followed() -> None:
    assert f"over {MOST_VALUES} values" in problems(LAUGHS)[0]


def test_a_byte_order_mark_and_windows_lines_are_fine() -> None:
    content = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert parse_config(content, "tournament.yaml").name == "Autumn"


def test_the_example_of_the_documentation_is_a_configuration() -> None:
    example = Path(__file__).resolve().parents[3] / "docs" / "tournament.example.yaml"
    config = parse_config(example.read_bytes(), example.name)
    assert config.judges[2].identity == config.candidates[0].identity
    assert config.replacement_judges
    assert config.budget_usd == 20


def test_the_pairing_goes_with_the_preset_where_none_is_given() -> None:
    majority = "\njury: {preset: majority, quorum: 1}"
    assert parse(GOOD + majority).pairing == "glicko2"
    assert parse(GOOD + majority + "\npairing: round_robin").pairing == "round_robin"
    elo = parse(GOOD + "pairing: elo\nbaseline: One\nbaseline_weight: 0.5\n")
    assert (elo.pairing, elo.baseline, elo.baseline_weight) == ("elo", 0, 0.5)
