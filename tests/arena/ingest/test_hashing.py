from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.ingest.hashing import SetHash, canonical_json

from .builders import inspect_lines, message_line


def hashes(folder: Path, **labels: Any) -> tuple[str, str]:
    sample = inspect_lines(folder, message_line("Hi", **labels)).preview[0]
    return sample.input_hash, sample.content_hash


@pytest.mark.parametrize(
    "labels",
    [
        {"category": "x"},
        {"reference": "x"},
        {"criteria": "x"},
        {"tags": ["x"]},
        {"metadata": {"x": 1}},
        {"json_schema": {"type": "object"}},
    ],
)
def test_a_label_changes_the_content_and_not_the_input(tmp_path: Path, labels: dict[str, Any]) -> None:
    bare, labelled = hashes(tmp_path), hashes(tmp_path, **labels)
    assert bare[0] == labelled[0]
    assert bare[1] != labelled[1]


def test_the_key_belongs_to_the_set_and_not_to_the_sample(tmp_path: Path) -> None:
    assert hashes(tmp_path) == hashes(tmp_path, id="given")
    first = inspect_lines(tmp_path, message_line("a", id="1"), message_line("b", id="2"))
    other = inspect_lines(tmp_path, message_line("b", id="2"), message_line("a", id="1"))
    renamed = inspect_lines(tmp_path, message_line("a", id="1"), message_line("b", id="3"))
    assert len({first.content_hash, other.content_hash, renamed.content_hash}) == 3


def test_the_order_of_keys_and_the_writing_of_numbers_change_nothing() -> None:
    assert canonical_json({"b": 1.0, "a": [1e20, -0.0]}) == '{"a":[100000000000000000000,0],"b":1}'
    assert canonical_json({"a": 0.1}) == canonical_json(json.loads('{"a": 1e-1}'))
    assert canonical_json(1.2345678901234567e19) == "12345678901234567000"


def test_fields_cannot_flow_into_each_other() -> None:
    one, two = SetHash(), SetHash()
    one.add("a", "bc")
    two.add("ab", "c")
    assert one.hexdigest() != two.hexdigest()
