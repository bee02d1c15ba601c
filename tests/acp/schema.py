"""Whether messages keep to the pinned schema of the protocol: the part of JSON Schema that it
uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from scripts.acp_types import schema

KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "null": (type(None),), "integer": (int,), "number": (int, float),
}  # fmt: skip


@cache
def definitions(version: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema(version)["$defs"]
    return found


def problems(value: Any, name: str, version: int = 1) -> list[str]:
    """What is wrong with a value that should be the definition `name`; also keys that this does not
    have."""
    defs, rule = definitions(version), {"$ref": f"#/$defs/{name}"}
    more = [key for key in value if key not in _keys(rule, defs)] if type(value) is dict else []
    return [*_wrong(value, rule, defs, name), *(f"{name}: it has no {key}" for key in more)]


def _keys(rule: Mapping[str, Any], defs: Any) -> Iterator[str]:
    """Those that an object by this rule may have at its root."""
    yield from ("_meta", *rule.get("properties", ()))
    if "$ref" in rule:
        yield from _keys(defs[rule["$ref"].rsplit("/", 1)[-1]], defs)
    for key in ("allOf", "anyOf", "oneOf"):
        for part in rule.get(key, ()):
            yield from _keys(part, defs)


def _wrong(value: Any, rule: Mapping[str, Any], defs: Any, at: str) -> Iterator[str]:
    if "$ref" in rule:
        yield from _wrong(value, defs[rule["$ref"].rsplit("/", 1)[-1]], defs, at)
    for part in rule.get("allOf", ()):
        yield from _wrong(value, part, defs, at)
    for key in ("anyOf", "oneOf"):
        if key in rule:
            tried = [[*_wrong(value, part, defs, at)] for part in rule[key]]
            if all(tried):
                yield min(tried, key=len)[0]
    if "const" in rule and value != rule["const"]:
        yield f"{at}: {value!r} is not {rule['const']!r}"
    if "enum" in rule and value not in rule["enum"]:
        yield f"{at}: {value!r} is none of {rule['enum']}"
    kinds = rule.get("type")
    if kinds is not None and not _is(value, [kinds] if isinstance(kinds, str) else kinds):
        yield f"{at}: {value!r} is no {kinds}"
        return
    if isinstance(value, dict):
        yield from (
            f"{at}: {key} is missing" for key in rule.get("required", ()) if key not in value
        )
        for key, part in rule.get("properties", {}).items():
            if key in value:
                yield from _wrong(value[key], part, defs, f"{at}.{key}")
    if isinstance(value, list) and "items" in rule:
        for n, item in enumerate(value):
            yield from _wrong(item, rule["items"], defs, f"{at}[{n}]")
    if isinstance(value, int) and value < rule.get("minimum", value):
        yield f"{at}: {value} is less than {rule['minimum']}"


def _is(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, KINDS[kind]) for kind in kinds)
