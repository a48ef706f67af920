from __future__ import annotations

import json
import re
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.judging.verdict import (
    COMMENT_CHARACTER_CAP,
    VERDICT_SCHEMA,
    ErrorCode,
    ParsedVerdict,
    VerdictError,
    final_code,
    parse_verdict,
    wants_repair,
)

TEN_MEGABYTES = 10_000_000


def reply(winner: Any = "A", **changes: Any) -> str:
    return json.dumps({"A": "good", "B": "bad", "reason": "facts", "winner": winner, **changes})


def code_of(text: str | None, **wire: str | None) -> ErrorCode | None:
    result = parse_verdict(text, **wire)
    return result.code if isinstance(result, VerdictError) else None


GOOD = ParsedVerdict("A", "good", "bad", "facts")


@pytest.mark.parametrize(
    "text",
    [
        reply(),
        f"```json\n{reply()}\n```",
        f"```\n{reply()}\n```",
        f"Here is my verdict:\n{reply()}\nI hope this helps {{really}}.",
        f"The set {{1, 2}} and \\frac{{1}}{{2}} are right. {reply()}",
        f"\ufeff\n {reply()} \n",
        reply("a"),
        reply(" A "),
        json.dumps({"a": "good", "b": "bad", "REASON": "facts", "Winner": "A"}),
        json.dumps({"winner": "A", "reason": "facts", "B": "bad", "A": "good"}),
        reply(confidence=0.9, notes={"deep": [1, {"winner": "B"}]}),
        reply().replace("good", "good\0"),
        f"{reply()}\n{reply()}",
        '{"thought": "first"}' * 999 + reply(),
        reply()[:-1] + ', "score": ' + "9" * 5_000 + "}",
    ],
)
def test_accepted_forms(text: str) -> None:
    assert parse_verdict(text) == GOOD


@pytest.mark.parametrize(("written", "winner"), [("B", "B"), ("b", "B"), ("TIE", "tie"), ("Tie", "tie")])
def test_winner_in_any_case(written: str, winner: str) -> None:
    result = parse_verdict(reply(written))
    assert isinstance(result, ParsedVerdict)
    assert result.winner == winner


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, ErrorCode.EMPTY),
        ("", ErrorCode.EMPTY),
        (" \n\t\0", ErrorCode.EMPTY),
        ("Answer A is better.", ErrorCode.INVALID_JSON),
        ("A", ErrorCode.INVALID_JSON),
        (reply()[:-1], ErrorCode.INVALID_JSON),
        (reply()[:-1] + ",}", ErrorCode.INVALID_JSON),
        (reply().replace('"good"', '"go"od"'), ErrorCode.INVALID_JSON),
        ("{'A': 'good', 'B': 'bad', 'reason': 'facts', 'winner': 'A'}", ErrorCode.INVALID_JSON),
        (reply()[:-1] + ', "score": NaN}', ErrorCode.INVALID_JSON),
        (reply()[:-1] + ', "score": -Infinity}', ErrorCode.INVALID_JSON),
        (reply() + ' {"A": "and then', ErrorCode.INVALID_JSON),
        ("[]", ErrorCode.INVALID_SCHEMA),
        ("null", ErrorCode.INVALID_SCHEMA),
        ('"A"', ErrorCode.INVALID_SCHEMA),
        ("{}", ErrorCode.INVALID_SCHEMA),
        ('{"winner": "A"}', ErrorCode.INVALID_SCHEMA),
        (json.dumps({"verdict": json.loads(reply())}), ErrorCode.INVALID_SCHEMA),
        (reply("Answer A"), ErrorCode.INVALID_SCHEMA),
        (reply("draw"), ErrorCode.INVALID_SCHEMA),
        (reply("A or B"), ErrorCode.INVALID_SCHEMA),
        (reply(None), ErrorCode.INVALID_SCHEMA),
        (reply(["A"]), ErrorCode.INVALID_SCHEMA),
        (reply(reason=None), ErrorCode.INVALID_SCHEMA),
        (reply(A={"text": "good"}), ErrorCode.INVALID_SCHEMA),
        (reply()[:-1] + ', "winner": "B"}', ErrorCode.INVALID_SCHEMA),
        (reply()[:-1] + ', "Winner": "tie"}', ErrorCode.INVALID_SCHEMA),
        (reply("A") + reply("B"), ErrorCode.INVALID_SCHEMA),
        ('{"thought": "first"}' * 1_000 + reply(), ErrorCode.INVALID_SCHEMA),
    ],
)
def test_refused_forms(text: str | None, code: ErrorCode) -> None:
    assert code_of(text) is code


def test_a_key_given_twice_with_one_value_is_no_contradiction() -> None:
    assert parse_verdict(reply()[:-1] + ', "winner": "A"}') == GOOD


@pytest.mark.parametrize("finish", ["content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT"])
def test_a_finish_reason_that_refuses(finish: str) -> None:
    assert code_of(reply(), finish_reason=finish) is ErrorCode.REFUSED
    assert code_of("", finish_reason=finish) is ErrorCode.REFUSED


def test_a_refusal_field() -> None:
    assert code_of("", refusal="I cannot judge this.") is ErrorCode.REFUSED
    assert code_of(reply(), refusal="", finish_reason="stop") is None


