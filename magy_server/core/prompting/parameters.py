"""This module writes what models are told of the parameters of tools: their JSON Schema, and what
is wrong with arguments. Most tools ship with a schema, so this is seldom imported. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError


def schema_of(model: type[Any]) -> dict[str, Any]:
    """Returns the JSON Schema that models are shown of these parameters."""
    schema = TypeAdapter(model).json_schema()
    shapes = schema.pop("$defs", {})
    return _telling(schema, shapes)


_UNTOLD = {
    "title", "additionalProperties", "minLength", "maxLength", "minimum", "exclusiveMinimum",
    "maxItems",
}  # fmt: skip
"""What a model would not do anyway, or learns from the answer."""


def _telling(schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns it without what tells a model nothing: names that pydantic made up, defaults that are
    empty, that unknown keys are refused, the least and the longest of what is usually neither, and
    null for what can be left out. What is named in `shapes` stands where it is used."""
    if "$ref" in schema:
        shape = shapes[schema["$ref"].rpartition("/")[2]]
        own = {key: value for key, value in shape.items() if key != "description"}  # for readers
        schema = {**own, **{key: value for key, value in schema.items() if key != "$ref"}}
    branches = schema.get("anyOf", ())
    optional = "default" in schema
    some = [branch for branch in branches if not (optional and branch.get("type") == "null")]
    if len(some) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _telling({**some[0], **rest}, shapes)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {name: _telling(one, shapes) for name, one in value.items()}
        elif key == "anyOf":
            found[key] = [_telling(one, shapes) for one in some]
        elif isinstance(value, Mapping) and key in ("items", "additionalProperties"):
            found[key] = _telling(value, shapes)
        elif key not in _UNTOLD and (key != "default" or value):
            found[key] = value
    return found


def wrong(error: ValidationError, parameters: Mapping[str, Any]) -> str:
    """Returns what is wrong with the arguments of a call. `parameters`: their JSON Schema."""
    known = ", ".join(parameters.get("properties", {}))
    return f"wrong arguments ({problems(error)}). Parameters are: {known}."


def problems(error: ValidationError) -> str:
    """Returns what is wrong, and where, of the first five."""
    parts = []
    for item in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in item["loc"]) or "arguments"
        parts.append(f"{where}: {item['msg']}")
    return "; ".join(parts)
