"""JSON answers of candidates that were asked for JSON: the smallest value that fits the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping

_DEEPEST = 12


def json_answer(text: str, schema: Mapping[str, object] | None) -> str:
    value = {"answer": text} if schema is None else _instance(schema, text, 0)
    return json.dumps(value, ensure_ascii=False)


def _instance(schema: object, text: str, depth: int) -> object:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "const" in schema:
        return schema["const"]
    options = schema.get("enum") or schema.get("examples")
    if isinstance(options, list) and options:
        return options[0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(keyword)
        if isinstance(choices, list) and choices:
            return _instance(choices[0], text, depth + 1)
    return _of_type(_type(schema), schema, text, depth)


def _type(schema: Mapping[str, object]) -> object:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((entry for entry in kind if entry != "null"), "null")
    return kind or ("object" if "properties" in schema else "string")


def _of_type(kind: object, schema: Mapping[str, object], text: str, depth: int) -> object:
    if kind == "object":
        properties = schema.get("properties")
        entries = properties.items() if isinstance(properties, Mapping) else ()
        return {name: _instance(entry, text, depth + 1) for name, entry in entries}
    if kind == "array":
        least = schema.get("minItems")
        count = least if isinstance(least, int) and 0 < least <= 100 else 1
        return [_instance(schema.get("items", {}), text, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        least = schema.get("minimum")
        return least if isinstance(least, int | float) else 1
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    longest = schema.get("maxLength")
    return text[:longest] if isinstance(longest, int) else text