@pytest.mark.parametrize("text", ["", '{"A": "go'])
def test_a_cut_reply_says_that_it_was_cut(text: str) -> None:
    result = parse_verdict(text, finish_reason="length")
    assert isinstance(result, VerdictError)
    assert "token cap" in result.message


def test_a_verdict_quoted_inside_a_broken_reply_is_not_taken_for_the_judges() -> None:
    quoted = reply("A")
    broken = '{"A": "it writes ' + quoted + ' to win", "B": "fine", "reason": "honest", "winner": "B"}'
    assert code_of(broken) is ErrorCode.INVALID_JSON


def test_a_verdict_quoted_inside_a_comment_is_text() -> None:
    result = parse_verdict(reply("B", A=f"It says {reply('A')}"))
    assert isinstance(result, ParsedVerdict)
    assert result.winner == "B"


@pytest.mark.parametrize(
    "text",
    [
        "x" * TEN_MEGABYTES,
        "{" * TEN_MEGABYTES,
        '{"' * (TEN_MEGABYTES // 2),
        "{ " * (TEN_MEGABYTES // 2),
        "[" * TEN_MEGABYTES,
        '{"a":' * (TEN_MEGABYTES // 5),
        '{"a":[' * 900 + '{"b":1},' * (TEN_MEGABYTES // 8),
        '{"b":1}\n' * (TEN_MEGABYTES // 8),
        '{"A": "' + "y" * TEN_MEGABYTES,
        '{"A": ' + "9" * TEN_MEGABYTES + "}",
        " " * TEN_MEGABYTES + '"',
    ],
    ids=lambda text: text[:8].strip() or "blank",
)
def test_hostile_ten_megabytes_return_soon(text: str) -> None:
    started = time.process_time()
    assert isinstance(parse_verdict(text), VerdictError)
    assert time.process_time() - started < 10


def test_a_verdict_of_ten_megabytes_is_read_and_its_comments_cut() -> None:
    result = parse_verdict(reply(A="y" * TEN_MEGABYTES))
    assert isinstance(result, ParsedVerdict)
    assert len(result.comment_a) == COMMENT_CHARACTER_CAP
    assert result.comment_a.endswith("y…")


def test_deep_nesting_is_invalid_json() -> None:
    assert code_of('{"A":' * 100_000) is ErrorCode.INVALID_JSON
    assert code_of(reply()[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}") is ErrorCode.INVALID_JSON


def test_comments_can_be_stored() -> None:
    text = '{"A": "a\\u0000b", "B": "\\ud83d\\ude00", "reason": "\\ud83d!", "winner": "tie"}'
    result = parse_verdict(text)
    assert result == ParsedVerdict("tie", "ab", "😀", "\ufffd!")


def test_repair_is_for_unusable_replies_only() -> None:
    for code in ErrorCode:
        error = VerdictError(code, "")
        expected = code in {ErrorCode.EMPTY, ErrorCode.INVALID_JSON, ErrorCode.INVALID_SCHEMA}
        assert wants_repair(error, repairs_made=0, repair_attempts=1) is expected
        assert not wants_repair(error, repairs_made=1, repair_attempts=1)
        assert not wants_repair(error, repairs_made=0, repair_attempts=0)


@pytest.mark.parametrize(
    ("text", "first", "after_repair"),
    [
        ("I would rather not judge this.", ErrorCode.INVALID_JSON, ErrorCode.REFUSED),
        (reply()[:-1], ErrorCode.INVALID_JSON, ErrorCode.INVALID_JSON),
        ("", ErrorCode.EMPTY, ErrorCode.EMPTY),
        (reply("draw"), ErrorCode.INVALID_SCHEMA, ErrorCode.INVALID_SCHEMA),
    ],
)
def test_the_code_that_stands_at_last(text: str, first: ErrorCode, after_repair: ErrorCode) -> None:
    error = parse_verdict(text)
    assert isinstance(error, VerdictError)
    assert final_code(error, repaired=False) is first
    assert final_code(error, repaired=True) is after_repair


def test_the_schema_is_strict_and_ordered() -> None:
    jsonschema.Draft202012Validator.check_schema(VERDICT_SCHEMA)
    assert list(VERDICT_SCHEMA["properties"]) == ["A", "B", "reason", "winner"]
    jsonschema.validate(json.loads(reply()), VERDICT_SCHEMA)
    for bad in (reply("a"), reply(extra=1), '{"winner": "A"}'):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(bad), VERDICT_SCHEMA)


@given(
    comments=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=3, max_size=3),
    winner=st.sampled_from(["A", "B", "tie"]),
    before=st.text(st.characters(exclude_characters="{")),
    after=st.text(st.characters(exclude_characters="{")),
)
def test_any_verdict_is_read_back(comments: list[str], winner: str, before: str, after: str) -> None:
    a, b, reason = comments
    result = parse_verdict(before + reply(winner, A=a, B=b, reason=reason) + after)
    assert result == ParsedVerdict(winner, a, b, reason)  # type: ignore[arg-type]


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert isinstance(parse_verdict(text), ParsedVerdict | VerdictError)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=10))
def test_other_json_is_never_a_verdict(value: object) -> None:
    assert code_of(json.dumps(value)) is not None


def test_messages_end_as_sentences() -> None:
    for text in ("", "prose", reply()[:-1], reply("draw"), "[]"):
        error = parse_verdict(text)
        assert isinstance(error, VerdictError)
        assert re.search(r"\.$", error.message)
