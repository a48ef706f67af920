"""A YAML file as a tree that knows its lines, with every problem on the way there.

The file is composed and never constructed: no tag makes an object, a key given twice is seen, and an alias
costs nothing until it is followed, which is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as Composed
from ruamel.yaml.reader import ReaderError

MOST_BYTES = 1024 * 1024
MOST_VALUES = 20_000
MOST_DEPTH = 40
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Problem:
    line: int | None
    field: str
    message: str

    def told(self, file: str) -> str:
        where = file if self.line is None else f"{file} line {self.line}"
        return ": ".join(part for part in (where, self.field, self.message) if part)


class ConfigError(Exception):
    """Lists everything that is wrong, not only the first, each as a sentence with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping, a list or a scalar. Its line is that of its key, or of the item."""

    value: dict[str, Node] | list[Node] | str | int | float | bool | None
    line: int
    # A scalar as it is written, for numbers that must stay exact.
    text: str = ""

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


class Unreadable(Exception):
    """There is no tree at all."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_tree(content: bytes) -> tuple[Node, list[Problem]]:
    if len(content) > MOST_BYTES:
        raise Unreadable(Problem(None, "", f"is over {MOST_BYTES // 1024} KB long; that is no configuration"))
    root = _compose(_decode(content))
    if root is None:
        raise Unreadable(Problem(None, "", "is empty"))
    builder = _Builder()
    return builder.build(root, "", root.start_mark.line + 1, 0), builder.problems


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(Problem(line, "", "is not UTF-8 text; save the file as UTF-8")) from error


def _compose(text: str) -> Composed | None:
    try:
        composed: Composed | None = YAML(typ="rt", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise Unreadable(Problem(mark.line + 1 if mark else None, "", f"is not valid YAML: {reason}")) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(Problem(line, "", "has a control character that YAML does not allow")) from error
    except YAMLError as error:
        raise Unreadable(Problem(None, "", f"is not valid YAML: {error}")) from error
    except RecursionError as error:
        raise Unreadable(Problem(None, "", "is nested too deep")) from error
    return composed


class _Builder:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._values = 0

    def build(self, node: Composed, path: str, line: int, depth: int) -> Node:
        self._values += 1
        if self._values > MOST_VALUES:
            raise Unreadable(Problem(line, path, f"the file has over {MOST_VALUES} values, counting aliases each time"))
        if depth > MOST_DEPTH:
            raise Unreadable(Problem(line, "", "is nested too deep, or an alias contains itself"))
        if isinstance(node, MappingNode):
            self._check_tag(node, "map", path, line)
            return Node(self._mapping(node, path, depth), line)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq", path, line)
            items = [
                self.build(item, f"{path}[{index}]", item.start_mark.line + 1, depth + 1)
                for index, item in enumerate(node.value)
            ]
            return Node(items, line)
        assert isinstance(node, ScalarNode)
        return Node(self._scalar(node, path, line), line, node.value)

    def _mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for key, value, line in self._own_entries(node, path):
            inside = f"{path}.{key}" if path else key
            if key in entries:
                first = entries[key].line
                self.problems.append(Problem(line, inside, f"is given twice; the first is in line {first}"))
                continue
            entries[key] = self.build(value, inside, line, depth + 1)
        for merged in self._merged(node, path, depth):
            # What the mapping says itself wins over what it takes from elsewhere.
            entries = {**merged, **entries}
        return entries

    def _own_entries(self, node: MappingNode, path: str) -> Iterator[tuple[str, Composed, int]]:
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                self.problems.append(Problem(line, path, "has a key that is not text"))
            elif key.tag != f"{_TAG}merge":
                yield key.value, value, line

    def _merged(self, node: MappingNode, path: str, depth: int) -> Iterator[dict[str, Node]]:
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}merge":
                continue
            line = key.start_mark.line + 1
            sources = value.value if isinstance(value, SequenceNode) else [value]
            for source in sources:
                if isinstance(source, MappingNode):
                    built = self.build(source, path, line, depth + 1).value
                    assert isinstance(built, dict)
                    yield built
                else:
                    self.problems.append(Problem(line, path, "<< can only take in mappings"))

    def _check_tag(self, node: Composed, expected: str, path: str, line: int) -> None:
        if node.tag != f"{_TAG}{expected}":
            self.problems.append(Problem(line, path, f"the tag {_short(node.tag)} is not known here"))

    def _scalar(self, node: ScalarNode, path: str, line: int) -> str | int | float | bool | None:
        text: str = node.value
        kind = (node.tag or "").removeprefix(_TAG)
        try:
            match kind:
                case "str" | "timestamp":
                    return text
                case "int":
                    return _whole(text)
                case "float":
                    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
                case "bool":
                    return text.lower() == "true"
                case "null":
                    return None
        except ValueError:
            self.problems.append(Problem(line, path, "is not a number that can be read"))
            return None
        self.problems.append(Problem(line, path, f"the tag {_short(node.tag)} is not known here"))
        return None


def _whole(text: str) -> int:
    digits = text.replace("_", "")
    return int(digits, 0) if digits.lstrip("+-")[:2].lower() in {"0x", "0o", "0b"} else int(digits, 10)


def _short(tag: str | None) -> str:
    tag = tag or "!"
    name = tag.removeprefix(_TAG)
    return f"!!{name[:40]}" if name != tag else tag[:40]
